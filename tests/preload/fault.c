/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/preload/fault.c: a library for LD_PRELOAD in which one call fails: the n-th allocation or
 * system call that a program makes.  Also counts what is allocated and not freed.
 *
 * RFTP_FAULT names a file of sizeof(struct control), shared with the test, who says there which
 * call is to fail and reads what became of it; RFTP_FAULT_PROGRAM the program that is meant (its
 * children inherit the variables, too).  Calls fail as they can fail: a read of a file with EIO, of
 * a socket with ECONNRESET, of an eventfd not at all.  What cannot fail for want of anything
 * (close, munmap) and what the C library does by itself inside (stdio) is left alone.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <libaio.h>
#include <link.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TRACE_MAX 16

enum { MEMORY = 1, SYSTEM = 2, CRYPTO = 4 }; /* CRYPTO: memory that OpenSSL asks for */

/* As tests/cli/faults.py has it. */
struct control {
	_Atomic uint64_t countdown; /* the call that brings it to 0 fails; 0: none does */
	_Atomic uint64_t span;      /* and so many behind it */
	_Atomic uint64_t classes;   /* of calls that count */
	_Atomic uint64_t choice;    /* of the errors that a call may give */
	_Atomic uint64_t calls;     /* that counted */
	_Atomic uint64_t fired;
	_Atomic int64_t live;  /* allocations, but for the loader's */
	_Atomic uint64_t base; /* address of the program */
	_Atomic uint64_t trace_count;
	uint64_t trace[TRACE_MAX]; /* return addresses of the first call that failed */
	char name[32];             /* and what it was */
	int64_t error;
	char object[1024]; /* the path that it was about, or what /proc says of the descriptor */
	char only[64];     /* not "": only calls count that are about what has this in its path */
};

static struct control *control;
static __thread bool inside; /* what the library itself calls does not count */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* Where the code of OpenSSL's libraries is, and that of the dynamic loader. */
static struct code {
	uintptr_t start, end;
} crypto[4], loader[4];
static unsigned crypto_count, loader_count;

static void find_code(const struct dl_phdr_info *info, struct code *code, unsigned *count)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || *count == 4)
			continue;
		code[*count].start = info->dlpi_addr + part->p_vaddr;
		code[*count].end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
		++*count;
	}
}

/* The first is the program. */
static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t *base = arg;

	(void)size;
	if (!*base)
		*base = info->dlpi_addr;
	if (strstr(info->dlpi_name, "/libcrypto.") || strstr(info->dlpi_name, "/libssl."))
		find_code(info, crypto, &crypto_count);
	else if (strstr(info->dlpi_name, "/ld-") || strstr(info->dlpi_name, "/ld64"))
		find_code(info, loader, &loader_count);
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("RFTP_FAULT"), *program = getenv("RFTP_FAULT_PROGRAM");
	void *warm[2], *mapped;
	uint64_t base = 0;
	int fd;

	if (!path || !program || strcmp(program, program_invocation_short_name))
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	mapped = (void *)syscall(
		SYS_mmap, NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (mapped == MAP_FAILED)
		return;
	backtrace(warm, 2); /* it loads a library at its first call */
	dl_iterate_phdr(look_at, &base);
	((struct control *)mapped)->base = base;
	control = mapped;
}

/* What a call is about: a descriptor, a path, or a path that is relative to a descriptor. */
struct object {
	int fd;
	const char *path;
};
static const struct object nothing = {-1, NULL};

/* Its path, or what /proc says of the descriptor. */
static void name_object(struct object of, char *out, size_t room)
{
	char link[64];
	ssize_t n = 0;

	if (of.fd >= 0 && !(of.path && *of.path == '/')) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", of.fd);
		n = syscall(SYS_readlinkat, AT_FDCWD, link, out, room - 1);
		n = n < 0 ? 0 : n;
	}
	snprintf(out + n, room - (size_t)n, "%s%s", n && of.path && *of.path ? "/" : "",
		of.path ? of.path : "");
}

static bool counts(struct object of)
{
	char path[sizeof control->object];
	bool before = inside;

	if (!*control->only)
		return true;
	inside = true;
	name_object(of, path, sizeof path);
	inside = before;
	return strstr(path, control->only);
}

