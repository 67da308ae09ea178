/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message: the frame header and the session messages.
 *
 * Frame, RFTP's Fig. 7(a): event type 16 bits, response 16, length of data 32, then the data.  All
 * big-endian.  A reply has the request's type with MESSAGE_REPLY set and a status (status.h) in
 * `response`; a reply whose status is not 0 carries one text (bytes, 0..512) and nothing else.
 * In CHANNELS, STORE, RETRIEVE, FEED and SEND_COPY, and in the frames of a transfer, `response` is
 * the number of the transfer, below MESSAGE_TRANSFERS_MAX; in other requests and notices it is 0.
 *
 * get functions check every length, count and value against the limits below and refuse trailing
 * bytes: 0, -EMSGSIZE or -EBADMSG.  Their byte strings point into the buffer they were given.  put
 * functions return the number of bytes written, or -EMSGSIZE / -EBADMSG for a struct that may not
 * be sent.
 */
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

#include "proto/message_seen.h"
#include "proto/wire.h"

#include <stdbool.h>
#include <sys/types.h>

#define MESSAGE_HEADER_BYTES 8u
#define MESSAGE_DATA_MAX 65536u /* data of one frame */
#define MESSAGE_REPLY 0x8000u
#define MESSAGE_PATH_MAX 4095u
#define MESSAGE_TEXT_MAX 512u
#define MESSAGE_NAME_MAX 255u /* a directory entry, a program's name */
#define MESSAGE_CLASS_MAX 31u /* the name of a class of transfers */
#define MESSAGE_TOKEN_BYTES 16u
#define MESSAGE_CHANNELS_MAX 64u        /* of one transfer */
#define MESSAGE_TRANSFERS_MAX 4u        /* of a session at once */
#define MESSAGE_SEGMENT_BYTES_MIN 4096u /* of a feed's segment */
#define MESSAGE_SEGMENT_NS_MIN 10000000u
#define MESSAGE_INLINE_MAX 61440u /* bytes of a file in PUT and GET */
#define MESSAGE_LIST_MAX 1024u    /* entries in one LIST reply */

#define MESSAGE_VERSION 1u
#define MESSAGE_UNKNOWN UINT64_MAX /* a size or count that is not known */

struct message_header {
	uint16_t type;
	uint16_t response;
	uint32_t length;
};
/* -EBADMSG when length is over MESSAGE_DATA_MAX. */
int message_get_header(struct message_header *, const uint8_t bytes[MESSAGE_HEADER_BYTES]);
void message_put_header(const struct message_header *, uint8_t bytes[MESSAGE_HEADER_BYTES]);

enum message_type {
	MESSAGE_HELLO = 1,
	MESSAGE_BYE = 2,
	MESSAGE_PING = 3,
	MESSAGE_CHANNELS = 4,
	MESSAGE_LOGIN = 5,
	MESSAGE_ADMIT = 6,
	MESSAGE_RING = 8,
	MESSAGE_STAT = 16,
	MESSAGE_LIST = 17,
	MESSAGE_MKDIR = 18,
	MESSAGE_RMDIR = 19,
	MESSAGE_REMOVE = 20,
	MESSAGE_RENAME = 21,
	MESSAGE_STATFS = 22,
	MESSAGE_REMOVE_TREE = 23,
	MESSAGE_TREE = 24, /* proto/message_tree.h */
	MESSAGE_SUM = 25,
	MESSAGE_SETATTR = 26, /* proto/message_change.h */
	MESSAGE_MAKE_LINK = 27,
	MESSAGE_GRANT_COPY = 28, /* proto/message_copy.h */
	MESSAGE_SEND_COPY = 29,
	MESSAGE_PUT = 30, /* proto/message_inline.h */
	MESSAGE_GET = 31,
	MESSAGE_STORE = 32,
	MESSAGE_RETRIEVE = 33,
	MESSAGE_FEED = 34,
	MESSAGE_LEFTOVERS = 35, /* proto/message_leftovers.h */
	MESSAGE_LSTAT = 36,     /* STAT, but of a symbolic link itself */
	/* 64..95 are the transfer messages: proto/transfer.h; and, before one begins: */
	MESSAGE_QUEUED = 83,
};

/* One row a message: the codec table.  Lengths are of the data.  NULL when there is no such type.
 */
