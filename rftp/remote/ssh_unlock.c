/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/ssh_unlock: see ssh_unlock.h.
 */
#include "rftp/remote/ssh_unlock.h"

#include <dlfcn.h>
#include <errno.h>
#include <libssh/libssh.h>
#include <string.h>

#define LIBRARY "libssh.so.4"

static struct {
	__typeof__(ssh_pki_import_privkey_base64) *import;
	__typeof__(ssh_pki_export_privkey_base64) *export;
	__typeof__(ssh_key_free) *key_free;
	__typeof__(ssh_string_free_char) *text_free;
} lib;

bool ssh_unlock_ready(void)
{
	void *at = lib.import ? NULL : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!at)
		return lib.import;
	lib.export = (__typeof__(lib.export))dlsym(at, "ssh_pki_export_privkey_base64");
	lib.key_free = (__typeof__(lib.key_free))dlsym(at, "ssh_key_free");
	lib.text_free = (__typeof__(lib.text_free))dlsym(at, "ssh_string_free_char");
	if (lib.export && lib.key_free && lib.text_free)
		lib.import = (__typeof__(lib.import))dlsym(at, "ssh_pki_import_privkey_base64");
	return lib.import;
}

int ssh_unlock(const char *text, const char *passphrase, char **plain)
{
	ssh_key key = NULL;
	int err;

	if (lib.import(text, passphrase, NULL, NULL, &key) != SSH_OK)
		return -EKEYREJECTED;
	err = lib.export(key, NULL, NULL, NULL, plain) == SSH_OK ? 0 : -ENOMEM;
	lib.key_free(key);
	return err;
}

void ssh_unlock_free(char *plain)
{
	if (!plain)
		return;
	explicit_bzero(plain, strlen(plain));
	lib.text_free(plain);
}
