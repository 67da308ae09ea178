/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/ssh_agent: the keys that an ssh-agent(1) holds, and what it signs with them
 * (draft-ietf-sshm-ssh-agent).
 *
 * The agent is asked for Ed25519 keys and signatures only; it answers when it likes, for it may ask
 * somebody.
 */
#ifndef RFTP_SSH_AGENT_H
#define RFTP_SSH_AGENT_H

#include "session/tls_sign.h"

#define SSH_AGENT_KEYS_MAX 16u
#define SSH_AGENT_REPLY_MAX 262144u /* as OpenSSH bounds it */

/* Connects to the agent of SSH_AUTH_SOCK.  The descriptor; -ENOENT: there is none; -errno. */
int ssh_agent_connect(void);

/* Its Ed25519 keys, at most SSH_AGENT_KEYS_MAX: how many, or -EPROTO, -ECANCELED, -errno. */
int ssh_agent_keys(int fd, int cancel_fd, struct tls_key keys[SSH_AGENT_KEYS_MAX]);
/* 0; -EACCES: it will not; or as above. */
int ssh_agent_sign(int fd, int cancel_fd, const struct tls_key *, const void *message, size_t len,
	uint8_t signature[TLS_SIGNATURE_BYTES]);

/* What the two read in a reply, without its length. */
int ssh_agent_parse_keys(const uint8_t *reply, size_t len, struct tls_key keys[SSH_AGENT_KEYS_MAX]);
int ssh_agent_parse_signature(
	const uint8_t *reply, size_t len, uint8_t signature[TLS_SIGNATURE_BYTES]);

#endif
