#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sync says beside its work: a plan that does what sync would do, no more, and what it leaves out."""

import os
import shutil

import rftptest
from rftptest import Daemon, case, check, equal, fails, make_file, run, works


class Place:
    """A source, a directory t at a server, and another one here."""

    def __init__(self, top):
        self.source, self.export, self.back = f"{top}/source", f"{top}/export", f"{top}/back"
        os.mkdir(self.export)
        self.daemon = Daemon(self.export)
        self.url = self.daemon.url("t")

    def both(self):
        works("sync", self.source, self.url)
        works("sync", self.url, self.back)


@case
def a_plan_makes_links(top):
    """Not what they lead to, also where they lead nowhere, in the place of a file, of another link and of a directory."""
    place = Place(top)
    os.makedirs(f"{place.source}/d")
    make_file(f"{place.source}/f", 30)
    place.both()
    names = ("was-file", "was-link", "was-dir", "-n", "d/it's\nnasty \udcff")
    for where in (place.source, f"{place.export}/t", place.back):
        make_file(f"{where}/was-file", 40)
        os.symlink("f", f"{where}/was-link")
        os.makedirs(f"{where}/was-dir/in-it")
    for i, name in enumerate(names):
        path = os.fsencode(f"{place.source}/{name}")
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
        os.symlink(os.fsencode(["f", "-nowhere", "no\nwhere'\udcfe", "/etc/passwd", "../f"][i]), path)
        os.utime(path, (5, 1000 + i), follow_symlinks=False)
    for names in ((place.source, place.url), (place.url, place.back)):
        with open(f"{top}/plan", "wb") as f:
            f.write(works("sync", "-n", *names).out)
        plan = [e for e in works("--json", "sync", "-n", *names).events() if e["event"] == "plan" and e["action"] == "copy"]
        equal(len(plan), 5, "one event each", plan)
        works("-b", f"{top}/plan", place.daemon.url(""))
        equal(works("sync", "-n", *names).out, b"", "nothing is left to do", names)
    for copy in (f"{place.export}/t", place.back):
        equal(run("rsync", "-naic", "--delete", f"{place.source}/", f"{copy}/"), b"", "what rsync finds in", copy)


@case
def a_plan_removes_no_more_than_may_be(top):
    place = Place(top)
    os.mkdir(place.source)
    make_file(f"{place.source}/f", 30)
    place.both()
    for where in (f"{place.export}/t", place.back):
        for name in "abc":
            make_file(f"{where}/{name}", 1)
    os.mkdir(f"{place.export}/u")
    make_file(f"{place.export}/u/f", 30)
    for names in ((place.source, place.url), (place.daemon.url("u"), place.back)):
        result = fails(rftptest.REFUSED, "sync", "-n", "--delete", "--max-delete=2", *names, says=b"max-delete")
        check(b"rm " not in result.out, "it would not do that:", result)


@case
def special_files_are_told_of(top):
    """Once, and counted: also where the directory that they are in was there before."""
    place = Place(top)
    os.makedirs(f"{place.source}/d")
    os.mkfifo(f"{place.source}/fifo")
    os.mkfifo(f"{place.source}/d/fifo")
    for count in (2, 2):
        result = works("--json", "sync", place.source, place.url)
        equal((result.done()["special"], result.done()["errors"]), (count, 0), "put", result)
        equal(result.err.count(b"not copied"), 1, "put", result)
    shutil.rmtree(f"{place.export}/t")
    os.makedirs(f"{place.export}/t/d")
    os.mkfifo(f"{place.export}/t/d/fifo")
    make_file(f"{place.export}/t/f", 30)
    for _ in range(2):
        result = works("--json", "sync", place.url, place.back)
        equal((result.done()["special"], result.done()["errors"]), (1, 0), "get", result)
        check(b"/d/fifo: not copied" in result.err, "get", result)


rftptest.main()