struct message_row {
	uint16_t type; /* with MESSAGE_REPLY for replies */
	const char *name;
	uint32_t min, max;
};
const struct message_row *message_row(uint16_t type);
/* Whether `response` is the number of a transfer. */
bool message_has_number(uint16_t type);
/* 0, or -EBADMSG: no such type, or a length outside its row.  A reply with a status other than 0 is
 * checked as the error text that it carries. */
int message_check(const struct message_header *);
const char *message_name(uint16_t type); /* "STORE", "STORE reply", "unknown message" */

/* ---- HELLO: the first request; limits become the minima of both sides ---- */

enum message_engine {
	MESSAGE_ENGINE_CREDIT = 1,
	MESSAGE_ENGINE_STATUS = 2,
	MESSAGE_ENGINE_WINDOW = 3,
	MESSAGE_ENGINE_PULL = 4
};

struct message_hello {           /* request and reply have the same shape */
	uint16_t version;        /* request: highest spoken; reply: the one used */
	uint16_t max_channels;   /* 1..64 */
	uint32_t max_block;      /* bytes, 65536..16777216 */
	uint32_t max_depth;      /* blocks of one transfer, 2..65536 */
	uint16_t max_transfers;  /* at once, 1..MESSAGE_TRANSFERS_MAX */
	uint32_t engines;        /* bit n = enum message_engine n */
	uint32_t session;        /* reply: number of this session; request: 0 */
	uint32_t flags;          /* MESSAGE_HELLO_*; request: in its upper half the client's port */
	struct wire_bytes agent; /* "rftp/0.1.0", 0..255 bytes, for people */
};
#define MESSAGE_HELLO_DIRECT                                                                       \
	2u                       /* reply: the control channel comes from the port in the request  \
				  */
#define MESSAGE_HELLO_QUEUED 16u /* request: the client takes QUEUED */
/* Two bits: request: how blocks are to be protected at least; reply: how they will be. */
#define MESSAGE_HELLO_PROTECT_SHIFT 2
#define MESSAGE_HELLO_PROTECT_MASK 3u
enum message_protect {
	MESSAGE_PROTECT_CLEAR = 0,  /* checksums against damage */
	MESSAGE_PROTECT_SAFE = 1,   /* authenticated */
	MESSAGE_PROTECT_PRIVATE = 2 /* encrypted, too */
};
static inline uint32_t message_hello_protect(uint32_t flags)
{
	return flags >> MESSAGE_HELLO_PROTECT_SHIFT & MESSAGE_HELLO_PROTECT_MASK;
}
const char *message_protect_name(unsigned level); /* "clear"; NULL past the last */
/* Seven bits, reply: bit n: the daemon knows the method n of LOGIN */
#define MESSAGE_HELLO_METHODS_SHIFT 8
#define MESSAGE_HELLO_METHODS_MASK 127u
static inline uint32_t message_hello_methods(uint32_t flags)
{
	return flags >> MESSAGE_HELLO_METHODS_SHIFT & MESSAGE_HELLO_METHODS_MASK;
}
#define MESSAGE_HELLO_PORT_SHIFT 16

/* ---- PING: measures the round trip; the reply has the same cookie.  Cookie 0 is a keep-alive:
 * either side may send it at any time after LOGIN, nobody answers it ---- */
struct message_ping {
	uint64_t cookie;
};

/* ---- CHANNELS: make `count` data channels usable.  The reply says how many the peer may open,
 * which index they start at, and a nonce for the token that each of them shows. ---- */
struct message_channels {
	uint16_t count; /* 1..64 */
};
struct message_channels_reply {
	uint16_t count;
	uint16_t first;
	uint8_t nonce[MESSAGE_TOKEN_BYTES];
	/* memory that blocks of a STORE may be written to before it is answered; 0 bytes: there is
	 * none, and the other two are 0 */
	uint32_t area_bytes, area_key;
	uint64_t area_base;
};
#define MESSAGE_AREA_MAX (1u << 20)

/* ---- RING: no data.  What follows the reply is not sent to the client, but lies in memory that it
 * reads by READ on the control channel (session/reply_ring) ---- */
struct message_ring_reply {
	uint32_t bytes; /* a power of two, MESSAGE_RING_MIN..MESSAGE_RING_MAX */
	uint32_t key;
	uint64_t base;
};
#define MESSAGE_RING_MIN 4096u
#define MESSAGE_RING_MAX (1u << 20)
int message_get_ring_reply(struct message_ring_reply *, const void *, size_t len);
ssize_t message_put_ring_reply(const struct message_ring_reply *, void *, size_t size);

