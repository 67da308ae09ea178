#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with names, rights, space and addresses: message, exit code, and nothing half done."""

import os
import re
import shutil
import socket
import subprocess

import rftptest
from rftptest import CONNECT, DENIED, FAILED, KIND, LOCAL_IO, LOST, NO_FILE, NO_SPACE, NOBODY, \
    PROTOCOL, REFUSED, ROOT, USAGE, Daemon, case, check, equal, fails, leftovers, make_file, rftp, \
    same_files, skip, tree, works


def places(top, mode="rw", **options):
    for name in ("export", "local"):
        os.makedirs(os.path.join(top, name), exist_ok=True)
    return Daemon(os.path.join(top, "export"), mode, **options), os.path.join(top, "local")


# ---- names ----

@case
def missing_files(top):
    daemon, local = places(top)
    fails(NO_FILE, f"{local}/missing", daemon.url("x"), says="missing")
    fails(NO_FILE, daemon.url("missing"), f"{local}/x", says="missing")
    make_file(f"{local}/f", 10)
    fails(NO_FILE, "--parents=no", f"{local}/f", daemon.url("no-directory/f"), says="no-directory")
    make_file(daemon.path("g"), 10)
    fails((NO_FILE, KIND), "--parents=no", daemon.url("g"), f"{local}/no-directory/g", says="no-directory")
    fails(NO_FILE, daemon.url("missing"), f"{local}/no-directory/g", says="missing")
    equal(tree(local), {b"f": rftptest.digest(f"{local}/f")}, "local files")
    for command in ("ls missing", "cd missing", "stat missing", "rm missing", "rmdir missing",
                    "mv missing x", "get missing"):
        fails(NO_FILE, "-c", f"lcd {local}; {command}", daemon.url(""), says="missing")


@case
def some_sources_fail_and_the_rest_arrives(top):
    daemon, local = places(top)
    for name in ("a", "c"):
        make_file(f"{local}/{name}", 5000)
    result = fails((FAILED, NO_FILE), f"{local}/a", f"{local}/b", f"{local}/c", daemon.url(""),
                   says="b")
    for name in ("a", "c"):
        same_files(f"{local}/{name}", daemon.path(name), result)


@case
def what_is_missing_is_said_once(top):
    daemon, local = places(top)
    make_file(daemon.path("f"), 100)
    os.mkdir(daemon.path("d"))
    for number, (words, there) in enumerate(((["missing", "f"], "f"), (["d", "missing", "f"], "f"),
                                             (["f", "missing"], "f"))):
        where = f"{local}/new{number}/"
        result = fails((FAILED, NO_FILE), "--json", *[daemon.url(w) for w in words], where, says="missing")
        equal(result.err.count(b"missing"), 1, words, "is said once:", result)
        equal(len([e for e in result.events() if e["event"] == "error"]), len(words) - 1, result)
        check(os.path.exists(where + there), words, "the others arrive")


@case
def wrong_kinds(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 10)
    make_file(daemon.path("file"), 10)
    os.makedirs(daemon.path("full/inside"))
    fails(KIND, f"{local}/f", daemon.url("file/below"))
    fails(KIND, f"{local}/f", daemon.url("file/"))
    for command, words in (("rmdir full", "empty"), ("rmdir file", "director"), ("rm full", "director"),
                           ("cd file", "director"), ("mkdir full", "exist")):
        fails(KIND, "-c", command, daemon.url(""), says=words)
    os.mkfifo(daemon.path("fifo"))
    fails((KIND, FAILED), daemon.url("fifo"), f"{local}/x", says="fifo")
    os.mkfifo(f"{local}/fifo")
    check(not os.path.exists(f"{local}/x"), "a FIFO came over as a file")
    make_file(f"{local}/g", 10)
    fails((KIND, USAGE, FAILED), f"{local}/f", f"{local}/g", daemon.url("file"))  # two into a file


