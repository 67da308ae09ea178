/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ddp: the input as the ULPDU of an FPDU: header, then what a Read Request or Terminate
 * carries.
 *
 * Whatever is taken must be what put writes again, but for reserved bits.
 */
#include "fabric/soft/ddp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static void check_read(const uint8_t *data)
{
	uint8_t out[DDP_READ_BYTES];
	struct ddp_read read;

	ddp_read_get(data, &read);
	ddp_read_put(out, &read);
	must(!memcmp(out, data, sizeof(out)));
}

static void check_terminate(const uint8_t *data, size_t size)
{
	uint8_t out[DDP_TERMINATE_MAX];
	struct ddp_terminate term, again;
	size_t len;
	int rc = ddp_terminate_get(data, size, &term);

	must(rc == 0 || rc == -EPROTO);
	if (rc)
		return;
	must(ddp_error_text(term.error) != NULL);
	len = ddp_terminate_put(out, &term);
	must(len <= DDP_TERMINATE_MAX);
	must(ddp_terminate_get(out, len, &again) == 0);
	must(ddp_error_is(term.error, again.error) && term.has_segment == again.has_segment);
	if (term.has_segment)
		must(term.has_read == again.has_read && term.segment_bytes == again.segment_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[DDP_UNTAGGED_BYTES];
	struct ddp_header header;
	struct ddp_error error;
	int rc = ddp_header_get(data, size, &header, &error);

	must(rc == 0 || rc == -EPROTO || rc == DDP_TAGGED_BYTES || rc == DDP_UNTAGGED_BYTES);
	if (rc == -EPROTO)
		must(strcmp(ddp_error_text(error), "unspecified error") != 0);
	if (rc <= 0)
		return 0;
	must((size_t)rc <= size && header.tagged == (rc == DDP_TAGGED_BYTES));
	must(ddp_header_put(out, &header) == (size_t)rc);
	must((out[0] & ~data[0]) == 0 && (out[1] & ~data[1]) == 0);
	must(!memcmp(out + 2, data + 2, (size_t)rc - 2));
	data += rc;
	size -= (size_t)rc;
	if (header.opcode == DDP_READ_REQUEST && size >= DDP_READ_BYTES)
		check_read(data);
	if (header.opcode == DDP_TERMINATE)
		check_terminate(data, size);
	return 0;
}
