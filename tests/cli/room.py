#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether there is room is asked before anything moves: one file and trees, put, get, sync, between two daemons.

What does not fit is refused with the file system, what it has and what is needed, and nothing of it is there;
what fits, as holes need nothing, files are replaced or the rest of them is there already, is not refused."""

import contextlib
import os
import subprocess

import rftptest
from rftptest import LOST, NO_SPACE, ROOT, Daemon, Proxy, case, check, equal, fails, leftovers, make_file, rng, \
    same_files, skip, tree, wait_until, works

M = 1 << 20
ROOM = 16  # MiB of the small file system
ANYWHERE = "127.0.0.0/8 ports=1-65535"


@contextlib.contextmanager
def small(where, options=f"size={ROOM}m"):
    if not ROOT:
        skip("a small tmpfs needs root")
    os.makedirs(where)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", where], capture_output=True, check=False)
    if done.returncode:
        skip(f"no tmpfs can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield where
    finally:
        rftptest.kill_all()
        subprocess.run(["umount", "-l", where], check=True)


class Way:
    """A large side and one with little room, and how things go from one to the other."""

    def __init__(self, top, name, where):
        self.name, self.where = name, where
        self.large = f"{top}/large-{name}"
        os.makedirs(self.large)
        self.daemons = []
        if name == "put":
            self.to = self.daemon(where, "rw").url("")
            self.source = self.large
        elif name == "get":
            self.source = self.daemon(self.large, "ro").url("").rstrip("/")
            self.to = where + "/"
        else:
            self.source = self.daemon(self.large, "ro", "--copies-to", ANYWHERE).url("").rstrip("/")
            self.to = self.daemon(where, "rw").url("")

    def daemon(self, *arguments):
        self.daemons.append(Daemon(*arguments))
        return self.daemons[-1]

    def end(self):
        for daemon in self.daemons:
            daemon.stop()
        for name in os.listdir(self.where):
            subprocess.run(["rm", "-r", f"{self.where}/{name}"], check=True)

    def refused(self, *arguments, needed):
        """Nothing has come, and the message has the numbers."""
        before = tree(self.where)
        result = fails(NO_SPACE, "--json", *arguments)
        all_of(result, "the file system of", "has room for", f"{needed} are needed")
        equal(tree(self.where), before, self.name, "what is there after a refusal")
        equal(leftovers(self.where), [], self.name, "left behind")
        equal(result.done()["sent_bytes"] <= M, True, self.name, "went, but for what is sent ahead:", result.done())


def many(where, count, size):
    for i in range(count):
        os.makedirs(f"{where}/d{i % 3}", exist_ok=True)
        make_file(f"{where}/d{i % 3}/{i}", size)


def sparse(path, count):
    """So many MiB of data, in 64 of them and more."""
    with open(path, "wb") as f:
        for at in range(count):
            f.seek(10 * at * M)
            f.write(rng().randbytes(M))
        f.truncate(max(64, 10 * count) * M)
    if os.stat(path).st_blocks * 512 > (count + 1) * M:
        skip("no holes in files here")


def all_of(result, *says):
    for word in says:
        check(word.encode() in result.err, "the message does not say", word, result)


def each_way(top):
    with small(f"{top}/small") as where:
        for name in ("put", "get", "third"):
            way = Way(top, name, where)
            yield way
            way.end()


@case(seconds=120)
def one_file(top):
    for way in each_way(top):
        make_file(f"{way.large}/f", 17 * M)
        way.refused(f"{way.source}/f", way.to, needed="17.0 MiB")
        way.refused(f"{way.source}/f", f"{way.to}g", needed="17.0 MiB")
        # what it replaces stays until it is there
        make_file(f"{way.where}/f", 10 * M)
        make_file(f"{way.large}/f", 7 * M)
        way.refused(f"{way.source}/f", way.to, needed="7.0 MiB")
        make_file(f"{way.large}/f", 5 * M)
        works(f"{way.source}/f", way.to)
        same_files(f"{way.large}/f", f"{way.where}/f")


@case(seconds=120)
def a_tree(top):
    for way in each_way(top):
        many(f"{way.large}/t", 20, M)
        way.refused("-r", f"{way.source}/t", way.to, needed="20.0 MiB")
        # what has nothing to do with it makes no room
        make_file(f"{way.where}/other", 10 * M)
        for i in range(10):
            os.unlink(f"{way.large}/t/d{i % 3}/{i}")
        way.refused("-r", f"{way.source}/t", way.to, needed="10.0 MiB")
        os.unlink(f"{way.where}/other")
        for i in range(10, 13):
            os.unlink(f"{way.large}/t/d{i % 3}/{i}")
        works("-r", f"{way.source}/t", way.to)
        equal(tree(f"{way.where}/t"), tree(f"{way.large}/t"), way.name, "the tree")
        # each file goes where another one was; all of the new ones may be there before an old one goes
        works("-r", f"{way.source}/t", way.to)
        # several sources, each of which would fit
        for name in ("a", "b"):
            make_file(f"{way.large}/{name}", 5 * M)
        way.refused(f"{way.source}/a", f"{way.source}/b", way.to, needed="10.0 MiB")
        works(f"{way.source}/a", way.to)


@case(seconds=120)
def a_sync(top):
    with small(f"{top}/small") as where:
        for name in ("put", "get"):
            way = Way(top, name, where)
            words = (f"{way.source}/t", f"{way.to}t")
            many(f"{way.large}/t", 7, M)
            works("sync", *words)
            many(f"{way.large}/t/more", 12, M)
            way.refused("sync", *words, needed="12.0 MiB")
            # what changed takes the place of what was; all that is new may be there before anything goes
            for i in range(12):
                os.unlink(f"{way.large}/t/more/d{i % 3}/{i}")
            many(f"{way.large}/t", 7, M)
            works("sync", *words)
            equal(tree(f"{where}/t"), tree(f"{way.large}/t"), name, "the tree")
            # what goes before makes room
            many(f"{way.large}/t/d0", 3, M)
            works("sync", *words)
            for i in range(7):
                os.rename(f"{way.large}/t/d{i % 3}/{i}", f"{way.large}/t/d{i % 3}/new{i}")
            way.refused("sync", *words, needed="7.0 MiB")
            works("sync", "--delete", *words)
            equal(tree(f"{where}/t"), tree(f"{way.large}/t"), name, "the tree")
            way.end()


@case(seconds=120)
def holes_need_nothing(top):
    for way in each_way(top):
        os.mkdir(f"{way.large}/t")
        sparse(f"{way.large}/t/f", 6)
        works(f"{way.source}/t/f", way.to)
        same_files(f"{way.large}/t/f", f"{way.where}/f")
        works("-r", f"{way.source}/t", way.to)
        same_files(f"{way.large}/t/f", f"{way.where}/t/f")
        if way.name != "third":
            works("sync", f"{way.source}/t", f"{way.to}t")
            os.unlink(f"{way.where}/t/f")
            works("sync", f"{way.source}/t", f"{way.to}t")
            same_files(f"{way.large}/t/f", f"{way.where}/t/f")
        sparse(f"{way.large}/t/f", 20)
        way.refused("-r", f"{way.source}/t", f"{way.to}new", needed="20.0 MiB")


@case(seconds=120)
def what_is_there_of_it_is_not_needed_again(top):
    with small(f"{top}/small") as where:
        os.makedirs(f"{top}/large")
        make_file(f"{top}/large/f", 12 * M)
        daemon = Daemon(where, "rw")
        options = ["--resume=1M", "--block=64K"]
        proxy = Proxy(daemon.port, cut=8 * M)
        equal(rftptest.rftp(*options, f"{top}/large/f", proxy.url("f")).code, LOST, "it was cut")
        proxy.close()
        wait_until(lambda: daemon.stderr().count(b" ended after ") >= 1, "the daemon has noticed")
        there = sum(os.stat(n).st_blocks * 512 for n in leftovers(where))
        check(there > 5 * M, "only", there, "bytes were kept")
        done = works(*options, "--json", f"{top}/large/f", daemon.url("f")).done()
        check(done["sent_bytes"] < 12 * M, done)
        same_files(f"{top}/large/f", f"{where}/f")
        daemon.stop()


@case(seconds=60)
def names(top):
    """A file system may have room for bytes, and for no more names."""
    with small(f"{top}/small", "size=16m,nr_inodes=80") as where:
        for name in ("put", "get", "third"):
            way = Way(top, name, where)
            many(f"{way.large}/t", 100, 9000)  # more than cross each in a request of its own
            before = tree(where)
            all_of(fails(NO_SPACE, "-r", f"{way.source}/t", way.to), "has room for", "files, and 100 are needed")
            equal(tree(where), before, name, "what is there")
            many(f"{way.large}/u", 40, 9000)
            works("-r", f"{way.source}/u", way.to)
            works("-r", f"{way.source}/u", way.to)
            way.end()


@case(seconds=60)
def what_is_mounted_beneath(top):
    """That is another file system's room."""
    with small(f"{top}/small") as where, small(f"{top}/small/t", "size=64m"):
        many(f"{top}/t", 40, M)
        daemon = Daemon(where, "rw")
        works("-r", f"{top}/t", daemon.url(""))
        equal(tree(f"{where}/t"), tree(f"{top}/t"), "what is there")
        daemon.stop()


