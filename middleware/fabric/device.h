/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/device: which RDMA devices this host has, as the kernel shows them in /sys, and which of
 * them the way to an address leads over.  For choosing a fabric, and for people; fabrics open
 * devices themselves.
 *
 * Works in every build and needs no rights; only device_probe and device_register ask a device, and
 * give -ENOSYS in a build without verbs.  `root` stands in front of /sys: "" but in tests.
 */
#ifndef FABRIC_DEVICE_H
#define FABRIC_DEVICE_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define DEVICE_PORTS_MAX 32u
#define DEVICE_GIDS_MAX 64u

struct device_port {
	char device[64];
	unsigned port;
	char driver[32];          /* "" : a software device, or not known */
	char state[24];           /* "ACTIVE", "DOWN", "INIT" */
	char link_layer[24];      /* "Ethernet", "InfiniBand" */
	char rate[48];            /* "100 Gb/sec (4X EDR)" */
	char netdev[IF_NAMESIZE]; /* the network interface over it; "": none found */
	bool iwarp;               /* takes TCP ports of the host */
	int numa_node;            /* -1: none, or not known */
};

struct device_gid {
	unsigned index;
	uint8_t raw[16];
	char text[INET6_ADDRSTRLEN];
	char type[24]; /* "RoCE v2", "IB/RoCE v1" */
	char netdev[IF_NAMESIZE];
};

/* The ports of all devices, in the order of their names; how many. */
unsigned device_ports(const char *root, struct device_port out[DEVICE_PORTS_MAX]);
/* The GIDs of a port that are not empty; how many. */
unsigned device_gids(
	const char *root, const struct device_port *, struct device_gid out[DEVICE_GIDS_MAX]);
/*
 * The one of them that connections from the address `source` use: RoCE v2 before v1, made of that
 * address; InfiniBand and iWARP have one only.  NULL: none.  `source` NULL: of any address.
 */
const struct device_gid *device_pick_gid(const struct device_port *, const struct device_gid *gids,
	unsigned count, const struct sockaddr *source);
/* The name of the device that connections over the interface use, if it is one in software (rxe,
 * siw), which has no driver of a piece of hardware; also if no other kind is there at all.  false:
 * it is hardware, or there is none. */
bool device_in_software(const char *root, const char *netdev, char name[64]);
/* Another number when devices came or went; 0: there is none. */
uint64_t device_stamp(const char *root);
/* Whether one of them speaks iWARP. */
bool device_any_iwarp(const char *root);

/* ---- the way to an address, as the kernel routes it ---- */

/* 0: the interface, and our address on it (its port is of no meaning).  -errno: no way. */
int device_route(
	const struct sockaddr *dst, struct sockaddr_storage *source, char netdev[IF_NAMESIZE]);
/* An address of the interface, IPv4 before IPv6.  -ENOENT. */
int device_address(const char *netdev, struct sockaddr_storage *out);

/* ---- asking the device ---- */

struct device_probe {
	unsigned active_mtu, max_mtu; /* bytes */
	unsigned max_qp, max_cqe;
	char firmware[64];
};

/* -ENOSYS: not in this build; -ENOENT: libibverbs has no provider for it; -EACCES. */
int device_probe(const struct device_port *, struct device_probe *out);
/* Registers `bytes` of new memory, and lets go of them.  0, or -ENOMEM (RLIMIT_MEMLOCK), ... */
int device_register(const struct device_port *, size_t bytes);

#endif
