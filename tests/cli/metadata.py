#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What files have beside their bytes: owner, group, attributes, access control lists.  Compared with what
rsync finds different."""

import os
import shutil
import subprocess
import tempfile

import rftptest
from rftptest import NOBODY, ROOT, Daemon, attributes_work, case, check, equal, lists_work, make_file, needs, run, works


def places(top, **options):
    os.makedirs(f"{top}/export")
    os.makedirs(f"{top}/l/t/d")
    make_file(f"{top}/l/t/f", 1000)
    make_file(f"{top}/l/t/d/g", 70000)
    os.symlink("nowhere", f"{top}/l/t/s")
    return Daemon(f"{top}/export", **options)


def there_and_back(top, daemon, *flags, **options):
    """Puts and gets a tree, twice, and asks rsync what differs."""
    for i in range(2):
        result = works(*flags, f"{top}/l/t/", daemon.url("a/t"), **options)
        equal(result.err, b"", "notes of put", i)
        result = works(*flags, daemon.url("a/t/"), f"{top}/back", **options)
        equal(result.err, b"", "notes of get", i)
        for copy in (daemon.path("a/t"), f"{top}/back"):
            equal(run("rsync", "-nacXAi", "--delete", f"{top}/l/t/", f"{copy}/"), b"", "what differs in", copy)
            run("diff", "-r", "--no-dereference", f"{top}/l/t", copy)


@case
def owners(top):
    needs("rsync")
    if not ROOT:
        rftptest.skip("only root may give files to others")
    daemon = places(top)
    for i, name in enumerate(("f", "d", "d/g", "s", ".")):
        os.chown(f"{top}/l/t/{name}", 1 + i, 40000 + i, follow_symlinks=False)
    there_and_back(top, daemon, "-a")
    # letters one by one: the group alone, and neither
    works("-rg", f"{top}/l/t/", daemon.url("g"))
    st = os.stat(daemon.path("g/f"))
    equal((st.st_uid, st.st_gid), (os.geteuid(), 40000), "-g")
    works("-ro", f"{top}/l/t/", daemon.url("o"))
    equal((os.stat(daemon.path("o/d")).st_uid, os.stat(daemon.path("o/d")).st_gid), (2, os.getegid()), "-o")
    works("-r", f"{top}/l/t/", daemon.url("n"))
    equal(os.lstat(daemon.path("n/s")).st_uid, os.geteuid(), "neither")
    # set-user-ID of another user's file is lost with that user, and a daemon gives none anyway
    os.chown(f"{top}/l/t/f", 1, 1)
    os.chmod(f"{top}/l/t/f", 0o6755)
    result = works("-a", f"{top}/l/t/f", daemon.url("suid"))
    equal(oct(os.stat(daemon.path("suid")).st_mode), oct(0o100755), "mode")
    check(b"set-user-ID" in result.err, result)


@case
def an_owner_that_is_not_ours_to_give(top):
    if not ROOT:
        rftptest.skip("only root may give files to others")
    os.chmod(top, 0o755)
    daemon = places(top)
    os.chown(f"{top}/l/t/f", 1, 1)
    os.chown(f"{top}/l/t/d", 0, 1)
    os.makedirs(f"{top}/user")
    os.chown(f"{top}/user", NOBODY, NOBODY)
    theirs = Daemon(f"{top}/user", user=NOBODY)
    result = works("-a", f"{top}/l/t", theirs.url(""))
    check(f"{top}/l/t/f: its owner is not kept (Operation not permitted); its group is not kept\n".encode()
          in result.err, result)
    # once for each of the five: two directories, two files, a link
    equal(result.err.count(b"its owner is not kept"), 5, "notes")
    # and of a copy from a server, on this side
    works("-a", f"{top}/l/t", daemon.url(""))
    os.makedirs(f"{top}/mine")
    os.chown(f"{top}/mine", NOBODY, NOBODY)
    result = works("--json", "-a", daemon.url("t"), f"{top}/mine", user=NOBODY)
    notes = [e for e in result.events() if "owner is not kept" in (e.get("text") or "")]
    equal(sorted({e["event"] for e in notes}), ["directory", "file"], "events with a note")
    equal(os.stat(f"{top}/mine/t/f").st_uid, NOBODY, "owner")


@case
def names_before_numbers(top):
    """A user is who has the name here; a daemon of other numbers is one whose passwd says so: number 0 is
    always root, and what has no name keeps its number."""
    if not ROOT:
        rftptest.skip("only root may give files to others")
    daemon = places(top)
    os.chown(f"{top}/l/t/f", NOBODY, 54321)
    for flags in (("-a",), ("-a", "--numeric-ids")):
        works(*flags, f"{top}/l/t/", daemon.url("x"))
        st = os.stat(daemon.path("x/f"))
        equal((st.st_uid, st.st_gid), (NOBODY, 54321), *flags)
        works(*flags, daemon.url("x/f"), f"{top}/y")
        equal((os.stat(f"{top}/y").st_uid, os.stat(f"{top}/y").st_gid), (NOBODY, 54321), *flags)


@case
def attributes(top):
    needs("rsync")
    attributes_work(top)
    daemon = places(top)
    for name in ("f", "d", "."):
        for i in range(3):
            os.setxattr(f"{top}/l/t/{name}", f"user.{name}.{i}", rftptest.rng().randbytes(i * 300))
    os.setxattr(f"{top}/l/t/f", b"user.\xff\n", b"")
    os.chmod(f"{top}/l/t/f", 0o444)
    there_and_back(top, daemon, "-aX")
    # what went at the source goes at the sink, of directories that are there already, too
    os.removexattr(f"{top}/l/t/d", "user.d.1")
    there_and_back(top, daemon, "-aX")
    works("-a", f"{top}/l/t/", daemon.url("without"))
    equal(os.listxattr(daemon.path("without/f")), [], "without -X")
    # not a byte of what the system keeps crosses
    if ROOT:
        os.setxattr(f"{top}/l/t/f", "trusted.rftp", b"x")
        os.setxattr(f"{top}/l/t/f", "security.rftp", b"x")
        works("-aX", f"{top}/l/t/", daemon.url("safe"))
        equal([n for n in os.listxattr(daemon.path("safe/f")) if not n.startswith("user.")], [], "attributes")


@case
def as_many_attributes_as_fit(top):
    """More than the sink's file system takes: noted, once, and the file is there."""
    attributes_work(top)
    source = tempfile.mkdtemp(dir="/dev/shm") if os.path.isdir("/dev/shm") else top
    try:
        attributes_work(source)
        make_file(f"{source}/f", 1000)
        for i in range(40):
            os.setxattr(f"{source}/f", f"user.{i}", bytes(1000))
        daemon = places(top)
        result = works("-aX", f"{source}/f", daemon.url("x"))
        rftptest.same_files(f"{source}/f", daemon.path("x"))
        equal(len(result.err.splitlines()), 1, "notes:", result)
        check(b"some of its attributes or access control lists are too large" in result.err, result)
        try:
            os.setxattr(f"{top}/l/t/f", "user.large", bytes(30000))
        except OSError:
            check(b"its attribute user." in result.err, "more than this file system takes:", result)
    except OSError as e:
        rftptest.skip(f"no file system here that takes so many: {e}")
    finally:
        shutil.rmtree(source, ignore_errors=True)


