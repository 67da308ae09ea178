/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of proto/message: frame header, codec table, session messages, private data. */
#include "proto/message_greeting.h"
#include "tests/samples.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define TOKEN "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
#define GREETING_CONTROL "52465450 01 01 0000 00000000 0040 00*16"
#define GREETING_DATA "52465450 01 02 003f 89abcdef 0000 " TOKEN
#define WELCOME "52465450 01 00 0040 0000 " TOKEN
#define HELLO                                                                                      \
	"0001 0008 00400000 00000200 0004 0000000a 00000000 00000000 000a 726674702f302e312e30"
#define LOGIN_ANONYMOUS "01 0000 0000"
#define LOGIN_PASSWORD "02 0005 616c696365 0003 6f7065"
#define LOGIN_KEY "03 0001 61 0008 0002 6b6b 0002 7373"
#define LOGIN_ONCE "04 0000 0020 6f*32"
#define LOGIN_CERTIFICATE "05 0001 61 0000"
#define LOGIN_REPLY "0000001f 0002 0000f000 0005 616c696365 0001 2f"
#define CHANNELS "0008"
#define RING_REPLY "00020000 00000009 00007f0000002000"
#define CHANNELS_REPLY "0008 0040 " TOKEN " 00100000 00000007 00007f0000001000"
#define PATH "0003 2f6162"
#define ATTR "01 000001a4 000003e8 000003e9 0123456789abcdef ffffffffffffffff 3b9ac9ff"
#define MKDIR "000001ed 00000001 0002 2f61"
#define RENAME "00000001 0002 2f61 0002 2f62"
#define CHANGES                                                                                    \
	"0002 0b 000001a4 ffffffffffffffff 3b9ac9ff 0002 2f61 "                                    \
	"14 00000000 0000000000000000 00000000 0002 2f62"
#define CHANGE_SEEN                                                                                \
	"0001 82 00000000 ffffffffffffffff 3b9ac9ff 0000000000000007 fffffffffffffffe 3b9ac9fe "   \
	"0123456789abcdef 0002 2f61"
#define CHOWN                                                                                      \
	"0003 60 00000000 0000000000000000 00000000 000003e8 0000 ffffffff 0005 7573657273 0001 "  \
	"2f "                                                                                      \
	"21 000001a4 0000000000000000 00000000 000003e8 0001 61 0001 2f "                          \
	"50 00000000 0000000000000000 00000000 00000000 0000 0001 2f"
#define CHANGE_MAX "02 00000000 7fffffffffffffff 3b9ac9ff 0100 61*256 "
#define STATUSES "0002 0000 00c9"
#define MAKE_LINK "00000000 0002 2e2e 0002 2f62"
#define REMOVED "0000000000000007 01"
#define STATFS                                                                                     \
	"0000000000000001 0000000000000002 0000000000000003 0000000000000004 0000000000000005"
#define FILES                                                                                      \
	"01 00000007 01 0008 00400000 00000200 0000c350 00 0000000000000000 "                      \
	"0000000000000000 0002 2f61 0000 0000"
#define SEVERAL                                                                                    \
	"01 00000007 01 0008 00400000 00000200 0000c350 00 0000000000000000 "                      \
	"0000000000000000 0002 2f61 0002 0003 2f6263 0001 2f 0000"
#define WANTED                                                                                     \
	"01 00000082 01 0008 00400000 00000200 0000c350 00 0000000000000000 "                      \
	"0000000000000000 0002 2f61 0002 0003 612f62 0002 632f 0000"
#define RULES                                                                                      \
	"01 00000007 01 0008 00400000 00000200 0000c350 00 0000000000000000 "                      \
	"0000000000000000 0002 2f61 0000 0002 01 0003 2a2e63 00 0005 2f782f2a2a"
#define NULLS                                                                                      \
	"02 00000000 00 0000 00000000 00000000 00000000 00 0000000100000000 0000000000000000 "     \
	"0000 0000 0000"
#define APPEND                                                                                     \
	"01 00008000 00 0000 00000000 00000000 00000000 00 0000000000000000 "                      \
	"ffffffffffffffff 0001 2f 0000 0000"
#define FEED "00000000 0007 0000000004000000 00000002540be400 0005 2f66656564"
#define ENTRY ATTR " 0001 61 0000 "
#define LINK "03 000001ff 000003e8 000003e9 0000000000000001 ffffffffffffffff 3b9ac9ff"
#define TREE "00000001 0002 2f61 0001 00 0003 2a2e6f"
#define TREE2 "01 0002 " ATTR " 0000 0000 0002 6162 0000 " LINK " 0000 0001 0001 63 0001 78"
#define TREE_MAX ATTR " 0000 0000 00ff 62*255 0000 " ATTR " 0007 0000 00ff 63*255 0000 "
#define TREE_TOP                                                                                   \
	"00 0001 02 000001a4 000003e8 000003e9 0123456789abcdef ffffffffffffffff 3b9ac9ff "        \
	"0000 0000 0000 0000"
#define TREE_HAS                                                                                   \
	"00 0002 " ATTR " 0000 8000 0001 61 0000 0f 0001 75 0001 67 0000000000000000 "             \
	"0000000000000007 " LINK " 0000 8000 0001 62 0001 78 01 0000 0000"
#define TREE_CHANGE "00 0001 " ATTR " 0000 8000 0001 61 0000 10 0123456789abcdef"
#define LEFTOVERS "00000001 0000000000000e10 0002 2f61"
#define LEFTOVER                                                                                   \
	"02 01 0000 000000006553f100 0000000000010000 0000000000000400 0000000000001000 "          \
	"0003 612f62 0001 63 "
#define LEFTOVERS_REPLY                                                                            \
	"01 0002 " LEFTOVER                                                                        \
	"03 04 0000 ffffffffffffffff 0000000000000200 0000000000000000 0000000000000000 "          \
	"0001 61 0000"
#define LIST2 "01 0002 " ENTRY LINK " 0001 61 0002 2e2e"
#define ENTRY_MAX ATTR " 00ff 62*255 0000 "
#define X5(x) x x x x x
#define X25(x) X5(x) X5(x) X5(x) X5(x) X5(x)
#define X200(x) X25(x) X25(x) X25(x) X25(x) X25(x) X25(x) X25(x) X25(x)
#define X225(x) X25(x) X25(x) X25(x) X25(x) X25(x) X25(x) X25(x) X25(x) X25(x)
#define COMPONENT "61*255 2f "
#define COMPONENTS63                                                                               \
	X25(COMPONENT) X25(COMPONENT) X5(COMPONENT) X5(COMPONENT) COMPONENT COMPONENT COMPONENT
#define UNREADABLE "01 03 00c8 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
#define LEFTOVER_MAX UNREADABLE "3fff " COMPONENTS63 "61*255 0000 "

#define SUMS "02 0002 0002 2f61 0002 2f62"
#define SUM_MAX "0fff 0000 7fffffffffffffff 0020 5a*32 "
#define SUMS_REPLY                                                                                 \
	"00 0000000000000007 0002 0001 00c8 0000000000000000 0000 0000 0000 0000000000000007 "     \
	"0004 12345678"

#define GRANT_COPY "00000003 0002 2f64"
#define COPY_ONE                                                                                   \
	"01 00000000 00 0000 00000000 00000000 00000000 00 0000000000000000 0000000000000000 "     \
	"0001 2f 0000 0000"
/* host, port, key, protect, rate, grant, flags of the STORE, its path */
#define SEND_COPY_HEAD "0001 61 0001 0001 61 00 0000000000000000 0001 61 00000000 0001 2f "
#define SEND_COPY                                                                                  \
	"0009 3139322e302e322e31 1cdb 0007 5348413235363a 02 0000000000100000 0004 01020304 "      \
	"00904047 0004 2f746f2f "                                                                  \
	"01 00003f13 01 0004 00080000 00000010 000003e8 01 0000000000000000 0000000000100000 "     \
	"0002 2f61 0001 0002 2f62 0001 00 0003 2a2e6f"
#define COPY_NUMBERS                                                                               \
	"0000000000000001 0000000000000001 0000000000000002 0000000000000003 0000000000000004 "    \
	"ffffffffffffffff 0000000000000005 0000000000000006 ffffffffffffffff 0000000000000007 "    \
	"0001 61 "
#define COPY_REPLY                                                                                 \
	"00 03 00ce 0003 617761 " COPY_NUMBERS "01 02 01 0004 00080000 00000010 0004 736f6674 "    \
	"0002 00 0000 0000000000000005 0001 61 0000 07 0130 0000000000000000 0003 622f63 0002 "    \
	"6e6f"
#define COPY_NONE                                                                                  \
	"01 00 0000 0000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "     \
	"0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "    \
	"0000000000000000 0000 "                                                                   \
	"00 00 00 0000 00000000 00000000 "
#define COPY_LONG "00 0000 0000000000000000 0000 0200 61*512 "
/* FILE of PUT and GET without its name: number, kind, mode, time, size */
#define WHOLE_FILE(size) "00000001 01 000001a4 0000000000000001 00000002 00000000" size " "
/* PUT of 2 bytes beneath a directory: flags, path, digest, FILE, length, bytes */
#define PUT_INTO                                                                                   \
	"00000001 0002 2f64 0123456789abcdef 0020 " WHOLE_FILE("00000002") "0001 6e 00000002 6869"
#define PUT_SHORTEST                                                                               \
	"00000000 0001 2f 0000000000000000 001f " WHOLE_FILE("00000000") "0000 00000000"