@case
def dot_dot_and_links_stay_inside(top):
    daemon, local = places(top)
    make_file(f"{top}/secret", 100)
    make_file(f"{local}/f", 50)
    os.symlink("../secret", daemon.path("up"))
    os.symlink("/etc/passwd", daemon.path("absolute"))
    os.symlink("..", daemon.path("updir"))
    os.symlink("/proc/self/root/etc", daemon.path("magic"))
    for path in ("../secret", "a/../../secret", "..", "../../../../../../etc/passwd", "up",
                 "absolute", "updir/secret", "magic/passwd", "%2e%2e/secret", "..%2fsecret"):
        result = rftp(daemon.url(path), f"{local}/stolen")
        check(result.code not in (0, rftptest.LOST, PROTOCOL), path, result)
        check(not os.path.exists(f"{local}/stolen"), path, "was read from outside the export")
    before = rftptest.digest(f"{top}/secret")
    for path in ("../planted", "updir/planted", "up", "../secret", "magic/planted"):
        result = rftp(f"{local}/f", daemon.url(path))
        equal(rftptest.digest(f"{top}/secret"), before, path, "changed a file outside")
        check(not os.path.exists(f"{top}/planted"), path, "was written outside", result)
    for command in ("rm ../secret", "rm updir/secret", "mkdir ../d", "mkdir updir/d",
                    "rmdir ../local", "mv ../secret s", "mv updir/secret s", "ls ..", "ls updir",
                    "cd updir", "stat up", "stat ../secret"):
        result = rftp("-c", command, daemon.url(""))
        if command not in ("ls ..", "mkdir ../d", "stat up"):  # `..` of the top is the top; stat may be of the link
            check(result.code != 0, command, "was allowed:", result)
        check(b"secret" not in result.out, command, "shows what is outside:", result)
    equal(rftptest.digest(f"{top}/secret"), before, "the file outside")
    equal(sorted(os.listdir(top)), ["export", "local", "secret"], "the directory around the export")
    fails(DENIED, daemon.url("absolute"), f"{local}/x", says=("export", "outside"))


@case
def links_inside_work(top):
    daemon, local = places(top)
    os.makedirs(daemon.path("a/b"))
    make_file(daemon.path("a/b/f"), 500)
    os.symlink("a/b/f", daemon.path("link"))
    os.symlink("b/../b", daemon.path("a/way"))
    for path in ("link", "a/way/f"):
        works(daemon.url(path), f"{local}/f")
        same_files(daemon.path("a/b/f"), f"{local}/f", path)
    os.symlink("loop", daemon.path("loop"))
    fails((KIND, DENIED, NO_FILE, FAILED), daemon.url("loop"), f"{local}/x", says="loop")


@case
def a_read_only_export(top):
    os.makedirs(f"{top}/export/d")
    make_file(f"{top}/export/f", 100)
    before = tree(f"{top}/export")
    daemon, local = places(top, "ro")
    make_file(f"{local}/f", 10)
    fails(DENIED, f"{local}/f", daemon.url("new"), says="read-only")
    for command in ("mkdir x", "rmdir d", "rm f", "mv f g", f"put {local}/f"):
        fails(DENIED, "-c", command, daemon.url(""), says="read-only")
    works(daemon.url("f"), f"{local}/got")
    same_files(daemon.path("f"), f"{local}/got")
    works("-c", "bench 1M put; bench 1M get", daemon.url(""))
    equal(tree(daemon.top), before, "the export")


# ---- rights ----

