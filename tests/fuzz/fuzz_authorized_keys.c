/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_authorized_keys: what lets a key or a certificate in.
 *
 * Input: the file.  Property: a key that counts stands in the line that is told, behind its type;
 * what is put before the file lets it in, and an option that narrows keeps it out; a user of a
 * certificate has a line with one of its names.
 */
#include "rftpd/auth/authorized_keys.h"
#include "rftpd/auth/certificate_users.h"
#include "session/tls_sign.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "AAAAC3NzaC1lZDI1NTE5AAAAIJSZ9HHmMVhc1MBtqqUK5RC/gyCG6zHQTCOfCFfnQ8tR"
#define LINE "ssh-ed25519 " KEY "\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char user[CERTIFICATE_USER_MAX], found[CERTIFICATE_USER_MAX],
		*more = malloc(size + sizeof LINE);
	struct tls_key key;
	unsigned line, again;
	bool has;

	must(more && !tls_key_from_base64(&key, KEY, strlen(KEY)));
	has = authorized_keys_have(text, size, &key, &line);
	must(!has || line);
	must(!line || memmem(data, size, KEY, strlen(KEY)));
	memcpy(more, LINE, strlen(LINE));
	memcpy(more + strlen(LINE), data, size);
	must(authorized_keys_have(more, size + strlen(LINE), &key, &again) && again == 1);
	free(more);
	if (!certificate_users_find(text, size, "CN=A\nemail:a@b\n", "", user)) {
		must(*user && memmem(data, size, user, strlen(user)));
		must(memmem(data, size, "CN=A", 4) || memmem(data, size, "email:a@b", 9));
		must(!certificate_users_find(text, size, "CN=A\nemail:a@b\n", user, found));
		must(!strcmp(found, user));
	}
	must(certificate_users_find(text, size, "", "", user) == -ENOENT);
	return 0;
}
