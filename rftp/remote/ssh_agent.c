/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/ssh_agent: see ssh_agent.h.
 */
#include "rftp/remote/ssh_agent.h"

#include "base/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	FAILURE = 5,
	REQUEST_IDENTITIES = 11,
	IDENTITIES = 12,
	SIGN_REQUEST = 13,
	SIGN_RESPONSE = 14
};

#define MESSAGE_BYTES 4096u /* of a request: its key and what is to be signed are short */

int ssh_agent_connect(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("SSH_AUTH_SOCK");
	int fd, err;

	if (!path || !*path)
		return -ENOENT;
	if (strlen(path) >= sizeof to.sun_path)
		return -ENAMETOOLONG;
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&to, sizeof to))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* ---- bytes ---- */

struct reader {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static uint32_t number_at(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static uint32_t get_number(struct reader *r)
{
	uint32_t n;

	if (r->left < 4) {
		r->bad = true;
		return 0;
	}
	n = number_at(r->at);
	r->at += 4;
	r->left -= 4;
	return n;
}

static const uint8_t *get_string(struct reader *r, size_t *len)
{
	const uint8_t *at;

	*len = get_number(r);
	at = r->at;
	if (r->bad || *len > r->left) {
		r->bad = true;
		*len = 0;
		return at;
	}
	r->at += *len;
	r->left -= *len;
	return at;
}

static uint8_t get_type(struct reader *r)
{
	if (!r->left) {
		r->bad = true;
		return 0;
	}
	r->left--;
	return *r->at++;
}

int ssh_agent_parse_keys(const uint8_t *reply, size_t len, struct tls_key keys[SSH_AGENT_KEYS_MAX])
{
	struct reader r = {reply, len, false};
	uint8_t type = get_type(&r);
	uint32_t count = get_number(&r);
	int found = 0;

	if (r.bad || type != IDENTITIES)
		return type == FAILURE ? 0 : -EPROTO;
	for (uint32_t i = 0; i < count && !r.bad; i++) {
		size_t n, ignored;
		const uint8_t *blob = get_string(&r, &n);

		get_string(&r, &ignored); /* the comment */
		if (!r.bad && found < (int)SSH_AGENT_KEYS_MAX &&
			!tls_key_from_blob(&keys[found], blob, n))
			found++;
	}
	return r.bad ? -EPROTO : found;
}

int ssh_agent_parse_signature(
	const uint8_t *reply, size_t len, uint8_t signature[TLS_SIGNATURE_BYTES])
{
	struct reader r = {reply, len, false}, inner;
	uint8_t type = get_type(&r);
	const uint8_t *at, *name;
	size_t n, name_len;

	if (!r.bad && type == FAILURE)
		return -EACCES;
	at = get_string(&r, &n);
	if (r.bad || type != SIGN_RESPONSE)
		return -EPROTO;
	inner = (struct reader){at, n, false};
	name = get_string(&inner, &name_len);
	at = get_string(&inner, &n);
	if (inner.bad || inner.left || name_len != strlen("ssh-ed25519") ||
		memcmp(name, "ssh-ed25519", name_len) != 0 || n != TLS_SIGNATURE_BYTES)
		return -EPROTO;
	memcpy(signature, at, n);
	return 0;
}

/* ---- the dialogue ---- */

static int send_all(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int receive_all(int fd, int cancel_fd, uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = input_read(fd, cancel_fd, data, len);

		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The reply to a request, in memory that the caller frees: its length, or -errno. */
static ssize_t ask(int fd, int cancel_fd, const uint8_t *request, size_t len, uint8_t **reply)
{
	uint8_t head[4];
	uint32_t n;
	int err = send_all(fd, request, len);

	if (!err)
		err = receive_all(fd, cancel_fd, head, sizeof head);
	if (err)
		return err;
	n = number_at(head);
	if (!n || n > SSH_AGENT_REPLY_MAX)
		return -EPROTO;
	*reply = malloc(n);
	if (!*reply)
		return -ENOMEM;
	err = receive_all(fd, cancel_fd, *reply, n);
	if (!err)
		return n;
	free(*reply);
	return err;
}

int ssh_agent_keys(int fd, int cancel_fd, struct tls_key keys[SSH_AGENT_KEYS_MAX])
{
	static const uint8_t request[] = {0, 0, 0, 1, REQUEST_IDENTITIES};
	uint8_t *reply;
	ssize_t len = ask(fd, cancel_fd, request, sizeof request, &reply);
	int err;

	if (len < 0)
		return (int)len;
	err = ssh_agent_parse_keys(reply, (size_t)len, keys);
	free(reply);
	return err;
}

static uint8_t *put_number(uint8_t *to, size_t n)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		*to++ = (uint8_t)(n >> shift);
	return to;
}

static uint8_t *put_string(uint8_t *to, const void *bytes, size_t len)
{
	to = put_number(to, len);
	memcpy(to, bytes, len);
	return to + len;
}

int ssh_agent_sign(int fd, int cancel_fd, const struct tls_key *key, const void *message,
	size_t len, uint8_t signature[TLS_SIGNATURE_BYTES])
{
	uint8_t request[MESSAGE_BYTES], *end = request + 4, *reply;
	ssize_t n;
	int err;

	if (4 + 1 + 4 + key->len + 4 + len + 4 > sizeof request)
		return -EMSGSIZE;
	*end++ = SIGN_REQUEST;
	end = put_string(end, key->blob, key->len);
	end = put_string(end, message, len);
	end = put_number(end, 0); /* no flags */
	put_number(request, (size_t)(end - request) - 4);
	n = ask(fd, cancel_fd, request, (size_t)(end - request), &reply);
	if (n < 0)
		return (int)n;
	err = ssh_agent_parse_signature(reply, (size_t)n, signature);
	free(reply);
	return err;
}
