#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is there already and stays: -u, --ignore-existing."""

import os

import rftptest
from rftptest import KIND, OK, Daemon, case, check, equal, make_file, rftp, same_files, tree, works


def places(top):
    """Of each name: older at the source, as old, newer, and one that is not there."""
    for where in ("export", "local"):
        os.makedirs(f"{top}/{where}/t/d")
    return Daemon(f"{top}/export")


def fill(source, destination):
    for name, time, there in (("t/older", 100, 200), ("t/d/same", 100, 100), ("t/newer", 100.5, 100.25),
                              ("t/new", 100, None)):
        make_file(f"{source}/{name}", 5000)
        os.utime(f"{source}/{name}", (time, time))
        if there is not None:
            make_file(f"{destination}/{name}", 4000)
            os.utime(f"{destination}/{name}", (there, there))


def both_ways(top, check_one):
    daemon = places(top)
    fill(f"{top}/local", daemon.top)
    check_one(daemon.path("t"), f"{top}/local/t", [f"{top}/local/t", daemon.url("")])
    for where in (f"{top}/local", daemon.top):
        rftptest.shutil.rmtree(f"{where}/t")
        os.makedirs(f"{where}/t/d")
    fill(daemon.top, f"{top}/local")
    check_one(f"{top}/local/t", daemon.path("t"), [daemon.url("t"), f"{top}/local"])


@case
def update(top):
    def one(there, source, words):
        before = tree(there)
        result = works("--json", "-r", "-u", *words)
        done = result.done()
        equal((done["files"], done["skipped"], done["errors"]), (2, 2, 0), words)
        equal(sorted(os.path.basename(e["path"]) for e in result.events() if e.get("status") == "exists"),
              ["older", "same"], "what was left out")
        for name in ("newer", "new"):
            same_files(f"{source}/{name}", f"{there}/{name}", name)
        for name in (b"older", b"d/same"):
            equal(tree(there)[name], before[name], name)
        done = works("--json", "-r", "--update", *words).done()
        equal((done["files"], done["skipped"], done["sent_bytes"]), (0, 4, 0), "once more: nothing moves")
        equal(works("-r", "-u", *words).err, b"", "nothing is said")

    both_ways(top, one)


@case
def ignore_existing(top):
    def one(there, source, words):
        before = tree(there)
        equal(rftp("-r", "--no-replace", *words).code, KIND, "without it an existing file is an error")
        os.unlink(f"{there}/new")
        done = works("--json", "-r", "--ignore-existing", *words).done()
        equal((done["files"], done["skipped"], done["errors"]), (1, 3, 0), words)
        after = tree(there)
        after.pop(b"new")
        equal(after, before, "what was there")
        same_files(f"{source}/new", f"{there}/new")

    both_ways(top, one)


@case
def single_files(top):
    daemon = places(top)
    make_file(f"{top}/local/f", 100)
    for option in ("-u", "--ignore-existing"):
        works(option, f"{top}/local/f", daemon.url("f"))
        equal(works("--json", option, f"{top}/local/f", daemon.url("f")).done()["skipped"], 1, "put", option)
        works(option, daemon.url("f"), f"{top}/local/g")
        equal(works("--json", option, daemon.url("f"), f"{top}/local/g").done()["skipped"], 1, "get", option)
    works("-c", f"lcd {top}/local; put -u f; get -u f h; get -u f h", daemon.url(""))
    same_files(f"{top}/local/f", f"{top}/local/h")


rftptest.main()