#define PUT_DIRECTORY                                                                              \
	"00000001 0001 2f 0123456789abcdef 001f 00000001 02 000001ed 0000000000000001 00000002 "   \
	"0000000000000000 0000 00000000"
#define PUT_REPLY "01 0000 0123456789abcdef 0002 6f6b"
#define GET "00001f00 0000f000 0002 2f66"
#define GET_REPLY "01 0123456789abcdef 001f " WHOLE_FILE("00000002") "0000 00000002 6869"

static const struct sample samples[] = {
	{0, recode_message_greeting, GREETING_CONTROL},
	{0, recode_message_greeting, GREETING_DATA},
	{0, recode_message_welcome, WELCOME},
	{0, recode_message_welcome, "52465450 00 00 0000 0065 00*16"},
	{1, recode_text, "0000"}, /* no type of its own */
	{1, recode_text, "0003 6e6f21"},
	{1, recode_text, "0200 78*512"},
	{MESSAGE_HELLO, NULL, HELLO},
	{MESSAGE_HELLO, NULL, "0001 0001 00010000 00000002 0001 00000000 00000000 00000000 0000"},
	{MESSAGE_HELLO, NULL,
		"ffff 0040 01000000 00010000 0004 ffffffff 00000000 ffffffff 00ff 61*255"},
	{MESSAGE_HELLO | MESSAGE_REPLY, NULL, HELLO},
	{MESSAGE_HELLO | MESSAGE_REPLY, NULL,
		"0001 0008 00400000 00000200 0001 0000000a 00000007 00000001 0000"},
	{MESSAGE_HELLO | MESSAGE_REPLY, NULL,
		"0001 0040 01000000 00010000 0004 00000002 ffffffff 00000001 00ff 00*255"},
	{MESSAGE_LOGIN, NULL, LOGIN_ANONYMOUS},
	{MESSAGE_LOGIN, NULL, LOGIN_PASSWORD},
	{MESSAGE_LOGIN, NULL, "02 00ff 61*255 0400 78*1024"},
	{MESSAGE_LOGIN, NULL, LOGIN_KEY},
	/* the longest there may be */
	{MESSAGE_LOGIN, NULL, "03 00ff 61*255 1000 07fe 6b*2046 07fe 73*2046"},
	{MESSAGE_LOGIN, NULL, LOGIN_ONCE},
	{MESSAGE_LOGIN, NULL, LOGIN_CERTIFICATE},
	{MESSAGE_LOGIN, NULL, "05 0000 0000"},
	{MESSAGE_LOGIN, NULL, "06 0000 0100 78*256"},
	{MESSAGE_LOGIN, NULL, "06 0000 0001 00"},
	{MESSAGE_LOGIN | MESSAGE_REPLY, NULL, LOGIN_REPLY},
	{MESSAGE_LOGIN | MESSAGE_REPLY, NULL, "00000000 0000 00000000 0000 0001 2f"},
	{MESSAGE_LOGIN | MESSAGE_REPLY, NULL, "0000001f ffff 00000000 00ff 61*255 0fff 2f*4095"},
	{MESSAGE_BYE, NULL, ""},
	{MESSAGE_BYE | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_PING, NULL, "0123456789abcdef"},
	{MESSAGE_PING | MESSAGE_REPLY, NULL, "0123456789abcdef"},
	{MESSAGE_CHANNELS, NULL, CHANNELS},
	{MESSAGE_CHANNELS | MESSAGE_REPLY, NULL, CHANNELS_REPLY},
	{MESSAGE_ADMIT, NULL, "ffffffffffffffff 00000000 0000"},
	{MESSAGE_ADMIT, NULL, "7fffffffffffffff 00000001 001f 5a*31"},
	{MESSAGE_ADMIT | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_RING, NULL, ""},
	{MESSAGE_RING | MESSAGE_REPLY, NULL, RING_REPLY},
	{MESSAGE_STAT, NULL, PATH},
	{MESSAGE_STAT, NULL, "0001 2f"},
	{MESSAGE_STAT, NULL, "0fff ff*4095"},
	{MESSAGE_STAT | MESSAGE_REPLY, NULL, ATTR},
	{MESSAGE_STAT | MESSAGE_REPLY, NULL,
		"01 800001a4 000003e8 000003e9 0123456789abcdef ffffffffffffffff 3b9ac9ff"},
	{MESSAGE_LIST, NULL, "0001 2f"},
	{MESSAGE_LIST, NULL, "0fff 0a*4095"},
	{MESSAGE_LIST | MESSAGE_REPLY, NULL, "00 0000"},
	{MESSAGE_LIST | MESSAGE_REPLY, NULL, LIST2},
	/* 225 entries of 290 bytes and one of 283 fill a frame to the last byte */
	/* 224 entries of 292 bytes and one of 125 fill a frame to the last byte */
	{MESSAGE_LIST | MESSAGE_REPLY, NULL,
		"01 00e1 " X25(ENTRY_MAX) X25(ENTRY_MAX) X25(ENTRY_MAX) X25(ENTRY_MAX) X25(
			ENTRY_MAX) X25(ENTRY_MAX) X25(ENTRY_MAX) X25(ENTRY_MAX) X5(ENTRY_MAX)
			X5(ENTRY_MAX) X5(ENTRY_MAX) X5(ENTRY_MAX)
				ENTRY_MAX ENTRY_MAX ENTRY_MAX ENTRY_MAX ATTR " 0058 63*88 0000"},
	{MESSAGE_MKDIR, NULL, MKDIR},
	{MESSAGE_LSTAT, NULL, "0001 2f"},
	{MESSAGE_LSTAT, NULL, "0fff 61*4095"},
	{MESSAGE_LSTAT | MESSAGE_REPLY, NULL, ATTR " 0000"},
	{MESSAGE_LSTAT | MESSAGE_REPLY, NULL, LINK " 0001 78"},
	{MESSAGE_LSTAT | MESSAGE_REPLY, NULL, LINK " 0fff 61*4095"},
	{MESSAGE_MKDIR, NULL, "00000fff 00000000 0001 2f"},
	{MESSAGE_MKDIR, NULL, "00000000 00000000 0fff 61*4095"},
	{MESSAGE_MKDIR | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_RMDIR, NULL, "0001 2f"},
	{MESSAGE_RMDIR, NULL, "0fff 61*4095"},
	{MESSAGE_RMDIR | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_REMOVE, NULL, "0001 2f"},
	{MESSAGE_REMOVE, NULL, "0fff 61*4095"},
	{MESSAGE_REMOVE | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_RENAME, NULL, RENAME},
	{MESSAGE_RENAME, NULL, "00000000 0001 2f 0001 2f"},
	{MESSAGE_RENAME, NULL, "00000000 0fff 61*4095 0fff 62*4095"},
	{MESSAGE_RENAME | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_STATFS, NULL, "0001 2f"},
	{MESSAGE_STATFS, NULL, "0fff 61*4095"},
	{MESSAGE_STATFS | MESSAGE_REPLY, NULL, STATFS},
	{MESSAGE_REMOVE_TREE, NULL, "0001 2f"},
	{MESSAGE_REMOVE_TREE, NULL, "0fff 61*4095"},
	{MESSAGE_REMOVE_TREE | MESSAGE_REPLY, NULL, REMOVED},
	{MESSAGE_TREE, NULL, TREE},
	{MESSAGE_TREE, NULL, "00000000 0001 2f 0000"},
	{MESSAGE_TREE, NULL,
		"00000002 0001 2f 00e3 " X225("00 0100 61*256 ") "01 0fff 61*4095 00 0c4f 61*3151"},
	{MESSAGE_TREE | MESSAGE_REPLY, NULL, "00 0000"},
	{MESSAGE_TREE | MESSAGE_REPLY, NULL, TREE2},
	/* 220 entries of 296 bytes and one of 413 fill a frame to the last byte */
	{MESSAGE_TREE | MESSAGE_REPLY, NULL,
		"01 00dd " X25(TREE_MAX) X25(TREE_MAX) X25(TREE_MAX) X25(TREE_MAX) X5(TREE_MAX)
			X5(TREE_MAX) ATTR " 0000 0000 0174 61*255 2f 61*116 0000"},
	{MESSAGE_TREE, NULL, "00000005 0001 2f 0000"},
	{MESSAGE_TREE | MESSAGE_REPLY, NULL, TREE_TOP},
	{MESSAGE_TREE, NULL, "000001fc 0001 2f 0000"},
	{MESSAGE_TREE | MESSAGE_REPLY, NULL, TREE_CHANGE},
	{MESSAGE_TREE | MESSAGE_REPLY, NULL, TREE_HAS},
	{MESSAGE_LEFTOVERS, NULL, LEFTOVERS},
	{MESSAGE_LEFTOVERS, NULL, "00000000 0000000000000000 0001 2f"},
	{MESSAGE_LEFTOVERS, NULL, "00000001 7fffffffffffffff 0fff 61*4095"},
	{MESSAGE_LEFTOVERS | MESSAGE_REPLY, NULL, "01 0000"},
	{MESSAGE_LEFTOVERS | MESSAGE_REPLY, NULL, LEFTOVERS_REPLY},
	{MESSAGE_LEFTOVERS | MESSAGE_REPLY, NULL,
		"00 0004 " LEFTOVER_MAX LEFTOVER_MAX LEFTOVER_MAX UNREADABLE "3f60 " COMPONENTS63
		"61*96 0000"},
	{MESSAGE_SUM, NULL, "01 0001 0001 2f"},
	{MESSAGE_SUM, NULL, SUMS},
	/* paths that fill a frame to the last byte */
	{MESSAGE_SUM, NULL, "04 00e3 " X225("0100 61*256 ") "0fff 61*4095 0d38 61*3384"},
	{MESSAGE_SUM | MESSAGE_REPLY, NULL, "01 0000000000000000 0000"},
	{MESSAGE_SUM | MESSAGE_REPLY, NULL, SUMS_REPLY},
	{MESSAGE_SUM | MESSAGE_REPLY, NULL,
		"00 ffffffffffffffff 0200 " X225(SUM_MAX) X225(SUM_MAX) X25(SUM_MAX) X25(SUM_MAX)
			X5(SUM_MAX) X5(SUM_MAX) SUM_MAX SUM_MAX},
	{MESSAGE_SETATTR, NULL, CHANGES},
	{MESSAGE_SETATTR, NULL, "0001 01 00000000 0000000000000000 00000000 0001 2f"},
	{MESSAGE_SETATTR, NULL, CHOWN},
	{MESSAGE_SETATTR, NULL, CHANGE_SEEN},
	/* changes that fill a frame to the last byte */
	{MESSAGE_SETATTR, NULL,
		"00e0 " X200(CHANGE_MAX) X5(CHANGE_MAX) X5(CHANGE_MAX) X5(CHANGE_MAX) X5(CHANGE_MAX)
			CHANGE_MAX CHANGE_MAX "01 00000fff 0000000000000000 00000000 0fff 61*4095 "
					      "01 00000fff 0000000000000000 00000000 015f 61*351"},
	{MESSAGE_SETATTR | MESSAGE_REPLY, NULL, "0001 0000"},
	{MESSAGE_SETATTR | MESSAGE_REPLY, NULL, "0400 00*2048"},
	{MESSAGE_SETATTR | MESSAGE_REPLY, NULL, STATUSES},
	{MESSAGE_MAKE_LINK, NULL, MAKE_LINK},
	{MESSAGE_MAKE_LINK, NULL, "00000000 0001 2f 0001 2f"},
	{MESSAGE_MAKE_LINK, NULL, "00000000 0fff 61*4095 0fff 62*4095"},
	{MESSAGE_MAKE_LINK | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_GRANT_COPY, NULL, GRANT_COPY},
	{MESSAGE_GRANT_COPY, NULL, "00000000 0001 2f"},
	{MESSAGE_GRANT_COPY, NULL, "00000007 0fff 61*4095"},
	{MESSAGE_GRANT_COPY | MESSAGE_REPLY, NULL, "0000000000000000 0001 00"},
	{MESSAGE_GRANT_COPY | MESSAGE_REPLY, NULL, "00000000ffffffff 0100 78*256"},
	{MESSAGE_SEND_COPY, NULL, SEND_COPY},
	{MESSAGE_SEND_COPY, NULL, SEND_COPY_HEAD COPY_ONE},
	{MESSAGE_SEND_COPY, NULL, /* paths that fill a frame to the last byte */
		SEND_COPY_HEAD
		"01 00000001 00 0000 00000000 00000000 00000000 00 0000000000000000 "
		"0000000000000000 0001 2f 00e4 " X225("0100 61*256 ") "0fff 61*4095 0cf1 61*3313 "
								      "0001 61 0000"},
	{MESSAGE_SEND_COPY | MESSAGE_REPLY, NULL, COPY_REPLY},
	{MESSAGE_SEND_COPY | MESSAGE_REPLY, NULL, COPY_NONE "0000 0000"},
	{MESSAGE_SEND_COPY | MESSAGE_REPLY, NULL,
		COPY_NONE "0000 007d " X25(COPY_LONG) X25(COPY_LONG) X25(COPY_LONG) X25(COPY_LONG)
			X5(COPY_LONG) X5(COPY_LONG) X5(COPY_LONG) X5(COPY_LONG)
				COPY_LONG COPY_LONG COPY_LONG COPY_LONG
		"00 0000 0000000000000000 0000 0044 61*68"},
	{MESSAGE_STORE, NULL, FILES},
	{MESSAGE_STORE, NULL, NULLS},
	{MESSAGE_STORE, NULL,
		"01 00000000 00 0000 00000000 00000000 00000000 02 0000000000000000 "
		"0000000000000000 0fff 61*4095 0000 0000"},
	{MESSAGE_STORE, NULL, APPEND},
	{MESSAGE_STORE | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_RETRIEVE, NULL, FILES},
	{MESSAGE_RETRIEVE, NULL, NULLS},
	{MESSAGE_RETRIEVE, NULL,
		"01 00000000 04 0040 01000000 00010000 ffffffff 01 0000000000000000 "
		"0000000000000000 0fff 61*4095 0000 0000"},
	{MESSAGE_RETRIEVE, NULL, SEVERAL},
	{MESSAGE_RETRIEVE, NULL, RULES},
	{MESSAGE_RETRIEVE, NULL, WANTED},
	/* paths that fill a frame to the last byte */
	{MESSAGE_RETRIEVE, NULL,
		"01 00000001 00 0000 00000000 00000000 00000000 00 0000000000000000 "
		"0000000000000000 0001 2f 00e4 " X225("0100 61*256 ") "0fff 61*4095 0d0c 61*3340 "
								      "0001 61 0000"},
	{MESSAGE_RETRIEVE | MESSAGE_REPLY, NULL, ""},
	{MESSAGE_PUT, NULL, PUT_INTO},
	{MESSAGE_PUT, NULL, PUT_SHORTEST},
	{MESSAGE_PUT, NULL, PUT_DIRECTORY},
	/* a file that fills a frame to the last byte */
	{MESSAGE_PUT, NULL,
		"00400044 0fcd 61*4045 ffffffffffffffff 001f " WHOLE_FILE(
			"0000f000") "0000 0000f000 00*61440"},
	{MESSAGE_PUT | MESSAGE_REPLY, NULL, PUT_REPLY},
	{MESSAGE_PUT | MESSAGE_REPLY, NULL, "00 012c 0000000000000000 0000"},
	{MESSAGE_PUT | MESSAGE_REPLY, NULL, "00 012c 0000000000000000 0200 78*512"},
	{MESSAGE_GET, NULL, GET},
	{MESSAGE_GET, NULL, "00000000 00000001 0001 2f"},
	{MESSAGE_GET, NULL, "00000000 0000f000 0fff 61*4095"},
	{MESSAGE_GET | MESSAGE_REPLY, NULL, GET_REPLY},
	{MESSAGE_GET | MESSAGE_REPLY, NULL, "00"},
	{MESSAGE_GET | MESSAGE_REPLY, NULL,
		"01 ffffffffffffffff 0ff1 00000001 81 000001a4 0000000000000001 00000002 "
		"000000000000f000 0000 0004 0fce 0006 757365722e61 0fc4 76*4036 0000f000 00*61440"},
	{MESSAGE_FEED, NULL, FEED},
	{MESSAGE_FEED, NULL, "00000000 0001 0000000000000000 0000000000000000 0001 2f"},
	{MESSAGE_FEED, NULL, "00000000 00ff 7fffffffffffffff 7fffffffffffffff 0fff 61*4095"},
	{MESSAGE_FEED | MESSAGE_REPLY, NULL, ""},
};

