#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rftp sync, and mirror in the shell: afterwards the destination is what the source is, and what was the
same already has not moved."""

import os
import shutil
import stat
import subprocess

import rftptest
from rftptest import (NOBODY, OK, ROOT, Daemon, case, check, equal, fails, leftovers, make_file, rftp, rng, same_files, scaled, skip,
                      works)

NAMES = ["a", "b", "a-b", "c.o", "with space", "new\nline", "it's %d\\n\n", "-r", "*", "e" * 200, ".h"]


def grow(where, depth=0, links=True):
    """A tree; or, of one that is there, another one: names added, gone, changed, of other kinds."""
    os.makedirs(where, exist_ok=True)
    for name in NAMES:
        path = f"{where}/{name}"
        there = os.path.lexists(path)
        what = rng().choice(["keep", "keep", "keep", "gone", "file", "directory", "link", "touch"])
        if what == "keep":
            if os.path.isdir(path) and not os.path.islink(path):
                grow(path, depth + 1, links)
            continue
        if what == "link" and not links:
            continue
        if what == "touch":
            if there and not os.path.islink(path):
                os.utime(path, (1, rng().randrange(10**9)))
            continue
        if there and (os.path.islink(path) or not os.path.isdir(path)):
            os.unlink(path)
        elif there:
            shutil.rmtree(path)
        if what == "file":
            with open(path, "wb") as f:
                f.write(rng().randbytes(rng().choice([0, 1, 1000, 70000])))
            os.chmod(path, rng().choice([0o644, 0o600, 0o755]))
        elif what == "directory" and depth < 3:
            grow(path, depth + 1, links)
        elif what == "link":
            os.symlink(rng().choice(["a", "nowhere", "/etc"]), path)


def move_some(top):
    """Some files go to other names, in other directories."""
    files, directories = [], [top]
    for where, inner, names in os.walk(top):
        directories += [f"{where}/{name}" for name in inner if not os.path.islink(f"{where}/{name}")]
        files += [f"{where}/{name}" for name in names if not os.path.islink(f"{where}/{name}")]
    for path in files:
        to = f"{rng().choice(directories)}/{rng().choice(NAMES)}"
        if rng().random() < .3 and not os.path.lexists(to):
            os.rename(path, to)


def picture(top):
    """{name: all that is to be the same}"""
    found = {}
    for where, directories, files in os.walk(top):
        for name in directories + files:
            path = f"{where}/{name}"
            st = os.lstat(path)
            kind = stat.S_IFMT(st.st_mode)
            what = os.readlink(path) if kind == stat.S_IFLNK else rftptest.digest(path) if kind == stat.S_IFREG else None
            found[os.path.relpath(path, top)] = (kind, st.st_mode, st.st_mtime_ns if kind != stat.S_IFLNK else 0, what)
    return found


def alike(a, b, *what):
    """All of two pictures is the same; what is not is said."""
    differs = [(name, a.get(name), b.get(name)) for name in sorted(a.keys() | b.keys()) if a.get(name) != b.get(name)]
    equal(differs, [], *what)


class Place:
    def __init__(self, top, **options):
        self.top = top
        self.source, self.export, self.back = f"{top}/source", f"{top}/export", f"{top}/back"
        os.mkdir(self.export)
        self.daemon = Daemon(self.export, **options)
        self.url = self.daemon.url("t")

    def both(self, *options):
        works("sync", *options, self.source, self.url)
        works("sync", *options, self.url, self.back)


@case(seconds=180)
def random_trees(top):
    place = Place(top)
    for i in range(scaled(5)):
        grow(place.source)
        options = rng().choice([[], ["--compare=digest"], ["--detect-renames"],
                                ["--compare=digest", "--detect-renames"]])
        if options:
            move_some(place.source)
        place.both("--delete", *options)
        alike(picture(f"{place.export}/t"), picture(place.source), "put", i)
        alike(picture(place.back), picture(place.source), "get", i)
        for names in ((place.source, place.url), (place.url, place.back)):
            done = works("--json", "sync", "--delete", *names).done()
            equal((done["files"], done["sent_bytes"], done["errors"]), (0, 0, 0), "once more", i)
        if shutil.which("rsync"):
            said = subprocess.run(["rsync", "-naic", "--delete", f"{place.source}/", f"{place.export}/t/"],
                                  capture_output=True, text=True, check=True).stdout
            equal(said, "", "rsync", i)
        equal(leftovers(top), [], "temporary files")


@case
def only_what_differs(top):
    place = Place(top)
    os.makedirs(f"{place.source}/d")
    for name in ("a", "b", "d/c"):
        with open(f"{place.source}/{name}", "w") as f:
            f.write(name * 1000)
    done = works("--json", "sync", place.source, place.url).done()
    equal((done["files"], done["skipped"]), (3, 0), "at first")
    with open(f"{place.source}/d/c", "w") as f:
        f.write("other")
    done = works("--json", "sync", place.source, place.url).done()
    equal((done["files"], done["skipped"], done["sent_bytes"]), (1, 2, 5), "one has changed")
    # the same size, another time: the level decides
    os.utime(f"{place.source}/a", (5, 5))
    for level, files in (("exists", 0), ("size", 0), ("mtime", 1)):
        done = works("--json", "sync", f"--compare={level}", place.source, place.url).done()
        equal(done["files"], files, level)
    # without --delete nothing goes
    os.unlink(f"{place.source}/b")
    works("sync", place.source, place.url)
    check(os.path.exists(f"{place.export}/t/b"))


@case
def what_is_removed(top):
    place = Place(top)
    for name in ("keep", "gone/x/y", "gone/z", "other", "kept.o"):
        os.makedirs(os.path.dirname(f"{place.source}/{name}"), exist_ok=True)
        open(f"{place.source}/{name}", "w").close()
    place.both()
    shutil.rmtree(f"{place.source}/gone")
    os.unlink(f"{place.source}/kept.o")
    for names, where in (((place.source, place.url), f"{place.export}/t"), ((place.url, place.back), place.back)):
        done = fails(rftptest.REFUSED, "sync", "--delete", "--max-delete=3", "--exclude=*.o", *names, says=b"max-delete")
        check(os.path.exists(f"{where}/gone/x/y"), "nothing was removed")
        works("sync", "--delete", "--max-delete=4", "--exclude=*.o", *names)
        equal(sorted(os.listdir(where)), ["keep", "kept.o", "other"], done)


def fill(where, *names):
    for name in names:
        os.makedirs(os.path.dirname(f"{where}/{name}"), exist_ok=True)
        with open(f"{where}/{name}", "w") as f:
            f.write(name)


def files(where):
    return sorted(os.path.relpath(os.path.join(at, name), where) for at, _, names in os.walk(where) for name in names)


@case
def what_is_excluded_stays(top):
    """Also in a directory that would go, or make way, as a whole; that stays then, as with rsync(1)."""
    place = Place(top)
    os.mkdir(place.source)
    fill(place.source, "new", "way")
    for names, where in (((place.source, place.url), f"{place.export}/t"), ((place.url, place.back), place.back)):
        fill(where, "gone/a/x", "gone/.git/y", "old/deep/a.o", "old/deep/a.c", "old/deep/er/b", "old/.git/x", "old/empty/z")
        os.utime(where, (5, 5))
        rules = ["--exclude=*.o", "--exclude=/old/.git/"]
        plan = works("sync", "-n", "--delete", *rules, *names).out
        done = works("sync", "--delete", *rules, *names)
        equal(files(where), ["new", "old/.git/x", "old/deep/a.o", "way"], plan, done)
        check(not os.path.exists(f"{where}/old/empty") and not os.path.exists(f"{where}/old/deep/er"), "a directory stays")
        for name in ("/old/deep/a.c", "/old/empty", "/gone"):
            check(name.encode() in plan, name, "is not in the plan:", plan)
        check(b"a.o" not in plan and b".git" not in plan, plan)
        os.unlink(f"{where}/way")
        fill(where, "way/a.o", "way/b")
        for option in ("--delete", "--compare=size"):
            fails(rftptest.KIND, "sync", option, "--exclude=*.o", *names, says="in the way")
            check(os.path.exists(f"{where}/way/a.o"), "what is excluded went, in the way")
        works("sync", *names)
        check(os.path.isfile(f"{where}/way"), "nothing is excluded, and it is in the way")
        works("sync", "--delete", *names)
        equal(files(where), ["new", "way"], "without rules")


@case
def what_is_not_named_stays(top):
    """--files-from: of a directory on the way to a name nothing else is copied or removed."""
    place = Place(top)
    os.mkdir(place.source)
    fill(place.source, "d/f", "d/g", "d/e/h", "other", "file/f")
    with open(f"{top}/list", "w") as f:
        f.write("d/f\nd/e\ngone/deep/x\nfile/f\n")
    for names, where in (((place.source, place.url), f"{place.export}/t"), ((place.url, place.back), place.back)):
        fill(where, "gone/deep/x", "gone/deep/y", "file")
        source = place.source if where != place.back else f"{place.export}/t"
        fill(source, "d/g", "other")
        works("sync", "--delete", f"--files-from={top}/list", *names)
        equal(files(where), ["d/e/h", "d/f", "file/f", "gone/deep/y"], "what came and went")
        shutil.rmtree(f"{where}/d")
        fill(where, "d/g", "d/f/in the way")
        works("sync", f"--files-from={top}/list", *names)
        equal(files(where), ["d/e/h", "d/f", "d/g", "file/f", "gone/deep/y"], "once more")
        # a directory that is on the way there, and a file here
        shutil.rmtree(f"{where}/file")
        fill(where, "file/f", "file/z")
        shutil.rmtree(f"{source}/file")
        fill(source, "file")
        works("sync", "--delete", f"--files-from={top}/list", *names)
        equal(files(where), ["d/e/h", "d/f", "d/g", "file/z", "gone/deep/y"], "a file in the place of a directory")
        os.unlink(f"{source}/file")
        fill(source, "file/f")
        shutil.rmtree(f"{where}/file")
        shutil.rmtree(f"{where}/gone")
        shutil.rmtree(f"{where}/d")
        works("sync", f"--files-from={top}/list", *names)
    # a directory without what is in it
    with open(f"{top}/list", "w") as f:
        f.write("none/\nway/\nnew/\n")
    for i, (names, where) in enumerate((((place.source, place.url), f"{place.export}/t"), ((place.url, place.back), place.back))):
        source = f"{place.export}/t" if i else place.source
        for side in (source, where):
            for name in os.listdir(side):
                path = f"{side}/{name}"
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        fill(source, "way", "new/x")
        fill(where, "none/x", "way/x/y")
        plan = rftp("sync", "-n", "--delete", f"--files-from={top}/list", *names).out
        check(b"rm" not in plan and b"mkdir" in plan, "a plan of directories alone", plan)
        for options in ([], ["--delete"]):
            rftp("sync", *options, f"--files-from={top}/list", *names)
            equal(files(where), ["none/x", "way/x/y"], "what is in a directory that is named alone", options)
            equal(os.listdir(f"{where}/new"), [], "a directory that comes alone")


@case
def mode_and_time_alone(top):
    """What is the same but for its mode, or a link but for its time, gets that, and is not copied."""
    place = Place(top)
    os.makedirs(f"{place.source}/d")
    for name in ("a", "d/b", "d/c"):
        with open(f"{place.source}/{name}", "w") as f:
            f.write(name * 1000)
    os.symlink("a", f"{place.source}/l")
    place.both()
    os.chmod(f"{place.source}/a", 0o600)
    os.chmod(f"{place.source}/d/b", 0)
    os.chmod(f"{place.source}/d/c", 0o4755)
    os.utime(f"{place.source}/l", (7, 7), follow_symlinks=False)
    inode = os.stat(f"{place.export}/t/a").st_ino
    plan = works("sync", "-n", place.source, place.url).out
    equal(sorted(plan.splitlines()), [b"chmod 0000 /t/d/b", b"chmod 0600 /t/a", b"chmod 0755 /t/d/c",
                                      b"touch -h -d @7.000000000 /t/l"], "the plan")
    for names, where in (((place.source, place.url), f"{place.export}/t"), ((place.url, place.back), place.back)):
        done = works("--json", "sync", *names).done()
        equal((done["files"], done["sent_bytes"], done["skipped"]), (0, 0, 4), where)
        modes = [os.stat(f"{where}/{name}").st_mode & 0o7777 for name in ("a", "d/b", "d/c")]
        # a daemon gives nobody set-user-ID
        equal(modes, [0o600, 0, 0o755], "modes", where)
        equal(os.lstat(f"{where}/l").st_mtime, 7, "the link's time", where)
        check(works("sync", "-n", *names).out == b"", "nothing is left to do", where)
    equal(os.stat(f"{place.export}/t/a").st_ino, inode, "it is the file that was there")
    # one that cannot be changed keeps none of the others back
    if ROOT:
        os.chown(f"{place.back}/a", NOBODY, NOBODY)
        os.chmod(f"{place.export}/t/a", 0o640)
        os.chmod(f"{place.export}/t/d/b", 0o640)
        os.chmod(top, 0o755)
        for name in ("", "/d", "/d/b"):
            os.chown(f"{place.back}{name}", 4711, 4711)
        done = rftp("sync", place.url, place.back, user=4711)
        check(done.code != OK and b"/a:" in done.err and b"/b:" not in done.err, done)
        equal(os.stat(f"{place.back}/d/b").st_mode & 0o777, 0o640, "the other file")


@case
def the_directories_themselves(top):
    """The destination has mode and time of the source, whether it was there or not, and whatever changed."""
    place = Place(top)
    ways = ((place.source, place.url, f"{place.export}/t"), (f"{place.url}", place.back, place.back))

    def same(*what):
        for names in ways:
            works("sync", "--delete", *names[:2])
            st = [os.stat(where) for where in (place.source, names[2])]
            equal([(s.st_mode, s.st_mtime_ns) for s in st][1], (st[0].st_mode, st[0].st_mtime_ns), *what, names[2])
            plan = works("sync", "-n", "--delete", *names[:2])
            equal(plan.out, b"", *what, "nothing is left to do")

    os.mkdir(place.source)
    with open(f"{place.source}/a", "w") as f:
        f.write("a")
    os.chmod(place.source, 0o2751)
    os.utime(place.source, ns=(5, 1234567890123456789))
    same("new")
    os.utime(f"{place.export}/t", (9, 9))
    os.chmod(place.back, 0o700)
    same("of another time, or mode")
    os.unlink(f"{place.source}/a")
    os.utime(place.source, ns=(5, 5))
    same("something was removed")
    os.chmod(place.source, 0o555)  # who is not root could not work in its copy
    same("read-only")
    os.chmod(place.source, 0o755)
    with open(f"{place.source}/b", "w") as f:
        f.write("b")
    os.chmod(place.source, 0o555)
    same("read-only, and something new")
    os.chmod(place.source, 0o755)
    os.utime(place.source, (3, 3))
    plan = works("sync", "-n", place.source, place.url).out
    equal(plan.splitlines(), [b"chmod 0755 /t/", b"touch -c -d @3.000000000 /t/"], "the plan")
    works("-b", "-", place.url, input=plan)
    st = os.stat(f"{place.export}/t")
    equal((st.st_mode & 0o7777, st.st_mtime), (0o755, 3), "after the plan")
    # the top of an export is its administrator's; other levels look at neither
    before = os.stat(place.export)
    works("sync", f"{place.source}/", place.daemon.url("/"))
    equal((os.stat(place.export).st_mode, works("sync", "-n", f"{place.source}/", place.daemon.url("/")).out), (before.st_mode, b""),
          "the top")
    os.utime(place.source, (4, 4))
    for level in ("size", "exists"):
        works("sync", "--compare", level, place.source, place.url)
        equal(os.stat(f"{place.export}/t").st_mtime, 3, level)
    # nor is what it takes to work in it left behind
    with open(f"{top}/list", "w") as f:
        f.write("c2\n")
    for i, option in enumerate(("--compare=size", "--compare=exists", f"--files-from={top}/list")):
        fill(place.source, f"c{i}")
        for names in ways:
            os.chmod(names[2], 0o500)
            works("sync", option, *names[:2])
            check(os.path.exists(f"{names[2]}/c{i}"), "it was copied", names)
            equal(os.stat(names[2]).st_mode & 0o7777, 0o500, "the mode that it had", option, names)


@case
def by_sums(top):
    """--compare=digest: what has another time alone gets that; what has the same time and other bytes is copied."""
    place = Place(top)
    os.makedirs(f"{place.source}/d")
    for name in ("a", "b", "d/c", "d/e"):
        with open(f"{place.source}/{name}", "w") as f:
            f.write(name * 1000)
    place.both()
    for names, where in (((place.source, place.url), f"{place.export}/t"), ((place.url, place.back), place.back)):
        source = f"{place.export}/t" if where == place.back else place.source
        os.utime(f"{source}/a", (5, 5))
        st = os.stat(f"{source}/d/c")
        with open(f"{source}/d/c", "r+") as f:
            f.write("X")
        os.utime(f"{source}/d/c", ns=(st.st_mtime_ns, st.st_mtime_ns))
        os.chmod(f"{source}/d/e", 0o640)
        done = works("--json", "sync", *names).done() if where == place.back else None
        check(done is None or done["files"] == 1, "by size and time only the one with another time is copied", done)
        if done:
            os.utime(f"{where}/a", (7, 7))
        done = works("--json", "sync", "--compare=digest", *names).done()
        equal((done["files"], done["sent_bytes"], done["skipped"]), (1, 3000, 3), where)
        alike(picture(source), picture(where), where)
        equal(works("-n", "sync", "--compare=digest", *names).out, b"", "nothing is left to do")


@case
def renames(top):
    place = Place(top)
    big = rng().randbytes(3 << 20)
    os.makedirs(f"{place.source}/d/e")
    for name, data in (("big", big), ("d/x", b"x" * 5000), ("d/e/y", b"y" * 5000), ("same", b"s" * 100), ("twin", b"s" * 100),
                       ("nothing", b""), ("stays", b"stays")):
        with open(f"{place.source}/{name}", "wb") as f:
            f.write(data)
    place.both()
    os.makedirs(f"{place.source}/new/deep")
    os.rename(f"{place.source}/big", f"{place.source}/new/deep/it's\nbig")
    os.rename(f"{place.source}/d/x", f"{place.source}/d/e/x")
    os.rename(f"{place.source}/d/e/y", f"{place.source}/y")
    os.rename(f"{place.source}/same", f"{place.source}/same2")
    os.rename(f"{place.source}/nothing", f"{place.source}/empty")
    os.chmod(f"{place.source}/y", 0o600)
    with open(f"{place.source}/other", "wb") as f:  # of a size that something else had
        f.write(b"z" * 5000)
    places = (((place.source, place.url), f"{place.export}/t"), ((place.url, place.back), place.back))
    inodes = {where: os.stat(f"{where}/big").st_ino for _, where in places}
    shutil.copytree(f"{place.export}/t", f"{place.export}/plain", copy_function=shutil.copy2)
    shutil.copytree(place.back, f"{top}/replayed", copy_function=shutil.copy2)
    options = ("--delete", "--detect-renames", "sync")
    # the plans, on copies
    for target, where, source in ((place.daemon.url("plain"), f"{place.export}/plain", place.source),
                                  (f"{top}/replayed", f"{top}/replayed", place.url)):
        if source == place.url:  # it becomes what the source is below
            continue
        plan = works("-n", *options, source, target).out
        check(plan.count(b"mv -n") == 4 and b"put -r" in plan, plan)
        with open(f"{top}/plan", "wb") as f:
            f.write(plan)
        works("-b", f"{top}/plan", place.daemon.url())
        alike(picture(place.source), picture(where), "the plan's work", plan)
    for names, where in places:
        if where == place.back:
            plan = works("-n", *options, place.url, f"{top}/replayed").out
            check(plan.count(b"!") >= 4 and plan.count(b"mv -n") == 4, plan)
            with open(f"{top}/plan", "wb") as f:
                f.write(plan)
            works("-b", f"{top}/plan", place.daemon.url())
            alike(picture(place.source), picture(f"{top}/replayed"), "the plan's work here", plan)
        without = works("-n", "--detect-renames", "sync", *names).out
        check(b"mv" not in without, "nothing is renamed without --delete", without)
        done = works("--json", *options, *names).done()
        equal((done["files"], done["sent_bytes"]), (2, 5000), "what was copied: the new file, and the empty one", where)
        alike(picture(place.source), picture(where), where)
        equal(os.stat(f"{where}/new/deep/it's\nbig").st_ino, inodes[where], "it is the file that was there")


@case
def a_plan_can_be_replayed(top):
    place = Place(top)
    grow(place.source)
    place.both()
    grow(place.source)
    before = picture(f"{place.export}/t")
    plan = works("sync", "-n", "--delete", place.source, place.url).out
    equal(picture(f"{place.export}/t"), before, "nothing was done")
    with open(f"{top}/plan", "wb") as f:
        f.write(plan)
    works("-b", f"{top}/plan", place.daemon.url(""))
    alike(picture(place.source), picture(f"{place.export}/t"), "what the plan did", plan)
    with open(f"{top}/plan", "wb") as f:
        f.write(works("sync", "-n", "--delete", place.url, place.back).out)
    events = works("--json", "sync", "-n", "--delete", place.url, place.back).events()
    check({"copy", "remove"} >= {e["action"] for e in events if e["event"] == "plan"} - {"touch", "chmod"}, events)
    works("-b", f"{top}/plan", place.daemon.url(""))
    alike(picture(place.source), picture(place.back), "what the plan did here")
    # a name that looks like a flag is a name, in a plan too: "put -r /" would send all of this host
    os.chdir(top)
    os.makedirs("dash/-r")
    for name in ("-r", "-n", "-"):
        make_file(f"dash/{name}/x" if os.path.isdir(f"dash/{name}") else f"dash/{name}", 30)
    os.chdir("dash")
    for arguments in (["-r", "--", "-r", "-n", place.daemon.url("dash/")], ["sync", "--", "-r", place.daemon.url("dash/-r")]):
        with open(f"{top}/plan", "wb") as f:
            f.write(works("-n", *arguments).out)
        works("-b", f"{top}/plan", place.daemon.url(""))
    check(sorted(os.listdir(f"{place.export}/dash")) == ["-n", "-r"], os.listdir(f"{place.export}/dash"))
    same_files("-r/x", f"{place.export}/dash/-r/x")
    out = works("-n", "-r", place.source, place.daemon.url("copy/")).out
    check(out.startswith(b"put -r ") and not os.path.exists(f"{place.export}/copy"), out)


@case
def links_that_are_followed(top):
    """--links=follow: what they lead to, the first time and whenever that has changed."""
    place = Place(top)
    fill(place.source, "real/f", "real/g")
    os.symlink("real", f"{place.source}/directory")
    os.symlink("real/f", f"{place.source}/file")
    for i in range(3):
        with open(f"{place.source}/real/f", "a") as f:
            f.write("more")
        place.both("--links=follow")
        for copy in (f"{place.export}/t", place.back):
            subprocess.run(["diff", "-r", place.source, copy], check=True)
            check(not os.path.islink(f"{copy}/file") and not os.path.islink(f"{copy}/directory"), i)
    # and from a server that has the links
    works("sync", "--links=follow", place.source, place.url)
    os.rename(place.source, f"{place.export}/linked")
    for i in range(2):
        works("sync", "--links=follow", place.daemon.url("linked"), f"{top}/again")
        subprocess.run(["diff", "-r", f"{place.export}/linked", f"{top}/again"], check=True)
        with open(f"{place.export}/linked/real/f", "a") as f:
            f.write("more")


@case
def what_can_not_be_read_keeps_all(top):
    if not ROOT:
        skip("only root can be somebody else")
    os.chmod(top, 0o755)
    place = Place(top)
    os.chmod(place.export, 0o777)
    for name in ("a", "shut/b", "gone"):
        os.makedirs(os.path.dirname(f"{place.source}/{name}"), exist_ok=True)
        open(f"{place.source}/{name}", "w").close()
    works("sync", place.source, place.url)
    os.unlink(f"{place.source}/gone")
    os.chmod(f"{place.source}/shut", 0)
    done = rftp("sync", "--delete", place.source, place.url, user=NOBODY)
    check(done.code != OK and b"nothing is removed" in done.err, done)
    check(os.path.exists(f"{place.export}/t/gone") and os.path.exists(f"{place.export}/t/shut/b"))


@case
def in_the_shell(top):
    place = Place(top)
    grow(place.source)
    works("-c", f"set delete on; mirror -R {place.source} t; mirror t {place.back}", place.daemon.url(""))
    alike(picture(place.back), picture(place.source))


@case
def wrong_use(top):
    fails(2, "sync", top)
    fails(2, "sync", top, top)
    fails(2, "sync", "rftp://a/b", "rftp://c/d")
    fails(2, "--compare=nothing", "sync", top, "rftp://a/b")


rftptest.main()