static void note(const char *name, int error, struct object of)
{
	void *trace[TRACE_MAX];
	int n;

	inside = true;
	n = backtrace(trace, TRACE_MAX);
	name_object(of, control->object, sizeof control->object);
	inside = false;
	for (int i = 0; i < n; i++)
		control->trace[i] = (uint64_t)(uintptr_t)trace[i];
	strncpy(control->name, name, sizeof control->name - 1);
	control->error = error;
	control->trace_count = (uint64_t)n;
}

/* Whether this call fails; then errno is one of `errors`, which ends with 0. */
static bool fails(uint64_t class, const char *name, struct object of, const int *errors)
{
	uint64_t left;
	int count = 0;

	if (!control || inside || !(control->classes & class) || !counts(of))
		return false;
	control->calls++;
	left = control->countdown;
	do {
		if (!left)
			return false;
	} while (!atomic_compare_exchange_weak(&control->countdown, &left, left - 1));
	if (left > 1 + control->span)
		return false;
	while (errors[count])
		count++;
	errno = errors[control->choice % (unsigned)count];
	if (!control->fired++)
		note(name, errno, of);
	errno = errors[control->choice % (unsigned)count];
	return true;
}

#define FAILS_OF(class, name, of, ...) fails(class, name, of, (const int[]){__VA_ARGS__, 0})
#define FAILS(class, name, ...) FAILS_OF(class, name, nothing, __VA_ARGS__)
#define FAILS_MEMORY(name) FAILS(class_of(__builtin_return_address(0)), name, ENOMEM)

static bool is_in(const void *caller, const struct code *code, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if ((uintptr_t)caller >= code[i].start && (uintptr_t)caller < code[i].end)
			return true;
	return false;
}

static uint64_t class_of(const void *caller)
{
	return is_in(caller, crypto, crypto_count) ? CRYPTO : MEMORY;
}

/* ---- memory ---- */

/* What the loader allocates is the C library's: with the stack of a thread that has ended it keeps
 * the list of that thread's local variables, one for each that have run at once at any time. */
static void count(const void *caller, int change)
{
	if (control && !is_in(caller, loader, loader_count))
		control->live += change;
}

static void *counted(void *p, const void *caller)
{
	if (p)
		count(caller, 1);
	return p;
}

#define COUNTED(p) counted(p, __builtin_return_address(0))

void *malloc(size_t size)
{
	return FAILS_MEMORY("malloc") ? NULL : COUNTED(__libc_malloc(size));
}

void *calloc(size_t number, size_t size)
{
	return FAILS_MEMORY("calloc") ? NULL : COUNTED(__libc_calloc(number, size));
}

void *realloc(void *p, size_t size)
{
	void *grown;

	if (FAILS_MEMORY("realloc"))
		return NULL;
	grown = __libc_realloc(p, size);
	if (!p)
		COUNTED(grown);
	else if (!size)
		count(__builtin_return_address(0), -1);
	return grown;
}

int posix_memalign(void **out, size_t align, size_t size)
{
	if (FAILS_MEMORY("posix_memalign"))
		return ENOMEM;
	*out = COUNTED(__libc_memalign(align, size));
	return *out ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size)
{
	return FAILS_MEMORY("aligned_alloc") ? NULL : COUNTED(__libc_memalign(align, size));
}

void free(void *p)
{
	if (p)
		count(__builtin_return_address(0), -1);
	__libc_free(p);
}