static void all_samples(void)
{
	sample_check_all(samples, COUNT(samples));
}

static void codec_table(void)
{
	/* the text's samples stand under type 1, which is HELLO's: leave them out */
	sample_check_rows(samples + 7, COUNT(samples) - 7, 0, 63);
	CHECK(!strcmp(message_name(MESSAGE_STORE), "STORE"));
	CHECK(!strcmp(message_name(MESSAGE_STORE | MESSAGE_REPLY), "STORE reply"));
	CHECK(!strcmp(message_name(MESSAGE_LOGIN), "LOGIN"));
	CHECK(!strcmp(message_name(7), "unknown message"));
}

#define BAD (-EBADMSG)

static const struct tweak tweaks[] = {
	/* LOGIN: method, user's length, first byte of the user, data's length */
	{recode_message_login, LOGIN_ANONYMOUS, 0, 1, 0, BAD},
	{recode_message_login, LOGIN_ANONYMOUS, 0, 1, 6, BAD},
	{recode_message_login, LOGIN_ANONYMOUS, 0, 1, 2, BAD},
	{recode_message_login, LOGIN_ANONYMOUS, 0, 1, 3, BAD},
	{recode_message_login, LOGIN_ANONYMOUS, 0, 1, 4, BAD},
	{recode_message_login, LOGIN_ANONYMOUS, 0, 1, 5, 0},
	{recode_message_login, LOGIN_PASSWORD, 0, 1, 1, BAD},
	{recode_message_login, LOGIN_PASSWORD, 0, 1, 4, BAD},
	{recode_message_login, LOGIN_PASSWORD, 0, 1, 5, BAD},
	{recode_message_login, LOGIN_PASSWORD, 1, 2, 256, BAD},
	{recode_message_login, LOGIN_PASSWORD, 3, 1, 0, BAD},
	{recode_message_login, LOGIN_PASSWORD, 3, 1, 255, 0},
	{recode_message_login, LOGIN_PASSWORD, 8, 2, 4, -EMSGSIZE},
	{recode_message_login, LOGIN_PASSWORD, 8, 2, 2, BAD},
	{recode_message_login, LOGIN_PASSWORD, 10, 1, 0, BAD},
	{recode_message_login, LOGIN_KEY, 6, 2, 0, BAD},
	{recode_message_login, LOGIN_KEY, 6, 2, 3, BAD},
	{recode_message_login, LOGIN_KEY, 6, 2, 6, BAD},
	{recode_message_login, LOGIN_KEY, 0, 1, 2, BAD},
	{recode_message_login, LOGIN_ONCE, 3, 2, 31, BAD},
	{recode_message_login, LOGIN_CERTIFICATE, 3, 1, 0, BAD},
	{recode_message_login_key, "0002 6b6b 0002 7373", 0, 2, 0, BAD},
	{recode_message_login_key, "0002 6b6b 0002 7373", 4, 2, 3, -EMSGSIZE},
	{recode_message_login_reply, LOGIN_REPLY, 0, 4, 32, BAD},
	{recode_message_login_reply, LOGIN_REPLY, 0, 4, 0, 0},
	{recode_message_login_reply, LOGIN_REPLY, 6, 4, 61441, BAD},
	{recode_message_login_reply, LOGIN_REPLY, 6, 4, 0, 0},
	{recode_message_login_reply, LOGIN_REPLY, 12, 1, 0, BAD},
	{recode_message_login_reply, LOGIN_REPLY, 19, 1, 0, BAD},
	{recode_message_login_reply, LOGIN_REPLY, 17, 2, 0, BAD},
	/* PUT: flags, length of the path, FILE's number, kind and name, size, length */
	{recode_message_put, PUT_INTO, 0, 4, 2, BAD},
	{recode_message_put, PUT_INTO, 0, 4, 0, BAD}, /* a name that nothing goes beneath */
	{recode_message_put, PUT_INTO, 0, 4, 0x700001, BAD},
	{recode_message_put, PUT_INTO, 0, 4, 0x300001, BAD},
	{recode_message_put, PUT_INTO, 0, 4, 0x400045, 0},
	{recode_message_put, PUT_INTO, 0, 4, 0x4001, BAD},
	{recode_message_put, PUT_INTO, 6, 1, 0, BAD},
	{recode_message_put, PUT_INTO, 18, 4, 2, BAD},
	{recode_message_put, PUT_INTO, 22, 1, 2, BAD},
	{recode_message_put, PUT_INTO, 22, 1, 3, BAD},
	{recode_message_put, PUT_INTO, 39, 8, 3, BAD},
	{recode_message_put, PUT_INTO, 39, 8, 1, BAD},
	{recode_message_put, PUT_INTO, 49, 1, '/', BAD},
	{recode_message_put, PUT_INTO, 50, 4, 1, BAD},
	{recode_message_put, PUT_INTO, 50, 4, 3, BAD},
	{recode_message_put, PUT_INTO, 50, 4, 0xffffffff, BAD},
	{recode_message_put, PUT_SHORTEST, 0, 4, 1, BAD}, /* no name */
	{recode_message_put, PUT_DIRECTORY, 0, 4, 0, BAD},
	{recode_message_put, PUT_DIRECTORY, 21, 1, 5, 0},
	{recode_message_put, PUT_DIRECTORY, 21, 1, 8, BAD},
	{recode_message_put, PUT_DIRECTORY, 21, 1, 1, BAD}, /* a file needs a name there */
	{recode_message_put_reply, PUT_REPLY, 0, 1, 2, BAD},
	{recode_message_put_reply, PUT_REPLY, 1, 2, 300, BAD},
	{recode_message_get, GET, 0, 4, 1, BAD},
	{recode_message_get, GET, 4, 4, 0, BAD},
	{recode_message_get, GET, 4, 4, 61441, BAD},
	{recode_message_get, GET, 10, 1, 0, BAD},
	{recode_message_get_reply, GET_REPLY, 0, 1, 0, BAD},
	{recode_message_get_reply, GET_REPLY, 0, 1, 2, BAD},
	{recode_message_get_reply, GET_REPLY, 42, 4, 3, BAD},
	/* greeting */
	{recode_message_greeting, GREETING_CONTROL, 0, 4, 0x52465451, BAD},
	{recode_message_greeting, GREETING_CONTROL, 4, 1, 0, BAD},
	{recode_message_greeting, GREETING_CONTROL, 4, 1, 255, 0},
	{recode_message_greeting, GREETING_CONTROL, 5, 1, 0, BAD},
	{recode_message_greeting, GREETING_CONTROL, 5, 1, 3, BAD},
	{recode_message_greeting, GREETING_CONTROL, 6, 2, 1, BAD},
	{recode_message_greeting, GREETING_CONTROL, 8, 4, 1, BAD},
	{recode_message_greeting, GREETING_CONTROL, 12, 2, 1, BAD},
	{recode_message_greeting, GREETING_CONTROL, 12, 2, 2, 0},
	{recode_message_greeting, GREETING_CONTROL, 12, 2, 65535, 0},
	{recode_message_greeting, GREETING_CONTROL, 14, 1, 1, BAD},
	{recode_message_greeting, GREETING_CONTROL, 29, 1, 1, BAD},
	{recode_message_greeting, GREETING_DATA, 6, 2, 0, 0},
	{recode_message_greeting, GREETING_DATA, 6, 2, 255, 0},
	{recode_message_greeting, GREETING_DATA, 6, 2, 256, BAD},
	{recode_message_greeting, GREETING_DATA, 8, 4, 0xffffffff, 0},
	/* welcome */
	{recode_message_welcome, WELCOME, 3, 1, 0x70, BAD},
	{recode_message_welcome, WELCOME, 4, 1, 0, BAD},
	{recode_message_welcome, WELCOME, 5, 1, 1, 0},
	{recode_message_welcome, WELCOME, 5, 1, 2, BAD},
	{recode_message_welcome, WELCOME, 6, 2, 0, 0},
	{recode_message_welcome, WELCOME, 8, 2, 105, 0},
	/* HELLO */
	{recode_message_hello, HELLO, 0, 2, 0, BAD},
	{recode_message_hello, HELLO, 2, 2, 0, BAD},
	{recode_message_hello, HELLO, 2, 2, 1, 0},
	{recode_message_hello, HELLO, 2, 2, 64, 0},
	{recode_message_hello, HELLO, 2, 2, 65, BAD},
	{recode_message_hello, HELLO, 4, 4, 65535, BAD},
	{recode_message_hello, HELLO, 4, 4, 65536, 0},
	{recode_message_hello, HELLO, 4, 4, 16777216, 0},
	{recode_message_hello, HELLO, 4, 4, 16777217, BAD},
	{recode_message_hello, HELLO, 8, 4, 0, BAD},
	{recode_message_hello, HELLO, 8, 4, 65536, 0},
	{recode_message_hello, HELLO, 8, 4, 65537, BAD},
	{recode_message_hello, HELLO, 12, 2, 0, BAD},
	{recode_message_hello, HELLO, 12, 2, 1, 0},
	{recode_message_hello, HELLO, 12, 2, 5, BAD},
	{recode_message_hello, HELLO, 26, 2, 256, BAD}, /* agent's length */
	{recode_message_hello, HELLO, 26, 2, 11, -EMSGSIZE},
	{recode_message_hello, HELLO, 26, 2, 9, BAD},
	/* CHANNELS */
	{recode_message_channels, CHANNELS, 0, 2, 0, BAD},
	{recode_message_channels, CHANNELS, 0, 2, 64, 0},
	{recode_message_channels, CHANNELS, 0, 2, 65, BAD},
	{recode_message_channels_reply, CHANNELS_REPLY, 0, 2, 0, BAD},
	{recode_message_channels_reply, CHANNELS_REPLY, 0, 2, 64, 0},
	{recode_message_channels_reply, CHANNELS_REPLY, 0, 2, 65, BAD},
	{recode_message_channels_reply, CHANNELS_REPLY, 2, 2, 0, 0},
	{recode_message_channels_reply, CHANNELS_REPLY, 2, 2, 1, BAD},
	{recode_message_channels_reply, CHANNELS_REPLY, 2, 2, 192, 0},
	{recode_message_channels_reply, CHANNELS_REPLY, 2, 2, 256, BAD},
	{recode_message_channels_reply, CHANNELS_REPLY, 2, 2, 65535, BAD},
	/* an area of no bytes has no key and no base; none is over 1 MiB, or goes past the end */
	{recode_message_channels_reply, CHANNELS_REPLY, 20, 4, 0, BAD},
	{recode_message_channels_reply, CHANNELS_REPLY, 20, 4, 1, 0},
	{recode_message_channels_reply, CHANNELS_REPLY, 20, 4, (1 << 20) + 1, BAD},
	{recode_message_channels_reply, "0008 0040 " TOKEN " 00*16", 0, 2, 1, 0},
	{recode_message_channels_reply, "0008 0040 " TOKEN " 00*16", 24, 4, 1, BAD},
	{recode_message_channels_reply, "0008 0040 " TOKEN " 00*16", 28, 8, 1, BAD},
	{recode_message_channels_reply, CHANNELS_REPLY, 28, 4, UINT32_MAX, 0},
	/* paths */
	{recode_message_path, PATH, 0, 2, 0, BAD},
	{recode_message_path, PATH, 0, 2, 2, BAD},
	{recode_message_path, PATH, 0, 2, 4, -EMSGSIZE},
	{recode_message_path, PATH, 4, 1, 0, BAD},
	{recode_message_path, PATH, 4, 1, 0x0a, 0},
	{recode_message_path, PATH, 4, 1, 0xff, 0},
	{recode_message_path, "1000 61*4096", 0, 2, 4096, BAD},
	{recode_message_path, "0000", 0, 2, 0, BAD},
	/* attributes */
	{recode_message_attr, ATTR, 0, 1, 0, BAD},
	{recode_message_attr, ATTR, 0, 1, 4, 0},
	{recode_message_attr, ATTR, 0, 1, 5, BAD},
	{recode_message_attr, ATTR, 1, 4, 07777, 0},
	{recode_message_attr, ATTR, 1, 4, 0x80000000, 0},
	{recode_message_attr, ATTR, 1, 4, 0x40000000, BAD},
	{recode_message_attr, ATTR, 1, 4, 010000, BAD},
	{recode_message_attr, ATTR, 13, 8, UINT64_MAX, 0},
	{recode_message_attr, ATTR, 29, 4, 1000000000, BAD},
	/* MKDIR, RENAME */
	{recode_message_mkdir, MKDIR, 0, 4, 07777, 0},
	{recode_message_mkdir, MKDIR, 0, 4, 010000, BAD},
	{recode_message_mkdir, MKDIR, 4, 4, 2, BAD},
	{recode_message_mkdir, MKDIR, 11, 1, 0, BAD},
	{recode_message_rename, RENAME, 0, 4, 0, 0},
	{recode_message_rename, RENAME, 0, 4, 2, BAD},
	{recode_message_rename, RENAME, 7, 1, 0, BAD},
	{recode_message_rename, RENAME, 11, 1, 0, BAD},
	{recode_message_rename, RENAME, 4, 2, 0, BAD},
	{recode_message_rename, RENAME, 8, 2, 0, BAD},
	{recode_message_rename, RENAME, 8, 2, 3, -EMSGSIZE},
	{recode_message_rename, RENAME, 8, 2, 1, BAD},
	/* SETATTR: the first change at 2, the second at 23; and its reply */
	{recode_message_set_attr, CHANGES, 0, 2, 0, BAD},
	{recode_message_set_attr, CHANGES, 0, 2, 1, BAD},
	{recode_message_set_attr, CHANGES, 0, 2, 3, BAD},
	{recode_message_set_attr, CHANGES, 2, 1, 8, BAD}, /* neither mode nor time */
	{recode_message_set_attr, CHANGES, 2, 1, 3, 0},
	{recode_message_set_attr, CHANGES, 2, 1, 1, BAD},  /* a time that is not meant */
	{recode_message_set_attr, CHANGES, 2, 1, 2, BAD},  /* a mode that is not */
	{recode_message_set_attr, CHANGES, 2, 1, 7, BAD},  /* two times */
	{recode_message_set_attr, CHANGES, 2, 1, 19, 0},   /* a mode, but of no link */
	{recode_message_set_attr, CHANGES, 2, 1, 35, BAD}, /* an unknown flag */
	{recode_message_set_attr, CHANGES, 3, 4, 07777, 0},
	{recode_message_set_attr, CHANGES, 3, 4, 010000, BAD},
	{recode_message_set_attr, CHANGES, 15, 4, 1000000000, BAD},
	{recode_message_set_attr, CHANGES, 19, 2, 0, BAD},
	{recode_message_set_attr, CHANGES, 22, 1, 0, BAD}, /* NUL */
	{recode_message_set_attr, CHANGES, 23, 1, 4, 0},
	{recode_message_set_attr, CHANGES, 23, 1, 28, BAD}, /* a link is not made */
	{recode_set_attr_reply, STATUSES, 0, 2, 0, BAD},
	{recode_set_attr_reply, STATUSES, 0, 2, 1, BAD},
	{recode_message_set_attr, CHOWN, 2, 1, 0x80, BAD},
	/* what was seen counts only of a time that is set, and of a file that is there */
	{recode_message_set_attr, CHANGE_SEEN, 2, 1, 0x83, 0},
	{recode_message_set_attr, CHANGE_SEEN, 2, 1, 0x81, BAD},
	{recode_message_set_attr, CHANGE_SEEN, 2, 1, 0x8a, BAD},
	{recode_message_set_attr, CHANGE_SEEN, 2, 1, 0x92, BAD},
	{recode_message_set_attr, CHANGE_SEEN, 2, 1, 0x02, BAD},
	{recode_message_set_attr, CHANGE_SEEN, 19, 8, INT64_MAX, 0},
	{recode_message_set_attr, CHANGE_SEEN, 19, 8, INT64_MAX + 1ull, BAD},
	{recode_message_set_attr, CHANGE_SEEN, 35, 4, 1000000000, BAD},
	{recode_message_set_attr, CHANGE_SEEN, 39, 8, 0, 0},
	{recode_message_set_attr, CHOWN, 19, 4, UINT32_MAX, BAD}, /* neither number nor name */
	{recode_message_set_attr, CHOWN, 25, 4, 7, 0},
	{recode_message_set_attr, CHOWN, 31, 1, 0, BAD}, /* NUL */
	{recode_set_attr_reply, STATUSES, 0, 2, 3, -EMSGSIZE},
	{recode_set_attr_reply, STATUSES, 0, 2, 1025, BAD},
	{recode_message_link_attr, LINK " 0001 78", 0, 1, 1, BAD}, /* a file says nothing */
	{recode_message_link_attr, LINK " 0001 78", 35, 1, 0, BAD},
	{recode_message_link_attr, LINK " 0001 78", 33, 2, 2, -EMSGSIZE},
	{recode_message_make_link, MAKE_LINK, 0, 4, 1, BAD},
	{recode_message_make_link, MAKE_LINK, 4, 2, 0, BAD},
	{recode_message_make_link, MAKE_LINK, 7, 1, 0, BAD},
	{recode_message_make_link, MAKE_LINK, 8, 2, 0, BAD},
	/* TREE, and its reply: entries at 3 and 46 */
	{recode_message_tree, TREE, 0, 4, 0, 0},
	{recode_message_tree, TREE, 0, 4, 3, BAD},
	{recode_message_tree, TREE, 0, 4, 4, 0},
	{recode_message_tree, TREE, 0, 4, 7, BAD},
	{recode_message_tree, TREE, 0, 4, 8, 0},
	{recode_message_tree, TREE, 4, 2, 0, -EMSGSIZE},
	{recode_message_tree, TREE, 8, 2, 0, BAD},
	{recode_message_tree, TREE, 8, 2, 2, -EMSGSIZE},
	{recode_message_tree, TREE, 10, 1, 2, BAD},
	{recode_tree, TREE2, 0, 1, 0, 0},
	{recode_tree, TREE2, 0, 1, 2, BAD},
	{recode_tree, TREE2, 1, 2, 1, BAD},
	{recode_tree, TREE2, 1, 2, 3, -EMSGSIZE},
	{recode_tree, TREE2, 38, 2, 1, BAD}, /* nothing is before the first name */
	{recode_tree, TREE2, 42, 1, 0, BAD}, /* NUL */
	{recode_tree, TREE2, 42, 1, '/', BAD},
	{recode_tree, TREE2, 81, 2, 3, BAD}, /* more than the last name has */
	{recode_tree, TREE2, 81, 2, 2, 0},
	{recode_tree, TREE2, 85, 1, 'b', BAD}, /* more is shared than is said */
	{recode_tree, TREE2, 46, 1, 1, BAD},   /* a file says nothing */
	{recode_tree, TREE2, 79, 2, 7, BAD},   /* nor what could not be read */
	{recode_tree, TREE_TOP, 3, 1, 1, BAD}, /* what has no name is the directory itself */
	/* what is told beside: something, of what could be looked at */
	{recode_message_tree, TREE, 0, 4, 0xb8, 0},
	{recode_message_tree, TREE, 0, 4, 0x40, BAD}, /* numbers of nothing */
	{recode_message_tree, TREE, 0, 4, 0xd0, BAD},
	{recode_message_tree, TREE, 0, 4, 0x200, BAD},
	{recode_tree, TREE_HAS, 45, 1, 0, BAD},
	{recode_tree, TREE_HAS, 45, 1, 0x1f, BAD},
	{recode_tree, TREE_HAS, 36, 2, 7, BAD},
	{recode_tree, TREE_HAS, 48, 1, 0, BAD}, /* a NUL */
	{recode_tree, TREE_HAS, 52, 8, 1, 0},
	{recode_tree, TREE_HAS, 60, 8, 0, BAD}, /* it would be no other name */
	{recode_tree, TREE_HAS, 3, 1, 2, BAD},  /* only a file has some */
	/* LEFTOVERS, and its reply: entries at 3 and 47 */
	{recode_message_leftovers, LEFTOVERS, 0, 4, 2, BAD},
	{recode_message_leftovers, LEFTOVERS, 0, 4, 0, BAD}, /* an age without removing */
	{recode_message_leftovers, LEFTOVERS, 4, 8, UINT64_MAX, BAD},
	{recode_message_leftovers, LEFTOVERS, 4, 8, 0, 0},
	{recode_message_leftovers, LEFTOVERS, 12, 2, 0, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 0, 1, 0, 0},
	{recode_leftovers, LEFTOVERS_REPLY, 0, 1, 2, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 1, 2, 1, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 1, 2, 3, -EMSGSIZE},
	{recode_leftovers, LEFTOVERS_REPLY, 3, 1, 0, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 3, 1, 5, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 3, 1, 1, BAD}, /* a directory has no size */
	{recode_leftovers, LEFTOVERS_REPLY, 3, 1, 3, BAD}, /* nor one that cannot be gone on with */
	{recode_leftovers, LEFTOVERS_REPLY, 4, 1, 0, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 4, 1, 5, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 5, 2, 200, 0},
	{recode_leftovers, LEFTOVERS_REPLY, 15, 8, UINT64_MAX, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 23, 8, 0x1001, BAD}, /* more than there is */
	{recode_leftovers, LEFTOVERS_REPLY, 31, 8, UINT64_MAX, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 42, 1, 0, BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 41, 1, '/', BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 46, 1, '/', BAD},
	{recode_leftovers, LEFTOVERS_REPLY, 49, 2, 200, BAD}, /* it was removed, and was not */
	/* GRANT_COPY, SEND_COPY and its replies */
	{recode_message_grant_copy, GRANT_COPY, 0, 4, 8, BAD},
	{recode_message_grant_copy, GRANT_COPY, 4, 2, 0, BAD},
	{recode_message_grant_copy, GRANT_COPY, 7, 1, 0, BAD},
	{recode_message_grant_copy_reply, "0000000000000000 0001 00", 8, 2, 0, BAD},
	{recode_message_send_copy, SEND_COPY, 2, 1, ' ', BAD},
	{recode_message_send_copy, SEND_COPY, 2, 1, 0x7f, BAD},
	{recode_message_send_copy, SEND_COPY, 11, 2, 0, BAD}, /* no port */
	{recode_message_send_copy, SEND_COPY, 15, 1, 0x1b, BAD},
	{recode_message_send_copy, SEND_COPY, 22, 1, 3, BAD},
	{recode_message_send_copy, SEND_COPY, 23, 8, 0x8000000000000000, BAD},
	{recode_message_send_copy, SEND_COPY, 37, 4, 0x00300000, BAD}, /* two fsyncs */
	{recode_message_send_copy, SEND_COPY, 37, 4, 8, BAD},
	{recode_message_send_copy, SEND_COPY, 43, 1, 0, BAD},
	{recode_message_send_copy, SEND_COPY, 47, 1, 2, BAD},
	{recode_message_send_copy, SEND_COPY, 48, 4, 0x0000000b, BAD}, /* a stream */
	{recode_message_send_copy, SEND_COPY, 68, 8, 1, BAD},          /* a size */
	{recode_message_copy_reply, COPY_REPLY, 0, 1, 1, BAD},         /* it runs, and has failed */
	{recode_message_copy_reply, COPY_REPLY, 0, 1, 2, BAD},
	{recode_message_copy_reply, COPY_REPLY, 1, 1, 0, BAD}, /* failed, and nowhere */
	{recode_message_copy_reply, COPY_REPLY, 1, 1, 4, BAD},
	{recode_message_copy_reply, COPY_REPLY, 2, 2, 0, BAD}, /* somewhere, and not failed */
	{recode_message_copy_reply, COPY_REPLY, 92, 1, 5, BAD},
	{recode_message_copy_reply, COPY_REPLY, 93, 1, 3, BAD},
	{recode_message_copy_reply, COPY_REPLY, 94, 1, 2, BAD},
	{recode_message_copy_reply, COPY_REPLY, 107, 1, ' ', BAD}, /* the fabric's name */
	{recode_message_copy_reply, COPY_REPLY, 111, 2, 1, BAD},
	{recode_message_copy_reply, COPY_REPLY, 111, 2, 3, BAD},
	{recode_message_copy_reply, COPY_REPLY, 113, 1, 8, BAD},
	{recode_message_copy_reply, COPY_REPLY, 126, 1, '/', BAD},
	{recode_message_copy_reply, COPY_REPLY, 130, 2, 0, 0},
	{recode_message_copy_reply, COPY_REPLY, 139, 1, 1, BAD}, /* failed, and has bytes */
	/* STORE, RETRIEVE */
	{recode_message_data_request, APPEND, 1, 4, 0x108008, 0},
	{recode_message_data_request, APPEND, 1, 4, 0x8001, BAD},
	{recode_message_data_request, APPEND, 1, 4, 0x8004, BAD},
	{recode_message_data_request, APPEND, 1, 4, 0x808000, BAD},
	{recode_message_data_request, APPEND, 1, 4, 0, BAD}, /* no size to resume from */
	{recode_message_data_request, APPEND, 29, 8, INT64_MAX, 0},
	{recode_message_data_request, APPEND, 29, 8, INT64_MAX + 1ull, BAD},
	{recode_message_data_request, FILES, 0, 1, 0, BAD},
	{recode_message_data_request, FILES, 0, 1, 3, BAD},
	{recode_message_data_request, FILES, 0, 1, 2, BAD}, /* NULL has no path */
	{recode_message_data_request, NULLS, 0, 1, 1, BAD}, /* files have one */
	{recode_message_removed, REMOVED, 8, 1, 0, 0},
	{recode_message_removed, REMOVED, 8, 1, 2, BAD},
	{recode_message_data_request, FILES, 1, 4, 8, 0},
	{recode_message_data_request, FILES, 1, 4, 16, 0},
	{recode_message_data_request, FILES, 1, 4, 32, 0},
	{recode_message_data_request, FILES, 1, 4, 48, BAD},
	{recode_message_data_request, FILES, 1, 4, 64, 0},
	{recode_message_data_request, FILES, 1, 4, 128, BAD},
	{recode_message_data_request, WANTED, 1, 4, 2, BAD}, /* these would be paths */
	{recode_message_data_request, WANTED, 1, 4, 131, BAD},
	{recode_message_data_request, WANTED, 1, 4, 128, 0},
	{recode_message_data_request, WANTED, 41, 2, 0, BAD},
	{recode_message_data_request, WANTED, 45, 1, '/', BAD},
	{recode_message_data_request, FILES, 1, 4, 0x97f00, 0},
	{recode_message_data_request, FILES, 1, 4, 0xa0000, BAD},
	{recode_message_data_request, FILES, 1, 4, 0x80000000, BAD},
	{recode_message_data_request, FILES, 1, 4, 0x100000, 0},
	{recode_message_data_request, FILES, 1, 4, 0x200000, 0},
	{recode_message_data_request, FILES, 1, 4, 0x400000, 0},
	{recode_message_data_request, FILES, 1, 4, 0x300000, BAD},
	{recode_message_data_request, FILES, 1, 4, 0x700000, BAD},
	{recode_message_data_request, FILES, 1, 4, 0x1800000, 0},
	{recode_message_data_request, FILES, 1, 4, 0x2000000, 0},
	{recode_message_data_request, FILES, 1, 4, 0x4000000, BAD},
	{recode_message_data_request, FILES, 1, 4, 0x8000000, BAD},
	{recode_message_data_request, WANTED, 1, 4, 0x4000080, 0},
	{recode_message_data_request, WANTED, 1, 4, 0x4000002, BAD},
	{recode_message_data_request, FILES, 5, 1, 4, 0},
	{recode_message_data_request, FILES, 5, 1, 5, BAD},
	{recode_message_data_request, FILES, 6, 2, 0, 0},
	{recode_message_data_request, FILES, 6, 2, 64, 0},
	{recode_message_data_request, FILES, 6, 2, 65, BAD},
	{recode_message_data_request, FILES, 8, 4, 0, 0},
	{recode_message_data_request, FILES, 8, 4, 4096, BAD},
	{recode_message_data_request, FILES, 8, 4, 61440, BAD},
	{recode_message_data_request, FILES, 8, 4, 65536, 0},
	{recode_message_data_request, FILES, 8, 4, 65537, BAD},
	{recode_message_data_request, FILES, 8, 4, 69632, 0},
	{recode_message_data_request, FILES, 8, 4, 16777216, 0},
	{recode_message_data_request, FILES, 8, 4, 16781312, BAD},
	{recode_message_data_request, FILES, 12, 4, 65536, 0},
	{recode_message_data_request, FILES, 12, 4, 65537, BAD},
	{recode_message_data_request, FILES, 16, 4, UINT32_MAX, 0},
	{recode_message_data_request, FILES, 20, 1, 2, 0},
	{recode_message_data_request, FILES, 20, 1, 3, BAD},
	{recode_message_data_request, FILES, 21, 8, 1, 0},
	{recode_message_data_request, FILES, 21, 8, INT64_MAX, 0},
	{recode_message_data_request, FILES, 21, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_message_data_request, NULLS, 21, 8, 0, 0},
	{recode_message_data_request, NULLS, 21, 8, INT64_MAX, 0},
	{recode_message_data_request, NULLS, 21, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_message_data_request, FILES, 29, 8, 1, 0},
	{recode_message_data_request, FILES, 29, 8, INT64_MAX, 0},
	{recode_message_data_request, FILES, 29, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_message_data_request, FILES, 40, 1, 0, BAD},
	{recode_message_data_request, SEVERAL, 1, 4, 2, BAD}, /* only into a directory */
	{recode_message_data_request, SEVERAL, 41, 2, 3, -EMSGSIZE},
	{recode_message_data_request, SEVERAL, 41, 2, 1, BAD},
	{recode_message_data_request, SEVERAL, 43, 2, 0, BAD},
	{recode_message_data_request, SEVERAL, 45, 1, 0, BAD},
	{recode_message_data_request, FILES, 41, 2, 1, -EMSGSIZE},
	{recode_message_data_request, RULES, 1, 4, 1, BAD}, /* of trees only */
	{recode_message_data_request, RULES, 43, 2, 1, BAD},
	{recode_message_data_request, RULES, 43, 2, 3, -EMSGSIZE},
	{recode_message_data_request, RULES, 45, 1, 0, 0},
	{recode_message_data_request, RULES, 45, 1, 2, BAD},
	{recode_message_data_request, RULES, 48, 1, 0, BAD},
	{recode_message_data_request, FILES, 43, 2, 1, -EMSGSIZE},
	/* FEED */
	{recode_message_feed, FEED, 0, 4, 1, BAD},
	{recode_message_feed, FEED, 4, 2, 0, BAD},
	{recode_message_feed, FEED, 4, 2, 255, 0},
	{recode_message_feed, FEED, 4, 2, 256, BAD},
	{recode_message_feed, FEED, 6, 8, 0, 0},
	{recode_message_feed, FEED, 6, 8, 1, BAD},
	{recode_message_feed, FEED, 6, 8, 4095, BAD},
	{recode_message_feed, FEED, 6, 8, 4096, 0},
	{recode_message_feed, FEED, 6, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_message_feed, FEED, 14, 8, 0, 0},
	{recode_message_feed, FEED, 14, 8, 9999999, BAD},
	{recode_message_feed, FEED, 14, 8, 10000000, 0},
	{recode_message_feed, FEED, 14, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_message_feed, FEED, 22, 2, 6, -EMSGSIZE},
	{recode_message_feed, FEED, 22, 2, 4, BAD},
	{recode_message_feed, FEED, 25, 1, 0, BAD},
	/* LIST reply */
	{recode_message_sum_request, SUMS, 0, 1, 0, BAD},
	{recode_message_sum_request, SUMS, 0, 1, 4, 0},
	{recode_message_sum_request, SUMS, 0, 1, 5, BAD},
	{recode_message_sum_request, SUMS, 1, 2, 0, BAD},
	{recode_message_sum_request, SUMS, 1, 2, 1, BAD},
	{recode_message_sum_request, SUMS, 1, 2, 3, BAD},
	{recode_message_sum_request, SUMS, 1, 2, 4097, BAD},
	{recode_message_sum_request, SUMS, 3, 2, 0, BAD},
	{recode_message_sum_request, SUMS, 5, 1, 0, BAD},
	{recode_message_sum_request, SUMS, 7, 2, 3, BAD},
	{recode_sum, SUMS_REPLY, 0, 1, 1, 0},
	{recode_sum, SUMS_REPLY, 0, 1, 2, BAD},
	{recode_sum, SUMS_REPLY, 9, 2, 1, BAD},
	{recode_sum, SUMS_REPLY, 9, 2, 3, -EMSGSIZE},
	{recode_sum, SUMS_REPLY, 9, 2, 513, BAD},
	{recode_sum, SUMS_REPLY, 13, 2, 0, BAD}, /* no status and no sum */
	{recode_sum, SUMS_REPLY, 15, 8, 1, BAD}, /* a status and a size */
	{recode_sum, SUMS_REPLY, 27, 2, 1, BAD}, /* a status and a sum */
	{recode_sum, SUMS_REPLY, 29, 8, UINT64_MAX, BAD},
	{recode_sum, SUMS_REPLY, 37, 2, 33, BAD},
	{recode_list, LIST2, 0, 1, 0, 0},
	{recode_list, LIST2, 0, 1, 2, BAD},
	{recode_list, "00 0000", 0, 1, 1, BAD}, /* nothing, and more of it */
	{recode_list, LIST2, 1, 2, 1, BAD},
	{recode_list, LIST2, 1, 2, 3, -EMSGSIZE},
	{recode_list, LIST2, 1, 2, 1025, BAD},
	{recode_list, LIST2, 3, 1, 0, BAD},    /* type */
	{recode_list, LIST2, 38, 1, '/', BAD}, /* name */
	{recode_list, LIST2, 38, 1, '.', BAD},
	{recode_list, LIST2, 38, 1, 0, BAD},
	{recode_list, LIST2, 36, 2, 0, BAD},
	{recode_list, LIST2, 41, 1, 1, BAD}, /* a file says nothing */
	{recode_list, LIST2, 79, 1, 0, BAD}, /* NUL in what a link says */
	/* RING reply */
	{recode_message_ring_reply, RING_REPLY, 0, 4, 4095, BAD},
	{recode_message_ring_reply, RING_REPLY, 0, 4, 4096, 0},
	{recode_message_ring_reply, RING_REPLY, 0, 4, 4096 + 2048, BAD},
	{recode_message_ring_reply, RING_REPLY, 0, 4, 1 << 20, 0},
	{recode_message_ring_reply, RING_REPLY, 0, 4, 2 << 20, BAD},
	{recode_message_ring_reply, RING_REPLY, 8, 8, UINT64_MAX - 0x20000, 0},
	{recode_message_ring_reply, RING_REPLY, 8, 8, UINT64_MAX - 0x1ffff, BAD},
	/* text */
	{recode_text, "0200 61*512", 0, 2, 513, BAD},
	{recode_text, "0201 61*513", 0, 2, 513, BAD},
};

