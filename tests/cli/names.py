#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""File names that are bytes: newlines, quotes, bytes that are no UTF-8, 255 of them; URL escapes."""

import os
import shutil
from urllib.parse import quote_from_bytes

import rftptest
from rftptest import Daemon, case, check, equal, make_file, same_files, tree, works

NAMES = [
    b"plain",
    b"with space",
    b" leading and trailing ",
    b"new\nline",
    b"carriage\rreturn\ttab",
    b"'single'",
    b'"double"',
    b"back\\slash",
    b"semi;colon & ampersand | pipe > <",
    b"$HOME `id` $(id)",
    b"star*?[a-z]{b,c}~",
    b"-leading-dash",
    b"#hash",
    b"percent%41",
    b"colon:and@at",
    b"question?mark",
    b".hidden",
    b"...",
    b"\xff\xfe not utf-8 \x80",
    b"\x01\x02\x1b[31m",
    "\u00fcml\u00e4ut \u65e5\u672c".encode(),
    b"n" * 255,
    b"\xe2\x98\x83" * 85,
]


def places(top):
    for name in ("export", "local"):
        os.mkdir(os.path.join(top, name))
    return Daemon(os.path.join(top, "export")), os.path.join(top, "local")


def fill(where):
    for i, name in enumerate(NAMES):
        make_file(os.path.join(os.fsencode(where), name), 100 + i)


@case
def each_name_alone(top):
    daemon, local = places(top)
    fill(local)
    for name in NAMES:
        source = os.fsencode(local) + b"/" + name
        escaped = quote_from_bytes(name).encode()
        works(source, daemon.url(escaped))
        same_files(source, os.fsencode(daemon.top) + b"/" + name, "put", name)
        works(daemon.url(escaped), source + b"2" if len(name) < 250 else
              os.fsencode(local) + b"/back")
        back = source + b"2" if len(name) < 250 else os.fsencode(local) + b"/back"
        same_files(source, back, "get", name)
        os.unlink(back)
    equal(sorted(tree(daemon.top)), sorted(NAMES), "the export")


@case
def all_names_at_once(top):
    daemon, local = places(top)
    fill(local)
    works(*[os.fsencode(local) + b"/" + n for n in NAMES], daemon.url(b""))
    equal(tree(daemon.top), tree(local), "several sources")


@case
def names_in_a_tree(top):
    daemon, local = places(top)
    os.mkdir(f"{local}/t")
    fill(f"{local}/t")
    deep = os.fsencode(local) + b"/t/" + b"dir\nwith \xff" + b"/" + b"d" * 255
    os.makedirs(deep)
    make_file(deep + b"/" + b"f" * 255, 10)
    works("-r", f"{local}/t/", daemon.url("t"))
    equal(tree(daemon.path("t")), tree(f"{local}/t"), "put -r")
    works("-r", daemon.url("t/"), f"{local}/u")
    equal(tree(f"{local}/u"), tree(f"{local}/t"), "get -r")


@case
def names_in_commands(top):
    daemon, local = places(top)
    make_file(f"{local}/a b", 10)
    make_file(f"{local}/q'uote", 11)
    works("-c", f"lcd {local}; put 'a b' \"c d\"; put \"q'uote\"; mkdir 'x y'; mv \"c d\" 'x y/e f'",
          daemon.url(""))
    equal(sorted(tree(daemon.top)), [b"q'uote", b"x y", b"x y/e f"], "the export")
    works("-c", f"lcd {local}; get 'x y/e f' back\\ slash; rm 'x y/e f'; rmdir 'x y'",
          daemon.url(""))
    same_files(f"{local}/a b", f"{local}/back slash")


@case
def too_long_a_name(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 10)
    rftptest.fails((rftptest.KIND, rftptest.FAILED), f"{local}/f", daemon.url("n" * 256), says="name")
    rftptest.fails((rftptest.KIND, rftptest.FAILED, rftptest.USAGE), f"{local}/f",
                   daemon.url("/".join(["d" * 200] * 30)))
    equal(tree(daemon.top), {}, "the export")


