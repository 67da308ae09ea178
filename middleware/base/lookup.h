/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/lookup: users and groups by name and by number, as this host's name services know them.
 *
 * They are asked here, or, from lookup_elsewhere on, by another process: one that confines itself
 * sees neither a file that later takes the place of /etc/passwd, nor what else a name service
 * reads, connects to or loads.
 */
#ifndef BASE_LOOKUP_H
#define BASE_LOOKUP_H

#include <stdint.h>

#define LOOKUP_NAME_MAX 255u
/* Questions that another process answers at once: a name service may be slow. */
#define LOOKUP_LINES 4u

enum lookup_kind { LOOKUP_USER, LOOKUP_GROUP };

/* 0; -ENOENT: there is none of this number, or name, or the name is too long; -errno: nobody can
 * say.  Any thread; each blocks for as long as the name services do. */
int lookup_name(enum lookup_kind, uint32_t id, char out[LOOKUP_NAME_MAX + 1]);
int lookup_id(enum lookup_kind, const char *name, uint32_t *id);

/* Each end of LOOKUP_LINES connections (AF_UNIX, SOCK_SEQPACKET) whose others are served
 * elsewhere.  Once, before there are threads; they are this module's from now on. */
void lookup_elsewhere(const int fds[LOOKUP_LINES]);
/* The other process' part: answers on one connection until that ends, or something comes that is
 * no question. */
void lookup_serve(int fd);

#endif