static void limits(void)
{
	sample_tweak_all(tweaks, COUNT(tweaks));
}

/* Field by field, so that two fields of one width cannot be swapped in get and put alike. */
static void fields(void)
{
	static uint8_t in[SAMPLE_MAX];
	struct message_data_request request;
	struct message_channels_reply channels;
	struct message_statfs_reply statfs;
	struct message_greeting greeting;
	struct message_welcome welcome;
	struct message_rename rename;
	struct message_feed feed;
	struct message_hello hello;
	struct message_mkdir mkdir;
	struct message_attr attr;

	CHECK_EQ(message_get_greeting(&greeting, in, sample_parse(GREETING_DATA, in)), 0);
	CHECK_EQ(greeting.version, 1);
	CHECK_EQ(greeting.kind, MESSAGE_CHANNEL_DATA);
	CHECK_EQ(greeting.index, 63);
	CHECK_EQ(greeting.session, 0x89abcdef);
	CHECK_EQ(greeting.token[0], 0xa0);
	CHECK_EQ(greeting.token[15], 0xaf);
	CHECK_EQ(message_get_greeting(&greeting, in, sample_parse(GREETING_CONTROL, in)), 0);
	CHECK_EQ(greeting.credits, 64);
	CHECK_EQ(message_get_welcome(&welcome, in, sample_parse(WELCOME, in)), 0);
	CHECK_EQ(welcome.version, 1);
	CHECK_EQ(welcome.credits, 64);
	CHECK_EQ(welcome.token[15], 0xaf);
	CHECK_EQ(message_get_hello(&hello, in, sample_parse(HELLO, in)), 0);
	CHECK_EQ(hello.max_channels, 8);
	CHECK_EQ(hello.max_block, 4 << 20);
	CHECK_EQ(hello.max_depth, 512);
	CHECK_EQ(hello.max_transfers, 4);
	CHECK_EQ(hello.engines, 10);
	CHECK_EQ(hello.agent.len, 10);
	CHECK(!memcmp(hello.agent.data, "rftp/0.1.0", 10));
	CHECK_EQ(message_get_channels_reply(&channels, in, sample_parse(CHANNELS_REPLY, in)), 0);
	CHECK_EQ(channels.count, 8);
	CHECK_EQ(channels.first, 64);
	CHECK_EQ(channels.nonce[1], 0xa1);
	CHECK_EQ(channels.area_bytes, 1 << 20);
	CHECK_EQ(channels.area_key, 7);
	CHECK(channels.area_base == 0x7f0000001000);
	CHECK_EQ(message_get_attr(&attr, in, sample_parse(ATTR, in)), 0);
	CHECK_EQ(attr.type, MESSAGE_FILE);
	CHECK_EQ(attr.mode, 0644);
	CHECK_EQ(attr.uid, 1000);
	CHECK_EQ(attr.gid, 1001);
	CHECK(attr.size == 0x0123456789abcdef);
	CHECK_EQ(attr.mtime_s, -1);
	CHECK_EQ(attr.mtime_ns, 999999999);
	CHECK_EQ(message_get_mkdir(&mkdir, in, sample_parse(MKDIR, in)), 0);
	CHECK_EQ(mkdir.mode, 0755);
	CHECK_EQ(mkdir.flags, MESSAGE_MKDIR_PARENTS);
	CHECK_EQ(message_get_rename(&rename, in, sample_parse(RENAME, in)), 0);
	CHECK_EQ(rename.from.data[1], 'a');
	CHECK_EQ(rename.to.data[1], 'b');
	CHECK_EQ(message_get_statfs_reply(&statfs, in, sample_parse(STATFS, in)), 0);
	CHECK_EQ(statfs.total_bytes, 1);
	CHECK_EQ(statfs.free_bytes, 2);
	CHECK_EQ(statfs.available_bytes, 3);
	CHECK_EQ(statfs.total_files, 4);
	CHECK_EQ(statfs.free_files, 5);
	CHECK_EQ(message_get_feed(&feed, in, sample_parse(FEED, in)), 0);
	CHECK_EQ(feed.streams, 7);
	CHECK_EQ(feed.segment_bytes, 64 << 20);
	CHECK_EQ(feed.segment_ns, 10000000000);
	CHECK_EQ(feed.path.len, 5);
	CHECK_EQ(message_get_data_request(&request, in, sample_parse(FILES, in)), 0);
	CHECK_EQ(request.flags, 7);
	CHECK_EQ(request.engine, MESSAGE_ENGINE_CREDIT);
	CHECK_EQ(request.channels, 8);
	CHECK_EQ(request.block, 4 << 20);
	CHECK_EQ(request.depth, 512);
	CHECK_EQ(request.path.len, 2);
	CHECK_EQ(message_get_data_request(&request, in, sample_parse(NULLS, in)), 0);
	CHECK_EQ(request.kind, MESSAGE_DATA_NULL);
	CHECK_EQ(request.size, 1ll << 32);
}

