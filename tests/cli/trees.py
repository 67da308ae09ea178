#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands about all that is beneath a name at the server: ls -R -t -S, find, du, cat."""

import json
import os

import rftptest
from rftptest import KIND, NO_FILE, OK, USAGE, Daemon, case, check, equal, fails, make_file, rftp, skip, works


def places(top):
    os.makedirs(f"{top}/export/t/d/e")
    os.mkdir(f"{top}/export/t/.hidden")
    for i, (name, size) in enumerate((("x", 10), ("t/a.dat", 3000), ("t/b.dat", 500), ("t/d/c.dat", 40),
                                      ("t/d/e/n\x1bm", 7), ("t/.hidden/h", 1))):
        make_file(f"{top}/export/{name}", size)
        os.utime(f"{top}/export/{name}", (1000000000 + i, 1000000000 + i))
    os.symlink("nowhere", f"{top}/export/t/link")
    return Daemon(f"{top}/export", "ro")


def lines(daemon, command, **options):
    return works("-c", command, daemon.url(""), **options).out.decode().splitlines()


@case
def sorted_listings(top):
    daemon = places(top)
    equal(lines(daemon, "ls -1 t"), ["a.dat", "b.dat", "d", "link"], "ls")
    for where in (daemon.path("t/d"), daemon.path("t/link")):
        os.utime(where, (1, 1), follow_symlinks=False)
    equal(lines(daemon, "ls -t t"), ["b.dat", "a.dat", "d", "link"], "the newest first")
    equal([n for n in lines(daemon, "ls -S t") if n.endswith("dat")], ["a.dat", "b.dat"], "the largest first")
    equal(lines(daemon, "ls -t t/a.dat t/b.dat x"), ["t/b.dat", "t/a.dat", "x"], "named ones")


@case
def recursive_listings(top):
    daemon = places(top)
    equal(lines(daemon, "ls -R t"), ["t:", "a.dat", "b.dat", "d", "link", "", "t/d:", "c.dat", "e", "", "t/d/e:",
                                     "n\x1bm"], "ls -R")
    check("t/.hidden:" in lines(daemon, "ls -Ra t"), "ls -Ra")
    equal(lines(daemon, "ls -R")[:4], ["/:", "t", "x", ""], "from where one is")
    found = works("--json", "-c", "ls -R t", daemon.url("")).events()
    equal([(e["directory"], e["name"]) for e in found][-2:], [("/t/d", "e"), ("/t/d/e", "n\x1bm")], "as events")


@case
def find(top):
    daemon = places(top)
    everything = ["/t", "/t/.hidden", "/t/.hidden/h", "/t/a.dat", "/t/b.dat", "/t/d", "/t/d/c.dat", "/t/d/e",
                  "/t/d/e/n\x1bm", "/t/link"]
    equal(lines(daemon, "find t"), everything, "find")
    equal(lines(daemon, "cd t; find"), everything, "from where one is")
    equal(lines(daemon, "find t -name '*.dat'"), ["/t/a.dat", "/t/b.dat", "/t/d/c.dat"], "-name")
    equal(lines(daemon, "find t/d x -type f"), ["/t/d/c.dat", "/t/d/e/n\x1bm", "/x"], "-type f")
    equal(lines(daemon, "find t -type d -name 'd*'"), ["/t/d"], "both")
    equal(lines(daemon, "find t -type l"), ["/t/link"], "-type l")
    equal([e["path"] for e in works("--json", "-c", "find t/d", daemon.url("")).events()],
          ["/t/d", "/t/d/c.dat", "/t/d/e", "/t/d/e/n\x1bm"], "as events")
    for words in ("find t -name", "find -type x", "find t -what x"):
        fails(USAGE, "-c", words, daemon.url(""), says="usage: find")
    fails(NO_FILE, "-c", "find absent", daemon.url(""), says="absent")
    out, code = rftptest.on_terminal("-c", "find t/d/e", daemon.url(""))
    check(code == OK and b"\x1bm" not in out, "an escape reaches the terminal:", out)


@case
def du(top):
    daemon = places(top)
    equal([line.split() for line in lines(daemon, "du t")],
          [["1", "/t/.hidden"], ["7", "/t/d/e"], ["47", "/t/d"], ["3548", "/t"]], "du")
    equal([line.split() for line in lines(daemon, "du -s t x")], [["3548", "/t"], ["10", "/x"]], "du -s")
    equal(lines(daemon, "du -sh t")[0].split(), ["3.5K", "/t"], "du -sh")
    usage = works("--json", "-c", "du -s t", daemon.url("")).events()
    equal(usage, [{"event": "usage", "path": "/t", "bytes": 3548, "files": 6, "directories": 4}], "as an event")
    result = rftp("-c", "du absent x", daemon.url(""))
    equal((result.code, result.out.split()), (NO_FILE, [b"10", b"/x"]), "one that is not there")


