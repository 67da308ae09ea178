/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/syscall_filter: see syscall_filter.h.
 *
 * Owns the list.
 */
#include "rftpd/confine/syscall_filter.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* rdma/rdma_user_ioctl_cmds.h: RDMA_VERBS_IOCTL, all that verbs ask of a device */
#define RDMA_IOCTL 0xc0181b01u
/* The kernel looks at 32 bits of it, and so must the rule. */
#define IOCTL(request)                                                                             \
	{                                                                                          \
		"ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, (request))                        \
	}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* By name, as libseccomp has them: those that this machine does not have are left out. */
static const char *const always[] = {
	/* files that are open */
	"read",
	"readv",
	"pread64",
	"preadv",
	"preadv2",
	"write",
	"writev",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"lseek",
	"_llseek",
	"close",
	"close_range",
	"dup",
	"dup2",
	"dup3",
	"fcntl",
	"fcntl64",
	"flock",
	"fsync",
	"fdatasync",
	"sync_file_range",
	"syncfs",
	"ftruncate",
	"ftruncate64",
	"fallocate",
	"fadvise64",
	"fadvise64_64",
	"copy_file_range",
	"sendfile",
	"sendfile64",
	"splice",
	"getdents",
	"getdents64",
	"io_setup",
	"io_submit",
	"io_getevents",
	"io_pgetevents",
	"io_cancel",
	"io_destroy",
	/* names and attributes */
	"open",
	"openat",
	"openat2",
	"creat",
	"access",
	"faccessat",
	"faccessat2",
	"stat",
	"stat64",
	"lstat",
	"lstat64",
	"fstat",
	"fstat64",
	"newfstatat",
	"fstatat64",
	"statx",
	"statfs",
	"statfs64",
	"fstatfs",
	"fstatfs64",
	"readlink",
	"readlinkat",
	"getcwd",
	"chdir",
	"fchdir",
	"mkdir",
	"mkdirat",
	"rmdir",
	"unlink",
	"unlinkat",
	"rename",
	"renameat",
	"renameat2",
	"link",
	"linkat",
	"symlink",
	"symlinkat",
	"chmod",
	"fchmod",
	"fchmodat",
	"fchmodat2",
	"chown",
	"fchown",
	"fchownat",
	"lchown",
	"utimes",
	"futimesat",
	"utimensat",
	"utimensat_time64",
	"truncate",
	"truncate64",
	"umask",
	"getxattr",
	"lgetxattr",
	"fgetxattr",
	"setxattr",
	"lsetxattr",
	"fsetxattr",
	"listxattr",
	"llistxattr",
	"flistxattr",
	"removexattr",
	"lremovexattr",
	"fremovexattr",
	"inotify_init1",
	"inotify_add_watch",
	"inotify_rm_watch",
	/* sockets; which ones, see below */
	"bind",
	"listen",
	"accept",
	"accept4",
	"connect",
	"getsockname",
	"getpeername",
	"getsockopt",
	"setsockopt",
	"shutdown",
	"sendto",
	"sendmsg",
	"sendmmsg",
	"recvfrom",
	"recvmsg",
	"recvmmsg",
	"socketpair",
	/* waiting and time */
	"epoll_create1",
	"epoll_create",
	"epoll_ctl",
	"epoll_wait",
	"epoll_pwait",
	"epoll_pwait2",
	"poll",
	"ppoll",
	"ppoll_time64",
	"select",
	"_newselect",
	"pselect6",
	"pselect6_time64",
	"eventfd2",
	"eventfd",
	"pipe",
	"pipe2",
	"timerfd_create",
	"timerfd_settime",
	"timerfd_settime64",
	"timerfd_gettime",
	"timerfd_gettime64",
	"signalfd4",
	"signalfd",
	"nanosleep",
	"clock_nanosleep",
	"clock_nanosleep_time64",
	"clock_gettime",
	"clock_gettime64",
	"clock_getres",
	"clock_getres_time64",
	"gettimeofday",
	"time",
	"times",
	/* memory; executable only as below */
	"brk",
	"munmap",
	"mremap",
	"madvise",
	"mlock",
	"mlock2",
	"munlock",
	"mincore",
	"msync",
	"membarrier",
	"get_mempolicy",
	"mbind",
	"set_mempolicy",
	/* threads and signals */
	"futex",
	"futex_time64",
	"futex_waitv",
	"set_robust_list",
	"get_robust_list",
	"rseq",
	"set_tid_address",
	"arch_prctl",
	"gettid",
	"getpid",
	"getppid",
	"exit",
	"exit_group",
	"sched_yield",
	"sched_getaffinity",
	"sched_setaffinity",
	"sched_getparam",
	"sched_getscheduler",
	"sched_get_priority_max",
	"sched_get_priority_min",
	"getcpu",
	"setpriority",
	"getpriority",
	"ioprio_set",
	"ioprio_get",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"sigreturn",
	"rt_sigpending",
	"rt_sigtimedwait",
	"rt_sigtimedwait_time64",
	"sigaltstack",
	"restart_syscall",
	/* what it asks about itself and the host */
	"getuid",
	"getuid32",
	"geteuid",
	"geteuid32",
	"getgid",
	"getgid32",
	"getegid",
	"getegid32",
	"getgroups",
	"getgroups32",
	"getrlimit",
	"ugetrlimit",
	"getrusage",
	"sysinfo",
	"uname",
	"getrandom",
	"capget",
#ifdef SANITIZED
	/* what looks for leaks stops all threads from a process of its own */
	"clone",
	"clone3",
	"ptrace",
	"wait4",
	"kill",
	"tkill",
	"tgkill",
	"process_vm_readv",
	"mmap",
	"mmap2",
	"mprotect",
	"prctl",
	"prlimit64",
	"setrlimit",
	"personality",
#endif
};

static int allow(
	scmp_filter_ctx ctx, const char *name, unsigned count, const struct scmp_arg_cmp *args)
{
	int number = seccomp_syscall_resolve_name(name);
	int err = number < 0 ? 0 : seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, number, count, args);

	return err ? err : number >= 0;
}

