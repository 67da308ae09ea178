/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_known_hosts: the file of the keys that were trusted before.
 *
 * Input: the file.  Property: whatever is in it, a key that is added is then known, unless a line
 * revokes it, and the lines that were there say what they said.
 */
#include "base/addr.h"
#include "rftp/remote/known_hosts.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct tls_key keys[2] = {
	{.type = "ssh-ed25519", .blob = {0, 0, 0}, .len = 3}, /* AAAA */
	{.type = "ssh-ed25519", .blob = {0, 0, 1}, .len = 3}, /* AAAB */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum known_hosts_answer before[2], after;
	int fd = memfd_create("known_hosts", 0);
	char path[64], name[KNOWN_HOSTS_NAME_MAX];
	unsigned line;

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	known_hosts_name("host", size % 2 ? ADDR_DEFAULT_PORT : 7388, name);
	for (int i = 0; i < 2; i++) {
		must(!known_hosts_find(path, name, &keys[i], &before[i], &line));
		must((before[i] == KNOWN_HOSTS_NEW) == !line);
	}
	must(before[0] != KNOWN_HOSTS_SAME || before[1] != KNOWN_HOSTS_NEW);
	must(!known_hosts_add(path, name, &keys[0]));
	must(!known_hosts_find(path, name, &keys[0], &after, &line));
	must(after == (before[0] == KNOWN_HOSTS_REVOKED ? KNOWN_HOSTS_REVOKED : KNOWN_HOSTS_SAME));
	must(!known_hosts_find(path, name, &keys[1], &after, &line));
	must(after == (before[1] == KNOWN_HOSTS_NEW ? KNOWN_HOSTS_CHANGED : before[1]));
	close(fd);
	return 0;
}
