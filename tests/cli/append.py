#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--append, --offset and the shell's append: a file that is there is written to in place, in order, where the export
grants it."""

import os
import signal

import rftptest
from rftptest import DENIED, KIND, NO_FILE, USAGE, Daemon, Proxy, case, check, equal, fails, leftovers, make_file, \
    wait_until, works


def content(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def served(top, *arguments):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", *arguments)
    write(daemon.path("f"), b"0123456789")
    make_file(f"{top}/big", 3 << 20)
    write(f"{top}/small", b"abc")
    return daemon


@case
def behind_the_end(top):
    daemon = served(top)
    os.chmod(daemon.path("f"), 0o600)
    inode = os.stat(daemon.path("f")).st_ino
    works("--append", f"{top}/big", daemon.url("f"))
    wanted = b"0123456789" + content(f"{top}/big")
    check(content(daemon.path("f")) == wanted, "a large file")
    done = works("--json", "-c", f"append {top}/small f", daemon.url()).done()
    equal((done["files"], done["sent_bytes"]), (1, 3), "done")
    works("--append", "-", daemon.url("f"), input=b"stream" * 20000)
    wanted += b"abc" + b"stream" * 20000
    check(content(daemon.path("f")) == wanted, "a small file, and a stream")
    st = os.stat(daemon.path("f"))
    equal((st.st_ino, st.st_mode & 0o7777), (inode, 0o600), "it is the file that was there")
    # one that is not there is made, and an empty one adds nothing
    write(f"{top}/empty", b"")
    works("-c", f"append {top}/small; append {top}/small new; append {top}/empty new; append {top}/empty new2",
          daemon.url())
    equal([content(daemon.path(name)) for name in ("small", "new", "new2")], [b"abc", b"abc", b""], "new files")
    with open(f"{top}/sparse", "wb") as f:
        f.truncate(2 << 20)
        f.seek(1 << 20)
        f.write(b"middle")
    works("--append", f"{top}/sparse", daemon.url("new"))
    check(content(daemon.path("new")) == b"abc" + content(f"{top}/sparse"), "a file with holes")
    equal(leftovers(top), [], "temporary files")


@case
def at_an_offset(top):
    daemon = served(top)
    works("--offset=3", f"{top}/small", daemon.url("f"))
    equal(content(daemon.path("f")), b"012abc6789", "within the file")
    works("-c", f"append -o 9 {top}/small f", daemon.url())
    equal(content(daemon.path("f")), b"012abc678abc", "over its end")
    works("--offset=16", f"{top}/small", daemon.url("f"))
    equal(content(daemon.path("f")), b"012abc678abc\0\0\0\0abc", "behind its end")
    write(daemon.path("big"), b"x" * (4 << 20))
    works("--offset=1234567", f"{top}/big", daemon.url("big"))
    data = content(f"{top}/big")
    wanted = b"x" * 1234567 + data + b"x" * ((4 << 20) - 1234567 - len(data))
    check(content(daemon.path("big")) == wanted[:max(4 << 20, 1234567 + len(data))], "a large file within another")


@case
def where_it_is_granted(top):
    for name in ("log", "full", "writers"):
        os.makedirs(f"{top}/{name}")
        write(f"{top}/{name}/f", b"0123")
    write(f"{top}/small", b"abc")
    daemon = Daemon(top, command=["--listen", "127.0.0.1:0", "--export", f"log {top}/log rights=read,list,append",
                                  "--export", f"full {top}/full rights=read,list,write,append",
                                  "--export", f"writers {top}/writers rights=read,list,write"])
    works("--append", f"{top}/small", daemon.url("log/f"))
    equal(content(f"{top}/log/f"), b"0123abc", "append alone")
    fails(DENIED, "--offset=0", f"{top}/small", daemon.url("log/f"))
    fails(NO_FILE, "--append", f"{top}/small", daemon.url("log/new"))
    fails(DENIED, f"{top}/small", daemon.url("log/f"))
    fails(DENIED, "--append", f"{top}/small", daemon.url("writers/f"))
    fails(DENIED, "--offset=0", f"{top}/small", daemon.url("writers/f"))
    works("--offset=1", f"{top}/small", daemon.url("full/f"))
    works("--append", f"{top}/small", daemon.url("full/new"))
    equal([content(f"{top}/{name}") for name in ("log/f", "writers/f", "full/f", "full/new")],
          [b"0123abc", b"0123", b"0abc", b"abc"], "what is there")
    check(not os.path.exists(f"{top}/log/new"))


@case
def what_a_cut_transfer_leaves(top):
    """What was there, and the beginning of what was sent."""
    daemon = served(top)
    proxy = Proxy(daemon.port, hold=1 << 20)
    client = rftptest.start_rftp("--block", "64K", "--depth", "4", "--channels", "1", "--append", f"{top}/big",
                                 proxy.url("f"))
    wait_until(lambda: proxy.held.is_set() or client.poll() is not None, "the transfer begins")
    check(proxy.held.is_set(), "it ended before:", client.poll())
    rftptest.kill(client, signal.SIGKILL)
    proxy.close()
    daemon.stop()
    left = content(daemon.path("f"))
    check(left == (b"0123456789" + content(f"{top}/big"))[:len(left)], "a prefix:", len(left))
    check(10 <= len(left) < 10 + (3 << 20), "not all of it:", len(left))
    equal(leftovers(top), [], "temporary files")


@case
def what_can_not_be(top):
    daemon = served(top)
    os.makedirs(daemon.path("d"))
    os.makedirs(f"{top}/t")
    os.mkfifo(daemon.path("fifo"))
    os.symlink("/etc/passwd", daemon.path("out"))
    os.symlink("f", daemon.path("link"))
    fails(KIND, "--append", "-r", f"{top}/t", daemon.url("f"))
    fails(KIND, "--append", f"{top}/small", f"{top}/big", daemon.url("f"))
    for options in (("-r", f"{top}/small"),
                    ("--verify=readback", f"{top}/small"), ("--no-replace", f"{top}/small"),
                    ("-u", f"{top}/small")):
        fails(USAGE, "--append", *options, daemon.url("f"), says=b"--append")
    fails(USAGE, "--append", f"{top}/small", daemon.url("d"), says=b"--append")
    fails(USAGE, "--append", daemon.url("f"), f"{top}/got", says=b"--append")
    fails(USAGE, "--append", "sync", f"{top}/t", daemon.url("d"), says=b"--append")
    fails(USAGE, "--offset=-1", f"{top}/small", daemon.url("f"))
    fails(KIND, "--append", f"{top}/small", daemon.url("fifo"))
    fails(DENIED, "--append", f"{top}/small", daemon.url("out"))
    fails(NO_FILE, "--parents=off", "--append", f"{top}/small", daemon.url("no/where"))
    works("--append", f"{top}/small", daemon.url("link"))
    equal(content(daemon.path("f")), b"0123456789abc", "what a link leads to")
    equal(works("-n", "--append", f"{top}/small", daemon.url("f")).out, f"append {top}/small /f\n".encode(), "the plan")
    equal(content(daemon.path("f")), b"0123456789abc", "a dry run")


rftptest.main()
