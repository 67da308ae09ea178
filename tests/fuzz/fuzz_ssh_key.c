/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ssh_key: a private key's file, an agent's replies, and the line of rftpd --serve-once.
 *
 * Input: a byte (0: the file; 1: the file, whose base64 is made here from the rest; 2: keys of an
 * agent; 3: a signature; 4: the line), then the bytes.  Property: a key that is read is an Ed25519
 * key, and what its private half signs its public half verifies.
 */
#include "rftp/remote/over_ssh.h"
#include "rftp/remote/ssh_agent.h"
#include "rftp/remote/ssh_key.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define END "\n-----END OPENSSH PRIVATE KEY-----\n"

static void read_file(const char *text, size_t len)
{
	uint8_t signature[TLS_SIGNATURE_BYTES];
	char why[SSH_KEY_WHY_MAX];
	struct ssh_key key;

	if (ssh_key_parse(text, len, &key, why)) {
		must(*why);
		return;
	}
	must(key.public.len == 51);
	if (key.encrypted)
		return;
	must(!tls_sign(key.seed, "x", 1, signature));
	must(tls_verify(&key.public, "x", 1, signature, sizeof signature));
}

/* As base64 would have it: the parser of the bytes gets to see them. */
static void read_bytes(const uint8_t *bytes, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc(len / 3 * 4 + sizeof BEGIN + sizeof END), *to = text;

	must(text);
	to = stpcpy(to, BEGIN);
	for (size_t i = 0; i + 3 <= len; i += 3) {
		uint32_t bits =
			(uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];

		for (int shift = 18; shift >= 0; shift -= 6)
			*to++ = digits[bits >> shift & 63];
	}
	to = stpcpy(to, END);
	read_file(text, (size_t)(to - text));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t signature[TLS_SIGNATURE_BYTES], what = fuzz_byte(&in);
	struct tls_key keys[SSH_AGENT_KEYS_MAX];
	struct over_ssh_line line;
	char *text;
	int n;

	switch (what % 5) {
	case 0:
		read_file((const char *)in.at, in.left);
		break;
	case 1:
		read_bytes(in.at, in.left);
		break;
	case 2:
		n = ssh_agent_parse_keys(in.at, in.left, keys);
		must(n == -EPROTO || (n >= 0 && n <= (int)SSH_AGENT_KEYS_MAX));
		for (int i = 0; i < n; i++)
			must(keys[i].len == 51);
		break;
	case 3:
		n = ssh_agent_parse_signature(in.at, in.left, signature);
		must(!n || n == -EPROTO || n == -EACCES);
		break;
	default:
		text = strndup((const char *)in.at, in.left);
		must(text);
		n = over_ssh_parse(text, &line);
		must(!n || n == -EPROTO || n == -ENOENT);
		must(n || (line.port && strlen(line.fingerprint) < sizeof line.fingerprint));
		free(text);
	}
	return 0;
}
