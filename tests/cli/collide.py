#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sources of one command that would land on one name: refused before anything moves."""

import os

import rftptest
from rftptest import Daemon, case, equal, fails, make_file, tree, works


def fill(where):
    """x/a and y/a are files, x/t and y/t trees, z/a is a tree."""
    for name in ("x/t", "y/t", "z/a", "dd"):
        os.makedirs(f"{where}/{name}")
    for i, name in enumerate(("x/a", "y/a", "x/b", "y/c", "x/t/one", "y/t/two", "z/a/three")):
        make_file(f"{where}/{name}", 1000 + i)


COLLISIONS = [
    ("two files", [], ["x/a", "y/a"]),
    ("one file twice", [], ["x/a", "x/b", "x/a"]),
    ("two trees", ["-r"], ["x/t", "y/t"]),
    ("a file and a tree", ["-r"], ["x/a", "z/a"]),
    ("a tree and a file", ["-r"], ["z/a", "y/a"]),
    ("with slashes behind", ["-r"], ["x/", "y//"]),
    ("what is in a directory, and a file", ["-r"], ["x/.", "y/a"]),
    ("what is in two directories", ["-r"], ["x/.", "y/."]),
]


def refused(top, where, says, *arguments):
    before = tree(where)
    fails(rftptest.KIND, *arguments, says=says)
    equal(tree(where), before, "after", arguments)


@case
def put(top):
    os.mkdir(f"{top}/export")
    fill(f"{top}/export")
    fill(f"{top}/local")
    daemon = Daemon(f"{top}/export")
    for what, options, names in COLLISIONS:
        says = f"become {'t' if 't' in names[0][-3:] else 'a'} here: {top}/local/"
        refused(top, daemon.top, says, *options, *[f"{top}/local/{n}" for n in names],
                daemon.url("dd/"))
    # the shell's patterns meet, too
    refused(top, daemon.top, "become a here: ", "-c", f"lcd {top}/local; put x/* y/* dd", "-r",
            daemon.url(""))
    works("-r", f"{top}/local/x/", f"{top}/local/y/c", daemon.url("dd/"))
    equal(sorted(os.listdir(daemon.path("dd"))), ["a", "b", "c", "t"], "what does not meet")


@case
def get(top):
    os.mkdir(f"{top}/export")
    fill(f"{top}/export")
    fill(f"{top}/local")
    daemon = Daemon(f"{top}/export")
    for what, options, names in COLLISIONS:
        says = f"become {'t' if 't' in names[0][-3:] else 'a'} here: /"
        refused(top, f"{top}/local", says, *options, *[daemon.url(n) for n in names],
                f"{top}/local/dd")
    refused(top, f"{top}/local", "become a here: /x/a and /y/a", daemon.url("?/a"), f"{top}/local/dd")
    refused(top, f"{top}/local", "become b here: /x/b", daemon.url("x/b"), daemon.url("x/*"),
            f"{top}/local/dd")
    works("-r", daemon.url("x/."), daemon.url("y/c"), f"{top}/local/dd")
    equal(sorted(os.listdir(f"{top}/local/dd")), ["a", "b", "c", "t"], "what does not meet")


@case
def one_after_the_other_on_standard_output(top):
    """No name, so nothing that could meet."""
    os.mkdir(f"{top}/export")
    fill(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    with open(daemon.path("x/a"), "rb") as x, open(daemon.path("y/a"), "rb") as y:
        wanted = x.read() + y.read()
    equal(works(daemon.url("x/a"), daemon.url("y/a"), "-").out, wanted, "standard output")


@case
def an_empty_name(top):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/export/f", 10)
    daemon = Daemon(f"{top}/export")
    fails(rftptest.USAGE, "-c", "get f ''", daemon.url(""), says="a name is empty")
    fails(rftptest.USAGE, "-c", "get ''", daemon.url(""), says="a name is empty")
    for command in ("put '' f", "put f ''", "put ''"):
        fails(rftptest.USAGE, "-c", f"lcd {top}/export; {command}", daemon.url(""),
              says="a name is empty")


rftptest.main()