@case
def no_permission_at_the_daemon(top):
    os.makedirs(f"{top}/export/closed")
    make_file(f"{top}/export/closed/f", 10)
    make_file(f"{top}/export/unreadable", 10, 0o000)
    os.mkdir(f"{top}/export/locked", 0o755)
    options = {}
    if ROOT:
        os.chown(f"{top}/export", NOBODY, NOBODY)
        options["user"] = NOBODY
    else:
        os.chmod(f"{top}/export/locked", 0o555)
    os.chmod(f"{top}/export/closed", 0o000)
    try:
        daemon, local = places(top, **options)
        make_file(f"{local}/f", 10)
        fails(DENIED, daemon.url("unreadable"), f"{local}/x", says="unreadable")
        fails(DENIED, daemon.url("closed/f"), f"{local}/x", says="closed")
        fails(DENIED, f"{local}/f", daemon.url("locked/f"), says="locked")
        fails(DENIED, "-c", "ls closed", daemon.url(""), says="closed")
        fails(DENIED, "-c", "mkdir locked/d", daemon.url(""), says="locked")
        check(not os.path.exists(f"{local}/x"), "a file came over")
        works(f"{local}/f", daemon.url("f"))
    finally:
        for name in ("closed", "locked"):
            os.chmod(f"{top}/export/{name}", 0o755)


@case
def no_permission_at_the_client(top):
    daemon, local = places(top)
    make_file(daemon.path("f"), 10)
    make_file(f"{local}/unreadable", 10, 0o000)
    os.mkdir(f"{local}/locked", 0o555)
    options = {"user": NOBODY} if ROOT else {}
    fails(DENIED, f"{local}/unreadable", daemon.url("x"), says="unreadable", **options)
    fails(DENIED, daemon.url("f"), f"{local}/locked/f", says="locked", **options)
    equal(sorted(tree(daemon.top)), [b"f"], "the export")
    equal(os.listdir(f"{local}/locked"), [], "the local directory")


# ---- space ----

class Tmpfs:
    def __init__(self, where, kib):
        if not ROOT:
            skip("a small tmpfs needs root")
        os.makedirs(where, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", where],
                              capture_output=True)
        if done.returncode:
            skip(f"no tmpfs can be mounted here: {done.stderr.decode().strip()}")
        self.where = where

    def __enter__(self):
        return self

    def __exit__(self, *_):
        rftptest.kill_all()
        subprocess.run(["umount", "-l", self.where], check=True)


@case
def a_full_disk_at_the_daemon(top):
    with Tmpfs(f"{top}/export", 4096):
        daemon, local = places(top)
        make_file(f"{local}/small", 1 << 20)
        make_file(f"{local}/big", 8 << 20)
        works(f"{local}/small", daemon.url("f"))
        fails(NO_SPACE, f"{local}/big", daemon.url("f"), says="space")
        same_files(f"{local}/small", daemon.path("f"), "the old file")
        equal(leftovers(daemon.top), [], "temporary files")
        # also where much of it, or all, has crossed by then
        make_file(f"{local}/more", 3500 << 10)
        for early in ("always", "never"):
            for name in ("big", "more"):
                fails(NO_SPACE, "--early", early, f"{local}/{name}", daemon.url("f"), says="space")
                fails(NO_SPACE, "--early", early, f"{local}/{name}", daemon.url("new"), says="space")
                equal(tree(daemon.top).keys(), {b"f"}, "the export")
                same_files(f"{local}/small", daemon.path("f"), "the old file")
        # of unknown size: the daemon finds out on the way
        with open(f"{local}/big", "rb") as f:
            fails(NO_SPACE, "-", daemon.url("f"), stdin=f, says="space")
        same_files(f"{local}/small", daemon.path("f"), "the old file")
        equal(leftovers(daemon.top), [], "temporary files")
        # the session and the daemon go on
        works(f"{local}/small", daemon.url("g"))
        result = rftp("-c", f"-put {local}/big; put {local}/small h; ls", daemon.url(""))
        equal(result.code, 0, result)
        same_files(f"{local}/small", daemon.path("h"))
        daemon.stop()


