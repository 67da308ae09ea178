#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--filter, --include, --exclude: which names of a tree are copied, both ways, and that it is what rsync
copies by the same rules."""

import os
import shutil
import subprocess

import rftptest
from rftptest import Daemon, case, check, equal, fails, rng, scaled, skip, works

NAMES = ["a", "b", "a.o", "b.c", "tmp", ".git", "x y", "core"]
PATTERNS = ["*.o", "tmp/", "/t/a", "a/b", "**/b", "tmp/***", "?", "[ab]", "*/", ".*", "/t/*/a", "t/**.c", "core",
            "x*", "*", "a**o", "/t/tmp/***", "[!a]*"]


def tree(where, depth=0):
    os.mkdir(where)
    for name in rng().sample(NAMES, rng().randrange(2, len(NAMES))):
        path = f"{where}/{name}"
        if depth < 3 and rng().randrange(2):
            tree(path, depth + 1)
        else:
            with open(path, "w") as f:
                f.write(path)


def names(top):
    found = []
    for where, directories, files in os.walk(top):
        found += [os.path.relpath(f"{where}/{name}", top) for name in directories + files]
    return sorted(found)


class Place:
    def __init__(self, top):
        self.top = top
        for name in ("export", "got", "rsync"):
            os.mkdir(f"{top}/{name}")
        self.daemon = Daemon(f"{top}/export")

    def copies(self, *rules):
        """What is copied of t by these rules, put and get."""
        for name in ("export", "got"):
            shutil.rmtree(f"{self.top}/{name}/t", ignore_errors=True)
        works("-r", *rules, f"{self.top}/t", self.daemon.url())
        put = names(f"{self.top}/export")
        shutil.rmtree(f"{self.top}/export/t", ignore_errors=True)
        shutil.copytree(f"{self.top}/t", f"{self.top}/export/t", symlinks=True)
        works("-r", *rules, self.daemon.url("t"), f"{self.top}/got")
        equal(names(f"{self.top}/got"), put, "get, and put by", rules)
        return put


@case
def rules(top):
    place = Place(top)
    for name in ("t/keep.o", "t/x.o", "t/d/x.c", "t/d/x.o", "t/.git/config", "t/d/.git/x"):
        os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
        open(f"{top}/{name}", "w").close()
    equal(place.copies("--exclude=*.o"), ["t", "t/.git", "t/.git/config", "t/d", "t/d/.git", "t/d/.git/x", "t/d/x.c"])
    equal(place.copies("--include", "keep.o", "--exclude=*.o", "--exclude=.git/"), ["t", "t/d", "t/d/x.c", "t/keep.o"])
    equal(place.copies("--exclude=.git/", "--filter=+ */", "--filter=+ *.c", "--filter=- *"), ["t", "t/d", "t/d/x.c"])
    equal(place.copies("--exclude", "/t/d"), ["t", "t/.git", "t/.git/config", "t/keep.o", "t/x.o"])
    with open(f"{top}/rules", "w") as f:
        f.write("# what to leave out\n.git\n\n*.o\n")
    equal(place.copies(f"--exclude-from={top}/rules"), ["t", "t/d", "t/d/x.c"])
    equal(place.copies("--include=keep.o", f"--exclude-from={top}/rules"), ["t", "t/d", "t/d/x.c", "t/keep.o"])
    # what is named itself is asked about, too, and nothing is wrong with that
    equal(place.copies("--exclude=t"), [])
    # without -r, several names
    works("--exclude=*.o", f"{top}/t/x.o", f"{top}/t/d/x.c", place.daemon.url("t/"))
    equal(sorted(os.listdir(f"{top}/export/t")), sorted([".git", "d", "keep.o", "x.c", "x.o"]))


@case
def in_the_shell(top):
    place = Place(top)
    os.mkdir(f"{top}/t")
    for name in ("a.o", "a.c"):
        open(f"{top}/t/{name}", "w").close()
    works("-c", f"set filter '- *.o'; put -r {top}/t", place.daemon.url())
    equal(names(f"{top}/export"), ["t", "t/a.c"])
    out = works("-c", "set filter '- a'; set filter '+ b'; set filter").out
    check(b"- a" in out and b"+ b" in out, out)
    check(b"none" in works("-c", "set filter '- a'; set filter none; set filter").out)


@case
def what_is_wrong_is_said(top):
    for option, what in (("--filter=x", "begins with"), ("--exclude=", "without a pattern"),
                         ("--exclude-from=/nonexistent", "/nonexistent"), ("--filter=. /nonexistent", "/nonexistent")):
        done = fails(2, option, "-r", top, "rftp://127.0.0.1:1/")
        check(what.encode() in done.err, option, done.err)


@case(seconds=120)
def as_rsync(top):
    if not shutil.which("rsync"):
        skip("no rsync here")
    place = Place(top)
    for i in range(scaled(12)):
        shutil.rmtree(f"{top}/t", ignore_errors=True)
        tree(f"{top}/t")
        some = [f"{rng().choice('+-')} {pattern}" for pattern in rng().sample(PATTERNS, rng().randrange(1, 5))]
        options = [f"--filter={rule}" for rule in some]
        shutil.rmtree(f"{top}/rsync/t", ignore_errors=True)
        subprocess.run(["rsync", "-r", *options, f"{top}/t", f"{top}/rsync"], check=True)
        equal(place.copies(*options), names(f"{top}/rsync"), "by", some)


rftptest.main()