static void header(void)
{
	static const uint8_t bytes[] = {0x80, 0x20, 0x00, 0xc8, 0x00, 0x01, 0x00, 0x00};
	struct message_header h;
	uint8_t out[8];

	CHECK_EQ(message_get_header(&h, bytes), 0);
	CHECK_EQ(h.type, MESSAGE_STORE | MESSAGE_REPLY);
	CHECK_EQ(h.response, 200);
	CHECK_EQ(h.length, MESSAGE_DATA_MAX);
	message_put_header(&h, out);
	CHECK(!memcmp(bytes, out, 8));
	h.length++;
	message_put_header(&h, out);
	CHECK_EQ(message_get_header(&h, out), -EBADMSG);
	CHECK_EQ(h.type, MESSAGE_STORE | MESSAGE_REPLY); /* still there for the log */
}

static void refusals(void)
{
	struct message_header h = {MESSAGE_STAT | MESSAGE_REPLY, 200, 2};

	CHECK_EQ(message_check(&h), 0);
	h.length = 514;
	CHECK_EQ(message_check(&h), 0);
	h.length = 515;
	CHECK_EQ(message_check(&h), -EBADMSG);
	h.length = 1;
	CHECK_EQ(message_check(&h), -EBADMSG);
	h.length = 33;
	h.response = 0;
	CHECK_EQ(message_check(&h), 0);
	h.type = MESSAGE_PING; /* a request with a response is none */
	h.length = 8;
	CHECK_EQ(message_check(&h), 0);
	h.response = 1;
	CHECK_EQ(message_check(&h), -EBADMSG);
	h.type = TRANSFER_REQUEST; /* but of a transfer it has the number */
	h.length = 0;
	CHECK_EQ(message_check(&h), 0);
	h.response = 4;
	CHECK_EQ(message_check(&h), -EBADMSG);
	h.type = MESSAGE_CHANNELS;
	h.length = 2;
	CHECK_EQ(message_check(&h), -EBADMSG);
	h.response = 3;
	CHECK_EQ(message_check(&h), 0);
	h.type = MESSAGE_QUEUED; /* the dialogue's */
	h.length = 4;
	CHECK_EQ(message_check(&h), -EBADMSG);
	h.type = 7 | MESSAGE_REPLY;
	h.length = 2;
	CHECK_EQ(message_check(&h), -EBADMSG);
}

