/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of proto/transfer: the transfer messages and the block header. */
#include "tests/samples.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define OFFER                                                                                      \
	"01 01 0008 00400000 00000200 00000001 0000000000000003 ffffffffffffffff 02 5a*16"         \
	" 0000000000001000 0004 0002 6162"
#define EXPOSE                                                                                     \
	"00000200 00401000 00007f0000000000 deadbeef 00007e0000000000 cafef00d 00007d0000000000 "  \
	"feedface"
#define ACCEPT "00000200 00401000 00007f0000000000 deadbeef 00000001 00007e0000000000 cafef00d"
#define GRANT "0003 00000000 0000ffff 00000007"
#define NOTICE "0000002a"
#define FILE_MIN "00000001 01 000001a4 ffffffffffffffff 3b9ac9ff 0000000100000000 0000"
#define FILE_NAMED "00000002 01 000001a4 0000000000000005 00000006 0000000000000007 0003 612f62"
#define READY "00000001 0000000000000000"
#define FILE_LINK FILE_LINK_HEAD "0000000000000000 0001 61 0003 2e2e2f"
#define FILE_LINK_HEAD "00000002 06 000001ff 0000000000000005 00000006 "
#define FILE_HEAD "00000002 81 000001a4 0000000000000005 00000006 0000000000000007 0003 612f62 "
#define FILE_OWNER FILE_HEAD "0003 000003e8 0003 616e6e 00000064 0000"
#define FILE_LISTS FILE_HEAD "001c 000c 0006 757365722e61 0002 0001 0003 753a3a 0000"
#define FILE_LEAVE                                                                                 \
	"00000002 85 000001ed 0000000000000005 00000006 0000000000000000 0000 "                    \
	"0008 0000 0003 753a3a"
#define LINK_OWNER                                                                                 \
	"00000002 86 000001ff 0000000000000005 00000006 0000000000000000 0001 61 0003 2e2e2f "     \
	"0001 00000000 0000"
#define FILE_SPECIAL "00000002 07 000001ff 0000000000000005 00000006 0000000000000000 0001 61"
#define HARD_LINK                                                                                  \
	"00000002 08 000001a4 0000000000000005 00000006 0000000000000000 0001 61 00000001 0003 "   \
	"622f63"
#define ATTRIBUTES                                                                                 \
	"00000002 89 000001a4 0000000000000005 00000006 0000000000000000 0001 61 "                 \
	"00 0000000000000007 0021 000003e8 0003 616e6e"
#define ATTRIBUTES_SEEN                                                                            \
	"00000002 09 000001a4 0000000000000005 00000006 0000000000000000 0001 61 "                 \
	"01 0000000000000007 ffffffffffffffff 3b9ac9ff 0123456789abcdef"
#define FILE_IDENTITY FILE_HEAD "0080 0123456789abcdef"
#define HAVE "00000001 0000000000000007 0002 0123456789abcdef fedcba9876543210"
#define HOLE "00000001 0000000000400000 0000000000010000"
#define FILE_END "00000001 0000 0000000000500000 0000000000000002 0123456789abcdef"
#define RESULT "00000001 0130 0000000000500000 0123456789abcdef 0003 6e6f21"
#define FILES_MIN                                                                                  \
	"00000007 0001 001f 00000001 01 000001a4 0000000000000005 00000006 0000000000000000 0000 " \
	"0000 0123456789abcdef"
#define FILES                                                                                      \
	"00000007 0002 0021 00000001 01 000001a4 0000000000000005 00000006 0000000000000003 0002 " \
	"6162 0000 0123456789abcdef 0020 00000002 05 000001a4 0000000000000005 00000006 "          \
	"0000000000000000 0001 63 00c8 0000000000000000"
#define RESULTS_MIN "00000007 00 0123456789abcdef 0000"
#define RESULTS "00000007 00 0123456789abcdef 0002 0001 0130 0000 0003 0000 0003 6e6f21"
#define COMPLETE "0000000000000001 0000000000000002 0000000000000003 00000000"
#define COMPLETE_AHEAD "0000000000000001 0000000000000002 0000000000000000 00000004"
#define QUEUED "00000003 0000000012345678 0000000000100000 0004 62756c6b"
#define ADMIT "00000000000f4240 00000001 0004 62756c6b"
#define ABORT "006c 0003 6e6f21"
#define BLOCK "00000001 00000002 0000000000400000 00010000 00000000 0123456789abcdef"

/* Blocks of 64 KiB, and a header that was got is put to the same bytes. */
static ssize_t recode_block(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct transfer_block block;
	int error;

	if (len < TRANSFER_BLOCK_BYTES || size < TRANSFER_BLOCK_BYTES)
		return -EMSGSIZE; /* the functions take whole arrays; nothing to test there */
	error = transfer_get_block(&block, in, TRANSFER_BLOCK_MIN);
	if (error)
		return error;
	transfer_put_block(&block, out);
	return TRANSFER_BLOCK_BYTES;
}