/* Calls that depend on what they are asked for.  How many, or -errno. */
static int allow_some(scmp_filter_ctx ctx)
{
	/* what a thread is made with, and a process or a new namespace is not */
	const scmp_datum_t kinds = CLONE_THREAD | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
				   CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
	const struct {
		const char *name;
		struct scmp_arg_cmp arg;
	} some[] = {
		{"socket", SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0)},
		{"socket", SCMP_A0(SCMP_CMP_EQ, AF_INET, 0)},
		{"socket", SCMP_A0(SCMP_CMP_EQ, AF_INET6, 0)},
		{"socket", SCMP_A0(SCMP_CMP_EQ, AF_NETLINK, 0)},
		IOCTL(TCGETS),
		IOCTL(TIOCGWINSZ),
		IOCTL(FIONREAD),
		IOCTL(FIONBIO),
		IOCTL(FICLONE),
		IOCTL(FICLONERANGE),
		IOCTL(FS_IOC_FIEMAP),
		IOCTL(SIOCGIFINDEX),
		IOCTL(SIOCGIFNAME),
		IOCTL(RDMA_IOCTL),
#ifndef SANITIZED
		{"clone", SCMP_A0(SCMP_CMP_MASKED_EQ, kinds, CLONE_THREAD)},
		/* a provider of verbs that is loaded later has code */
		{"mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)},
		{"mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_WRITE, 0)},
		{"mmap2", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)},
		{"mmap2", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_WRITE, 0)},
		{"mprotect", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)},
		{"prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0)},
		{"prlimit64", SCMP_A0(SCMP_CMP_EQ, 0, 0)},
		{"tgkill", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0)},
#endif
	};
	int count = 0;

	(void)kinds;
	for (unsigned i = 0; i < sizeof some / sizeof *some; i++) {
		int err = allow(ctx, some[i].name, 1, &some[i].arg);

		if (err < 0)
			return err;
		count += err && (!i || strcmp(some[i].name, some[i - 1].name) != 0);
	}
	return count;
}

bool syscall_filter_supported(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return !syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}

int syscall_filter_enter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int count = 0, err = ctx ? 0 : -ENOMEM;

	for (unsigned i = 0; err >= 0 && i < sizeof always / sizeof *always; i++) {
		err = allow(ctx, always[i], 0, NULL);
		count += err > 0;
	}
	if (err >= 0)
		err = allow_some(ctx);
	count += err > 0 ? err : 0;
	if (err >= 0)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (err >= 0)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err < 0 ? err : count;
}