@case
def lists(top):
    needs("rsync")
    lists_work(top)
    daemon = places(top)
    run("setfacl", "-m", "u:1:rw,g:2:r", f"{top}/l/t/f")
    run("setfacl", "-m", f"u:{NOBODY}:rx", f"{top}/l/t/d")
    run("setfacl", "-d", "-m", "u:3:rwx,g::-", f"{top}/l/t/d")
    there_and_back(top, daemon, "-aA")
    there_and_back(top, daemon, "-aA", "--numeric-ids")
    # what goes at the source goes at the sink, also what a directory gave to what was made in it
    run("setfacl", "-b", f"{top}/l/t/d", f"{top}/l/t/f")
    there_and_back(top, daemon, "-aA")
    run("setfacl", "-d", "-m", "u:4:rwx", daemon.path("a"))
    works("-aA", f"{top}/l/t/", daemon.url("a/again"))
    equal(run("rsync", "-nacAi", "--delete", f"{top}/l/t/", daemon.path("a/again") + "/"), b"", "beneath a default list")


@case
def hard_links(top):
    needs("rsync")
    daemon = places(top)
    for name in ("g", "d/h", "a"):
        os.link(f"{top}/l/t/f", f"{top}/l/t/{name}")
    for i in range(2):
        works("-aH", f"{top}/l/t/", daemon.url("a/t"))
        works("-aH", daemon.url("a/t/"), f"{top}/back")
        for copy in (daemon.path("a/t"), f"{top}/back"):
            equal(run("rsync", "-nacHi", "--delete", f"{top}/l/t/", f"{copy}/"), b"", "what differs in", copy)
            equal(os.stat(f"{copy}/f").st_nlink, 4, "names", i)
    # without -H they are files of their own; what was one file becomes several
    works("-a", f"{top}/l/t/", daemon.url("a/t"))
    equal([os.stat(daemon.path(f"a/t/{n}")).st_nlink for n in ("f", "g", "d/h", "a")], [1, 1, 1, 1], "without -H")
    # in place of a file that is there, of a link; of a directory it is an error
    os.unlink(daemon.path("a/t/g"))
    os.symlink("f", daemon.path("a/t/g"))
    works("-aH", f"{top}/l/t/", daemon.url("a/t"))
    equal(os.stat(daemon.path("a/t/d/h")).st_nlink, 4, "over files and a link")
    os.unlink(daemon.path("a/t/g"))
    os.mkdir(daemon.path("a/t/g"))
    rftptest.fails(rftptest.KIND, "-aH", f"{top}/l/t/", daemon.url("a/t"), says="/g")
    # -u: the first stays, and the others become names of it; --no-replace: they are there
    os.rmdir(daemon.path("a/t/g"))
    before = os.stat(daemon.path("a/t/a")).st_ino
    works("-aHu", f"{top}/l/t/", daemon.url("a/t"))
    equal([os.stat(daemon.path(f"a/t/{n}")).st_ino for n in ("f", "g", "d/h", "a")], [before] * 4, "-u")
    rftptest.fails(rftptest.KIND, "-aH", "--no-replace", f"{top}/l/t/", daemon.url("a/t"), says="/g")
    # several named files, without a tree
    works("-H", f"{top}/l/t/f", f"{top}/l/t/g", daemon.url("two/"))
    equal(os.stat(daemon.path("two/f")).st_nlink, 2, "two named files, put")
    works("-H", daemon.url("two/f"), daemon.url("two/g"), f"{top}/two")
    equal(os.stat(f"{top}/two/g").st_nlink, 2, "two named files, get")