static bool name_ok(const char *name, size_t len)
{
	struct wire_bytes bytes = {(const uint8_t *)name, len};

	return message_name_ok(bytes);
}

static void names(void)
{
	static char longest[4096];
	struct wire_bytes path = {(const uint8_t *)longest, 0};

	memset(longest, 'n', sizeof(longest));
	CHECK(!name_ok("", 0));
	CHECK(!name_ok(NULL, 0));
	CHECK(!name_ok(".", 1));
	CHECK(!name_ok("..", 2));
	CHECK(name_ok("...", 3));
	CHECK(name_ok(".a", 2));
	CHECK(name_ok("..a", 3));
	CHECK(name_ok("a\n\"'\xff\\", 6));
	CHECK(!name_ok("a/b", 3));
	CHECK(!name_ok("/", 1));
	CHECK(!name_ok("a\0b", 3));
	CHECK(name_ok(longest, 255));
	CHECK(!name_ok(longest, 256));

	CHECK(!message_path_ok(path));
	path.len = 1;
	CHECK(message_path_ok(path));
	path.len = 4095;
	CHECK(message_path_ok(path));
	longest[4094] = 0;
	CHECK(!message_path_ok(path));
	longest[4094] = 'n';
	path.len = 4096;
	CHECK(!message_path_ok(path));
}

