/* SPDX-License-Identifier: Apache-2.0 */
/* The macros of <sys/queue.h> as far as `make lint` needs them: cppcheck does not read that header.
 */
#ifndef TESTS_CPPCHECK_H
#define TESTS_CPPCHECK_H

#define LIST_HEAD(name, type)                                                                      \
	struct name {                                                                              \
		struct type *first;                                                                \
	}
#define LIST_ENTRY(type)                                                                           \
	struct {                                                                                   \
		struct type *next;                                                                 \
	}
#define LIST_FIRST(head) ((head)->first)
#define LIST_NEXT(element, field) ((element)->field.next)
#define LIST_EMPTY(head) (!(head)->first)
#define LIST_FOREACH(element, head, field)                                                         \
	for (element = (head)->first; element; element = element->field.next)

#define STAILQ_HEAD(name, type)                                                                    \
	struct name {                                                                              \
		struct type *first;                                                                \
	}
#define STAILQ_ENTRY(type)                                                                         \
	struct {                                                                                   \
		struct type *next;                                                                 \
	}
#define STAILQ_FIRST(head) ((head)->first)
#define STAILQ_NEXT(element, field) ((element)->field.next)
#define STAILQ_EMPTY(head) (!(head)->first)
#define STAILQ_FOREACH(element, head, field)                                                       \
	for (element = (head)->first; element; element = element->field.next)

#define SLIST_HEAD(name, type)                                                                     \
	struct name {                                                                              \
		struct type *first;                                                                \
	}
#define SLIST_ENTRY(type)                                                                          \
	struct {                                                                                   \
		struct type *next;                                                                 \
	}
#define SLIST_FIRST(head) ((head)->first)
#define SLIST_NEXT(element, field) ((element)->field.next)
#define SLIST_EMPTY(head) (!(head)->first)

#define TAILQ_HEAD(name, type)                                                                     \
	struct name {                                                                              \
		struct type *first;                                                                \
	}
#define TAILQ_ENTRY(type)                                                                          \
	struct {                                                                                   \
		struct type *next;                                                                 \
	}
#define TAILQ_FIRST(head) ((head)->first)
#define TAILQ_NEXT(element, field) ((element)->field.next)
#define TAILQ_EMPTY(head) (!(head)->first)
#define TAILQ_FOREACH(element, head, field)                                                        \
	for (element = (head)->first; element; element = element->field.next)

#endif
