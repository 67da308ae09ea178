#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Source files that shrink, grow or change while they are read: an error, and the old copy stays.

A proxy between client and daemon stops the transfer after some bytes; few small blocks keep the source
from having read ahead of that; then the file is changed, and the transfer goes on.
"""

import os

import rftptest
from rftptest import CHANGED, Daemon, Proxy, case, check, equal, leftovers, make_file, wait_until

SIZE = 4 << 20
SMALL = ["--block", "64K", "--depth", "2", "--channels", "1"]


def run(top, change):
    """Both directions.  -> [(result, digest of the new, of the old, path of the copy)]"""
    for way in ("put", "get"):
        where = os.path.join(top, way)
        os.makedirs(f"{where}/export")
        os.makedirs(f"{where}/local")
        daemon = Daemon(f"{where}/export")
        source, copy = f"{where}/local/f", f"{where}/export/f"
        if way == "get":
            source, copy = copy, source
        make_file(source, SIZE)
        make_file(copy, 1000)
        new, old = rftptest.digest(source), rftptest.digest(copy)
        proxy = Proxy(daemon.port, hold=1 << 20)
        names = [source, proxy.url("f")] if way == "put" else [proxy.url("f"), copy]
        client = rftptest.start_rftp(*SMALL, *names)
        wait_until(lambda: proxy.held.is_set() or client.poll() is not None, "the transfer begins")
        check(proxy.held.is_set(), way, "ended before it was held:", client.poll())
        change(source)
        proxy.release()
        result = rftptest.finish(client)
        proxy.close()
        wait_until(lambda: not leftovers(where), f"{way}: no temporary files")
        yield way, result, new, old, copy
        daemon.stop()


def must_be_noticed(top, change):
    for way, result, _, old, copy in run(top, change):
        equal(result.code, CHANGED, way, "exit code, stderr", result.err)
        check(b"f" in result.err and b"chang" in result.err, way, "message:", result.err)
        equal(rftptest.digest(copy), old, way, "the old copy")


@case
def truncated_to_nothing(top):
    must_be_noticed(top, lambda f: os.truncate(f, 0))


@case
def truncated_to_what_is_not_read_yet(top):
    must_be_noticed(top, lambda f: os.truncate(f, 3 << 20))


@case
def grown(top):
    def grow(path):
        with open(path, "ab") as f:
            f.write(b"more" * 1000)
    must_be_noticed(top, grow)


@case
def overwritten_in_place(top):
    def overwrite(path):
        with open(path, "r+b") as f:
            f.seek(3 << 20)
            f.write(b"other bytes")
    must_be_noticed(top, overwrite)


@case
def overwritten_with_its_time_given_back(top):
    """Neither size nor time tell: the bytes do."""
    def overwrite(path):
        st = os.stat(path)
        with open(path, "r+b") as f:
            f.write(b"other bytes")
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    must_be_noticed(top, overwrite)


@case
def renamed_linked_or_of_another_mode(top):
    """That is no change of what is copied."""
    def move(path):
        os.rename(path, path + ".moved")
        os.chmod(path + ".moved", 0o600)
        os.link(path + ".moved", path + ".linked")

    for way, result, new, _, copy in run(top, move):
        equal(result.code, 0, way, result.err)
        equal(rftptest.digest(copy), new, way, "the copy")


@case
def replaced_or_deleted(top):
    def replace(path):
        make_file(path + ".new", 2000)
        os.rename(path + ".new", path)

    for number, change in enumerate((replace, os.unlink)):
        # the open file is still what it was: a whole copy of it, or an error
        for way, result, new, old, copy in run(f"{top}/{number}", change):
            if result.code == 0:
                equal(rftptest.digest(copy), new, way, "the copy")
            else:
                equal(result.code, CHANGED, way, "exit code, stderr", result.err)
                equal(rftptest.digest(copy), old, way, "the old copy")


@case(seconds=180)
def in_a_tree(top):
    """What vanishes, shrinks or is written to fails alone, or arrives as it was; the others go on."""
    for way in ("put", "get", "sync-put", "sync-get"):
        where = f"{top}/{way}"
        os.makedirs(f"{where}/export")
        daemon = Daemon(f"{where}/export")
        source, copy = f"{where}/t", f"{where}/export/t"
        if way.endswith("get"):
            source, copy = f"{where}/export/t", f"{where}/t"
        os.makedirs(source)
        names = ["a", "fine", "gone", "shrunk", "written"] + [f"small-{i:03}" for i in range(400)] + ["z", "z-gone"]
        for name in names:
            make_file(f"{source}/{name}", 300 if name.startswith(("small", "z-")) else SIZE)
        new = {name: rftptest.digest(f"{source}/{name}") for name in names}
        proxy = Proxy(daemon.port, hold=2 << 20)
        if way == "put":
            arguments = ["-r", source, proxy.url()]
        elif way == "get":
            arguments = ["-r", proxy.url("t"), where]
        else:
            arguments = ["sync"] + ([source, proxy.url("t")] if way == "sync-put" else [proxy.url("t"), copy])
        client = rftptest.start_rftp(*SMALL, *arguments)
        wait_until(lambda: proxy.held.is_set() or client.poll() is not None, "the transfer begins")
        check(proxy.held.is_set(), way, "ended before it was held:", client.poll())
        os.unlink(f"{source}/gone")
        os.unlink(f"{source}/z-gone")
        os.truncate(f"{source}/shrunk", 100)
        with open(f"{source}/written", "r+b") as f:
            f.seek(SIZE - 10)
            f.write(b"something")
        proxy.release()
        result = rftptest.finish(client, timeout=120)
        proxy.close()
        failed = set()
        for name in names:
            there = os.path.exists(f"{copy}/{name}")
            if not there:
                failed.add(name)
                check(f"/{name}:".encode() in result.err, way, name, "is not there, and nothing says so:", result.err)
            elif name == "written" and rftptest.digest(f"{copy}/{name}") != new[name]:
                rftptest.same_files(f"{copy}/{name}", f"{source}/{name}")  # it was opened later
            elif name == "shrunk" and os.path.getsize(f"{copy}/{name}") == 100:
                rftptest.same_files(f"{copy}/{name}", f"{source}/{name}")
            else:
                equal(rftptest.digest(f"{copy}/{name}"), new[name], way, name)
        check(failed <= {"gone", "z-gone", "shrunk", "written"}, way, "others failed:", failed)
        check(failed, way, "all arrived, as if nothing had happened")
        check(result.code not in (rftptest.OK, rftptest.LOST, rftptest.PROTOCOL), way, "exit code", result)
        wait_until(lambda w=where: not [n for n in leftovers(w) if not n.endswith(b".tree")], "no temporary files")
        daemon.stop()


rftptest.main()