@case
def a_full_disk_at_the_client(top):
    with Tmpfs(f"{top}/local", 4096):
        daemon, local = places(top)
        make_file(daemon.path("big"), 8 << 20)
        make_file(f"{local}/f", 1000)
        before = tree(local)
        fails(NO_SPACE, daemon.url("big"), f"{local}/f", says="space")
        equal(tree(local), before, "the local directory")
        make_file(f"{local}/g", 1 << 20)
        make_file(daemon.path("more"), 3500 << 10)  # all of it may come before the file is opened
        before = tree(local)
        for early in ("always", "never"):
            fails(NO_SPACE, "--early", early, daemon.url("more"), f"{local}/f", says="space")
            equal(tree(local), before, "the local directory")
        daemon.stop()


@case
def no_thread_to_be_had(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 10)
    user = {"user": NOBODY - 1} if ROOT else {}  # of whom no process runs; root has no such limit
    # who looks for leaks needs a thread, too
    env = rftptest.clean_environment({"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})
    for threads in (1, 2):  # the fabric's is refused, or that which connects
        result = rftptest.finish(rftptest.spawn(
            ["prlimit", f"--nproc={threads}", *rftptest.client_command([f"{local}/f", daemon.url("g")])],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, **user))
        check(result.code in (CONNECT, LOCAL_IO), "exit code", result)
        check(b"no thread can be started" in result.err and b"memory" in result.err.splitlines()[-1].lower(), result)
    equal(os.listdir(daemon.top), [], "what was made")
    works(f"{local}/f", daemon.url("g"))


@case
def a_closed_stdout(top):
    daemon, local = places(top)
    make_file(daemon.path("f"), 8 << 20)
    read, write = os.pipe()
    client = rftptest.start_rftp(daemon.url("f"), "-", stdout=write)
    os.close(write)
    os.read(read, 100)
    os.close(read)
    result = rftptest.finish(client)
    check(result.code in (LOCAL_IO, FAILED), "exit code", result.code, result.err)
    # what is listed: a pipe that nobody reads is no lost connection
    read, write = os.pipe()
    os.close(read)
    fails(LOCAL_IO, "-c", "ls; ls", daemon.url(""), stdout=write, says="standard output")
    os.close(write)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            fails((NO_SPACE, LOCAL_IO), daemon.url("f"), "-", stdout=full)


# ---- addresses ----

@case
def nobody_there(top):
    make_file(f"{top}/f", 10)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else takes it
        port = s.getsockname()[1]
        fails(CONNECT, f"{top}/f", f"rftp://127.0.0.1:{port}/f", says=str(port))
        fails(CONNECT, "-c", "ls", f"rftp://127.0.0.1:{port}/")
    fails(CONNECT, f"{top}/f", "rftp://no-such-host.invalid/f", says="no-such-host.invalid")
    fails(CONNECT, "-c", "ls", "rftp://no-such-host.invalid/")


@case
def a_host_that_says_nothing(top):
    make_file(f"{top}/f", 10)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        fails((CONNECT, LOST), "--connect-timeout", "1", f"{top}/f", f"rftp://127.0.0.1:{port}/f")


@case
def a_host_that_is_no_rftpd(top):
    import threading
    make_file(f"{top}/f", 10)
    for answer in (b"220 ftp.example.com FTP server ready\r\n" * 3, b"SSH-2.0-OpenSSH_9.2\r\n" * 2,
                   b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 4096, b"", b"MPA ID Rep Frame",
                   b"MPA ID Rep Frame\0\1\0\0", b"MPA ID Rep Frame\0\1\xff\xff" + b"x" * 3000,
                   b"MPA ID Rep Frame\x20\1\0\0", b"MPA ID Rep Frame\x80\1\0\0",
                   b"MPA ID Rep Frame\0\7\0\0", b"MPA ID Req Frame\0\1\0\0"):
        with socket.create_server(("127.0.0.1", 0)) as s:
            def serve():
                while True:
                    try:
                        c, _ = s.accept()
                    except OSError:
                        return
                    c.sendall(answer)
                    try:
                        c.recv(4096)
                        c.shutdown(socket.SHUT_WR)
                        while c.recv(4096):
                            pass
                    except OSError:
                        pass
                    c.close()
            threading.Thread(target=serve, daemon=True).start()
            fails((CONNECT, LOST, PROTOCOL, REFUSED), "--connect-timeout", "5", f"{top}/f",
                  f"rftp://127.0.0.1:{s.getsockname()[1]}/f")
            s.shutdown(socket.SHUT_RDWR)


# ---- the command line ----

@case
def usage_errors(top):
    make_file(f"{top}/f", 10)
    f = f"{top}/f"
    url = "rftp://127.0.0.1:1/f"
    for arguments in ([f], [f, f"{top}/g"], [url, "ssh://127.0.0.1/g"], ["--nonsense", f, url],
                      ["--block", "1", f, url], ["--block", "65537", f, url],
                      ["--block", "17M", f, url], ["--block", "x", f, url], ["--block"],
                      ["--channels", "0", f, url], ["--channels", "65", f, url],
                      ["--channels", "-1", f, url], ["--depth", "0", f, url],
                      ["--depth", "99999999999999999999", f, url], ["--direct", "maybe", f, url],
                      ["--fabric", "carrier-pigeon", f, url], ["--engine", "steam", f, url],
                      ["--connect-timeout", "soon", f, url], [f, "rftp://"], [f, "rftp://:1/x"],
                      [f, "rftp://h:0/x"], [f, "rftp://h:99999/x"], [f, "rftp://h:x/x"],
                      [f, "rftp://[::1/x"], [f, "ftp://h/x"], ["-b"], ["-c"]):
        result = rftp(*arguments)
        check(result.code == USAGE, "rftp", arguments, "should exit with 2:", result)
        check(result.err.strip(), "no message:", arguments)
    result = rftp("--help")
    equal(result.code, 0, "--help")
    check(b"rftp" in result.out, "--help says nothing")
    result = rftp("--version")
    equal(result.code, 0, "--version")
    check(re.search(rb"\d+\.\d+\.\d+", result.out), "--version:", result.out)


@case
def bad_commands(top):
    daemon, local = places(top)
    for command in ("nonsense", "cd", "cd a b", "mv a", "rm", "mkdir", "put", "get", "set block 1",
                    "set nonsense 1", "bench x y z", "ls 'unfinished", "set channels 65"):
        result = rftp("-c", command, daemon.url(""))
        if command == "cd" and result.code == 0:
            continue  # to the top, as a shell does
        check(result.code == USAGE, repr(command), "should exit with 2:", result)
        check(result.err.strip(), "no message:", command)


SYNC_FAILS = """
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int fd)
{
	struct stat st;
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}
"""


@case
def the_fsync_of_a_directory_fails(top):
    """The new file is there, and the client says so: it may only not survive a crash."""
    if rftptest.SANITIZED or not shutil.which("cc"):
        rftptest.skip("needs LD_PRELOAD and a compiler")
    with open(f"{top}/sync.c", "w") as f:
        f.write(SYNC_FAILS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{top}/sync.so", f"{top}/sync.c"], check=True)
    with open(f"{top}/rftpd", "w") as f:
        f.write(f'#!/bin/sh\nLD_PRELOAD={top}/sync.so exec {os.path.abspath(rftptest.BUILD)}/rftpd "$@"\n')
    os.chmod(f"{top}/rftpd", 0o755)
    for name in ("e", "l"):
        os.mkdir(f"{top}/{name}")
    daemon = Daemon(f"{top}/e", build=top)
    make_file(f"{top}/l/f", 100000)
    make_file(daemon.path("f"), 10)
    fails(rftptest.LOCAL_IO, f"{top}/l/f", daemon.url("f"), says="in its place")
    rftptest.same_files(f"{top}/l/f", daemon.path("f"))
    rftptest.fails(rftptest.LOCAL_IO, daemon.url("f"), f"{top}/l/g", says="in its place",
                   env={"LD_PRELOAD": f"{top}/sync.so"})
    rftptest.same_files(f"{top}/l/f", f"{top}/l/g")
    equal(leftovers(top), [], "temporary files")


rftptest.main()
