/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/doctor: the rows of hosts made up for it: what each finds, and whether it asks to be mended.
 * What devices themselves would say is made up, too.
 */
#include "tests/harness.h"

#include "fabric/select.h"
#include "rftp/doctor/doctor_impl.h"
#include "tests/fake_host.h"

/* The rows of the last run. */
static struct row {
	char check[32], object[64], cause[400], mend[300];
	enum doctor_result result;
} rows[128];
static unsigned row_count;

static struct doctor doctor;
static struct device_probe probe_answer;
static int probe_error;
static size_t registrable; /* bytes; 0: none */

static void keep(void *ctx, const struct doctor_row *row)
{
	struct row *r = &rows[row_count++];

	(void)ctx;
	if (row_count == sizeof rows / sizeof *rows)
		abort();
	snprintf(r->check, sizeof r->check, "%s", row->check);
	snprintf(r->object, sizeof r->object, "%s", row->object);
	snprintf(r->cause, sizeof r->cause, "%s", row->cause);
	snprintf(r->mend, sizeof r->mend, "%s", row->mend ? row->mend : "");
	r->result = row->result;
}

static int fake_probe(const struct device_port *p, struct device_probe *out)
{
	(void)p;
	*out = probe_answer;
	return probe_error;
}

static int fake_register(const struct device_port *p, size_t bytes)
{
	(void)p;
	return probe_error ? probe_error : bytes <= registrable ? 0 : -ENOMEM;
}

/* A new host with what all have. */
static const char *new_host(void)
{
	const char *root = scratch_dir();

	doctor_init(&doctor);
	doctor.root = root;
	doctor.directory = root;
	doctor.probe = fake_probe;
	doctor.try_register = fake_register;
	doctor.row = keep;
	probe_answer =
		(struct device_probe){.active_mtu = 4096, .max_mtu = 4096, .firmware = "1.2.3"};
	probe_error = 0;
	registrable = SIZE_MAX;
	fake_file(root,
		"HugePages_Total:       4\nHugePages_Free:        3\nHugepagesize:       2048 kB",
		"/proc/meminfo");
	fake_file(root, "4096 131072 67108864", "/proc/sys/net/ipv4/tcp_rmem");
	fake_file(root, "4096\t65536\t33554432", "/proc/sys/net/ipv4/tcp_wmem");
	fake_file(root, "212992", "/proc/sys/net/core/rmem_max");
	fake_file(root, "cubic", "/proc/sys/net/ipv4/tcp_congestion_control");
	fake_file(root, "reno cubic", "/proc/sys/net/ipv4/tcp_available_congestion_control");
	return root;
}

/* The same with a device that works. */
static const char *new_rdma_host(void)
{
	const char *root = new_host();

	fake_roce(root, "mlx5_0");
	fake_file(root, "", "/sys/module/mlx5_ib/initstate");
	fake_file(root, "", "/sys/module/rdma_cm/initstate");
	fake_file(root, "", "/sys/module/rdma_ucm/initstate");
	fake_file(root, "mlx5_0", "/sys/class/infiniband_verbs/uverbs0/ibdev");
	fake_file(root, "", "/dev/infiniband/uverbs0");
	fake_file(root, "", "/dev/infiniband/rdma_cm");
	return root;
}

static void run(void)
{
	row_count = 0;
	memset(doctor.counts, 0, sizeof doctor.counts);
	doctor_checks(&doctor);
}

static unsigned to_mend(void)
{
	return doctor.counts[DOCTOR_WARN] + doctor.counts[DOCTOR_FAIL];
}

/* The first row of a check. */
static const struct row *row_of(const char *check)
{
	static const struct row none = {.result = DOCTOR_RESULTS};

	for (unsigned i = 0; i < row_count; i++)
		if (!strcmp(rows[i].check, check))
			return &rows[i];
	return &none;
}

/* Whether the check has a row with this result, that says this, and would be mended so (NULL: any).
 */