@case
def a_hard_link_to_what_did_not_arrive(top):
    """The first name cannot take the place of a directory: the second is no link to an older file."""
    daemon = places(top)
    os.link(f"{top}/l/t/f", f"{top}/l/t/g")
    os.makedirs(daemon.path("t/f"))
    result = rftptest.fails((rftptest.KIND, rftptest.FAILED), "-aH", f"{top}/l/t", daemon.url(""))
    check(b"hard link" in result.err and b"did not arrive" in result.err, result)
    check(not os.path.exists(daemon.path("t/g")), "the link is there")


@case
def holes(top):
    """They are not sent, and stay holes, at the end, too; so are zeros of such a file."""
    needs("rsync")
    daemon = places(top)
    shapes = {"nothing": [], "begin": [(0, 5)], "end": [((64 << 20) - 3, 3)], "middle": [(10 << 20, 100000)],
              "comb": [(i << 20, 4096) for i in range(0, 64, 2)], "fine": [(i << 13, 4096) for i in range(200)]}
    for name, data in shapes.items():
        with open(f"{top}/l/t/{name}", "wb") as f:
            for at, size in data:
                f.seek(at)
                f.write(rftptest.rng().randbytes(size))
            f.truncate((64 << 20) - (name == "comb"))
    if os.stat(f"{top}/l/t/nothing").st_blocks:
        rftptest.skip("no holes in files here")
    for flags in ((), ("--block", "64K"), ("--protect", "private", "--direct", "on"), ("--engine", "window")):
        where = f"x{len(flags)}"
        put = works("--json", "-a", *flags, f"{top}/l/t/", daemon.url(where)).events()[-1]
        get = works("--json", "-a", *flags, daemon.url(f"{where}/"), f"{top}/{where}").events()[-1]
        for copy, done in ((daemon.path(where), put), (f"{top}/{where}", get)):
            equal(run("rsync", "-naci", "--delete", f"{top}/l/t/", f"{copy}/"), b"", "what differs in", copy)
            for name in shapes:
                one, other = os.stat(f"{top}/l/t/{name}").st_blocks, os.stat(f"{copy}/{name}").st_blocks
                check(other <= one + 16, name, other, "blocks on the disk, at the source", one)
            equal(done["sent_bytes"] + done["hole_bytes"], done["bytes"], "bytes")
            check(done["hole_bytes"] > 4 * 63 << 20, "bytes in holes:", done)
    # and over what is there: the file is a new one
    works("-a", f"{top}/l/t/d/g", daemon.url("over"))
    works("-a", f"{top}/l/t/middle", daemon.url("over"))
    rftptest.same_files(f"{top}/l/t/middle", daemon.path("over"))


