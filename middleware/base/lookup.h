/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/lookup: users and groups by name and by number, as this host's name services know them.
 *
 * They are asked here, or, from lookup_elsewhere on, by other processes: one that confines itself
 * sees neither a file that later takes the place of /etc/passwd, nor what else a name service
 * reads, connects to or loads.
 */
#ifndef BASE_LOOKUP_H
#define BASE_LOOKUP_H

#include "base/clock.h"

#include <stdint.h>

#define LOOKUP_NAME_MAX 255u
/* Questions that are answered elsewhere at once: a name service may be slow. */
#define LOOKUP_LINES 4u
/* Processes that have ended, and in whose place others were started, within LOOKUP_LOST_NS. */
#define LOOKUP_LOST_MAX 8u
#define LOOKUP_LOST_NS (60 * NS_PER_S)

/* Until a process that is asked for must have been started. */
#define LOOKUP_LINE_S 10

enum lookup_kind { LOOKUP_USER, LOOKUP_GROUP };

/* 0; -ENOENT: there is none of this number, or name, or the name is too long; -errno: nobody can
 * say.  Any thread; each blocks for as long as the name services do. */
int lookup_name(enum lookup_kind, uint32_t id, char out[LOOKUP_NAME_MAX + 1]);
int lookup_id(enum lookup_kind, const char *name, uint32_t *id);

/*
 * From now on questions are answered elsewhere.  `keeper`: a connection (AF_UNIX, SOCK_SEQPACKET)
 * to who answers each byte with one and the end of a new connection, a line, that a process of its
 * own serves; or with a byte alone, when it has none.  A process that ends while nobody asks, or
 * at a question, is replaced, and the question asked once more; after LOOKUP_LOST_MAX of them
 * nobody can say for a while.  All of it is logged.  Once, before there are threads; `keeper` is
 * this module's from then on.
 */
void lookup_elsewhere(int keeper);
/* The other process' part: answers on one line until that ends, or something comes that is no
 * question. */
void lookup_serve(int fd);

#endif