static bool row_is(
	const char *check, enum doctor_result result, const char *cause, const char *mend)
{
	for (unsigned i = 0; i < row_count; i++)
		if (!strcmp(rows[i].check, check) && rows[i].result == result &&
			strstr(rows[i].cause, cause) && (!mend || strstr(rows[i].mend, mend)))
			return true;
	for (unsigned i = 0; i < row_count; i++)
		printf("# %s: %s: result %u: %s > %s\n", rows[i].check, rows[i].object,
			rows[i].result, rows[i].cause, rows[i].mend);
	return false;
}

static void without_devices_nothing_is_to_mend(void)
{
	new_host();
	run();
	CHECK(row_is("rdma device", DOCTOR_INFO, "no RDMA device", NULL));
	CHECK(row_is("rdma modules", DOCTOR_INFO, "no driver", NULL));
	CHECK(!row_of("rdma modules")->mend[0]); /* rxe would be slower than soft */
	CHECK(row_is("port", DOCTOR_SKIP, "no RDMA device", NULL));
	CHECK(row_is("locked memory", DOCTOR_OK, "none is locked", NULL));
	CHECK(row_is("huge pages", DOCTOR_OK, "3 of 4 pages of 2048 KiB", NULL));
	CHECK(row_is("tcp buffers", DOCTOR_OK, "64 MiB in, 32 MiB out", NULL));
	CHECK(row_is("tcp congestion", DOCTOR_OK, "cubic, of: reno cubic", NULL));
	CHECK_EQ(to_mend(), 0);
	CHECK_EQ(doctor_tcp_window(&doctor), 33554432);
}

static void verbs_asked_for_without_a_device(void)
{
	const char *root = new_host();

	fake_file(root, "1", "/sys/class/net/eth0/type");
	fake_file(root, "up", "/sys/class/net/eth0/operstate");
	fake_file(root, "772", "/sys/class/net/lo/type");
	doctor.fabric = "verbs";
	run();
	CHECK(row_is("rdma modules", DOCTOR_FAIL, "no driver", "netdev eth0"));
	CHECK(row_is("rdma device", DOCTOR_FAIL, "no RDMA device", NULL));
	CHECK_EQ(to_mend(), 2);
	fake_file(root, "", "/sys/module/rdma_rxe/initstate");
	run();
	CHECK(row_is("rdma modules", DOCTOR_FAIL, "no device has come of it: rdma_rxe", NULL));
}

static void a_device_that_works(void)
{
	new_rdma_host();
	run();
	CHECK(row_is("rdma modules", DOCTOR_OK, "rdma_cm, rdma_ucm, mlx5_ib", NULL));
	CHECK(row_is("rdma device", DOCTOR_OK, "RoCE", NULL));
	CHECK(!strcmp(row_of("rdma device")->object, "mlx5_0"));
	CHECK(row_is("rdma rights", DOCTOR_OK, "/dev/infiniband", NULL));
	CHECK(row_is("port", DOCTOR_OK, "ACTIVE, Ethernet, 100 Gb/sec (4X EDR), over eth7", NULL));
	CHECK(!strcmp(row_of("port")->object, "mlx5_0 port 1"));
	CHECK(row_is("mtu", DOCTOR_OK, "4096 of at most 4096", NULL));
	CHECK(row_is("gid", DOCTOR_OK, "RoCE v2", NULL));
	CHECK(row_is("numa", DOCTOR_OK, "as near to all CPUs", NULL));
	CHECK(row_of("locked memory")->result == DOCTOR_OK ||
		row_of("locked memory")->result == DOCTOR_WARN);
	CHECK_EQ(doctor.counts[DOCTOR_FAIL], 0);
}

