#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sync does with files whose bytes are the same: owner, group, attributes, lists, hard links and modes
are brought up to date, and nothing is sent again.  Compared with what rsync finds different."""

import ctypes
import os
import select

import rftptest
from rftptest import (CHANGED, NOBODY, OK, ROOT, Daemon, Proxy, attributes_work, case, check, equal, lists_work, make_file,
                      needs, rng, run, scaled, works)


class Place:
    """A tree that was synced once, to a server and back from it."""

    def __init__(self, top, *flags, **options):
        os.chmod(top, 0o755)
        self.source, self.export, self.back = f"{top}/source", f"{top}/export", f"{top}/back"
        os.makedirs(f"{self.source}/d/e")
        os.mkdir(self.export)
        for i, name in enumerate(("a", "b", "d/c", "d/e/it's\n", "z")):
            make_file(f"{self.source}/{name}", 1000 * (i + 1))
        os.symlink("nowhere", f"{self.source}/link")
        self.flags = flags
        self.daemon = Daemon(self.export, **options)
        self.url = self.daemon.url("t")
        self.copies = (f"{self.export}/t", self.back)
        self.both()

    def ways(self):
        return ((self.source, self.url), (self.url, self.back))

    def both(self, *more, **options):
        return [works("--json", "sync", *self.flags, *more, *names, **options) for names in self.ways()]

    def same(self, letters, *what):
        for copy in self.copies:
            equal(run("rsync", f"-naic{letters}", "--delete", f"{self.source}/", f"{copy}/"), b"",
                  "what rsync finds in", copy, *what)

    def up_to_date(self, letters, *what):
        """Nothing is sent; then all is the same; and once more there is nothing to do."""
        for result in self.both():
            done = result.done()
            equal((done["bytes"], done["sent_bytes"], done["errors"], result.err), (0, 0, 0, b""), *what)
            check("H" in letters or not done["files"], done, *what)  # a link counts as a file
        self.same(letters, *what)
        for names in self.ways():
            equal(works("sync", "-n", *self.flags, *names).out, b"", "once more", *what)

    def inodes(self):
        return [[os.stat(f"{copy}/{name}").st_ino for name in ("a", "b", "d/c", "z")] for copy in self.copies]


@case
def modes_and_times(top):
    needs("rsync")
    place = Place(top, "-a")
    was = place.inodes()
    os.chmod(f"{place.source}/a", 0o600)
    os.chmod(f"{place.source}/d", 0o711)
    os.chmod(place.source, 0o750)
    place.up_to_date("", "modes")
    equal(place.inodes(), was, "the files are those that were there")


@case
def owners(top):
    needs("rsync")
    if not ROOT:
        rftptest.skip("only root may give files to others")
    place = Place(top, "-a")
    was = place.inodes()
    for name, uid, gid in (("a", 1, -1), ("b", -1, 1), ("d", NOBODY, NOBODY), ("d/c", 54321, 54322), ("", 1, 1)):
        os.chown(f"{place.source}/{name}", uid, gid)
    os.chmod(f"{place.source}/a", 0o600)
    # without the letters they are nobody's affair
    for names in place.ways():
        equal(works("--json", "sync", *names).done()["files"], 0)
    equal(os.stat(f"{place.export}/t/a").st_uid, 0, "owner, without -o")
    place.up_to_date("", "owners")
    equal(place.inodes(), was, "the files are those that were there")
    # a link has no bytes, and is made anew
    os.lchown(f"{place.source}/link", 1, 1)
    for result in place.both():
        equal(result.done()["sent_bytes"], 0)
    place.same("", "the owner of a link")


@case
def numbers(top):
    needs("rsync")
    if not ROOT:
        rftptest.skip("only root may give files to others")
    place = Place(top, "-a", "--numeric-ids")
    os.chown(f"{place.source}/d/c", NOBODY, 12345)
    place.up_to_date("", "by number")
    equal(os.stat(f"{place.back}/d/c").st_gid, 12345, "group")


@case
def owners_that_are_not_ours_to_give(top):
    """Who may give nothing away is not told so again and again."""
    if not ROOT:
        rftptest.skip("only root may have files of others")
    place = Place(top)
    theirs = f"{top}/theirs"
    os.mkdir(theirs)
    os.chown(theirs, NOBODY, NOBODY)
    daemon = Daemon(theirs, user=NOBODY)
    check(b"owner is not kept" in works("sync", "-a", place.source, daemon.url("t")).err, "it is said at first")
    for name in ("a", "d/c"):
        os.chown(f"{place.source}/{name}", 1, 1)
    result = works("--json", "sync", "-a", place.source, daemon.url("t"))
    equal((result.done()["files"], result.err), (0, b""), "nothing can be done")
    mine = f"{top}/mine"
    os.mkdir(mine)
    os.chown(mine, NOBODY, NOBODY)
    works("sync", "-a", place.url, f"{mine}/t", user=NOBODY)
    result = works("--json", "sync", "-a", place.url, f"{mine}/t", user=NOBODY)
    equal((result.done()["files"], result.err), (0, b""), "nothing can be done here")


@case
def attributes(top):
    needs("rsync")
    attributes_work(top)
    place = Place(top, "-a", "-X")
    was = place.inodes()
    os.setxattr(f"{place.source}/a", "user.one", b"1")
    os.setxattr(f"{place.source}/a", "user.two", bytes(3000))
    os.setxattr(f"{place.source}/d", "user.directory", b"")
    os.setxattr(place.source, "user.top", b"top")
    for names in place.ways():
        equal(works("sync", "-n", "-a", *names).out, b"", "nothing without -X")
    place.up_to_date("X", "new attributes")
    os.setxattr(f"{place.source}/a", "user.one", b"2")
    os.removexattr(f"{place.source}/a", "user.two")
    os.removexattr(f"{place.source}/d", "user.directory")
    os.setxattr(f"{place.source}/b", "user.one", b"1")
    place.up_to_date("X", "changed attributes")
    # what the destination has alone goes
    for copy in place.copies:
        os.setxattr(f"{copy}/d/c", "user.alone", b"1")
    place.up_to_date("X", "attributes of the destination")
    equal(place.inodes(), was, "the files are those that were there")


@case
def lists(top):
    needs("rsync")
    lists_work(top)
    place = Place(top, "-a", "-A")
    was = place.inodes()
    run("setfacl", "-m", "u:1:r,g:2:rx", f"{place.source}/a")
    run("setfacl", "-m", "u:1:rwx", "-m", "d:u:1:rwx", f"{place.source}/d")
    run("setfacl", "-m", "u:2:rx", place.source)
    place.up_to_date("A", "new lists")
    run("setfacl", "-m", "u:1:rw", f"{place.source}/a")
    run("setfacl", "-b", f"{place.source}/d")
    os.chmod(f"{place.source}/b", 0o640)
    os.chmod(f"{place.source}/a", 0o640)
    place.up_to_date("A", "changed lists")
    for copy in place.copies:
        run("setfacl", "-m", "u:1:r", f"{copy}/z")
    place.up_to_date("A", "a list of the destination")
    equal(place.inodes(), was, "the files are those that were there")


def link(place, first, *names):
    """Other names of a file, in the place of what has them."""
    for name in names:
        path = f"{place.source}/{name}"
        if os.path.lexists(path):
            os.unlink(path)
        os.link(f"{place.source}/{first}", path)


@case
def hard_links(top):
    needs("rsync")
    place = Place(top, "-a", "-H")
    for name in ("b", "d/c", "z"):
        with open(f"{place.source}/a", "rb") as a, open(f"{place.source}/{name}", "wb") as other:
            other.write(a.read())
        os.utime(f"{place.source}/{name}", (7, 7))
    os.utime(f"{place.source}/a", (7, 7))
    place.both()
    place.same("H", "four files of one content")
    link(place, "a", "b", "d/c", "z")
    place.up_to_date("H", "now they are one")
    equal([len(set(inodes)) for inodes in place.inodes()], [1, 1], "inodes")
    # a new name of it, and one whose own file has changed
    link(place, "a", "d/new")
    for result in place.both():
        equal(result.done()["sent_bytes"], 0, "a name behind the first one is a link")
    place.same("H", "a new name")
    for copy in place.copies:
        os.unlink(f"{copy}/d/c")
        make_file(f"{copy}/d/c", 500)
    place.both()
    place.same("H", "one that was another file")
    # all of them anew
    os.unlink(f"{place.source}/a")
    make_file(f"{place.source}/a", 50000)
    link(place, "a", "b", "d/c", "z", "d/new")
    sent = [result.done()["sent_bytes"] for result in place.both()]
    equal(sent, [50000, 50000], "it is sent once")
    place.same("H", "another file")
    equal([result.done()["files"] for result in place.both()], [0, 0], "once more")


@case(seconds=120)
def hard_links_of_many_requests(top):
    """A get asks for some thousand names at a time: links lead from one request to another."""
    needs("rsync")
    place = Place(top, "-a", "-H")
    count = scaled(1500, 1500)
    for i in range(count):
        with open(f"{place.source}/{i:04}-" + "n" * 40, "w") as f:
            f.write("same")
        os.utime(f"{place.source}/{i:04}-" + "n" * 40, (7, 7))
    place.both()
    names = sorted(n for n in os.listdir(place.source) if n.endswith("nnn"))
    for i in range(2, count):
        os.unlink(f"{place.source}/{names[i]}")
        os.link(f"{place.source}/{names[i % 2]}", f"{place.source}/{names[i]}")
    place.up_to_date("H", "two files")


@case(seconds=120)
def links_of_a_directory_fill_a_request(top):
    """A new directory has more links to files of an earlier request than any request has room for."""
    needs("rsync")
    place = Place(top, "-a", "-H")
    names = [f"{i:03}-" + "n" * 200 for i in range(300)]
    for name in ("e", "ea"):
        os.mkdir(f"{place.source}/{name}")
    for name in names:
        make_file(f"{place.source}/e/{name}", 10)
    place.both()
    # behind the links' files, so that the directory is in a request that has none of them; and longer than
    # what these may leave of its room
    for name in names:
        make_file(f"{place.source}/ea/{name}", 10)
    links = f"{place.source}/" + "f" * 250
    os.mkdir(links)
    for name in names:
        os.link(f"{place.source}/e/{name}", f"{links}/{name}")
    place.both(timeout=60)
    place.same("", "each is there")
    # what came as a file becomes a link then
    place.both()
    place.same("H", "the links, too")


@case(seconds=120)
def random_trees(top):
    needs("rsync")
    attributes_work(top)
    lists_work(top)
    if not ROOT:
        rftptest.skip("only root may give files to others")
    place = Place(top, "-a", "-H", "-A", "-X", "--delete")
    for i in range(scaled(6)):
        names = [os.path.relpath(f"{where}/{name}", place.source)
                 for where, directories, files in os.walk(place.source) for name in directories + files]
        for name in names:
            path = f"{place.source}/{name}"
            what = rng().choice(["owner", "mode", "attribute", "list", "link", "time", "bytes", "new", "keep", "keep"])
            if not os.path.lexists(path) or os.path.islink(path):
                continue
            is_file = os.path.isfile(path)
            if what == "owner":
                os.chown(path, rng().choice([0, 1, NOBODY, 4242]), rng().choice([0, 1, 4242]))
            elif what == "mode":
                os.chmod(path, rng().choice([0o700, 0o755, 0o711] if not is_file else [0o600, 0o444, 0o755]))
            elif what == "attribute":
                os.setxattr(path, f"user.{rng().choice('ab')}", rng().randbytes(rng().choice([0, 1, 100])))
            elif what == "list":
                run("setfacl", *rng().choice([["-b"], ["-m", "u:1:rx"], ["-m", "g:4242:r,u:1:rwx"]]), path)
            elif what == "time":
                os.utime(path, ns=(1, rng().randrange(10**18)))
            elif what == "bytes" and is_file:
                with open(path, "ab") as f:
                    f.write(rng().randbytes(rng().choice([1, 70000])))
            elif what == "new" and not is_file:
                make_file(f"{path}/new{i}", rng().choice([0, 10, 5000]))
            elif what == "link" and is_file:
                other = f"{place.source}/{rng().choice(names)}"
                if os.path.isfile(other) and not os.path.islink(other) and other != path:
                    os.unlink(path)
                    os.link(other, path)
        place.both()
        place.same("HAX", i)
        for result in place.both():
            done = result.done()
            equal((done["files"], done["sent_bytes"], done["errors"], result.err), (0, 0, 0, b""), "once more", i)
        for names in place.ways():
            equal(works("sync", "-n", *place.flags, *names).out, b"", "a plan of nothing", i)


@case
def a_plan(top):
    """It is printed what would be done; as far as there are commands for it, they do the same."""
    needs("rsync")
    attributes_work(top)
    if not ROOT:
        rftptest.skip("only root may give files to others")
    place = Place(top, "-a", "-X")
    os.chown(f"{place.source}/a", 1, 1)
    os.chown(f"{place.source}/d", 1, 1)
    os.setxattr(f"{place.source}/b", "user.b", b"1")
    for names in place.ways():
        plan = works("sync", "-n", *place.flags, *names).out
        check(b"chown" in plan and b"/b" in plan, plan)
        with open(f"{top}/plan", "wb") as f:
            f.write(plan)
        works(*place.flags, "-b", f"{top}/plan", place.daemon.url(""))
    place.same("X", "what the plan did")


IN_CLOSE_NOWRITE = 16


def was_read(path):
    """A descriptor that can be read from once somebody has read the file."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    check(fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(path), IN_CLOSE_NOWRITE) >= 0, "inotify", ctypes.get_errno())
    return fd