static void put_refuses(void)
{
	static uint8_t buf[SAMPLE_MAX], data[5000];
	struct wire_bytes bytes = {data, 4096};
	struct message_path path = {{data, 4095}};
	struct message_hello hello = {1, 1, 65536, 2, 1, 0, 0, 0, {data, 255}};

	memset(data, 'a', sizeof(data));
	CHECK_EQ(message_put_path(&path, buf, sizeof(buf)), 4097);
	path.path.len = 4096;
	CHECK_EQ(message_put_path(&path, buf, sizeof(buf)), -EMSGSIZE);
	path.path.len = 0;
	CHECK_EQ(message_put_path(&path, buf, sizeof(buf)), -EBADMSG);
	path.path.len = 2;
	data[1] = 0;
	CHECK_EQ(message_put_path(&path, buf, sizeof(buf)), -EBADMSG);
	CHECK_EQ(message_put_text(bytes, buf, sizeof(buf)), -EMSGSIZE);
	bytes.len = 512;
	CHECK_EQ(message_put_text(bytes, buf, sizeof(buf)), 514);
	CHECK_EQ(message_put_hello(&hello, buf, sizeof(buf)), 283);
	hello.agent.len = 256;
	CHECK_EQ(message_put_hello(&hello, buf, sizeof(buf)), -EMSGSIZE);
	hello.agent.len = 0;
	hello.max_channels = 0;
	CHECK_EQ(message_put_hello(&hello, buf, sizeof(buf)), -EBADMSG);
}