static void ports_that_are_down(void)
{
	const char *root = new_rdma_host();

	fake_port(root, &(struct fake_port){.device = "mlx5_1", .state = "1: DOWN"});
	run();
	CHECK(row_is("port", DOCTOR_INFO, "DOWN, not ACTIVE", NULL)); /* the other one is up */
	CHECK_EQ(doctor.counts[DOCTOR_FAIL], 0);
	fake_file(root, "1: DOWN", "/sys/class/infiniband/mlx5_0/ports/1/state");
	run();
	CHECK(row_is("port", DOCTOR_FAIL, "DOWN", "ip link set dev eth7 up"));
	CHECK(row_is("mtu", DOCTOR_SKIP, "not active", NULL));

	root = new_rdma_host();
	fake_port(
		root, &(struct fake_port){
			      .device = "mlx5_0", .state = "2: INIT", .link_layer = "InfiniBand"});
	run();
	CHECK(row_is("port", DOCTOR_FAIL, "INIT", "opensm"));
}

static void mtu_and_gids(void)
{
	const char *root = new_rdma_host();

	probe_answer.active_mtu = 1024;
	run();
	CHECK(row_is("mtu", DOCTOR_INFO, "1024 of at most 4096, from eth7's 1500",
		"ip link set dev eth7 mtu 4196"));
	CHECK_EQ(doctor.counts[DOCTOR_FAIL], 0);

	for (unsigned i = 0; i < 4; i++)
		fake_gid(root, "mlx5_0", i, i % 2 ? FAKE_GID_EMPTY : FAKE_GID_10_6_0_1,
			"IB/RoCE v1", "eth7");
	run();
	CHECK(row_is("gid", DOCTOR_WARN, "none of RoCE v2", "cma_roce_mode -d mlx5_0 -p 1 -m 2"));
	for (unsigned i = 0; i < 4; i++)
		fake_gid(root, "mlx5_0", i, FAKE_GID_EMPTY, NULL, "eth7");
	run();
	CHECK(row_is("gid", DOCTOR_FAIL, "none of its 0 GIDs", "ip addr add"));
}

static void modules_and_rights(void)
{
	const char *root = new_rdma_host();

	CHECK(!unlink(scratch_path(root, "dev/infiniband/rdma_cm")));
	run();
	CHECK(row_is(
		"rdma modules", DOCTOR_FAIL, "no /dev/infiniband/rdma_cm", "modprobe rdma_ucm"));
	CHECK(row_is("rdma rights", DOCTOR_FAIL, "not there", "modprobe"));
	/* what cannot be opened is not asked, for libraries would call it unknown */
	CHECK(row_is("rdma device", DOCTOR_SKIP, "not for this user", NULL));
	CHECK(row_is("mtu", DOCTOR_SKIP, "Permission denied", NULL));
	CHECK(row_is("locked memory", DOCTOR_SKIP, "not for this user", NULL));
	if (!geteuid())
		SKIP("root may read and write everything");
	root = new_rdma_host();
	CHECK(!chmod(scratch_path(root, "dev/infiniband/uverbs0"), 0400));
	run();
	CHECK(row_is("rdma rights", DOCTOR_FAIL, "Permission denied",
		"chmod 666 /dev/infiniband/uverbs0"));
}

static void devices_that_can_not_be_opened(void)
{
	new_rdma_host();
	probe_error = -ENOENT;
	run();
	CHECK(row_is("rdma device", DOCTOR_FAIL, "no provider library", "ibverbs-providers"));
	probe_error = -EACCES;
	run();
	CHECK(row_is("rdma device", DOCTOR_FAIL, "not for this user", "ls -l"));
	probe_error = -EIO;
	run();
	CHECK(row_is("rdma device", DOCTOR_FAIL, "Input/output error", "dmesg"));
	CHECK(row_is("locked memory", DOCTOR_FAIL, "Input/output error", NULL));
	probe_error = -ENOSYS; /* a build without verbs */
	run();
	CHECK(row_is("rdma device", DOCTOR_SKIP, "no verbs", NULL));
	CHECK(row_is("locked memory", DOCTOR_SKIP, "no verbs", NULL));
	CHECK_EQ(to_mend(), 0);
}

