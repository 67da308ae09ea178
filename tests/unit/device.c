/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/device: RDMA devices as /sys shows them, of hosts made up for it; and the routes of this
 * host.
 */
#include "tests/harness.h"

#include "base/addr.h"
#include "fabric/device.h"
#include "fabric/select.h"
#include "tests/fake_host.h"

#include <arpa/inet.h>

static struct device_port ports[DEVICE_PORTS_MAX];
static struct device_gid gids[DEVICE_GIDS_MAX];

static struct sockaddr_storage address(const char *host)
{
	struct addr out = {.len = 0};
	size_t count;

	if (addr_resolve(host, 1, true, &out, 1, &count) || !count)
		abort();
	return out.ss;
}

static void a_host_without(void)
{
	const char *root = scratch_dir();

	CHECK_EQ(device_ports(root, ports), 0);
	CHECK_EQ(device_stamp(root), 0);
	CHECK(!device_any_iwarp(root));
	fake_file(root, "x", "/sys/class/infiniband/.hidden/node_type");
	CHECK_EQ(device_ports(root, ports), 0);
	CHECK_EQ(device_stamp(root), 0);
}

static void roce(void)
{
	struct sockaddr_storage source = address("10.6.0.1"), other = address("10.6.0.2");
	const char *root = scratch_dir();
	const struct device_gid *gid;

	fake_roce(root, "mlx5_1");
	fake_port(root, &(struct fake_port){.device = "mlx5_0", .state = "1: DOWN"});
	CHECK_EQ(device_ports(root, ports), 2);
	CHECK(!strcmp(ports[0].device, "mlx5_0"));
	CHECK(!strcmp(ports[0].state, "DOWN"));
	CHECK(!strcmp(ports[0].netdev, ""));
	CHECK_EQ(ports[0].numa_node, -1);
	CHECK(!strcmp(ports[1].device, "mlx5_1"));
	CHECK(!strcmp(ports[1].state, "ACTIVE"));
	CHECK(!strcmp(ports[1].netdev, "eth7"));
	CHECK_EQ(ports[1].port, 1);
	CHECK_EQ(ports[1].numa_node, 1);
	CHECK(!ports[1].iwarp && !device_any_iwarp(root));

	CHECK_EQ(device_gids(root, &ports[1], gids), 4);
	gid = device_pick_gid(&ports[1], gids, 4, (struct sockaddr *)&source);
	CHECK(gid && gid->index == 3 && !strcmp(gid->text, "::ffff:10.6.0.1"));
	CHECK(!device_pick_gid(&ports[1], gids, 4, (struct sockaddr *)&other));
	gid = device_pick_gid(&ports[1], gids, 4, NULL);
	CHECK(gid && gid->index == 1);
	gid = device_pick_gid(&ports[1], gids, 3, (struct sockaddr *)&source);
	CHECK(gid && gid->index == 2); /* v1 when there is no v2 */
}

static void iwarp_is_found_by_its_link_address(void)
{
	const char *root = scratch_dir();

	fake_port(root,
		&(struct fake_port){
			.device = "siw0", .node_type = "4: RNIC", .rate = "2.5 Gb/sec (1X SDR)"});
	fake_gid(root, "siw0", 0, "5254:0012:3456:0000:0000:0000:0000:0000", NULL, NULL);
	fake_file(root, "00:00:00:00:00:00", "/sys/class/net/lo/address");
	fake_file(root, "52:54:00:12:34:56", "/sys/class/net/ens3/address");
	fake_file(root, "not an address", "/sys/class/net/odd/address");
	CHECK_EQ(device_ports(root, ports), 1);
	CHECK(ports[0].iwarp && device_any_iwarp(root));
	CHECK(!strcmp(ports[0].netdev, "ens3"));
	CHECK_EQ(device_gids(root, &ports[0], gids), 1);
	CHECK(device_pick_gid(&ports[0], gids, 1, NULL) == &gids[0]);
}

static void ip_over_infiniband(void)
{
	const char *root = scratch_dir();

	fake_port(
		root, &(struct fake_port){
			      .device = "ib0dev", .link_layer = "InfiniBand", .state = "2: INIT"});
	fake_gid(root, "ib0dev", 0, "fe80:0000:0000:0000:0002:c903:0012:3457", NULL, NULL);
	fake_file(root, "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:12:34:57",
		"/sys/class/net/ib0/address");
	CHECK_EQ(device_ports(root, ports), 1);
	CHECK(!strcmp(ports[0].netdev, "ib0"));
	CHECK(!strcmp(ports[0].state, "INIT"));
	CHECK_EQ(device_gids(root, &ports[0], gids), 1);
	CHECK(device_pick_gid(&ports[0], gids, 1, NULL) == &gids[0]);
}