/* ---- names: paths are bytes without NUL, '/'-separated, absolute from the export's top ---- */

enum message_file_type { /* of an entry */
	MESSAGE_FILE = 1,
	MESSAGE_DIRECTORY = 2,
	MESSAGE_SYMLINK = 3,
	MESSAGE_OTHER = 4,
};
struct message_attr {
	uint8_t type;
	uint32_t mode; /* permission bits, 07777 */
	uint32_t uid, gid;
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns; /* < 1e9 */
	bool holes;        /* a file that takes less of its disk than its size; bit 31 of `mode` */
};
struct message_path { /* STAT, RMDIR, REMOVE, STATFS, LIST, REMOVE_TREE */
	struct wire_bytes path;
};
struct message_mkdir {
	uint32_t mode;
	uint32_t flags; /* bit 0: make parents, an existing directory is no error */
	struct wire_bytes path;
};
#define MESSAGE_MKDIR_PARENTS 1u
struct message_rename {
	uint32_t flags; /* bit 0: may replace an existing file */
	struct wire_bytes from, to;
};
#define MESSAGE_RENAME_REPLACE 1u
struct message_removed {  /* REMOVE_TREE reply */
	uint64_t removed; /* names */
	uint8_t more;     /* 1: it is not all gone, ask once more */
};
struct message_statfs_reply {
	uint64_t total_bytes, free_bytes, available_bytes;
	uint64_t total_files, free_files;
};

/* LIST replies: any number of frames; `more` is 1 in all but the last.  Entries follow the head. */
struct message_list_reply {
	uint8_t more;
	uint16_t count; /* 0..MESSAGE_LIST_MAX */
};
struct message_entry {
	struct message_attr attr;
	struct wire_bytes name;   /* 1..255 bytes, no '/' */
	struct wire_bytes target; /* what a link says, at most MESSAGE_PATH_MAX bytes without NUL;
				     empty: not known, and of anything else */
};

/* ---- STORE and RETRIEVE: after the OK reply the data source sends OFFER (proto/transfer.h) ----
 */

enum message_data_kind {
	MESSAGE_DATA_FILES = 1, /* files beneath `path` */
	MESSAGE_DATA_NULL = 2,  /* bench: memory to memory; `path` is empty */
};
#define MESSAGE_DATA_INTO 1u /* path is a directory: files go beneath it under their own names */
#define MESSAGE_DATA_RECURSIVE 2u  /* directories are followed down */
#define MESSAGE_DATA_NO_REPLACE 4u /* STORE: an existing file is an error */
#define MESSAGE_DATA_STREAM 8u     /* the client's end is a stream, which may be silent for long */
/* RETRIEVE: symbolic links in a tree are followed, or left out; without either they are kept */
#define MESSAGE_DATA_FOLLOW_LINKS 16u
#define MESSAGE_DATA_SKIP_LINKS 32u
#define MESSAGE_DATA_UPDATE 64u /* STORE: a file that is not older than what comes is kept */
/* RETRIEVE: what FILE is to say beyond mode and time */
#define MESSAGE_DATA_OWNER 256u
#define MESSAGE_DATA_GROUP 512u
#define MESSAGE_DATA_XATTRS 1024u
#define MESSAGE_DATA_ACLS 2048u
#define MESSAGE_DATA_NUMERIC 4096u    /* numbers alone, no names of users and groups */
#define MESSAGE_DATA_HARD_LINKS 8192u /* RETRIEVE: other names of a file are sent as such */
#define MESSAGE_DATA_IN_PLACE 32768u  /* STORE: one file, written at the offset `resume` */
#define MESSAGE_DATA_PREALLOCATE                                                                   \
	16384u /* STORE: the disk space of a file is taken before it comes */
/* RETRIEVE: four bits: compress blocks with this level of zlib, 1 to 9; 0: do not */
#define MESSAGE_DATA_SQUEEZE_SHIFT 16
#define MESSAGE_DATA_SQUEEZE_MASK 15u
#define MESSAGE_DATA_SQUEEZE_MAX 9u
static inline unsigned message_data_squeeze(uint32_t flags)
{
	return flags >> MESSAGE_DATA_SQUEEZE_SHIFT & MESSAGE_DATA_SQUEEZE_MASK;
}
/* RETRIEVE of a tree: not all of it; `more` are the names beneath `path` that are wanted */
#define MESSAGE_DATA_SELECTED 128u
/* STORE: when files are flushed to stable storage; without any of them it is FILE */
#define MESSAGE_DATA_FSYNC_FILE 0x100000u  /* each one before its RESULT */
#define MESSAGE_DATA_FSYNC_END 0x200000u   /* all of them before CLOSED */
#define MESSAGE_DATA_FSYNC_NEVER 0x400000u /* when the host likes */
#define MESSAGE_DATA_FSYNC                                                                         \
	(MESSAGE_DATA_FSYNC_FILE | MESSAGE_DATA_FSYNC_END | MESSAGE_DATA_FSYNC_NEVER)