def rewritten_meanwhile(top, way, *letters):
    """A file of the destination is the same but for its time (and its owner), and gets other bytes, as many, after its
    sum was taken and before its time is set; a large one behind it takes a while.  -> the sync's result,
    whether the moment was hit"""
    source, export, back = f"{top}/source", f"{top}/export", f"{top}/back"
    for directory in (source, f"{export}/t", back):
        os.makedirs(directory)
    daemon = Daemon(export)
    proxy = Proxy(daemon.port)
    here, there = (source, f"{export}/t") if way == "put" else (f"{export}/t", back)
    names = [source, proxy.url("t")] if way == "put" else [proxy.url("t"), back]
    for directory, ns in ((here, 5 * 10**17 + 1), (there, 6 * 10**17 + 2)):
        with open(f"{directory}/a", "w") as f:
            f.write("the same")
        with open(f"{directory}/z", "w") as f:
            f.truncate(1 << 30)
        for name in ("a", "z"):
            os.utime(f"{directory}/{name}", ns=(ns, ns))
    if letters and ROOT:
        os.chown(f"{there}/a", 1, 1)
    watch = was_read(f"{there}/a")
    client = rftptest.start_rftp("--compare=digest", *letters, "sync", *names)
    check(select.select([watch], [], [], 20 * rftptest.PATIENCE)[0], "it was not compared")
    proxy.held.set()
    with open(f"{there}/a", "w") as f:
        f.write("another.")
    proxy.release()
    result = rftptest.finish(client)
    os.close(watch)
    proxy.close()
    daemon.stop()
    st = os.stat(f"{there}/a")
    with open(f"{there}/a") as f:
        content = f.read()
    print(f"# {way} {letters}: {content!r} {st.st_mtime_ns} exit {result.code}")
    check(content == "the same" or st.st_mtime_ns != 5 * 10**17 + 1, way, letters, "other bytes have the source's time")
    # written once more after it was set: what this is not about
    return result, content, result.code != OK or content == "the same"


def must_be_seen(top, *letters):
    for way in ("put", "get"):
        for i in range(10):
            result, content, hit = rewritten_meanwhile(f"{top}/{way}{i}", way, *letters)
            if hit:
                break
        check(hit, way, letters, "the moment was never hit")
        yield way, result, content


@case(seconds=120)
def rewritten_after_it_was_compared(top):
    """With the source's time it would be taken for the same from then on: it is copied."""
    for way, result, content in must_be_seen(top):
        equal((result.code, content), (OK, "the same"), way, result.err)


@case(seconds=120)
def rewritten_before_it_gets_its_owner(top):
    """The same where more than mode and time is set, which happens while files are copied: it is told."""
    if not ROOT:
        rftptest.skip("only root may give files to others")
    for way, result, content in must_be_seen(top, "-a"):
        equal((result.code, content), (CHANGED, "another."), way, result.err)
        check(b"was changed after it was compared" in result.err, way, result.err)


rftptest.main()