@case
def several_exports_are_one_tree_to_find_and_du(top):
    for name in ("a", "b"):
        os.makedirs(f"{top}/{name}/d")
        with open(f"{top}/{name}/d/f", "w") as f:
            f.write(name * 10)
    daemon = Daemon(f"{top}/a", command=["--listen", "127.0.0.1:0", "--export", f"one {top}/a", "--export", f"two {top}/b"])
    equal(lines(daemon, "find /"), ["/", "/one", "/one/d", "/one/d/f", "/two", "/two/d", "/two/d/f"], "find")
    equal([line.split() for line in lines(daemon, "du")],
          [["10", "/one/d"], ["10", "/one"], ["10", "/two/d"], ["10", "/two"], ["20", "/"]], "du")
    equal([line.split() for line in lines(daemon, "du -s /one")], [["10", "/one"]], "du -s")


@case
def what_can_not_be_read_is_said(top):
    if not rftptest.ROOT:
        skip("only root can be somebody else")
    os.chmod(top, 0o755)
    os.makedirs(f"{top}/export/t/closed")
    os.makedirs(f"{top}/export/t/open")
    for name in ("closed/x", "open/y", "z"):
        with open(f"{top}/export/t/{name}", "w") as f:
            f.write("12345")
    os.chmod(f"{top}/export/t/closed", 0o000)
    daemon = Daemon(f"{top}/export", user=rftptest.NOBODY)
    result = fails(rftptest.DENIED, "-c", "find t", daemon.url(""), says="/t/closed: permission denied")
    equal(result.out.split(), [b"/t", b"/t/closed", b"/t/open", b"/t/open/y", b"/t/z"], "find goes on")
    result = fails(rftptest.DENIED, "-c", "du t", daemon.url(""), says="/t/closed")
    equal(result.out.split()[-2:], [b"10", b"/t"], "du goes on")


@case
def cat(top):
    daemon = places(top)
    whole = b"".join(open(daemon.path(n), "rb").read() for n in ("x", "t/a.dat", "t/b.dat"))
    equal(works("-c", "cat x t/*.dat", daemon.url("")).out, whole, "cat")
    for names in ("t/d", "x t/d"):
        result = fails(KIND, "-c", f"cat {names}", daemon.url(""), says="/t/d: is a directory")
        check(b"-r" not in result.err, "nothing that cat has no use for")
    make_file(daemon.path("large"), 300000)  # by a transfer, with small ones before and behind it
    whole = {n: open(daemon.path(n), "rb").read() for n in ("x", "large", "t/a.dat")}
    order = ("x", "large", "t/a.dat", "large", "x", "x")
    equal(works("-c", "cat " + " ".join(order), daemon.url("")).out, b"".join(whole[n] for n in order), "in order")
    result = fails(NO_FILE, "-c", "cat x absent large absent2 t/a.dat", daemon.url(""), says="absent2: no such file")
    equal(result.out, whole["x"] + whole["large"] + whole["t/a.dat"], "what is there")
    told = [json.loads(line) for line in works("--json", "-c", "cat x t/a.dat", daemon.url("")).err.splitlines()]
    told = [e for e in told if e["event"] == "file"]
    equal([(e["path"], e["remote"]) for e in told], [("-", "/x"), ("-", "/t/a.dat")], "--json")
    fails(NO_FILE, "-c", "cat absent", daemon.url(""), says="absent")
    fails(USAGE, "-c", "cat ''", daemon.url(""), says="empty")
    url = daemon.url("t").encode() + b"\n"
    result = works("-c", "pwd; cat ../x; pwd", daemon.url("t"))
    equal(result.out, url + open(daemon.path("x"), "rb").read() + url, "in its place among the others")


@case
def links_by_name(top):
    """ls -l and stat of a link are about itself, as ls(1) and stat(1) have it; ls follows it."""
    daemon = places(top)
    os.symlink("t", daemon.path("todir"))
    os.symlink("x", daemon.path("tofile"))
    os.symlink("nowhere", daemon.path("dangling"))
    out = works("-c", "ls -l tofile todir dangling", daemon.url("")).out.decode().splitlines()
    equal([line[0] for line in out], ["l"] * 3, out)
    equal([line.split()[-3:] for line in out],
          [["tofile", "->", "x"], ["todir", "->", "t"], ["dangling", "->", "nowhere"]], "names and targets")
    inside = works("-c", "ls t", daemon.url("")).out
    for command in ("ls todir", "ls todir/"):
        equal(works("-c", command, daemon.url("")).out, inside, command)
    equal(works("-c", "ls -l todir/", daemon.url("")).out, works("-c", "ls -l t", daemon.url("")).out, "with a slash")
    equal(works("-c", "ls dangling tofile", daemon.url("")).out, b"dangling\ntofile\n", "without -l")
    for name, target in (("todir", "t"), ("tofile", "x"), ("dangling", "nowhere")):
        event = works("--json", "-c", f"stat {name}", daemon.url("")).events()[0]
        equal((event["type"], event["target"], event["size"]), ("symlink", target, len(target)), name)
        check(f" -> {target}\n".encode() in works("-c", f"stat {name}", daemon.url("")).out, name)
    fails(NO_FILE, "-c", "ls -l x absent t", daemon.url(""), says="absent")
    result = rftp("-c", "stat x absent t", daemon.url(""))
    check(result.code == NO_FILE and result.out.count(b"mtime") == 2 and b"absent" in result.err, result)


rftptest.main()
