/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/mover_file: what became of each file of a command: counted, and told at once or, where
 * it may have been the whole transfer's end, when that is known.
 */
#ifndef RFTP_MOVER_FILE_H
#define RFTP_MOVER_FILE_H

#include "rftp/copy/mover.h"

/* For outgoing_params and incoming_params: ctx is the mover. */
void mover_file_done(void *ctx, const struct outcome *);
/* The same: what there is is looked at. */
void mover_file_scanned(void *ctx, uint64_t files, uint64_t bytes);
/* Counts one outcome, of what people know as `shown`.  Whether a failure is to be reported now, as
 * that file's own: others are when it turns out whether the whole transfer was cut. */
bool mover_file_count(struct mover *, const char *shown, const struct outcome *);
/* A source that no transfer tells of since it cannot be had, which was reported: it is among what
 * failed.  `name`: beneath the destination, "" where it has none; `shown`: as it was given. */
void mover_file_absent(struct mover *, const char *name, const char *shown, uint16_t status);
/* Whether a file that failed so may have ended the others with it. */
bool mover_file_ends_all(uint16_t status);
/* It turned out whether it had.  `alone`: the transfer went on, so the failure that was held back
 * was that file's own, and is reported. */
void mover_file_release(struct mover *, bool alone);

#endif