/* The order of a directory's entries does not matter; a device of the same name does. */
static void stamps(void)
{
	const char *root = scratch_dir();
	uint64_t none = device_stamp(root), one, two;

	fake_port(root, &(struct fake_port){.device = "rxe0"});
	one = device_stamp(root);
	CHECK(one != none);
	CHECK(device_stamp(root) == one);
	fake_port(root, &(struct fake_port){.device = "rxe1"});
	two = device_stamp(root);
	CHECK(two != one && two != none);
	CHECK(!rename(scratch_path(root, "sys/class/infiniband/rxe0"), scratch_path(root, "gone")));
	CHECK(device_stamp(root) != two && device_stamp(root) != one);
	fake_port(root, &(struct fake_port){.device = "rxe0"});
	CHECK(device_stamp(root) != two);
}

static void more_ports_than_there_is_room_for(void)
{
	const char *root = scratch_dir();
	char name[16];

	for (unsigned i = 0; i < DEVICE_PORTS_MAX + 5; i++) {
		snprintf(name, sizeof name, "dev%u", i);
		fake_port(root, &(struct fake_port){.device = name});
	}
	CHECK_EQ(device_ports(root, ports), DEVICE_PORTS_MAX);
}

static void routes(void)
{
	struct sockaddr_storage dst = address("127.0.0.1"), source;
	char netdev[IF_NAMESIZE];

	CHECK_EQ(device_route((struct sockaddr *)&dst, &source, netdev), 0);
	CHECK(addr_is_loopback((struct sockaddr *)&source));
	CHECK_EQ(device_address(netdev, &source), 0);
	CHECK_EQ(source.ss_family, AF_INET);
	CHECK(addr_is_loopback((struct sockaddr *)&source));
	CHECK_EQ(device_address("no-such-device", &source), -ENOENT);
}

static void a_device_that_is_not_there(void)
{
	const struct device_port port = {.device = "no-such-device", .port = 1};
	struct device_probe probe;
	int err = device_probe(&port, &probe);

	CHECK(err == -ENOSYS || err == -ENOENT); /* without, or with verbs */
	CHECK_EQ(device_register(&port, 4096), err);
}

static void in_software(void)
{
	const char *root = scratch_dir();
	char name[64] = "", path[512];

	CHECK(!device_in_software(root, "eth7", name));
	fake_roce(root, "rxe0"); /* over eth7 */
	CHECK(device_in_software(root, "eth7", name) && !strcmp(name, "rxe0"));
	CHECK(device_in_software(root, "vlan9", name)); /* there is no other */
	/* a real one decides for its own interface, and for those that no device is known of */
	fake_port(root, &(struct fake_port){.device = "mlx5_0", .numa_node = "0"});
	fake_gid(root, "mlx5_0", 3, FAKE_GID_10_6_0_1, "RoCE v2", "eth9");
	snprintf(path, sizeof path, "%s/sys/class/infiniband/mlx5_0/device/driver", root);
	CHECK_EQ(symlink("../../bus/pci/drivers/mlx5_core", path), 0);
	CHECK(!device_in_software(root, "eth9", name));
	CHECK(!device_in_software(root, "vlan9", name));
	CHECK(device_in_software(root, "eth7", name) && !strcmp(name, "rxe0"));
}

/* What `auto` knows before it dials. */
static void choosing(void)
{
	struct sockaddr_storage loopback = address("::1"), far = address("10.6.0.1");
	char why[SELECT_WHY_MAX] = "";
	bool soft = false;

	for (unsigned i = 0; select_name(i); i++) {
		const char *name = select_name(i);

		soft |= !strcmp(name, "soft");
		CHECK_EQ(select_reaches(name, (struct sockaddr *)&far, why), 0);
		CHECK_EQ(select_reaches(name, (struct sockaddr *)&loopback, why),
			select_is_plugged(name) ? -ENODEV : 0);
		CHECK(!select_is_plugged(name) || strstr(why, "loopback"));
		CHECK(!select_comes_last(name, (struct sockaddr *)&loopback, why));
		select_explain(name, (struct sockaddr *)&loopback, why);
		CHECK(strstr(why, "no RDMA device leads"));
	}
	CHECK(soft && !select_is_plugged("soft") && select_stamp("soft") == 0);
	CHECK_EQ(select_open("no-such-fabric", NULL, NULL), -ENOENT);
	CHECK(strstr(select_open_text(-ENODEV), "no RDMA device"));
	CHECK(strstr(select_open_text(-EACCES), "this user"));
}

HARNESS_MAIN({"a_host_without", a_host_without}, {"roce", roce},
	{"iwarp_is_found_by_its_link_address", iwarp_is_found_by_its_link_address},
	{"ip_over_infiniband", ip_over_infiniband}, {"stamps", stamps},
	{"more_ports_than_there_is_room_for", more_ports_than_there_is_room_for},
	{"routes", routes}, {"a_device_that_is_not_there", a_device_that_is_not_there},
	{"in_software", in_software}, {"choosing", choosing})
