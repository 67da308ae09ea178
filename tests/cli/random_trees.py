#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random trees of nasty names, links, holes, modes, times, owners, attributes and access control lists: what arrives is what was sent, also over what an
earlier copy left, for root and for a user who may not write to a directory of mode 0500."""

import os
import shutil
import stat
import subprocess

import rftptest
from rftptest import NOBODY, ROOT, Daemon, Proxy, case, check, equal, leftovers, rng, scaled, works

NAMES = [b"a", b"b", b"with space", b"new\nline", b"\xff\xfe", b"-r", b"*", b"~", b".hidden", b"n" * 255,
         b"\\", b"'\"", b"%41", b"#", b"e"]
SIZES = [0, 1, 100, 4096, 65536, 65537, 300000]
TARGETS = [b"a", b"../b", b"nowhere", b"/etc/passwd", b"../../..", b".", b"\xff", b"x" * 1000]
FILE_MODES = [0o644, 0o600, 0o444, 0o400, 0o755, 0o666, 0o1644]
DIRECTORY_MODES = [0o755, 0o700, 0o500, 0o555, 0o777, 0o1777, 0o2755]


class Trees:
    def __init__(self, top, user):
        self.options = {"user": user} if user is not None else {}
        self.user = user
        self.top = os.fsencode(top)
        self.source, self.back = self.top + b"/local/t", self.top + b"/local/back"
        for name in (b"/export", b"/local", b"/local/t", b"/local/back"):
            os.mkdir(self.top + name)
            self.give(self.top + name)
        self.daemon = Daemon(f"{top}/export", "rw", "--copies-to", "127.0.0.0/8 ports=1-65535", **self.options)
        self.copy = self.top + b"/export/t"

    def give(self, path):
        if self.user is not None:
            os.chown(path, self.user, self.user, follow_symlinks=False)

    def extras(self, path):
        """An attribute, a list, another owner: each where it can be had, and now and then."""
        if rng().random() < 0.2:
            try:
                os.setxattr(path, f"user.{rng().randrange(9)}", rng().randbytes(rng().randrange(200)))
            except OSError:
                pass  # none here
        if rng().random() < 0.1 and shutil.which("setfacl"):
            kind = rng().choice(["", "d:"]) if os.path.isdir(path) else ""
            subprocess.run(["setfacl", "-m", f"{kind}u:{rng().randrange(1, 9)}:{rng().choice(['r', 'rw', '-'])}", path],
                           stderr=subprocess.DEVNULL)
        if ROOT and self.user is None and rng().random() < 0.2:
            mode = os.lstat(path).st_mode
            os.chown(path, rng().randrange(9), rng().randrange(9))
            os.chmod(path, stat.S_IMODE(mode))

    def time(self, path):
        ns = rng().choice([0, 1, -5 * 10**9 - 1, 1234567890123456789, rng().randrange(2**60)])
        os.utime(path, ns=(1, ns), follow_symlinks=False)

    def file(self, path):
        with open(path, "wb") as f:
            f.write(rng().randbytes(rng().choice(SIZES)))
        self.give(path)
        os.chmod(path, rng().choice(FILE_MODES))
        self.extras(path)
        self.time(path)

    def holes(self, path):
        """A file of which little is there; its end may be a hole as well."""
        with open(path, "wb") as f:
            size = rng().randrange(1, 3 << 20)
            for _ in range(rng().randrange(4)):
                f.seek(rng().randrange(size))
                f.write(rng().randbytes(rng().choice([1, 4096, 70000])))
            f.truncate(size)
        self.give(path)
        self.extras(path)
        self.time(path)

    def large(self, path):
        """More than one block of, with a hole, so that it is gone on with."""
        with open(path, "wb") as f:
            f.write(rng().randbytes(2 << 20))
            f.seek(4 << 20)
            f.write(rng().randbytes((1 << 20) + 17))
        self.give(path)
        self.extras(path)
        self.time(path)

    def bytes(self):
        return sum(os.lstat(os.path.join(where, n)).st_size for where, _, names in os.walk(self.source) for n in names)

    def another_name(self, path):
        """Of a file that is there already; or else a file."""
        files = [os.path.join(where, n) for where, _, names in os.walk(self.source) for n in names
                 if stat.S_ISREG(os.lstat(os.path.join(where, n)).st_mode)]
        os.link(rng().choice(files), path) if files else self.file(path)

    def link(self, path):
        os.symlink(rng().choice(TARGETS), path)
        self.give(path)
        self.time(path)

    def grow(self, where, depth=0):
        """Makes entries in a directory, or other ones of some that are there; never a directory of another
        kind of entry, or the other way round."""
        for name in rng().sample(NAMES, rng().randrange(1, len(NAMES))):
            path = where + b"/" + name
            kind = rng().choice(["file", "file", "file", "holes", "another_name", "link", "directory", "directory"])
            there = os.lstat(path).st_mode if os.path.lexists(path) else None
            if there is not None and stat.S_ISDIR(there):
                self.grow(path, depth + 1)
                continue
            if kind == "directory" and (there is not None or depth > 3):
                kind = "file"
            if there is not None:
                os.unlink(path)
            if kind == "directory":
                os.mkdir(path)
                self.give(path)
                self.grow(path, depth + 1)
            else:
                getattr(self, kind)(path)
        os.chmod(where, rng().choice(DIRECTORY_MODES))
        self.extras(where)
        self.time(where)

    def same(self, a, b, *what):
        """All of `a` is in `b`, as it is."""
        for where, directories, files in os.walk(a):
            for name in [b"."] + directories + files:
                one = where + b"/" + name
                other = b + one[len(a):]
                check(os.path.lexists(other), *what, other, "is missing")
                x, y = os.lstat(one), os.lstat(other)
                kind = stat.S_IFMT(x.st_mode)
                equal(kind, stat.S_IFMT(y.st_mode), *what, "the kind of", other)
                equal(x.st_mtime_ns, y.st_mtime_ns, *what, "the time of", other)
                if kind == stat.S_IFLNK:
                    equal(os.readlink(one), os.readlink(other), *what, other)
                    continue
                equal(oct(x.st_mode), oct(y.st_mode), *what, "the mode of", other)
                if kind == stat.S_IFREG:
                    equal(rftptest.digest(one), rftptest.digest(other), *what, other)
        self.as_others_see_it(a, b, *what)

    def as_others_see_it(self, a, b, *what):
        """rsync would change nothing, and diff sees no difference."""
        if shutil.which("rsync"):
            done = subprocess.run(["rsync", "-naciXAH", "--delete", a + b"/", b + b"/"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            equal((done.returncode, done.stdout), (0, b""), *what, "rsync")
        done = subprocess.run(["diff", "-r", "--no-dereference", a, b], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        equal((done.returncode, done.stdout), (0, b""), *what, "diff")

    def sweep(self, *where):
        for path in where or (self.copy, self.back, self.source):
            for inner, _, _ in os.walk(path):
                os.chmod(inner, 0o700)
            shutil.rmtree(path, ignore_errors=True)


def rounds(top, user):
    os.chmod(top, 0o755)
    trees = Trees(top, user)
    umask = os.umask(rng().choice([0, 0o022, 0o077, 0o027]))
    try:
        for i in range(scaled(4)):
            trees.grow(trees.source)
            works("-aXAH", trees.source + b"/.", trees.daemon.url("t"), **trees.options)
            trees.same(trees.source, trees.copy, "put", i)
            works("-aXAH", trees.daemon.url("t/."), trees.back, **trees.options)
            trees.same(trees.copy, trees.back, "get", i)
            equal(leftovers(top), [], "temporary files")
    finally:
        os.umask(umask)
        trees.sweep()


# ---- every way that there is to copy a tree ----

ALL = ("-aXAH",)


def one_shot(trees, a, b, url):
    works(*ALL, *a, *b, **trees.options)


def shell(trees, a, b, url):
    works(*ALL, "-b", "-", url, input=line(a, b), **trees.options)


def batch(trees, a, b, url):
    with open(trees.top + b"/batch", "wb") as f:
        f.write(line(a, b))
    works(*ALL, "-b", f.name, url, **trees.options)


def command(trees, a, b, url):
    works(*ALL, "-c", line(a, b), url, **trees.options)


def line(a, b):
    """What is at the server is named by its path there."""
    put = isinstance(a[0], bytes)
    names = [n if isinstance(n, bytes) else n.partition("//")[2].partition("/")[2].encode() for n in (*a, *b)]
    return b" ".join([b"put" if put else b"get", *names]) + b"\n"


def sync(trees, a, b, url):
    works(*ALL, "sync", *(n[:-2] if n[-2:] in ("/.", b"/.") else n for n in (*a, *b)), **trees.options)


def resumed(trees, a, b, url):
    """Cut off, at most three times, and gone on with by the same command."""
    for _ in range(rng().randrange(1, 4)):
        proxy = Proxy(trees.daemon.port, cut=rng().randrange(2 * trees.bytes()))
        words = [n if isinstance(n, bytes) else n.replace(f":{trees.daemon.port}/", f":{proxy.port}/") for n in (*a, *b)]
        code = rftptest.rftp(*ALL, "--resume=1M", "--block=64K", "--connect-timeout", "5", *words, **trees.options).code
        proxy.close()
        check(code in (rftptest.OK, rftptest.LOST, rftptest.CONNECT, rftptest.PROTOCOL), "it was cut off:", code)
    trees.daemon.settled()
    works(*ALL, "--resume=1M", "--block=64K", *a, *b, **trees.options)


def every_path(top, user):
    os.chmod(top, 0o755)
    trees = Trees(top, user)
    other = trees.top + b"/other"
    os.mkdir(other)
    trees.give(other)
    there = Daemon(os.fsdecode(other), "rw", **trees.options)
    try:
        trees.grow(trees.source)
        mode = os.stat(trees.source)
        os.chmod(trees.source, 0o700)
        trees.large(trees.source + b"/large")
        os.chmod(trees.source, mode.st_mode & 0o7777)
        trees.time(trees.source)
        url = trees.daemon.url("t")
        for path in (one_shot, shell, batch, command, sync, resumed):
            for way in ("put", "get"):
                if way == "put":
                    trees.sweep(trees.copy)
                    a, b, to = [trees.source + b"/."], [url], trees.copy
                else:
                    trees.sweep(trees.back)
                    a, b, to = [url + "/."], [trees.back], trees.back
                path(trees, a, b, trees.daemon.url(""))
                trees.same(trees.source, to, path.__name__, way)
                equal(leftovers(top), [], path.__name__, way, "temporary files")
        works(*ALL, url + "/.", there.url("t"), **trees.options)
        trees.same(trees.source, other + b"/t", "between two daemons")
        equal(leftovers(top), [], "temporary files")
    finally:
        trees.sweep(trees.copy, trees.back, trees.source, other)


@case(seconds=180)
def through_every_path(top):
    every_path(top, None)


@case(seconds=180)
def through_every_path_as_a_user(top):
    if not ROOT:
        rftptest.skip("that is the case before, then")
    every_path(top, NOBODY)


@case(seconds=180)
def over_and_over(top):
    rounds(top, None)


@case(seconds=180)
def as_a_user(top):
    if not ROOT:
        rftptest.skip("that is the first case, then")
    rounds(top, NOBODY)


rftptest.main()
