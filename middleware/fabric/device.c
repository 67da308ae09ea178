/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/device: owns nothing; reads /sys/class/infiniband.
 */
#include "fabric/device.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASS_DIR "/sys/class/infiniband"
#define VERBS_DIR "/sys/class/infiniband_verbs"
#define NET_DIR "/sys/class/net"
#define PATH_BYTES 512

/* The first line of a file, "" when it cannot be read.  Whether there is something in it. */
static bool read_line(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");

	out[0] = '\0';
	if (!file)
		return false;
	if (!fgets(out, (int)size, file))
		out[0] = '\0';
	fclose(file);
	out[strcspn(out, "\n")] = '\0';
	return out[0] != '\0';
}

static bool port_line(
	const char *root, const struct device_port *p, const char *name, char *out, size_t size)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s" CLASS_DIR "/%s/ports/%u/%s", root, p->device, p->port,
		name);
	return read_line(path, out, size);
}

/* "4: ACTIVE" is "ACTIVE" */
static void drop_number(char *text)
{
	const char *word = strstr(text, ": ");

	if (word)
		memmove(text, word + 2, strlen(word + 2) + 1);
}

/* ---- GIDs ---- */

static bool read_gid(
	const char *root, const struct device_port *p, unsigned index, struct device_gid *out)
{
	static const uint8_t zeros[8];
	char name[64], text[64];

	*out = (struct device_gid){.index = index};
	snprintf(name, sizeof name, "gids/%u", index);
	if (!port_line(root, p, name, text, sizeof text) ||
		inet_pton(AF_INET6, text, out->raw) != 1)
		return false;
	/* an empty entry is all zeros, or a prefix without an interface */
	if (!memcmp(out->raw + 8, zeros, 8))
		return p->iwarp && memcmp(out->raw, zeros, 8);
	return true;
}

static void name_gid(const char *root, const struct device_port *p, struct device_gid *gid)
{
	char name[64];

	inet_ntop(AF_INET6, gid->raw, gid->text, sizeof gid->text);
	snprintf(name, sizeof name, "gid_attrs/types/%u", gid->index);
	port_line(root, p, name, gid->type, sizeof gid->type);
	snprintf(name, sizeof name, "gid_attrs/ndevs/%u", gid->index);
	port_line(root, p, name, gid->netdev, sizeof gid->netdev);
}

unsigned device_gids(
	const char *root, const struct device_port *p, struct device_gid out[DEVICE_GIDS_MAX])
{
	unsigned count = 0;

	/* tables have up to a few hundred entries, most of them empty */
	for (unsigned i = 0; i < 256 && count < DEVICE_GIDS_MAX; i++) {
		if (!read_gid(root, p, i, &out[count]))
			continue;
		name_gid(root, p, &out[count]);
		count++;
	}
	return count;
}

