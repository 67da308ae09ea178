#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rm -r: a tree at the server goes, and nothing that a link in it leads to."""

import os

import rftptest
from rftptest import DENIED, KIND, NO_FILE, Daemon, case, check, equal, fails, make_file, tree, works


def places(top, mode="rw"):
    export = f"{top}/export"
    os.makedirs(f"{export}/t/a/b")
    os.makedirs(f"{export}/other")
    for name in ("t/f", "t/a/f", "t/a/b/f", "other/f", "single"):
        make_file(f"{export}/{name}", 10)
    os.symlink("../../other", f"{export}/t/a/link")
    os.symlink("/etc", f"{export}/t/etc")
    return Daemon(export, mode)


@case
def trees_files_and_links(top):
    daemon = places(top)
    fails(KIND, "-c", "rm t", daemon.url(""), says="rm -r")
    said = works("-v", "-c", "rm -r t single", daemon.url("")).err
    check(b"/t: 8 names removed" in said, said)
    equal(sorted(tree(daemon.top)), [b"other", b"other/f"], "what is left")
    fails(NO_FILE, "-c", "rm -r t", daemon.url(""))


@case
def many_names(top):
    """Of which some cannot go: each of those is told of, in its order, and the others go."""
    daemon = places(top)
    os.mkdir(daemon.path("many"))
    for i in range(200):
        make_file(daemon.path(f"many/f{i:03}"), 1)
    names = [f"many/f{i:03}" for i in range(200)]
    names[3:3] = ["many/none"]
    names[70:70] = ["other"]
    names[150:150] = ["many/" + "x" * 5000]
    names[151:151] = ["many/none too"]
    batch = f"{top}/batch"
    with open(batch, "w") as f:
        f.write("rm " + " ".join(f'"{n}"' for n in names) + "\n")
    result = rftptest.rftp("-b", batch, daemon.url(""))
    check(result.code != 0, result)
    lines = [line for line in result.err.decode().splitlines() if "stopped at" not in line]
    equal(len(lines), 4, "messages")
    for line, words in zip(lines, ("many/none", "other: is a directory", "xxxx", "many/none too")):
        check(words in line, line, words)
    equal(os.listdir(daemon.path("many")), [], "what is left")
    check(os.path.exists(daemon.path("other/f")), "a directory went")


@case
def what_is_not_allowed(top):
    daemon = places(top)
    before = tree(daemon.top)
    for command in ("rm -r /", "rm -r .", "rm -r ..", "rm -r t/etc/passwd", "rm -x t"):
        result = rftptest.rftp("-c", command, daemon.url(""))
        check(result.code != 0, command, "was allowed:", result)
    equal(tree(daemon.top), before, "the export")
    fails(DENIED, "-c", "rm -r t", Daemon(daemon.top, "ro").url(""), says="read-only")
    equal(tree(daemon.top), before, "the export")


@case(seconds=180)
def a_large_tree_takes_many_requests(top):
    """And others are served meanwhile."""
    daemon = places(top)
    for i in range(rftptest.scaled(30)):
        os.mkdir(daemon.path(f"t/a/{i}"))
        for j in range(300):
            open(daemon.path(f"t/a/{i}/{j}"), "w").close()
    client = rftptest.start_rftp("-c", "rm -r t", daemon.url(""))
    works("-c", "ls; stat other/f", daemon.url(""))
    equal(rftptest.finish(client).code, 0, "rm -r")
    equal(sorted(os.listdir(daemon.top)), ["other", "single"], "what is left")


rftptest.main()