#define MESSAGE_DATA_READBACK 0x800000u /* STORE: files are read back and compared */
#define MESSAGE_DATA_REREAD 0x1000000u  /* RETRIEVE: and read once more before they are ended */
#define MESSAGE_DATA_EARLY 0x2000000u   /* the transfer's frames follow without waiting */
/* RETRIEVE with SELECTED: a name with '/' behind that is a file's: what it has beside its bytes;
 * "/": likewise, of the directory itself */
#define MESSAGE_DATA_ATTRIBUTES 0x4000000u

struct message_data_request { /* STORE, RETRIEVE */
	uint8_t kind;         /* enum message_data_kind */
	uint32_t flags;       /* MESSAGE_DATA_* */
	uint8_t engine;       /* RETRIEVE: wanted engine; STORE: 0 */
	uint16_t channels;    /* RETRIEVE: wanted, 0 = all open; STORE: 0 */
	uint32_t block;  /* RETRIEVE: wanted block bytes; STORE: that OFFER will have; 0 = choose */
	uint32_t depth;  /* wanted blocks, 0 = choose */
	uint32_t rtt_us; /* the round trip that the client has measured, 0 = not known */
	uint8_t direct;  /* the daemon's O_DIRECT: 0 auto, 1 on, 2 off */
	uint64_t size;   /* RETRIEVE of MESSAGE_DATA_NULL: bytes to send; STORE: of the one file,
			    0 = not known; else 0 */
	uint64_t resume; /* STORE: files of at least so many bytes leave behind what arrived of them
			    when the transfer is cut short, and go on from there; 0 = none; with
			    MESSAGE_DATA_IN_PLACE the offset of its first byte, or MESSAGE_UNKNOWN:
			    behind the end; else 0 */
	struct wire_bytes path;
	/* RETRIEVE of several, with MESSAGE_DATA_INTO: how many paths there are besides, and these
	 * as they cross: message_add_path, message_next_path; with MESSAGE_DATA_SELECTED how many
	 * names, and these; else 0 */
	uint16_t more_count;
	struct wire_bytes more;
	/* RETRIEVE of trees: rules that say which names are left out (tree/filter), as they cross:
	 * message_add_rule, message_next_rule; else 0 */
	uint16_t rule_count;
	struct wire_bytes rules;
};
#define MESSAGE_PATHS_MAX 4096u /* in one request */
#define MESSAGE_RULES_MAX 4096u /* in one request */

struct message_rule {
	uint8_t include;           /* 1: what matches is copied; 0: it is left out */
	struct wire_bytes pattern; /* 1..4095 bytes, no NUL */
};

#define MESSAGE_STREAMS_MAX 255u
/* FEED: the client sends streams, one a device; the daemon writes each in segments to path/NAME/ */
struct message_feed {
	uint32_t flags;         /* reserved: 0 */
	uint16_t streams;       /* most of them at once, 1..MESSAGE_STREAMS_MAX */
	uint64_t segment_bytes; /* a segment is closed before it would be larger; 0 = no limit */
	uint64_t segment_ns;    /* and when it is so old; 0 = no limit */
	struct wire_bytes path; /* a directory; made if it is not there */
};

/* ADMIT: how urgent the transfers are that are asked for from now on. */
struct message_admit {
	uint64_t deadline_ns; /* from the request for a transfer on; MESSAGE_UNKNOWN = none */
	uint32_t flags;
	struct wire_bytes class; /* a name, as message_class_ok; empty: the one that it has anyway
				  */
};
#define MESSAGE_ADMIT_FAIL 1u /* one that waits beyond its deadline is refused */

/* QUEUED: before the reply to STORE, RETRIEVE or FEED, any number of times: the transfer waits
 * until others give back what it needs; and while it runs: it waits for its next turn. */
