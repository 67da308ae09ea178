/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/client: what lives as long as the program: settings, report, the session and the
 * place in it.
 */
#ifndef RFTP_CLIENT_H
#define RFTP_CLIENT_H

#include "rftp/remote/line.h"
#include "rftp/remote/login.h"
#include "rftp/remote/over_ssh.h"
#include "rftp/remote/url.h"
#include "rftp/settings.h"
#include "rftp/ui/report.h"
#include "session/calls_names.h"
#include "transfer/transfer.h"

#include <pthread.h>

#define CLIENT_AGENT "rftp/" RFTP_VERSION /* how the program calls itself */

struct jobs;

struct client {
	struct settings settings;
	struct report report;
	struct calls *session; /* NULL: none, or lost */
	unsigned *users;       /* of it: this client, and clones */
	/* calls_params.ahead of the next connection; NULL: nothing is known beforehand */
	void (*ahead)(void *ctx, struct calls *);
	void *ahead_ctx;
	const char *opening;     /* the path of the URL that is being opened */
	bool lists_first;        /* the first command then lists that directory */
	unsigned transfer;       /* the number that its transfers have in the session */
	struct tls_context *tls; /* NULL: not made yet */
	char *tls_files;         /* that it was made with */
	char *host; /* of the open that succeeded: a lost session is taken up again; NULL: none */
	uint16_t port;
	char *user;            /* of the URL; "": none */
	bool ssh;              /* the server is started through ssh: */
	struct over_ssh *over; /* while there is a session; NULL: none */
	char *cwd, *previous;  /* remote directory now and before (cd -) */
	bool interactive;      /* a person types */
	bool stdin_taken;      /* commands are read from stdin: it is no file to send */
	bool quit;
	struct line line;    /* of the command's transfers */
	unsigned early_rest; /* transfers that wait for their answers, since one was refused */
	bool early_in_line;  /* the last one stood in line at the server */
	struct jobs *jobs;   /* the shell's; NULL: there is no shell */
	/* Whoever works with the session or the report has it; held but while a transfer moves
	 * data, and while the shell waits for its user. */
	pthread_mutex_t *lock, own_lock;
	const char *side; /* which of two servers this is, as messages say it; NULL: there is one */
	/* of a clone */
	bool is_clone;
	int cancel_fd;                /* -1: signals are heard */
	_Atomic uint64_t moved_bytes; /* by the command that runs */
};

/* The caller has its lock from then on. */
int client_init(struct client *, const struct settings *);
void client_fini(struct client *);

/*
 * A client for another thread: with settings and places as they are now, the same session, in which
 * its transfers have the number `transfer`, and a report of its own.  It does not hear signals, ask
 * its user, or connect.  0 or -errno, reported.
 */
int client_clone(struct client *, unsigned transfer, struct client *out);
void client_clone_fini(struct client *); /* the caller has the lock */
void client_lock(const struct client *);
void client_unlock(const struct client *);
/* What runs in a clone ends soon.  From any thread. */
void client_cancel(const struct client *);
/* What the server says of the line that a transfer waits in is about this client's next one. */
void client_hear_queue(struct client *);
/* Readable when it is to end. */
int client_cancel_fd(const struct client *);
bool client_is_cancelled(const struct client *);

/* Connects, in place of what was there.  Errors are reported; then there is no server. */
int client_open(struct client *, const struct url *);
/* After client_open: the paths of an ssh:// URL begin in the home of the user there, or, with
 * another slash, at the top.  0 or -ENOMEM, reported. */
int client_place(struct client *, struct url *);
void client_close(struct client *);
/* [USER@]HOST[:PORT] of the server as a URL has it: the port where it is not the default, an IPv6
 * address in brackets. */
void client_server(const struct client *, struct text *out);
/* The URL of a path at the server, to be given to rftp again: what is special in one is written as
 * %NN. */
void client_url(const struct client *, const char *path, struct text *out);
/*
 * The session, connected once more if it was lost meanwhile; NULL: not connected, which is
 * reported.
 */
struct calls *client_session(struct client *);
/* Something happened to the connection while nobody asked: whether it is lost now (it is reported).
 */
bool client_check(struct client *);

/* calls_after_transfer with what transfer_send or transfer_receive left in its statistics. */
int client_after_transfer(struct calls *, int error, const struct transfer_stats *);
/* Reports a failed call of session/calls or session/calls_names about `object`, and lets go of
 * the session when it is lost.  Gives `error` back. */
int client_report(struct client *, const char *object, int error);
/* There is no session, or its connection is lost. */
bool client_is_gone(const struct client *);
/* -ENOMEM, reported. */
int client_no_memory(struct client *);

#endif
