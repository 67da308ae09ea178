/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/mover: the transfers of one command, from the first STORE or RETRIEVE to the one `done`
 * report: parameters from the settings, progress, outcomes of files.
 */
#ifndef RFTP_MOVER_H
#define RFTP_MOVER_H

#include "rftp/copy/failures.h"
#include "rftp/remote/client.h"
#include "tree/incoming.h"
#include "transfer/plan.h"
#include "tree/outgoing.h"

#define MOVER_WITHOUT_R "is a directory (use -r to copy directories)"

struct mover {
	struct client *client;
	struct report_done done; /* of the transfers that ended */
	uint64_t busy_ns;
	struct failures failed;
	/* with stop-on-error: readable when a file failed; and that, or a signal */
	int stop_fd, cancel_fd;
	bool stopped;
	struct transfer_params *params; /* of the transfer that runs */
	uint64_t there;      /* bytes that crossed or were there, of the transfers that ended */
	uint64_t had;        /* of these: were there */
	const char *remote;  /* what names that cross are beneath at the server; NULL: none */
	struct asked *asked; /* where each name has a path of its own there; NULL: it has not */
	uint64_t outcomes_before;
	uint64_t skipped;      /* of the transfer that runs: were there already, and stay */
	char *special;         /* the first of the devices, FIFOs and sockets that are left out */
	uint64_t files_before; /* that arrived before the transfer that runs */
	uint64_t base_errors;  /* the report's, at the start */
	uint64_t file_errors;  /* and at the start of the transfer that runs */
	uint64_t outcomes;     /* files that mover_file_done was told of */
	uint64_t failures;     /* those of them that failed */
	/* the first file that failed with what may have ended the whole transfer, too: reported
	 * when it turns out that it did not */
	uint16_t held_status;
	char *held_path, *held_text;
	bool stdout_stream;   /* bytes go to stdout */
	struct bucket bucket; /* of limit-rate */
	bool has_bucket;
	struct plan_early early;                   /* of the transfer that runs, */
	struct message_data_request early_request; /* of a get that does not wait */
	bool answered;                             /* and whether its request is answered, */
	uint16_t early_type;                       /* MESSAGE_STORE or MESSAGE_RETRIEVE */
	int refused;  /* -errno, calls_error says more: nothing of it was done */
	bool leaving; /* outcomes are of no account: another way has them */
	bool quiet;   /* no line for people at the end: the caller has its own (bench) */
};

/* `command`: what the user asked for, "get". */
void mover_start(struct mover *, struct client *, const char *command);
/* The same of a copy to another server. */
void mover_start_between(
	struct mover *, struct client *, const struct client *there, const char *command);
/* Whether a setting is there that a put alone can follow; reported, as wrong use. */
bool mover_is_for_put(struct client *);
/* So many data channels (0: as suits), priority, deadline and rate as the settings say; reported.
 * Before STORE, RETRIEVE or FEED. */
int mover_channels(struct mover *, unsigned count);
/* Fills in the wishes of a STORE or RETRIEVE. */
void mover_request(const struct mover *, uint16_t type, struct message_data_request *);
/* STORE: how much there will be, where it is one file; or that nobody knows. */
void mover_request_size(struct message_data_request *, struct outgoing *);
/* After the OK reply, or after mover_early_put: then `refused` may be set, and nothing is reported
 * of that.  Errors are reported; `object` names the whole. */
int mover_send(struct mover *, struct outgoing *, const char *object);
/* Of a feed: signals end its streams, and do not cancel it. */
int mover_send_source(struct mover *, const struct transfer_source *, const char *object);
int mover_receive(struct mover *, struct incoming *, const char *object);
/*
 * Of what is no transfer of this side (between two servers, which tell of it; single requests):
 * before it begins; how far it is; and its end, as of mover_send.  `stats`: ended_ns is how long
 * the data have moved.
 */
void mover_begin(struct mover *);
void mover_moved(struct mover *, const struct transfer_stats *);
int mover_end(struct mover *, const struct transfer_stats *, const char *object,
	enum verdict_scope outcome);
/* No file more: with stop-on-error, after a failure. */
void mover_stop(struct mover *);
/* Reports `done`.  Gives the outcome of the whole: `error`, or -EREMOTEIO when files failed. */
int mover_finish(struct mover *, int error);

#endif