static bool made_of(const struct device_gid *gid, const struct sockaddr *sa)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (sa->sa_family == AF_INET6)
		return !memcmp(
			gid->raw, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	return !memcmp(gid->raw, mapped, 12) &&
	       !memcmp(gid->raw + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
}

const struct device_gid *device_pick_gid(const struct device_port *p, const struct device_gid *gids,
	unsigned count, const struct sockaddr *source)
{
	const struct device_gid *best = NULL;

	if (p->iwarp || strcmp(p->link_layer, "Ethernet"))
		return count ? &gids[0] : NULL;
	for (unsigned i = 0; i < count; i++) {
		bool v2 = strstr(gids[i].type, "v2") != NULL;

		if (source && !made_of(&gids[i], source))
			continue;
		if (!best || (v2 && !strstr(best->type, "v2")))
			best = &gids[i];
	}
	return best;
}

/* ---- ports ---- */

/* Whether the interface's link address is in one of the port's GIDs, as it is with iWARP (6 bytes
 * in front) and IP over InfiniBand (the last 16 of its 20). */
static bool is_over(const char *root, const char *netdev, const struct device_port *p)
{
	char path[PATH_BYTES], text[80];
	struct device_gid gid;
	uint8_t link[20];
	unsigned n = 0;

	snprintf(path, sizeof path, "%s" NET_DIR "/%s/address", root, netdev);
	if (!read_line(path, text, sizeof text))
		return false;
	for (const char *at = text; n < sizeof link && *at; at += *at == ':') {
		char *end;

		link[n++] = (uint8_t)strtoul(at, &end, 16);
		if (end == at)
			return false;
		at = end;
	}
	if (!read_gid(root, p, 0, &gid))
		return false;
	return n == 20 ? !memcmp(link + 4, gid.raw, 16)
		       : p->iwarp && n == 6 && !memcmp(link, gid.raw, 6);
}

static void find_netdev(const char *root, struct device_port *p)
{
	char path[PATH_BYTES], name[64];
	struct device_gid gid;
	const struct dirent *entry;
	DIR *dir;

	for (unsigned i = 0; i < 8 && !p->netdev[0]; i++) {
		snprintf(name, sizeof name, "gid_attrs/ndevs/%u", i);
		if (read_gid(root, p, i, &gid))
			port_line(root, p, name, p->netdev, sizeof p->netdev);
	}
	if (p->netdev[0])
		return;
	snprintf(path, sizeof path, "%s" NET_DIR, root);
	dir = opendir(path);
	while (dir && !p->netdev[0] && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof p->netdev &&
			is_over(root, entry->d_name, p))
			strcpy(p->netdev, entry->d_name);
	if (dir)
		closedir(dir);
}

static void read_port(const char *root, struct device_port *p)
{
	char path[PATH_BYTES], link[PATH_BYTES], line[64];
	ssize_t n;

	snprintf(path, sizeof path, "%s" CLASS_DIR "/%s/node_type", root, p->device);
	p->iwarp = read_line(path, line, sizeof line) && strstr(line, "RNIC");
	snprintf(path, sizeof path, "%s" CLASS_DIR "/%s/device/numa_node", root, p->device);
	p->numa_node = read_line(path, line, sizeof line) ? atoi(line) : -1;
	snprintf(path, sizeof path, "%s" CLASS_DIR "/%s/device/driver", root, p->device);
	n = readlink(path, link, sizeof link - 1);
	if (n > 0) {
		const char *last;

		link[n] = '\0';
		last = strrchr(link, '/');
		snprintf(p->driver, sizeof p->driver, "%.31s", last ? last + 1 : link);
	}
	port_line(root, p, "state", p->state, sizeof p->state);
	drop_number(p->state);
	port_line(root, p, "link_layer", p->link_layer, sizeof p->link_layer);
	port_line(root, p, "rate", p->rate, sizeof p->rate);
	find_netdev(root, p);
}

static int by_name(const void *a, const void *b)
{
	const struct device_port *x = a, *y = b;
	int order = strcmp(x->device, y->device);

	return order ? order : (int)x->port - (int)y->port;
}

unsigned device_ports(const char *root, struct device_port out[DEVICE_PORTS_MAX])
{
	char path[PATH_BYTES];
	const struct dirent *device, *port;
	unsigned count = 0;
	DIR *devices, *ports;

	snprintf(path, sizeof path, "%s" CLASS_DIR, root);
	devices = opendir(path);
	while (devices && (device = readdir(devices))) {
		if (device->d_name[0] == '.' || strlen(device->d_name) >= sizeof out->device)
			continue;
		snprintf(path, sizeof path, "%s" CLASS_DIR "/%s/ports", root, device->d_name);
		ports = opendir(path);
		while (ports && (port = readdir(ports)) && count < DEVICE_PORTS_MAX) {
			struct device_port *p = &out[count];

			if (port->d_name[0] < '1' || port->d_name[0] > '9')
				continue;
			*p = (struct device_port){.port = (unsigned)atoi(port->d_name)};
			strcpy(p->device, device->d_name);
			read_port(root, p);
			count++;
		}
		if (ports)
			closedir(ports);
	}
	if (devices)
		closedir(devices);
	qsort(out, count, sizeof *out, by_name);
	return count;
}

static uint64_t stamp_of(const char *root, const char *class_dir)
{
	char path[PATH_BYTES];
	const struct dirent *entry;
	uint64_t stamp = 0;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof path, "%s%s", root, class_dir);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		uint64_t one = 14695981039346656037ull;

		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "abi_version"))
			continue;
		for (const char *c = entry->d_name; *c; c++)
			one = (one ^ (uint8_t)*c) * 1099511628211ull;
		/* one of the same name is another device when its directory is: follow the link */
		if (!fstatat(dirfd(dir), entry->d_name, &st, 0))
			one = (one ^ st.st_ino) * 1099511628211ull;
		stamp += one | 1; /* in whatever order they come */
	}
	if (dir)
		closedir(dir);
	return stamp;
}

bool device_in_software(const char *root, const char *netdev, char name[64])
{
	struct device_port ports[DEVICE_PORTS_MAX];
	unsigned count = device_ports(root, ports);
	bool hardware = false, over = false;

	for (unsigned i = 0; i < count && !over; i++) {
		over = !strcmp(ports[i].netdev, netdev);
		if (over || !i)
			memcpy(name, ports[i].device, sizeof ports[i].device);
		hardware = over ? ports[i].driver[0] : hardware || ports[i].driver[0];
	}
	return count && !hardware;
}

uint64_t device_stamp(const char *root)
{
	/* a device that is about to go, and waits until we have closed it, goes from the second
	 * first */
	return stamp_of(root, CLASS_DIR) + stamp_of(root, VERBS_DIR);
}

bool device_any_iwarp(const char *root)
{
	char path[PATH_BYTES], line[64];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof path, "%s" CLASS_DIR, root);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof path, "%s" CLASS_DIR "/%s/node_type", root, entry->d_name);
		found = entry->d_name[0] != '.' && read_line(path, line, sizeof line) &&
			strstr(line, "RNIC");
	}
	if (dir)
		closedir(dir);
	return found;
}

#ifndef RFTP_VERBS
int device_probe(const struct device_port *p, struct device_probe *out)
{
	(void)p;
	*out = (struct device_probe){0};
	return -ENOSYS;
}

int device_register(const struct device_port *p, size_t bytes)
{
	(void)p;
	(void)bytes;
	return -ENOSYS;
}
#endif