/* ---- system calls ---- */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A call that gives -1 and errno, and what it is about. */
#define WRAP_OF(of, type, name, params, args, ...)                                                 \
	type name params                                                                           \
	{                                                                                          \
		static __typeof__(&name) real;                                                     \
		if (FAILS_OF(SYSTEM, #name, of, __VA_ARGS__))                                      \
			return -1;                                                                 \
		if (!real)                                                                         \
			real = REAL(name);                                                         \
		return real args;                                                                  \
	}
#define WRAP(...) WRAP_OF(nothing, __VA_ARGS__)
#define WRAP_FD(...) WRAP_OF(((struct object){fd, NULL}), __VA_ARGS__)
#define WRAP_PATH(...) WRAP_OF(((struct object){-1, path}), __VA_ARGS__)
#define WRAP_AT(...) WRAP_OF(((struct object){fd, path}), __VA_ARGS__)
#define WRAP_FROM(...) WRAP_OF(((struct object){a, from}), __VA_ARGS__)

/* The same, of a call that moves bytes: what may go wrong depends on what the descriptor is. */
#define WRAP_MOVE(name, params, args, ...)                                                         \
	ssize_t name params                                                                        \
	{                                                                                          \
		static __typeof__(&name) real;                                                     \
		if (move_fails(#name, fd, (const int[]){__VA_ARGS__, 0}))                          \
			return -1;                                                                 \
		if (!real)                                                                         \
			real = REAL(name);                                                         \
		return real args;                                                                  \
	}

static bool move_fails(const char *name, int fd, const int *of_files)
{
	static const int of_sockets[] = {ECONNRESET, ENOBUFS, EINTR, 0};
	static const int of_others[] = {EINTR, 0};
	struct stat st;

	if (fd <= 2 || !control || inside || !(control->classes & SYSTEM))
		return false;
	if (syscall(SYS_fstat, fd, &st))
		return false;
	if (S_ISREG(st.st_mode))
		return fails(SYSTEM, name, (struct object){fd, NULL}, of_files);
	if (S_ISSOCK(st.st_mode))
		return fails(SYSTEM, name, (struct object){fd, NULL}, of_sockets);
	/* to an eventfd nothing happens: it has no file type, and never waits as it is used here */
	return st.st_mode & S_IFMT && fails(SYSTEM, name, (struct object){fd, NULL}, of_others);
}

WRAP_MOVE(read, (int fd, void *data, size_t len), (fd, data, len), EIO)
WRAP_MOVE(pread, (int fd, void *data, size_t len, off_t at), (fd, data, len, at), EIO)
WRAP_MOVE(preadv2, (int fd, const struct iovec *v, int n, off_t at, int flags),
	(fd, v, n, at, flags), EIO, EOPNOTSUPP)
WRAP_MOVE(
	write, (int fd, const void *data, size_t len), (fd, data, len), ENOSPC, EIO, EDQUOT, EROFS)
WRAP_MOVE(pwrite, (int fd, const void *data, size_t len, off_t at), (fd, data, len, at), ENOSPC,
	EIO, EDQUOT, EROFS)
WRAP_MOVE(recv, (int fd, void *data, size_t len, int flags), (fd, data, len, flags), EIO)
WRAP_MOVE(recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), EIO)
WRAP_MOVE(send, (int fd, const void *data, size_t len, int flags), (fd, data, len, flags), EIO)
WRAP_MOVE(sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), EIO)

WRAP_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, EACCES, EIO, EDQUOT,
	EROFS)
WRAP_AT(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), ENOSPC, EACCES,
	EIO, EDQUOT, EROFS)
WRAP_FD(int, fstat, (int fd, struct stat *st), (fd, st), EIO, ENOMEM)
WRAP_PATH(int, stat, (const char *path, struct stat *st), (path, st), EIO, EACCES)
WRAP_PATH(int, lstat, (const char *path, struct stat *st), (path, st), EIO, EACCES)
WRAP_AT(int, fstatat, (int fd, const char *path, struct stat *st, int flags), (fd, path, st, flags),
	EIO, EACCES)
WRAP_AT(int, statx, (int fd, const char *path, int flags, unsigned mask, struct statx *st),
	(fd, path, flags, mask, st), EIO, EACCES)
WRAP_FD(int, fstatfs, (int fd, struct statfs *st), (fd, st), EIO)
WRAP_FD(int, fstatvfs, (int fd, struct statvfs *st), (fd, st), EIO)
WRAP_FD(int, fsync, (int fd), (fd), EIO, ENOSPC, EDQUOT)
WRAP_FD(int, syncfs, (int fd), (fd), EIO, ENOSPC, EDQUOT)
WRAP_FD(int, ftruncate, (int fd, off_t size), (fd, size), EIO, ENOSPC, EROFS)
WRAP_FD(int, fallocate, (int fd, int mode, off_t at, off_t len), (fd, mode, at, len), EOPNOTSUPP,
	ENOSPC, EDQUOT)
WRAP_FD(int, fchmod, (int fd, mode_t mode), (fd, mode), EPERM, EIO, EROFS)
WRAP_AT(int, fchmodat, (int fd, const char *path, mode_t mode, int flags), (fd, path, mode, flags),
	EPERM, EIO, EROFS)