@case
def holes_on_the_way_to_a_stream(top):
    """What is written in order gets zeros where the source has a hole."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    with open(daemon.path("f"), "wb") as f:
        f.truncate(3 << 20)
        f.seek((1 << 20) + 77)
        f.write(b"middle")
    with open(daemon.path("f"), "rb") as f:
        wanted = f.read()
    check(works(daemon.url("f"), "-").out == wanted, "to standard output")
    check(works("-c", "cat f", daemon.url()).out == wanted, "with cat")


@case
def preallocated(top):
    daemon = places(top)
    works("--preallocate", f"{top}/l/t/f", daemon.url("f"))
    works("--preallocate", daemon.url("f"), f"{top}/f")
    for copy in (daemon.path("f"), f"{top}/f"):
        rftptest.same_files(f"{top}/l/t/f", copy)


@case
def special_files_are_left_out(top):
    daemon = places(top)
    os.mkfifo(f"{top}/l/t/p")
    os.mkfifo(f"{top}/l/t/d/q")
    result = works("-a", f"{top}/l/t", daemon.url(""))
    equal(result.err.splitlines(),
          [f"rftp: {top}/l/t/d/q and 1 more: not copied: devices, FIFOs or sockets".encode()], "put")
    os.mkfifo(daemon.path("t/only"))
    result = works("-a", daemon.url("t"), f"{top}/back")
    equal(result.err.splitlines(), [f"rftp: {top}/back/t/only: not copied: a device, FIFO or socket".encode()], "get")
    equal(sorted(os.listdir(f"{top}/back/t")), ["d", "f", "s"], "what arrived")
    # a failure of others is one
    result = rftptest.fails(rftptest.NO_FILE, "-a", f"{top}/l/t", f"{top}/absent", daemon.url("with"))
    check(b"not copied" in result.err and b"absent" in result.err, result)
    # named itself it was asked for, and is lost
    rftptest.fails(rftptest.KIND, "-a", f"{top}/l/t/p", daemon.url("p"))


@case
def parents(top):
    daemon = places(top)
    works(f"{top}/l/t/f", daemon.url("n/e/w"))
    rftptest.same_files(f"{top}/l/t/f", daemon.path("n/e/w"))
    works(daemon.url("n/e/w"), f"{top}/h/e/r/e")
    rftptest.same_files(f"{top}/l/t/f", f"{top}/h/e/r/e")
    os.unlink(f"{top}/l/t/s")
    before = rftptest.tree(top)
    for flags, source, target in ((("--parents=no",), f"{top}/l/t/f", daemon.url("o/f")),
                                  (("--parents=no", "-r"), f"{top}/l/t", daemon.url("o/p/")),
                                  (("--parents=no",), daemon.url("n/e/w"), f"{top}/o/f"),
                                  (("--parents=no", "-r"), daemon.url("n"), f"{top}/o/p/")):
        rftptest.fails(rftptest.NO_FILE, *flags, source, target)
    equal(rftptest.tree(top), before, "what --parents=no left")
    works("--parents=no", "-r", f"{top}/l/t", daemon.url("one"))
    check(os.path.isdir(daemon.path("one/t/d")), "the destination itself is made")


rftptest.main()