def make_deep(top, count, name="d" * 200, files=1):
    """Directories within directories, each with files and a mode and time of its own; `top` exists."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for depth in range(count):
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        for i in range(files):
            file = os.open(f"f{i}", os.O_WRONLY | os.O_CREAT, dir_fd=inner)
            os.write(file, b"%d of %d" % (i, depth))
            os.close(file)
        os.chmod(inner, 0o700 | depth % 0o77)
        os.utime(inner, ns=(1, 1234567890123456789 + depth))
        os.close(fd)
        fd = inner
    os.close(fd)


def same_deep(a, b, count, name="d" * 200, files=1):
    """Compares by descriptors what make_deep made with a copy of it."""
    fds = [os.open(top, os.O_RDONLY | os.O_DIRECTORY) for top in (a, b)]
    for depth in range(count):
        inner = [os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd) for fd in fds]
        for fd in fds:
            os.close(fd)
        fds = inner
        stats = [os.fstat(fd) for fd in fds]
        equal(*[(oct(s.st_mode), s.st_mtime_ns) for s in stats], "directory", depth)
        equal(*[sorted(os.listdir(fd)) for fd in fds], "names at depth", depth)
        for i in range(files):
            contents = []
            for fd in fds:
                file = os.open(f"f{i}", os.O_RDONLY, dir_fd=fd)
                contents.append(os.read(file, 100))
                os.close(file)
            equal(*contents, "file", i, "at depth", depth)
    for fd in fds:
        os.close(fd)


def both_ways(daemon, local, *shape, **options):
    """A tree that is too deep for whole paths, put and got; the harness would remove by whole paths."""
    try:
        os.mkdir(f"{local}/t")
        make_deep(f"{local}/t", *shape, **options)
        before = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
        works("-r", f"{local}/t/", daemon.url("t"))
        same_deep(f"{local}/t", daemon.path("t"), *shape, **options)
        works("-r", daemon.url("t/"), f"{local}/back")
        same_deep(f"{local}/t", f"{local}/back", *shape, **options)
        works("-r", daemon.url("t/"), f"{local}/back")  # and over what is there
        works("-r", f"{local}/t/.", daemon.url("t"))
        same_deep(f"{local}/t", daemon.path("t"), *shape, **options)
        daemon_fds = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
        check(daemon_fds <= before + 20, daemon_fds, "descriptors, before it", before)
    finally:
        for where in (f"{local}/t", f"{local}/back", daemon.path("t")):
            shutil.rmtree(where, ignore_errors=True)


@case(seconds=180)
def a_tree_deeper_than_a_path_may_be(top):
    daemon, local = places(top)
    both_ways(daemon, local, 30)  # 6,000 bytes
    both_ways(daemon, local, 80)  # 16,000
    both_ways(daemon, local, 400, "n" * 15)  # 6,400, and more levels than files that are open at once


@case(seconds=180)
def many_long_names_at_once(top):
    """More of them than the control channel keeps before they are read."""
    daemon, local = places(top)
    both_ways(daemon, local, 70, files=6)


@case
def what_is_too_deep_is_told(top):
    daemon, local = places(top)
    for where in (daemon.path("t"), f"{local}/t"):
        os.mkdir(where)
        make_deep(where, 100)
    try:
        rftptest.fails(rftptest.KIND, "-r", daemon.url("t/"), f"{local}/got", says="too long")
        rftptest.fails(rftptest.KIND, "-r", f"{local}/t/", daemon.url("put"), says="name")
        same_deep(daemon.path("t"), f"{local}/got", 80)
        same_deep(f"{local}/t", daemon.path("put"), 80)
    finally:  # the harness removes by whole paths
        shutil.rmtree(local)
        shutil.rmtree(daemon.path("t"))
        shutil.rmtree(daemon.path("put"))


@case
def a_bad_escape_is_a_usage_error(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 10)
    for bad in ("a%zz", "a%4", "a%"):
        rftptest.fails(rftptest.USAGE, f"{local}/f", daemon.url(bad))
    rftptest.fails((rftptest.USAGE, rftptest.KIND), f"{local}/f", daemon.url("a%00b"))
    equal(tree(daemon.top), {}, "the export")


rftptest.main()