WRAP_FD(int, futimens, (int fd, const struct timespec times[2]), (fd, times), EPERM, EIO, EROFS)
WRAP_AT(int, utimensat, (int fd, const char *path, const struct timespec times[2], int flags),
	(fd, path, times, flags), EPERM, EIO, EROFS)
WRAP_FROM(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), EIO,
	EACCES, ENOSPC, EDQUOT, EROFS)
WRAP_FROM(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
	(a, from, b, to, flags), EIO, EACCES, ENOSPC, EDQUOT, EROFS)
WRAP_FROM(int, linkat, (int a, const char *from, int b, const char *to, int flags),
	(a, from, b, to, flags), EMLINK, EIO, ENOSPC, EDQUOT, EROFS)
WRAP_AT(int, symlinkat, (const char *to, int fd, const char *path), (to, fd, path), EIO, ENOSPC,
	EDQUOT, EROFS)
WRAP_FD(int, fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags),
	(fd, name, value, size, flags), EIO, ENOSPC, EDQUOT, EROFS)
WRAP_FD(int, fremovexattr, (int fd, const char *name), (fd, name), EIO, EROFS)
WRAP_AT(int, fchownat, (int fd, const char *path, uid_t uid, gid_t gid, int flags),
	(fd, path, uid, gid, flags), EPERM, EIO, EDQUOT, EROFS)
WRAP_FD(ssize_t, fgetxattr, (int fd, const char *name, void *out, size_t size),
	(fd, name, out, size), EIO)
WRAP_FD(ssize_t, flistxattr, (int fd, char *out, size_t size), (fd, out, size), EIO)
WRAP_FD(int, fdatasync, (int fd), (fd), EIO, ENOSPC, EDQUOT)
WRAP_FD(int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid), EPERM, EIO, EDQUOT, EROFS)
WRAP_FD(off_t, lseek, (int fd, off_t at, int from), (fd, at, from), EIO)
WRAP_AT(int, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags),
	EIO, EACCES)
WRAP_AT(ssize_t, readlinkat, (int fd, const char *path, char *out, size_t size),
	(fd, path, out, size), EIO)
WRAP_PATH(int, unlink, (const char *path), (path), EIO, EACCES)
WRAP_AT(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), EIO, EACCES, EROFS)
WRAP_PATH(ssize_t, readlink, (const char *path, char *out, size_t size), (path, out, size), EIO)
WRAP_FD(int, flock, (int fd, int how), (fd, how), ENOLCK, EINTR)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, ENOBUFS)
WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len), ENETUNREACH,
	ECONNREFUSED)
WRAP(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags),
	(fd, from, len, flags), EMFILE, ECONNABORTED, ENOBUFS, EINTR)
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
	(fd, level, name, value, len), ENOBUFS, ENOMEM)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
	(fd, level, name, value, len), ENOBUFS)
WRAP(int, getsockname, (int fd, struct sockaddr *out, socklen_t *len), (fd, out, len), ENOBUFS)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, ENOMEM)
WRAP(int, epoll_wait, (int fd, struct epoll_event *events, int max, int ms), (fd, events, max, ms),
	EINTR)
WRAP(int, eventfd, (unsigned value, int flags), (value, flags), EMFILE, ENOMEM)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE, ENOMEM)
WRAP(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), EMFILE, ENOMEM)
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags), EMFILE, ENFILE)
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms), EINTR, ENOMEM)
WRAP(int, madvise, (void *at, size_t len, int how), (at, len, how), EINVAL, ENOMEM)

int epoll_ctl(int fd, int how, int other, struct epoll_event *event)
{
	static __typeof__(&epoll_ctl) real;

	if (how == EPOLL_CTL_ADD && FAILS(SYSTEM, "epoll_ctl", ENOMEM, ENOSPC))
		return -1;
	if (!real)
		real = REAL(epoll_ctl);
	return real(fd, how, other, event);
}