struct message_queued {
	uint32_t position; /* in line, from 1; 0: it goes on */
	uint64_t wait_ns; /* for about how long; MESSAGE_UNKNOWN; position 0: how long it has waited
			   */
	uint64_t share;   /* bytes a second that it may move; 0: not limited, or not known */
	struct wire_bytes class; /* whose line it is; empty: there are no classes */
};

int message_get_hello(struct message_hello *, const void *, size_t);
ssize_t message_put_hello(const struct message_hello *, void *, size_t);
int message_get_ping(struct message_ping *, const void *, size_t);
ssize_t message_put_ping(const struct message_ping *, void *, size_t);
int message_get_channels(struct message_channels *, const void *, size_t);
ssize_t message_put_channels(const struct message_channels *, void *, size_t);
int message_get_channels_reply(struct message_channels_reply *, const void *, size_t);
ssize_t message_put_channels_reply(const struct message_channels_reply *, void *, size_t);
int message_get_path(struct message_path *, const void *, size_t);
ssize_t message_put_path(const struct message_path *, void *, size_t);
/* LSTAT reply: the target is what a link says, 1..4095 bytes without NUL, or empty: it is not
 * known, and of anything else */
struct message_link_attr {
	struct message_attr attr;
	struct wire_bytes target;
};
int message_get_link_attr(struct message_link_attr *, const void *, size_t);
ssize_t message_put_link_attr(const struct message_link_attr *, void *, size_t);
int message_get_attr(struct message_attr *, const void *, size_t); /* STAT reply */
ssize_t message_put_attr(const struct message_attr *, void *, size_t);
int message_get_mkdir(struct message_mkdir *, const void *, size_t);
ssize_t message_put_mkdir(const struct message_mkdir *, void *, size_t);
int message_get_rename(struct message_rename *, const void *, size_t);
ssize_t message_put_rename(const struct message_rename *, void *, size_t);
int message_get_removed(struct message_removed *, const void *, size_t);
ssize_t message_put_removed(const struct message_removed *, void *, size_t);
int message_get_statfs_reply(struct message_statfs_reply *, const void *, size_t);
ssize_t message_put_statfs_reply(const struct message_statfs_reply *, void *, size_t);
int message_get_data_request(struct message_data_request *, const void *, size_t);
ssize_t message_put_data_request(const struct message_data_request *, void *, size_t);
/* One path more at the end of `list`, of which *len bytes are used.  0, -EMSGSIZE: it is full;
 * -EBADMSG: the path may not cross. */
int message_add_path(void *list, size_t size, size_t *len, struct wire_bytes path);
/* The next of message_data_request.more; false: there is none.  It is off the list then. */
bool message_next_path(struct wire_bytes *more, struct wire_bytes *path);
/* The same of rules. */
int message_add_rule(void *list, size_t size, size_t *len, const struct message_rule *);
bool message_next_rule(struct wire_bytes *rules, struct message_rule *);
int message_get_feed(struct message_feed *, const void *, size_t);
ssize_t message_put_feed(const struct message_feed *, void *, size_t);
int message_get_admit(struct message_admit *, const void *, size_t);
ssize_t message_put_admit(const struct message_admit *, void *, size_t);
int message_get_queued(struct message_queued *, const void *, size_t);
ssize_t message_put_queued(const struct message_queued *, void *, size_t);
/* The text of a refusal: bytes 0..512. */
int message_get_text(struct wire_bytes *, const void *, size_t);
ssize_t message_put_text(struct wire_bytes, void *, size_t);

/*
 * LIST replies are written and read entry by entry.  Put: begin, entries while they return 0
 * (-EMSGSIZE: this frame is full, nothing was added), then end with the `more` flag; end returns
 * the data's length.  Get: begin, `count` entries, finish with wire_finish.
 */
struct message_list_writer {
	struct wire wire;
	uint16_t count;
};
void message_list_begin(struct message_list_writer *, void *, size_t);
int message_list_add(struct message_list_writer *, const struct message_entry *);
ssize_t message_list_end(struct message_list_writer *, bool more);
int message_get_list_head(struct message_list_reply *, struct wire *, const void *, size_t);
int message_get_list_entry(struct message_entry *, struct wire *);

/* Whether bytes are a path that may cross the wire (1..4095 bytes, no NUL), or an entry's name
 * (1..255, no NUL, no '/', not "." or ".."), or the name of a class (1..31 letters, digits, '-' and
 * '_'). */
bool message_path_ok(struct wire_bytes);
bool message_class_ok(struct wire_bytes);
bool message_name_ok(struct wire_bytes);

#endif