static void list_writer(void)
{
	static uint8_t buf[2 * MESSAGE_DATA_MAX];
	struct message_entry entry = {
		{MESSAGE_FILE, 0644, 0, 0, 9, 0, 0, false}, {(const uint8_t *)"n", 1}, {NULL, 0}};
	struct message_list_writer writer;
	struct message_list_reply head;
	struct message_entry got;
	unsigned added = 0;
	struct wire w;
	ssize_t n;

	/* entries of one byte: the count's limit comes first; 1024 * 38 + 3 bytes */
	message_list_begin(&writer, buf, sizeof(buf));
	while (!message_list_add(&writer, &entry))
		added++;
	CHECK_EQ(added, MESSAGE_LIST_MAX);
	CHECK_EQ(message_list_add(&writer, &entry), -EMSGSIZE);
	n = message_list_end(&writer, true);
	CHECK_EQ(n, 3 + 1024 * 38);
	CHECK_EQ(message_get_list_head(&head, &w, buf, (size_t)n), 0);
	CHECK_EQ(head.count, 1024);
	CHECK_EQ(head.more, 1);
	for (unsigned i = 0; i < head.count; i++) {
		CHECK_EQ(message_get_list_entry(&got, &w), 0);
		CHECK_EQ(got.attr.size, 9);
		CHECK_EQ(got.name.len, 1);
	}
	CHECK_EQ(wire_finish(&w), 0);
	CHECK_EQ(message_get_list_entry(&got, &w), -EMSGSIZE);

	/* long names: the frame's limit comes first, also in a larger buffer */
	entry.name.data = (const uint8_t *)memset(malloc(255), 'x', 255);
	entry.name.len = 255;
	message_list_begin(&writer, buf, sizeof(buf));
	for (added = 0; !message_list_add(&writer, &entry);)
		added++;
	n = message_list_end(&writer, false);
	free((void *)(uintptr_t)entry.name.data);
	CHECK_EQ(added, (MESSAGE_DATA_MAX - 3) / 292);
	CHECK_EQ(n, 3 + added * 292);

	/* an entry that may not be sent spoils nothing; one that does not fit neither */
	entry.name.data = (const uint8_t *)"..";
	entry.name.len = 2;
	message_list_begin(&writer, buf, 3 + 38 + 38);
	CHECK_EQ(message_list_add(&writer, &entry), -EBADMSG);
	entry.name.len = 1;
	CHECK_EQ(message_list_add(&writer, &entry), -EBADMSG);
	entry.name.data = (const uint8_t *)"ab";
	CHECK_EQ(message_list_add(&writer, &entry), 0);
	entry.name.len = 2;
	CHECK_EQ(message_list_add(&writer, &entry), -EMSGSIZE);
	entry.name.len = 1;
	CHECK_EQ(message_list_add(&writer, &entry), 0);
	CHECK_EQ(message_list_end(&writer, false), 3 + 76);
	CHECK_EQ(message_get_list_head(&head, &w, buf, 3 + 76), 0);
	CHECK_EQ(head.count, 2);
	CHECK_EQ(head.more, 0);

	/* a buffer without room for the head */
	message_list_begin(&writer, buf, 2);
	CHECK_EQ(message_list_add(&writer, &entry), -EMSGSIZE);
	CHECK_EQ(message_list_end(&writer, false), -EMSGSIZE);
}

HARNESS_MAIN({"every message: round trip, truncations, trailing bytes", all_samples},
	{"the codec table agrees with the codecs", codec_table},
	{"each limit at its edge and over it", limits},
	{"each field lies where the specification says", fields}, {"frame header", header},
	{"refusals carry a text, requests no response", refusals}, {"names and paths", names},
	{"put refuses what get would refuse", put_refuses},
	{"LIST replies keep both limits", list_writer})
