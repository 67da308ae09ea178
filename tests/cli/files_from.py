#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--files-from and --from0: put, get and sync of what a list names, and of nothing else; as rsync has it."""

import os
import shutil

import rftptest
from rftptest import NO_FILE, USAGE, Daemon, case, check, equal, fails, works


def fill(where, names):
    for name in names:
        path = os.path.join(os.fsencode(where), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(name * 10)


def found(where):
    where = os.fsencode(where)
    return {os.path.relpath(os.path.join(at, name), where) for at, directories, files in os.walk(where)
            for name in directories + files}


NAMES = [b"a", b"b", b"d/e/f", b"d/e/g", b"d/h", b"t/u/v", b"t/w", b"new\nline", b"#odd", b"\xff\xfe", b"-r", b"x y"]


class Place:
    def __init__(self, top):
        self.top, self.source, self.export = top, f"{top}/source", f"{top}/export"
        os.mkdir(self.export)
        fill(self.source, NAMES)
        self.daemon = Daemon(self.export)

    def write(self, data):
        with open(f"{self.top}/list", "wb") as f:
            f.write(data)
        return f"--files-from={self.top}/list"


@case
def what_is_named_is_copied(top):
    place = Place(top)
    option = place.write(b"a\n/d/e/f\n./d/h\n# no name\n;\n\nt\nx y\n\xff\xfe\n")
    wanted = {b"a", b"d", b"d/e", b"d/e/f", b"d/h", b"t", b"x y", b"\xff\xfe"}
    works(option, place.source, place.daemon.url("to"))
    equal(found(f"{place.export}/to"), wanted, "put: a directory without what is in it")
    works(option, place.daemon.url("to"), f"{top}/back")
    equal(found(f"{top}/back"), wanted, "get")
    works("-r", option, place.source, place.daemon.url("deep"))
    equal(found(f"{place.export}/deep"), wanted | {b"t/u", b"t/u/v", b"t/w"}, "put -r")
    works("-r", option, place.daemon.url("deep"), f"{top}/deep")
    equal(found(f"{top}/deep"), wanted | {b"t/u", b"t/u/v", b"t/w"}, "get -r")
    equal(rftptest.tree(f"{top}/deep"), rftptest.tree(f"{place.export}/deep"), "what is in them")


@case
def names_are_bytes(top):
    place = Place(top)
    option = place.write(b"\0".join([b"new\nline", b"#odd", b"-r", b"d/e", b"\xff\xfe"]) + b"\0")
    works("-r0", option, place.source, place.daemon.url("to"))
    equal(found(f"{place.export}/to"), {b"new\nline", b"#odd", b"-r", b"d", b"d/e", b"d/e/f", b"d/e/g", b"\xff\xfe"})
    works("--from0", "--files-from=-", place.daemon.url("to"), f"{top}/back", input=b"new\nline\0-r")
    equal(found(f"{top}/back"), {b"new\nline", b"-r"}, "from standard input, the last without NUL")
    fails(USAGE, option, place.source, place.daemon.url("to"), says=b"--from0")


@case
def a_sync_of_what_is_named(top):
    place = Place(top)
    option = place.write(b"d/e\nt\na\nnowhere\n")
    works("sync", place.source, place.daemon.url("to"))
    for name in ("b", "t/w", "d/e/f", "a"):
        os.unlink(f"{place.source}/{name}")
    fill(place.source, [b"d/new", b"d/e/new"])
    works("--delete", option, "sync", place.source, place.daemon.url("to"))
    wanted = (found(place.source) - {b"d/new"}) | {b"b"}
    equal(found(f"{place.export}/to"), wanted, "what is named became the same, all else stayed")


@case
def what_is_wrong(top):
    place = Place(top)
    url = place.daemon.url("to")
    option = place.write(b"a\nnone\nd/none\nb\n")
    done = fails(NO_FILE, option, place.source, url, says=b"none")
    check(b"d/none" in done.err, done)
    equal(found(f"{place.export}/to"), {b"a", b"b", b"d"} & found(f"{place.export}/to") | {b"a", b"b"}, "the others")
    fill(f"{top}/export/far", [b"a", b"b"])
    done = fails(NO_FILE, option, place.daemon.url("far"), f"{top}/back", says=b"none")
    check({b"a", b"b"} <= found(f"{top}/back"), "the others")
    # a directory that is not there is so once, and not again when it would be left
    option = place.write(b"a\nno/dir/none\nno/more\nb\nd/h\n")
    fill(f"{top}/export/way", [b"a", b"b", b"d/h"])
    for words, to in (([place.source, place.daemon.url("way2")], f"{top}/export/way2"),
                      ([place.daemon.url("way"), f"{top}/way"], f"{top}/way")):
        done = fails(NO_FILE, option, *words, says=b"no/dir/none")
        for name in (b"/no: ", b"/no/dir: ", b"/no/dir/none: ", b"/no/more: "):
            equal(done.err.count(name), 1, name, done)
        equal(found(to), {b"a", b"b", b"d", b"d/h"}, "the others")
    fails(USAGE, place.write(b"a\nd/../../b\n"), place.source, url, says=b"leads out")
    fails(NO_FILE, f"--files-from={top}/nothing", place.source, url)
    fails(USAGE, option, place.source, place.source, url, says=b"--files-from")
    fails(USAGE, option, place.daemon.url("t*"), f"{top}/got", says=b"--files-from")
    fails(USAGE, option, place.daemon.url("to"), "-", says=b"--files-from")
    fails(USAGE, option, "-", url, says=b"--files-from")
    works(place.write(b"\n#\n"), place.source, place.daemon.url("empty"))
    check(not os.path.exists(f"{place.export}/empty"), "nothing is named, and nothing made")


@case
def a_plan(top):
    place = Place(top)
    option = place.write(b"a\nd/e/f\nt/\nd/e/new\n")
    fill(place.source, [b"d/e/new"])
    for source, target in ((place.source, place.daemon.url("to")), (place.daemon.url("to"), f"{top}/back")):
        plan = works("-n", option, source, target).out
        with open(f"{top}/plan", "wb") as f:
            f.write(plan)
        works("-b", f"{top}/plan", place.daemon.url())
        where = target if "://" not in target else f"{place.export}/to"
        equal(found(where), {b"a", b"d", b"d/e", b"d/e/f", b"d/e/new", b"t"}, plan)


def looks(where):
    """What there is, and what links say."""
    return {os.path.relpath(os.path.join(at, name), where): os.readlink(os.path.join(at, name))
            if os.path.islink(os.path.join(at, name)) else os.path.isdir(os.path.join(at, name))
            for at, directories, files in os.walk(where) for name in directories + files}


@case
def a_plan_of_links_and_directories(top):
    place, own = Place(top), f"{top}/own"
    for where in (own, f"{place.export}/source"):
        fill(where, [b"f", b"d/g", b"d/e/h", b"t/u"])
        for target, name in (("f", "file"), ("d", "dir"), ("none", "dangling"), ("g", "d/up")):
            os.symlink(target, f"{where}/{name}")
    for options in ([], ["-r"], ["--links=follow"], ["-r", "--links=follow"]):
        names = b"f\nd\nfile\ndir\nt\nd/up\n"
        if "--links=follow" not in options:
            names += b"dangling\n"
        if "-r" not in options:
            names += b"dir/g\n"
        option = place.write(names)
        for way in ("put", "get"):
            def words(to):
                return [own, place.daemon.url(to)] if way == "put" else [place.daemon.url("source"), f"{top}/{to}"]
            at = place.export if way == "put" else top
            for to in ("copied", "planned"):
                shutil.rmtree(f"{at}/{to}", ignore_errors=True)
            os.makedirs(f"{at}/planned")
            os.symlink("other", f"{at}/planned/file")  # that is there has to make way
            plan = works("-n", *options, option, *words("planned"))
            works(*options, option, *words("copied"))
            with open(f"{top}/plan", "wb") as f:
                f.write(plan.out)
            works(*options, "-b", f"{top}/plan", place.daemon.url())
            equal(looks(f"{at}/planned"), looks(f"{at}/copied"), options, way, plan)
    for name, says in ((b"nowhere", b"nowhere"), (b"f/", b"/f")):
        option = place.write(b"d\n" + name + b"\n")
        for words in ([own, place.daemon.url("no")], [place.daemon.url("source"), f"{top}/no"]):
            result = rftptest.rftp("-n", option, *words)
            check(result.code and says in result.err and b"mkdir" in result.out and says not in result.out, result)


rftptest.main()