static bool creates(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* What makes a file, or opens one to be written to, may find no room, too. */
static const int *of_opening(int flags)
{
	static const int to_read[] = {EMFILE, EACCES, EIO, ENOMEM, 0};
	static const int to_write[] = {EROFS, EMFILE, EACCES, EIO, ENOMEM, 0};
	static const int to_make[] = {ENOSPC, EDQUOT, EROFS, EMFILE, EACCES, EIO, ENOMEM, 0};

	if (creates(flags))
		return to_make;
	return (flags & O_ACCMODE) == O_RDONLY || flags & O_PATH ? to_read : to_write;
}

int open(const char *path, int flags, ...)
{
	static __typeof__(&open) real;
	mode_t mode = 0;
	va_list ap;

	if (creates(flags)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (fails(SYSTEM, "open", (struct object){-1, path}, of_opening(flags)))
		return -1;
	if (!real)
		real = REAL(open);
	return real(path, flags, mode);
}

int openat(int fd, const char *path, int flags, ...)
{
	static __typeof__(&openat) real;
	mode_t mode = 0;
	va_list ap;

	if (creates(flags)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (fails(SYSTEM, "openat", (struct object){fd, path}, of_opening(flags)))
		return -1;
	if (!real)
		real = REAL(openat);
	return real(fd, path, flags, mode);
}

int fcntl(int fd, int what, ...)
{
	static __typeof__(&fcntl) real;
	va_list ap;
	void *arg;

	va_start(ap, what);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (what == F_DUPFD_CLOEXEC && FAILS(SYSTEM, "fcntl", EMFILE))
		return -1;
	if (!real)
		real = REAL(fcntl);
	return real(fd, what, arg);
}

long syscall(long number, ...)
{
	static __typeof__(&syscall) real;
	va_list ap;
	struct object of;
	long a[6];

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	of = (struct object){(int)a[0], (const char *)a[1]};
	if (number == SYS_openat2 &&
		(((const struct open_how *)a[2])->flags & O_CREAT
				? FAILS_OF(SYSTEM, "openat2", of, EMFILE, EACCES, EIO, EAGAIN,
					  ENOSPC, EDQUOT, EROFS)
				: FAILS_OF(SYSTEM, "openat2", of, EMFILE, EACCES, EIO, EAGAIN)))
		return -1;
	if (!real)
		real = REAL(syscall);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

struct dirent *readdir(DIR *d)
{
	static __typeof__(&readdir) real;

	if (FAILS_OF(SYSTEM, "readdir", ((struct object){dirfd(d), NULL}), EIO))
		return NULL;
	if (!real)
		real = REAL(readdir);
	return real(d);
}

void *mmap(void *at, size_t len, int rights, int flags, int fd, off_t offset)
{
	static __typeof__(&mmap) real;

	if (FAILS(SYSTEM, "mmap", ENOMEM))
		return MAP_FAILED;
	if (!real)
		real = REAL(mmap);
	return real(at, len, rights, flags, fd, offset);
}

int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static __typeof__(&pthread_create) real;

	if (FAILS(SYSTEM, "pthread_create", EAGAIN))
		return EAGAIN;
	if (!real)
		real = REAL(pthread_create);
	return real(out, attr, run, arg);
}

int io_setup(int depth, io_context_t *out)
{
	static __typeof__(&io_setup) real;

	if (FAILS(SYSTEM, "io_setup", EAGAIN, ENOMEM))
		return -errno;
	if (!real)
		real = REAL(io_setup);
	return real(depth, out);
}

int io_submit(io_context_t ctx, long count, struct iocb **jobs)
{
	static __typeof__(&io_submit) real;

	if (FAILS(SYSTEM, "io_submit", EAGAIN))
		return -errno;
	if (!real)
		real = REAL(io_submit);
	return real(ctx, count, jobs);
}

/* What becomes of a request is told in its event. */
static void spoil(struct io_event *event)
{
	struct object of = {event->obj->aio_fildes, NULL};

	if (event->obj->aio_lio_opcode == IO_CMD_PREAD ||
				event->obj->aio_lio_opcode == IO_CMD_PREADV
			? FAILS_OF(SYSTEM, "asynchronous read", of, EIO)
			: FAILS_OF(SYSTEM, "asynchronous write", of, ENOSPC, EIO, EDQUOT, EROFS))
		event->res = (unsigned long)-errno;
}

int io_getevents(
	io_context_t ctx, long least, long most, struct io_event *events, struct timespec *timeout)
{
	static __typeof__(&io_getevents) real;
	int count;

	if (FAILS(SYSTEM, "io_getevents", EINTR))
		return -errno;
	if (!real)
		real = REAL(io_getevents);
	count = real(ctx, least, most, events, timeout);
	for (int i = 0; i < count; i++)
		spoil(&events[i]);
	return count;
}