@case(seconds=60)
def in_place(top):
    with small(f"{top}/small") as where:
        daemon = Daemon(where, "rw")
        make_file(f"{where}/f", 10 * M)
        make_file(f"{top}/seven", 7 * M)
        before = tree(where)
        all_of(fails(NO_SPACE, "--append", f"{top}/seven", daemon.url("f")), "has room for 6.0 MiB", "7.0 MiB are needed")
        equal(tree(where), before, "appended")
        works("--offset=0", f"{top}/seven", daemon.url("f"))
        daemon.stop()


@case
def one_that_fits_beside_one_that_does_not(top):
    """The directory that is made for several sources goes after the last of them, and only if it is empty."""
    for name, size in (("big/b", 2 * ROOM * M), ("bigger/c", 3 * ROOM * M), ("little/l", 1000)):
        os.makedirs(os.path.dirname(f"{top}/export/{name}"))
        make_file(f"{top}/export/{name}", size)
    daemon = Daemon(f"{top}/export", "ro")
    with small(f"{top}/small") as where:
        fails(NO_SPACE, "-r", daemon.url("big/"), daemon.url("bigger/"), f"{where}/new")
        equal(os.listdir(where), [], "nothing fits")
        result = fails(NO_SPACE, "-r", daemon.url("big/"), daemon.url("little/"), f"{where}/new")
        same_files(f"{top}/export/little/l", f"{where}/new/l")
        equal(os.listdir(f"{where}/new"), ["l"], "what fits")
        daemon.stop()


rftptest.main()