static void memory_that_can_not_be_registered(void)
{
	new_rdma_host();
	registrable = (size_t)8 << 20;
	run();
	CHECK(row_is("locked memory", DOCTOR_WARN, "window shrinks", "ulimit -l unlimited"));
	registrable = 0;
	run();
	CHECK(row_is("locked memory", DOCTOR_FAIL, "no memory can be registered",
		"ulimit -l unlimited"));
}

static void numa_nodes(void)
{
	const char *root = new_rdma_host();

	fake_file(root, "0-1023", "/sys/devices/system/node/node1/cpulist");
	run();
	CHECK(row_is("numa", DOCTOR_OK, "node 1, CPUs 0-1023", NULL));
	CHECK_EQ(row_of("numa")->mend[0], 0);
	fake_file(root, "1022-1023,1021", "/sys/devices/system/node/node1/cpulist");
	run();
	CHECK(row_is("numa", DOCTOR_WARN, "may run on 0 of 3", "numactl --cpunodebind=1"));
	fake_file(root, "rubbish", "/sys/devices/system/node/node1/cpulist");
	run();
	CHECK(row_of("numa")->result == DOCTOR_WARN);
}

static void kernels_that_show_little(void)
{
	const char *root = new_host();

	fake_file(root, "", "/proc/meminfo");
	fake_file(root, "nothing", "/proc/sys/net/ipv4/tcp_rmem");
	fake_file(root, "always madvise [never]", "/sys/kernel/mm/transparent_hugepage/enabled");
	CHECK(!unlink(scratch_path(root, "proc/sys/net/ipv4/tcp_congestion_control")));
	run();
	CHECK(row_is("huge pages", DOCTOR_INFO, "none are reserved", "nr_hugepages"));
	CHECK(row_is("tcp buffers", DOCTOR_SKIP, "", NULL));
	CHECK(row_is("tcp congestion", DOCTOR_SKIP, "", NULL));
	CHECK_EQ(doctor_tcp_window(&doctor), 0);
	fake_file(root, "[always] madvise never", "/sys/kernel/mm/transparent_hugepage/enabled");
	fake_file(root, "4096 131072 6291456", "/proc/sys/net/ipv4/tcp_rmem");
	run();
	CHECK(row_is("huge pages", DOCTOR_OK, "transparent", NULL));
	CHECK(row_is("tcp buffers", DOCTOR_INFO, "6 MiB in", "sysctl net.ipv4.tcp_rmem="));
	CHECK_EQ(to_mend(), 0);
}

static void directories(void)
{
	const char *root = new_host();
	int before;

	doctor.directory = scratch_path(root, "missing");
	run();
	CHECK(row_is("O_DIRECT", DOCTOR_FAIL, "No such file", "mkdir"));
	doctor.directory = scratch_dir();
	before = scratch_open_fds();
	run();
	CHECK(row_of("O_DIRECT")->result == DOCTOR_OK || row_of("O_DIRECT")->result == DOCTOR_INFO);
	CHECK_EQ(scratch_entries(doctor.directory), 0);
	CHECK_EQ(scratch_open_fds(), before);
	CHECK(row_of("libaio")->result != DOCTOR_FAIL);
}

HARNESS_MAIN({"without_devices_nothing_is_to_mend", without_devices_nothing_is_to_mend},
	{"verbs_asked_for_without_a_device", verbs_asked_for_without_a_device},
	{"a_device_that_works", a_device_that_works}, {"ports_that_are_down", ports_that_are_down},
	{"mtu_and_gids", mtu_and_gids}, {"modules_and_rights", modules_and_rights},
	{"devices_that_can_not_be_opened", devices_that_can_not_be_opened},
	{"memory_that_can_not_be_registered", memory_that_can_not_be_registered},
	{"numa_nodes", numa_nodes}, {"kernels_that_show_little", kernels_that_show_little},
	{"directories", directories})