static const struct sample samples[] = {
	{TRANSFER_OFFER, NULL, OFFER},
	{TRANSFER_OFFER, NULL,
		"04 02 0040 01000000 00010000 00000000 ffffffffffffffff 0000000000000000 "
		"00 00*16 ffffffffffffffff 0000"},
	{TRANSFER_OFFER, NULL,
		"01 01 0008 00400000 00000200 00000003 0000000000000003 ffffffffffffffff 02 5a*16 "
		"0000000000000000 0400 00fe 61*254 00fe 62*254 00fe 63*254 00fe 64*254"},
	{TRANSFER_ACCEPT, NULL, ACCEPT},
	{TRANSFER_EXPOSE, NULL, EXPOSE},
	{TRANSFER_GRANT, NULL, GRANT},
	{TRANSFER_GRANT, NULL, "0001 0000ffff"},
	{TRANSFER_GRANT, NULL, "1000 00*16384"},
	{TRANSFER_REQUEST, NULL, ""},
	{TRANSFER_FILE, NULL, FILE_MIN},
	{TRANSFER_FILE, NULL, FILE_NAMED},
	{TRANSFER_FILE, NULL,
		"ffffffff 03 00000fff 8000000000000000 00000000 ffffffffffffffff 3fff "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255"},
	{TRANSFER_FILE, NULL,
		"ffffffff 85 00000fff 8000000000000000 00000000 7fffffffffffffff 3fff "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 "
		"001f ffffffff 00ff 75*255 ffffffff 00ff 67*255 8000 "
		"0001 61 7ffb 00*32763 1000 61*4096 1000 61*4096"},
	{TRANSFER_FILE, NULL, FILE_OWNER},
	{TRANSFER_FILE, NULL, FILE_IDENTITY},
	{TRANSFER_FILE, NULL, FILE_LISTS},
	{TRANSFER_FILE, NULL, FILE_LEAVE},
	{TRANSFER_FILE, NULL, LINK_OWNER},
	{TRANSFER_FILE, NULL, FILE_SPECIAL},
	{TRANSFER_FILE, NULL, HARD_LINK},
	{TRANSFER_FILE, NULL, ATTRIBUTES},
	{TRANSFER_FILE, NULL, ATTRIBUTES_SEEN},
	{TRANSFER_HOLE, NULL, HOLE},
	{TRANSFER_FILE, NULL,
		"ffffffff 06 00000fff 8000000000000000 00000000 0000000000000000 3fff "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 "
		"0fff 62*4095"},
	{TRANSFER_FILE, NULL, FILE_LINK},
	{TRANSFER_HAVE, NULL, HAVE},
	{TRANSFER_HAVE, NULL, "00000001 0000000000000000 0001 0000000000000000"},
	{TRANSFER_HAVE, NULL, "ffffffff 00000000fffff000 1000 5a*32768"},
	{TRANSFER_READY, NULL, READY},
	{TRANSFER_READY, NULL, "00000001 7fffffffffffffff"},
	{TRANSFER_FILE_END, NULL, FILE_END},
	{TRANSFER_RESULT, NULL, RESULT},
	{TRANSFER_RESULT, NULL, "ffffffff 0000 7fffffffffffffff ffffffffffffffff 0000"},
	{TRANSFER_RESULT, NULL, "00000001 018f 0000000000000000 0000000000000000 0200 0a*512"},
	{TRANSFER_FILES, NULL, FILES_MIN},
	{TRANSFER_FILES, NULL, FILES},
	{TRANSFER_FILES, NULL,
		"00000001 0004 401e 00000001 01 000001a4 0000000000000005 00000006 "
		"0000000000000007 3fff 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 0000 0123456789abcdef "
		"401e 00000002 01 000001a4 0000000000000005 00000006 0000000000000007 3fff "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 0000 0123456789abcdef 401e 00000003 01 "
		"000001a4 0000000000000005 00000006 0000000000000007 3fff 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 0000 0123456789abcdef 3f70 00000004 01 000001a4 "
		"0000000000000005 00000006 0000000000000007 3f51 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f "
		"61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 "
		"2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*255 2f 61*81 "
		"0000 0123456789abcdef "},
	{TRANSFER_RESULTS, NULL, RESULTS_MIN},
	{TRANSFER_RESULTS, NULL, RESULTS},
	{TRANSFER_RESULTS, NULL,
		"00000001 01 0000000000000000 007f 0001 0130 0200 21*512 0002 0130 0200 21*512 "
		"0003 0130 0200 21*512 0004 0130 0200 21*512 0005 0130 0200 21*512 0006 0130 "
		"0200 21*512 0007 0130 0200 21*512 0008 0130 0200 21*512 0009 0130 0200 21*512 "
		"000a 0130 0200 21*512 000b 0130 0200 21*512 000c 0130 0200 21*512 000d 0130 "
		"0200 21*512 000e 0130 0200 21*512 000f 0130 0200 21*512 0010 0130 0200 21*512 "
		"0011 0130 0200 21*512 0012 0130 0200 21*512 0013 0130 0200 21*512 0014 0130 "
		"0200 21*512 0015 0130 0200 21*512 0016 0130 0200 21*512 0017 0130 0200 21*512 "
		"0018 0130 0200 21*512 0019 0130 0200 21*512 001a 0130 0200 21*512 001b 0130 "
		"0200 21*512 001c 0130 0200 21*512 001d 0130 0200 21*512 001e 0130 0200 21*512 "
		"001f 0130 0200 21*512 0020 0130 0200 21*512 0021 0130 0200 21*512 0022 0130 "
		"0200 21*512 0023 0130 0200 21*512 0024 0130 0200 21*512 0025 0130 0200 21*512 "
		"0026 0130 0200 21*512 0027 0130 0200 21*512 0028 0130 0200 21*512 0029 0130 "
		"0200 21*512 002a 0130 0200 21*512 002b 0130 0200 21*512 002c 0130 0200 21*512 "
		"002d 0130 0200 21*512 002e 0130 0200 21*512 002f 0130 0200 21*512 0030 0130 "
		"0200 21*512 0031 0130 0200 21*512 0032 0130 0200 21*512 0033 0130 0200 21*512 "
		"0034 0130 0200 21*512 0035 0130 0200 21*512 0036 0130 0200 21*512 0037 0130 "
		"0200 21*512 0038 0130 0200 21*512 0039 0130 0200 21*512 003a 0130 0200 21*512 "
		"003b 0130 0200 21*512 003c 0130 0200 21*512 003d 0130 0200 21*512 003e 0130 "
		"0200 21*512 003f 0130 0200 21*512 0040 0130 0200 21*512 0041 0130 0200 21*512 "
		"0042 0130 0200 21*512 0043 0130 0200 21*512 0044 0130 0200 21*512 0045 0130 "
		"0200 21*512 0046 0130 0200 21*512 0047 0130 0200 21*512 0048 0130 0200 21*512 "
		"0049 0130 0200 21*512 004a 0130 0200 21*512 004b 0130 0200 21*512 004c 0130 "
		"0200 21*512 004d 0130 0200 21*512 004e 0130 0200 21*512 004f 0130 0200 21*512 "
		"0050 0130 0200 21*512 0051 0130 0200 21*512 0052 0130 0200 21*512 0053 0130 "
		"0200 21*512 0054 0130 0200 21*512 0055 0130 0200 21*512 0056 0130 0200 21*512 "
		"0057 0130 0200 21*512 0058 0130 0200 21*512 0059 0130 0200 21*512 005a 0130 "
		"0200 21*512 005b 0130 0200 21*512 005c 0130 0200 21*512 005d 0130 0200 21*512 "
		"005e 0130 0200 21*512 005f 0130 0200 21*512 0060 0130 0200 21*512 0061 0130 "
		"0200 21*512 0062 0130 0200 21*512 0063 0130 0200 21*512 0064 0130 0200 21*512 "
		"0065 0130 0200 21*512 0066 0130 0200 21*512 0067 0130 0200 21*512 0068 0130 "
		"0200 21*512 0069 0130 0200 21*512 006a 0130 0200 21*512 006b 0130 0200 21*512 "
		"006c 0130 0200 21*512 006d 0130 0200 21*512 006e 0130 0200 21*512 006f 0130 "
		"0200 21*512 0070 0130 0200 21*512 0071 0130 0200 21*512 0072 0130 0200 21*512 "
		"0073 0130 0200 21*512 0074 0130 0200 21*512 0075 0130 0200 21*512 0076 0130 "
		"0200 21*512 0077 0130 0200 21*512 0078 0130 0200 21*512 0079 0130 0200 21*512 "
		"007a 0130 0200 21*512 007b 0130 0200 21*512 007c 0130 0200 21*512 007d 0130 "
		"0200 21*512 007e 0130 0200 21*512 007f 0130 00f7 21*247 "},
	{TRANSFER_COMPLETE, NULL, COMPLETE},
	{TRANSFER_COMPLETE, NULL, COMPLETE_AHEAD},
	{TRANSFER_CLOSED, NULL, COMPLETE},
	{TRANSFER_ABORT, NULL, ABORT},
	{TRANSFER_ABORT, NULL, "ffff 0000"},
	{TRANSFER_ABORT, NULL, "0064 0200 21*512"},
	{MESSAGE_QUEUED, NULL, QUEUED},
	{MESSAGE_QUEUED, NULL, "00000000 0000000000000000 0000000000000000 0000"},
	{TRANSFER_PAUSED, NULL, QUEUED},
	{TRANSFER_PAUSED, NULL, "00000000 0000000000000000 0000000000000000 0000"},
	{TRANSFER_PAUSED, NULL, "ffffffff ffffffffffffffff ffffffffffffffff 001f 61*31"},
	{MESSAGE_QUEUED, NULL, "ffffffff ffffffffffffffff ffffffffffffffff 001f 61*31"},
};

static void all_samples(void)
{
	sample_check_all(samples, COUNT(samples));
}

static void codec_table(void)
{
	sample_check_rows(samples, COUNT(samples), 64, 95);
	CHECK(!strcmp(message_name(TRANSFER_FILE_END), "FILE_END"));
	CHECK(message_row(TRANSFER_OFFER | MESSAGE_REPLY) == NULL);
}

#define BAD (-EBADMSG)
#define OFFER_(offset, width, value, error)                                                        \
	{                                                                                          \
		recode_transfer_offer, OFFER, offset, width, value, error                          \
	}
#define EXPOSE_(offset, width, value, error)                                                       \
	{                                                                                          \
		recode_transfer_expose, EXPOSE, offset, width, value, error                        \
	}
#define ACCEPT_(offset, width, value, error)                                                       \
	{                                                                                          \
		recode_transfer_accept, ACCEPT, offset, width, value, error                        \
	}
#define FILE_(offset, width, value, error)                                                         \
	{                                                                                          \
		recode_transfer_file, FILE_NAMED, offset, width, value, error                      \
	}
#define FILES_(offset, width, value, error)                                                        \
	{                                                                                          \
		recode_bundle, FILES, offset, width, value, error                                  \
	}
#define RESULTS_(offset, width, value, error)                                                      \
	{                                                                                          \
		recode_bundle_results, RESULTS, offset, width, value, error                        \
	}
#define BLOCK_(offset, width, value, error)                                                        \
	{                                                                                          \
		recode_block, BLOCK, offset, width, value, error                                   \
	}

static const struct tweak tweaks[] = {
	OFFER_(0, 1, 0, BAD), OFFER_(0, 1, 4, 0), OFFER_(0, 1, 5, BAD), OFFER_(1, 1, 0, BAD),
	OFFER_(1, 1, 2, 0), OFFER_(1, 1, 3, BAD), OFFER_(1, 1, 255, BAD), OFFER_(2, 2, 0, BAD),
	OFFER_(2, 2, 1, 0), OFFER_(2, 2, 64, 0), OFFER_(2, 2, 65, BAD), OFFER_(4, 4, 0, BAD),
	OFFER_(4, 4, 61440, BAD), OFFER_(4, 4, 65536, 0), OFFER_(4, 4, 65536 + 512, BAD),
	OFFER_(4, 4, 65536 + 4096, 0), OFFER_(4, 4, 16777216, 0),
	OFFER_(4, 4, 16777216 + 4096, BAD), OFFER_(8, 4, 0, BAD), OFFER_(8, 4, 65536, 0),
	OFFER_(8, 4, 65537, BAD), OFFER_(12, 4, 0, 0), OFFER_(12, 4, 3, 0), OFFER_(12, 4, 4, BAD),
	OFFER_(12, 4, 0x80000000, BAD), OFFER_(32, 1, 0, 0), OFFER_(32, 1, 2, 0),
	OFFER_(32, 1, 3, BAD), OFFER_(59, 2, 0, BAD), OFFER_(59, 2, 1, BAD), OFFER_(59, 2, 3, BAD),
	OFFER_(61, 1, 0, BAD), OFFER_(61, 1, '/', BAD),

	ACCEPT_(0, 4, 0, BAD), ACCEPT_(0, 4, 1, 0), ACCEPT_(0, 4, 65536, 0),
	ACCEPT_(0, 4, 65537, BAD), ACCEPT_(4, 4, 65536 + 4096 - 1, BAD),
	ACCEPT_(4, 4, 65536 + 4096, 0), ACCEPT_(4, 4, 0xffffffff, 0),
	ACCEPT_(8, 8, UINT64_MAX - 512ull * 0x401000,
		0), /* the last slot ends where addresses do */
	ACCEPT_(8, 8, UINT64_MAX - 512ull * 0x401000 + 1, BAD), ACCEPT_(8, 8, UINT64_MAX, BAD),
	ACCEPT_(16, 4, 0, 0), ACCEPT_(20, 4, 0, 0), ACCEPT_(20, 4, 3, 0), ACCEPT_(20, 4, 4, BAD),
	ACCEPT_(24, 8, 0, 0), ACCEPT_(24, 8, UINT64_MAX - 512, 0), /* so does the status region */
	ACCEPT_(24, 8, UINT64_MAX - 511, BAD), ACCEPT_(24, 8, UINT64_MAX, BAD),
	ACCEPT_(32, 4, 0, 0), ACCEPT_(32, 4, 0xffffffff, 0),
	/* as many slots, stride and address as ACCEPT's; and both regions end in the address space
	 */
	EXPOSE_(0, 4, 0, BAD), EXPOSE_(0, 4, 1, 0), EXPOSE_(0, 4, 65536, 0),
	EXPOSE_(0, 4, 65537, BAD), EXPOSE_(4, 4, 65536 + 4096 - 1, BAD),
	EXPOSE_(4, 4, 65536 + 4096, 0), EXPOSE_(8, 8, UINT64_MAX - 512ull * 0x401000, 0),
	EXPOSE_(8, 8, UINT64_MAX - 512ull * 0x401000 + 1, BAD), EXPOSE_(16, 4, 0, 0),
	EXPOSE_(20, 8, UINT64_MAX - 4096, 0), EXPOSE_(20, 8, UINT64_MAX - 4095, BAD),
	EXPOSE_(28, 4, UINT32_MAX, 0), EXPOSE_(32, 8, UINT64_MAX - 512, 0),
	EXPOSE_(32, 8, UINT64_MAX - 511, BAD), EXPOSE_(40, 4, 0, 0),

	{recode_grant, GRANT, 0, 2, 0, BAD}, {recode_grant, GRANT, 0, 2, 1, BAD},
	{recode_grant, GRANT, 0, 2, 2, BAD}, {recode_grant, GRANT, 0, 2, 4, -EMSGSIZE},
	{recode_grant, GRANT, 0, 2, 4097, BAD}, {recode_grant, GRANT, 0, 2, 65535, BAD},
	{recode_grant, GRANT, 10, 4, 65535, 0}, {recode_grant, GRANT, 10, 4, 65536, BAD},
	{recode_grant, "1001 00*16388", 0, 2, 4097, BAD}, {recode_notice, NOTICE, 0, 4, 65535, 0},
	{recode_notice, NOTICE, 0, 4, 65550, 0}, {recode_notice, NOTICE, 0, 4, 65551, BAD},
	{recode_notice, NOTICE, 0, 4, UINT32_MAX, BAD},

	FILE_(0, 4, 0, BAD), FILE_(0, 4, UINT32_MAX, 0), FILE_(4, 1, 0, BAD),
	FILE_(4, 1, TRANSFER_FILE_DIRECTORY, 0), FILE_(4, 1, TRANSFER_FILE_NULL, 0),
	FILE_(4, 1, 5, 0), FILE_(4, 1, 6, -EMSGSIZE), FILE_(4, 1, 7, BAD),
	FILE_(4, 1, 8, -EMSGSIZE), FILE_(4, 1, 9, -EMSGSIZE), FILE_(4, 1, 10, BAD),
	FILE_(5, 4, 07777, 0), FILE_(5, 4, 010000, BAD), FILE_(17, 4, 1000000000, BAD),
	FILE_(21, 8, INT64_MAX, 0), FILE_(21, 8, (uint64_t)INT64_MAX + 1, BAD),
	FILE_(21, 8, UINT64_MAX, BAD), /* unknown: streams only */
	{recode_transfer_file, FILE_LINK, 4, 1, TRANSFER_FILE_REGULAR, BAD},
	{recode_transfer_file, FILE_LINK, 21, 8, 1, BAD},
	{recode_transfer_file, FILE_LINK, 34, 1, 0, BAD},
	{recode_transfer_file, FILE_LINK, 32, 2, 0, BAD},
	{recode_transfer_file, FILE_LINK, 32, 2, 4096, BAD},
	FILE_(31, 1, '/', BAD), /* absolute, and "//" */
	FILE_(31, 1, '.', BAD), FILE_(33, 1, '.', BAD), FILE_(33, 1, '/', BAD),
	FILE_(33, 1, 0, BAD), FILE_(33, 1, 0x0a, 0), FILE_(29, 2, 4, -EMSGSIZE),
	FILE_(29, 2, 1, BAD),

	/* what it has beyond mode and time: something, and only what its kind may have */
	{recode_transfer_file, FILE_OWNER, 34, 2, 0, BAD},
	{recode_transfer_file, FILE_OWNER, 34, 2, 256, BAD},
	{recode_transfer_file, FILE_OWNER, 34, 2, 0x63, 0},
	{recode_transfer_file, FILE_LEAVE, 34 - 3, 2, 0x28, BAD}, /* a directory has one name */
	{recode_transfer_file, FILE_LEAVE, 34 - 3, 2, 0x48, BAD},
	/* to a file that was announced before, within the destination */
	{recode_transfer_file, HARD_LINK, 32, 4, 0, BAD},
	{recode_transfer_file, HARD_LINK, 32, 4, 2, BAD},
	{recode_transfer_file, HARD_LINK, 0, 4, 3, 0},
	{recode_transfer_file, HARD_LINK, 21, 8, 1, BAD},
	{recode_transfer_file, HARD_LINK, 38, 1, '/', BAD},
	{recode_transfer_file, HARD_LINK, 4, 1, 0x88, -EMSGSIZE},
	/* of what the sink has, no bytes come */
	{recode_transfer_file, ATTRIBUTES, 21, 8, 1, BAD},
	{recode_transfer_file, ATTRIBUTES, 33, 8, INT64_MAX, 0},
	{recode_transfer_file, ATTRIBUTES, 33, 8, INT64_MAX + 1ull, BAD},
	{recode_transfer_file, ATTRIBUTES, 41, 2, 0x61, BAD},
	{recode_transfer_file, ATTRIBUTES, 41, 2, 0xa1, -EMSGSIZE},
	{recode_transfer_file, ATTRIBUTES, 32, 1, 1, -EMSGSIZE},
	{recode_transfer_file, ATTRIBUTES, 32, 1, 2, BAD},
	{recode_transfer_file, ATTRIBUTES_SEEN, 32, 1, 0, BAD},
	{recode_transfer_file, ATTRIBUTES_SEEN, 33, 8, INT64_MAX, 0},
	{recode_transfer_file, ATTRIBUTES_SEEN, 33, 8, INT64_MAX + 1ull, BAD},
	{recode_transfer_file, ATTRIBUTES_SEEN, 49, 4, 1000000000, BAD},
	{recode_transfer_file, ATTRIBUTES_SEEN, 53, 8, 0, 0},
	{recode_transfer_file, ATTRIBUTES, 4, 1, 9, BAD},
	{recode_transfer_hole, HOLE, 0, 4, 0, BAD}, {recode_transfer_hole, HOLE, 12, 8, 0, BAD},
	{recode_transfer_hole, HOLE, 12, 8, INT64_MAX - 0x400000, 0},
	{recode_transfer_hole, HOLE, 12, 8, INT64_MAX - 0x3fffff, BAD},
	{recode_transfer_hole, HOLE, 12, 8, UINT64_MAX, BAD},
	{recode_transfer_hole, HOLE, 4, 8, UINT64_MAX, BAD},
	{recode_transfer_file, FILE_OWNER, 34, 2, 1, BAD},
	{recode_transfer_file, FILE_OWNER, 34, 2, 19, 0},
	{recode_transfer_file, FILE_OWNER, 42, 1, 0, BAD}, /* a NUL in a name */
	{recode_transfer_file, FILE_OWNER, 40, 2, 256, BAD},
	{recode_transfer_file, FILE_OWNER, 4, 1, 0x82, BAD}, /* a directory gets it at its end */
	{recode_transfer_file, FILE_OWNER, 4, 1, 0x83, BAD},
	{recode_transfer_file, FILE_OWNER, 4, 1, 0x84, BAD},
	{recode_transfer_file, FILE_OWNER, 4, 1, 0x85, 0},
	{recode_transfer_file, FILE_OWNER, 4, 1, 0x01, BAD},
	{recode_transfer_file, LINK_OWNER, 38, 2, 4, BAD},
	{recode_transfer_file, FILE_LEAVE, 4, 1, 0x81, BAD}, /* a file's default list */
	{recode_transfer_file, FILE_LISTS, 36, 2, 32769, BAD},
	{recode_transfer_file, FILE_LISTS, 38, 2, 0, BAD}, /* an attribute without a name */
	{recode_transfer_file, FILE_LISTS, 38, 2, 7, BAD},
	{recode_transfer_file, FILE_LISTS, 40, 1, 0, BAD},
	{recode_transfer_file, FILE_LISTS, 46, 2, 3, BAD}, /* a value that ends behind the list */
	{recode_transfer_file, FILE_LISTS, 54, 1, 0, BAD},

	{recode_transfer_ready, READY, 0, 4, 0, BAD}, {recode_transfer_ready, READY, 4, 8, 1, 0},
	{recode_transfer_ready, READY, 4, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_have, HAVE, 0, 4, 0, BAD}, {recode_have, HAVE, 12, 2, 0, BAD},
	{recode_have, HAVE, 12, 2, 1, BAD}, {recode_have, HAVE, 12, 2, 3, -EMSGSIZE},
	{recode_have, HAVE, 12, 2, 4097, BAD}, {recode_have, HAVE, 4, 8, (1ull << 32) - 2, 0},
	{recode_have, HAVE, 4, 8, (1ull << 32) - 1, BAD},
	{recode_have, HAVE, 4, 8, UINT64_MAX, BAD},
	{recode_transfer_file, FILE_IDENTITY, 4, 1, 0x85, BAD},
	{recode_transfer_file_end, FILE_END, 0, 4, 0, BAD},
	{recode_transfer_file_end, FILE_END, 4, 2, 65535, 0},
	{recode_transfer_file_end, FILE_END, 6, 8, INT64_MAX, 0},
	{recode_transfer_file_end, FILE_END, 6, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_transfer_file_end, FILE_END, 14, 8, 1ull << 32, 0},
	{recode_transfer_file_end, FILE_END, 14, 8, (1ull << 32) + 1, BAD},
	{recode_transfer_result, RESULT, 0, 4, 0, BAD},
	{recode_transfer_result, RESULT, 6, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_transfer_result, RESULT, 22, 2, 513, BAD},
	{recode_transfer_result, RESULT, 22, 2, 4, -EMSGSIZE},
	{recode_transfer_result, RESULT, 22, 2, 2, BAD},
	{recode_transfer_complete, COMPLETE, 24, 4, 1, BAD},
	{recode_transfer_complete, COMPLETE_AHEAD, 16, 8, 1, BAD},
	{recode_transfer_complete, COMPLETE_AHEAD, 24, 4, 65536, 0},
	{recode_transfer_complete, COMPLETE_AHEAD, 24, 4, 65537, BAD},
	{recode_transfer_abort, ABORT, 0, 2, 0, BAD},
	{recode_transfer_abort, ABORT, 2, 2, 513, BAD},
	/* FILES: number, count, the FILE in it, its place, its kind, and a status that goes with
	 * neither bytes nor digest */
	FILES_(0, 4, 0, BAD), FILES_(0, 4, UINT32_MAX, 0), FILES_(4, 2, 0, BAD),
	FILES_(4, 2, 1, BAD), FILES_(4, 2, 3, -EMSGSIZE), FILES_(4, 2, 257, BAD),
	FILES_(4, 2, 65535, BAD), FILES_(6, 2, 0, BAD), FILES_(6, 2, 32, BAD),
	FILES_(6, 2, 65535, -EMSGSIZE), FILES_(8, 4, 0, BAD), FILES_(8, 4, 2, BAD),
	FILES_(12, 1, 2, BAD), FILES_(12, 1, 3, BAD), FILES_(12, 1, 4, BAD), FILES_(12, 1, 7, BAD),
	FILES_(13, 4, 010000, BAD), FILES_(29, 8, INT64_MAX, 0), FILES_(29, 8, UINT64_MAX, BAD),
	FILES_(39, 1, '/', BAD), FILES_(41, 2, 300, BAD), FILES_(43, 8, 0, 0),
	FILES_(53, 4, 1, BAD), FILES_(53, 4, 3, BAD), FILES_(57, 1, 1, 0), FILES_(57, 1, 2, 0),
	FILES_(57, 1, 3, BAD), FILES_(85, 2, 0, 0), FILES_(87, 8, 1, BAD), RESULTS_(0, 4, 0, BAD),
	RESULTS_(4, 1, 1, BAD), RESULTS_(4, 1, 2, BAD), RESULTS_(13, 2, 1, BAD),
	RESULTS_(13, 2, 3, -EMSGSIZE), RESULTS_(13, 2, 257, BAD), RESULTS_(15, 2, 0, BAD),
	RESULTS_(15, 2, 3, BAD), RESULTS_(15, 2, 2, 0), RESULTS_(17, 2, 0, BAD),
	RESULTS_(21, 2, 256, 0), RESULTS_(21, 2, 257, BAD), RESULTS_(21, 2, 1, BAD),
	RESULTS_(25, 2, 513, BAD), RESULTS_(25, 2, 4, -EMSGSIZE),
	/* QUEUED */
	{recode_message_queued, QUEUED, 0, 4, 0, 0}, {recode_message_queued, QUEUED, 20, 2, 3, BAD},
	{recode_message_queued, QUEUED, 20, 2, 5, -EMSGSIZE},
	{recode_message_queued, QUEUED, 22, 1, '.', BAD},
	/* ADMIT */
	{recode_message_admit, ADMIT, 0, 8, 0, 0},
	{recode_message_admit, ADMIT, 0, 8, (uint64_t)INT64_MAX + 1, BAD},
	{recode_message_admit, ADMIT, 8, 4, 2, BAD}, {recode_message_admit, ADMIT, 8, 4, 0, 0},
	{recode_message_admit, ADMIT, 12, 2, 32, BAD},
	{recode_message_admit, ADMIT, 14, 1, ' ', BAD},
	{recode_message_admit, ADMIT, 14, 1, 0, BAD},

	BLOCK_(0, 4, 0, BAD), BLOCK_(0, 4, UINT32_MAX, 0), BLOCK_(4, 4, UINT32_MAX, 0),
	BLOCK_(8, 8, INT64_MAX - 65536, 0), BLOCK_(8, 8, INT64_MAX - 65535, BAD),
	BLOCK_(8, 8, UINT64_MAX, BAD), BLOCK_(16, 4, 65537, BAD), BLOCK_(16, 4, UINT32_MAX, BAD),
	BLOCK_(16, 4, 1, 0), BLOCK_(16, 4, 0, BAD), BLOCK_(20, 4, 1, 0), BLOCK_(20, 4, 2, BAD),
	/* compressed: to something, and to less than it was */
	BLOCK_(20, 4, 0x102, 0), BLOCK_(20, 4, 0x103, 0), BLOCK_(20, 4, 0xffff02, 0),
	BLOCK_(20, 4, 0x1000002, BAD), BLOCK_(20, 4, 0xffffff02, BAD), BLOCK_(20, 4, 0x100, BAD),
	BLOCK_(20, 4, 0x106, BAD), BLOCK_(16, 8, 1, BAD), /* length 0, also in a last block */
	BLOCK_(24, 8, 0, 0),                              /* any sum: it is the sink's to compare */
};

static void limits(void)
{
	sample_tweak_all(tweaks, COUNT(tweaks));
}

/* The region of the status bytes has at least 64 of them, however few slots there are. */
static void status_region(void)
{
	struct transfer_accept few = {.depth = 1, .stride = TRANSFER_BLOCK_MIN + 4096};
	uint8_t out[64];

	CHECK_EQ(transfer_status_bytes(1), 64);
	CHECK_EQ(transfer_status_bytes(64), 64);
	CHECK_EQ(transfer_status_bytes(65), 65);
	CHECK_EQ(transfer_status_bytes(TRANSFER_DEPTH_MAX), TRANSFER_DEPTH_MAX);
	few.status_base = UINT64_MAX - 64;
	CHECK(transfer_put_accept(&few, out, sizeof out) > 0);
	few.status_base++;
	CHECK_EQ(transfer_put_accept(&few, out, sizeof out), -EBADMSG);
	few.depth = 64;
	few.status_base--;
	CHECK(transfer_put_accept(&few, out, sizeof out) > 0);
	few.depth = 65;
	CHECK_EQ(transfer_put_accept(&few, out, sizeof out), -EBADMSG);
}

static void fields(void)
{
	static uint8_t in[SAMPLE_MAX];
	struct transfer_complete complete;
	struct transfer_file_end file_end;
	struct transfer_accept accept;
	struct transfer_result result;
	struct transfer_offer offer;
	struct transfer_grant grant;
	struct transfer_abort ended;
	struct transfer_block block;
	struct transfer_file file;

	CHECK_EQ(transfer_get_offer(&offer, in, sample_parse(OFFER, in)), 0);
	CHECK_EQ(offer.engine, MESSAGE_ENGINE_CREDIT);
	CHECK_EQ(offer.notice, TRANSFER_NOTICE_BEHIND);
	CHECK_EQ(offer.channels, 8);
	CHECK_EQ(offer.block, 4 << 20);
	CHECK_EQ(offer.depth, 512);
	CHECK_EQ(offer.flags, TRANSFER_OFFER_IMM);
	CHECK_EQ(offer.protect, MESSAGE_PROTECT_PRIVATE);
	CHECK_EQ(offer.salt[15], 0x5a);
	CHECK_EQ(offer.files, 3);
	CHECK(offer.bytes == MESSAGE_UNKNOWN);
	CHECK_EQ(offer.disk, 4096);
	CHECK_EQ(offer.roots.len, 4);
	CHECK_EQ(transfer_get_accept(&accept, in, sample_parse(ACCEPT, in)), 0);
	CHECK_EQ(accept.depth, 512);
	CHECK_EQ(accept.stride, (4 << 20) + 4096);
	CHECK_EQ(accept.base, 0x7f0000000000);
	CHECK_EQ(accept.key, 0xdeadbeef);
	CHECK_EQ(accept.flags, TRANSFER_ACCEPT_IMM);
	CHECK_EQ(accept.status_base, 0x7e0000000000);
	CHECK_EQ(accept.status_key, 0xcafef00d);
	CHECK_EQ(transfer_get_grant(&grant, in, sample_parse(GRANT, in)), 0);
	CHECK_EQ(grant.count, 3);
	CHECK_EQ(transfer_grant_index(&grant, 0), 0);
	CHECK_EQ(transfer_grant_index(&grant, 1), 65535);
	CHECK_EQ(transfer_grant_index(&grant, 2), 7);
	CHECK_EQ(transfer_get_file(&file, in, sample_parse(FILE_NAMED, in)), 0);
	CHECK_EQ(file.file, 2);
	CHECK_EQ(file.kind, TRANSFER_FILE_REGULAR);
	CHECK_EQ(file.mode, 0644);
	CHECK_EQ(file.mtime_s, 5);
	CHECK_EQ(file.mtime_ns, 6);
	CHECK_EQ(file.size, 7);
	CHECK_EQ(file.name.len, 3);
	CHECK(!memcmp(file.name.data, "a/b", 3));
	CHECK_EQ(transfer_get_file(&file, in, sample_parse(FILE_MIN, in)), 0);
	CHECK_EQ(file.mtime_s, -1);
	CHECK_EQ(file.name.len, 0);
	CHECK_EQ(transfer_get_file_end(&file_end, in, sample_parse(FILE_END, in)), 0);
	CHECK_EQ(file_end.size, 5 << 20);
	CHECK_EQ(file_end.blocks, 2);
	CHECK(file_end.digest == 0x0123456789abcdef);
	CHECK_EQ(transfer_get_result(&result, in, sample_parse(RESULT, in)), 0);
	CHECK_EQ(result.status, 304);
	CHECK_EQ(result.size, 5 << 20);
	CHECK(result.digest == 0x0123456789abcdef);
	CHECK_EQ(result.text.len, 3);
	CHECK_EQ(transfer_get_complete(&complete, in, sample_parse(COMPLETE, in)), 0);
	CHECK_EQ(complete.files, 1);
	CHECK_EQ(complete.bytes, 2);
	CHECK_EQ(complete.errors, 3);
	CHECK_EQ(complete.open, 0);
	CHECK_EQ(transfer_get_complete(&complete, in, sample_parse(COMPLETE_AHEAD, in)), 0);
	CHECK_EQ(complete.open, 4);
	CHECK_EQ(transfer_get_abort(&ended, in, sample_parse(ABORT, in)), 0);
	CHECK_EQ(ended.status, 108);
	CHECK_EQ(ended.text.len, 3);
	sample_parse(BLOCK, in);
	CHECK_EQ(transfer_get_block(&block, in, TRANSFER_BLOCK_MIN), 0);
	CHECK_EQ(block.session, 1);
	CHECK_EQ(block.sequence, 2);
	CHECK_EQ(block.offset, 4 << 20);
	CHECK_EQ(block.length, 65536);
	CHECK_EQ(block.flags, 0);
	CHECK(block.sum == 0x0123456789abcdef);
	CHECK_EQ(transfer_get_block(&block, in, 65535), -EBADMSG);
}

static void gathered(void)
{
	uint8_t data[TRANSFER_GATHERED_BYTES * (TRANSFER_GATHERED_MAX + 1)],
		header[TRANSFER_BLOCK_BYTES];
	struct transfer_gathered m;

	for (unsigned i = 0; i <= TRANSFER_GATHERED_MAX; i++) {
		memset(header, (int)i, sizeof header);
		transfer_put_gathered(
			i ? TRANSFER_DEPTH_MAX - i : 0, header, data + i * TRANSFER_GATHERED_BYTES);
	}
	CHECK(!memcmp(data, "\0\0\0\0\0", 5) &&
		!memcmp(data + TRANSFER_GATHERED_BYTES, "\0\0\xff\xff\1", 5));
	for (size_t len = 0; len <= sizeof data; len++) {
		unsigned count = (unsigned)(len / TRANSFER_GATHERED_BYTES);
		bool good = len % TRANSFER_GATHERED_BYTES == 0 && count >= 1 &&
			    count <= TRANSFER_GATHERED_MAX;

		CHECK_EQ(transfer_get_gathered(&m, data, len), good ? 0 : -EBADMSG);
		if (!good)
			continue;
		CHECK_EQ(m.count, count);
		CHECK_EQ(transfer_gathered_index(&m, count - 1),
			count > 1 ? TRANSFER_DEPTH_MAX + 1 - count : 0);
		CHECK_EQ(transfer_gathered_header(&m, count - 1)[31], count - 1);
	}
	data[TRANSFER_GATHERED_BYTES + 1] = 1; /* index 2^16 and more */
	CHECK_EQ(transfer_get_gathered(&m, data, 2 * TRANSFER_GATHERED_BYTES), -EBADMSG);
	CHECK_EQ(transfer_get_gathered(&m, data, TRANSFER_GATHERED_BYTES), 0);
}

static void put_refuses(void)
{
	static uint8_t buf[SAMPLE_MAX];
	static uint32_t indices[TRANSFER_GRANTS_MAX + 1];
	struct transfer_abort ended = {0, {NULL, 0}};
	struct transfer_file file = {
		.file = 1, .kind = TRANSFER_FILE_REGULAR, .mode = 0644, .name = {buf, 16384}};

	CHECK_EQ(transfer_put_grant(indices, 0, buf, sizeof(buf)), -EBADMSG);
	CHECK_EQ(transfer_put_grant(indices, TRANSFER_GRANTS_MAX, buf, sizeof(buf)), 16386);
	CHECK_EQ(transfer_put_grant(indices, TRANSFER_GRANTS_MAX + 1, buf, sizeof(buf)), -EBADMSG);
	indices[1] = TRANSFER_DEPTH_MAX;
	CHECK_EQ(transfer_put_grant(indices, 1, buf, sizeof(buf)), 6);
	CHECK_EQ(transfer_put_grant(indices, 2, buf, sizeof(buf)), -EBADMSG);
	CHECK_EQ(transfer_put_abort(&ended, buf, sizeof(buf)), -EBADMSG);
	CHECK_EQ(transfer_put_file(&file, buf, sizeof(buf)), -EMSGSIZE);
	file.name.len = 0;
	CHECK_EQ(transfer_put_file(&file, buf, sizeof(buf)), 31);
	file.kind = TRANSFER_FILE_REGULAR;
	file.size = MESSAGE_UNKNOWN;
	CHECK_EQ(transfer_put_file(&file, buf, sizeof(buf)), -EBADMSG);
}

static bool name_ok(const char *name, size_t len)
{
	/* an exact copy, so that a sanitizer sees a look past the end */
	uint8_t *copy = malloc(len ? len : 1);
	struct wire_bytes bytes = {copy, len};
	bool ok;

	memcpy(copy, name, len);
	ok = transfer_name_ok(bytes);
	free(copy);
	return ok;
}

static void names(void)
{
	static const char *const good[] = {"", "a", "a/b", "a/b/c", "...", ".a/..b/c..", " ",
		"a\nb", "\xff\xfe", "-rf", "a\\..\\b"};
	static const char *const bad[] = {"/", "/a", "a/", "a//b", "//", ".", "..", "./a", "../a",
		"a/.", "a/..", "a/./b", "a/../b", "a/b/..", "/.."};
	static char longest[16500];

	for (size_t i = 0; i < COUNT(good); i++)
		CHECK(name_ok(good[i], strlen(good[i])));
	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK(!name_ok(bad[i], strlen(bad[i])));
	CHECK(!name_ok("a\0b", 3));
	CHECK(!name_ok("\0", 1));
	CHECK(!name_ok("a/\0/b", 5));
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = i % 256 == 255 ? '/' : 'x';
	CHECK(name_ok(longest, 255));
	CHECK(!name_ok(longest, 256));
	CHECK(name_ok(longest, 257));
	CHECK(name_ok(longest, 16383));
	CHECK(!name_ok(longest, 16385));
	longest[255] = 'x';
	CHECK(!name_ok(longest, 256));
	CHECK(!name_ok(longest, 300));
	longest[0] = '/';
	CHECK(!name_ok(longest, 10));
}

HARNESS_MAIN({"every message: round trip, truncations, trailing bytes", all_samples},
	{"the codec table agrees with the codecs", codec_table},
	{"each limit at its edge and over it", limits},
	{"the region of status bytes", status_region},
	{"each field lies where the specification says", fields}, {"gathered notices", gathered},
	{"put refuses what get would refuse", put_refuses}, {"names of files", names})
