/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mpa: the input as an MPA request or reply (first byte: which).
 *
 * A frame that is taken must be one that put writes again, but for reserved bits; it is taken from
 * exactly its bytes, and from one byte less it is not.
 */
#include "fabric/soft/mpa.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[MPA_FRAME_MAX];
	struct mpa_frame frame, again;
	enum mpa_kind kind;
	size_t need = 0, len;
	int rc;

	if (!size)
		return 0;
	kind = data[0] & 1 ? MPA_REPLY : MPA_REQUEST;
	data++;
	size--;
	rc = mpa_frame_get(data, size, kind, &frame, &need);
	must(rc > 0 || rc == -EAGAIN || rc == -EPROTO);
	if (rc == -EAGAIN)
		must(need > size && need <= MPA_FRAME_MAX);
	if (rc <= 0)
		return 0;
	must((size_t)rc <= size && frame.priv_len <= MPA_PRIVATE_MAX);
	must(frame.priv + frame.priv_len == data + rc);
	must(mpa_frame_get(data, (size_t)rc - 1, kind, &again, &need) == -EAGAIN);
	must(need == (rc == MPA_FRAME_FIXED_BYTES ? MPA_FRAME_FIXED_BYTES : (size_t)rc));

	len = mpa_frame_put(out, &frame);
	must(len == (size_t)rc);
	must(!memcmp(out, data, 16) && !memcmp(out + 17, data + 17, len - 17));
	must((out[16] & ~data[16]) == 0);
	must(mpa_frame_get(out, len, kind, &again, &need) == rc);
	must(again.ird == frame.ird && again.ord == frame.ord && again.crc == frame.crc);
	return 0;
}
