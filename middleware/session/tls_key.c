/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tls_key: see tls_key.h.
 */
#include "session/tls_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ED25519_BYTES 32u
#define ED25519_TYPE "ssh-ed25519"

const char *tls_error_text(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return text ? text : "unknown error";
}

bool tls_key_equal(const struct tls_key *a, const struct tls_key *b)
{
	return !strcmp(a->type, b->type) && a->len == b->len && !memcmp(a->blob, b->blob, a->len);
}

void tls_key_fingerprint(const struct tls_key *key, char text[TLS_FINGERPRINT_MAX])
{
	uint8_t hash[SHA256_DIGEST_LENGTH];
	unsigned char base64[4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1];

	SHA256(key->blob, key->len, hash);
	EVP_EncodeBlock(base64, hash, sizeof hash);
	base64[strcspn((char *)base64, "=")] = 0;
	snprintf(text, TLS_FINGERPRINT_MAX, "SHA256:%s", (char *)base64);
}

static uint8_t *put_string(uint8_t *to, const void *bytes, size_t len)
{
	to[0] = to[1] = to[2] = 0;
	to[3] = (uint8_t)len; /* both strings of a key are short */
	memcpy(to + 4, bytes, len);
	return to + 4 + len;
}

int tls_key_from_pkey(struct tls_key *key, EVP_PKEY *pkey)
{
	/* only its address is taken */
	/* cppcheck-suppress ctuuninitvar */
	uint8_t raw[ED25519_BYTES], *end = key->blob;
	size_t len = sizeof raw;
	int der;

	if (EVP_PKEY_get_base_id(pkey) == EVP_PKEY_ED25519) {
		if (EVP_PKEY_get_raw_public_key(pkey, raw, &len) != 1)
			return -EPROTO;
		snprintf(key->type, sizeof key->type, ED25519_TYPE);
		end = put_string(end, ED25519_TYPE, strlen(ED25519_TYPE));
		end = put_string(end, raw, sizeof raw);
		key->len = (size_t)(end - key->blob);
		return 0;
	}
	der = i2d_PUBKEY(pkey, NULL);
	if (der <= 0 || (unsigned)der > sizeof key->blob)
		return -EPROTO;
	snprintf(key->type, sizeof key->type, "x509-spki");
	key->len = (size_t)i2d_PUBKEY(pkey, &end);
	return 0;
}

EVP_PKEY *tls_key_load(const char *path, char why[TLS_WHY_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	EVP_PKEY *pkey;
	struct stat st;
	FILE *file;

	if (fd < 0 || fstat(fd, &st)) {
		int err = errno;

		snprintf(why, TLS_WHY_MAX, "%s: %s", path, strerror(err));
		if (fd >= 0)
			close(fd);
		errno = err;
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || st.st_mode & 077) {
		snprintf(why, TLS_WHY_MAX,
			"%s: others may read or change this private key (mode %04o): chmod 600 it",
			path, (unsigned)st.st_mode & 07777);
		close(fd);
		errno = EPERM;
		return NULL;
	}
	file = fdopen(fd, "r");
	if (!file) {
		snprintf(why, TLS_WHY_MAX, "%s: %s", path, strerror(errno));
		close(fd);
		errno = ENOMEM;
		return NULL;
	}
	pkey = PEM_read_PrivateKey(file, NULL, NULL, (void *)"");
	fclose(file);
	if (!pkey) {
		snprintf(why, TLS_WHY_MAX, "%s: not a private key in PEM: %s", path,
			tls_error_text());
		errno = EINVAL;
	}
	return pkey;
}

X509 *tls_key_certify(EVP_PKEY *pkey)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_NAME_new();
	uint64_t serial = 0;

	/* It says nothing but the key, which is what clients remember: names and dates in it are
	 * checked by nobody. */
	if (!cert || !name || RAND_bytes((uint8_t *)&serial, sizeof serial) != 1 ||
		!X509_set_version(cert, 2) ||
		!ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1) ||
		!X509_NAME_add_entry_by_txt(
			name, "CN", MBSTRING_ASC, (const unsigned char *)"rftpd", -1, -1, 0) ||
		!X509_set_subject_name(cert, name) || !X509_set_issuer_name(cert, name) ||
		!ASN1_TIME_set_string(X509_getm_notBefore(cert), "20200101000000Z") ||
		!ASN1_TIME_set_string(X509_getm_notAfter(cert), "99991231235959Z") ||
		!X509_set_pubkey(cert, pkey) ||
		!X509_sign(cert, pkey,
			EVP_PKEY_get_base_id(pkey) == EVP_PKEY_ED25519 ? NULL : EVP_sha256())) {
		X509_free(cert);
		cert = NULL;
	}
	X509_NAME_free(name);
	return cert;
}

/* Writes it to an open file.  0 or -errno. */
static int write_key(int fd, EVP_PKEY *pkey)
{
	int copy = dup(fd);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
	int err = 0;

	if (!file) {
		if (copy >= 0)
			close(copy);
		return -ENOMEM;
	}
	if (PEM_write_PrivateKey(file, pkey, NULL, NULL, 0, NULL, NULL) != 1)
		err = -EIO;
	if (fclose(file) && !err)
		err = -errno;
	if (!err && fsync(fd))
		err = -errno;
	return err;
}

int tls_key_create(const char *path)
{
	EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	char temporary[PATH_MAX];
	int fd, n, err;

	if (!pkey)
		return -ENOMEM;
	n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
	if (n < 0 || (size_t)n >= sizeof temporary) {
		EVP_PKEY_free(pkey);
		return -ENAMETOOLONG;
	}
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		EVP_PKEY_free(pkey);
		return err;
	}
	err = write_key(fd, pkey);
	/* not rename: of two daemons that start at once the first one's key stays */
	if (!err && link(temporary, path))
		err = -errno;
	unlink(temporary);
	close(fd);
	EVP_PKEY_free(pkey);
	return err;
}
