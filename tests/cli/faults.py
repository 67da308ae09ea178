#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One allocation or one system call fails, of the client or of the daemon, in whatever they do.

It is injected beneath them, by tests/preload/fault.c.  Whichever it is: the client ends soon, with 0 and all
done, or with another code, a message, and each file as it was or as it should be; nothing temporary stays;
nobody dies, no memory is lost, and the daemon serves as before, with as many descriptors.

Every call has its turn with RFTP_SCALE=100; less tries some of them.  Environment, for a run again:
    RFTP_FAULT_AT   the numbers of the calls, as they are printed when one fails
"""

import contextlib
import errno
import mmap
import os
import re
import shutil
import struct
import subprocess
import time

import rftptest
from rftptest import Daemon, Failure, NotReady, case, check, equal, finish, leftovers, make_file, scaled, \
    start_rftp, wait_until

LIBRARY = os.path.join(rftptest.BUILD, "tests/preload/fault.so")
MEMORY, SYSTEM, CRYPTO = 1, 2, 4
CLASSES = {MEMORY: "allocation", SYSTEM: "system call", CRYPTO: "allocation of OpenSSL"}
SIZE = 1328                # of struct control
DENIED = 1                 # choice of what opens fail with
PROMPT = 10                # seconds until the client has ended, whatever failed
CLEANERS = (b"unlinkat", b"unlink")  # when that fails, something may stay
K = 1 << 10
# how a status says it that stands for several errors
REASONS = {errno.EPERM: b"permission denied", errno.EROFS: b"read-only", errno.EDQUOT: b"over quota",
           errno.ENOSPC: b"no space left", errno.ENOMEM: b"out of memory", errno.EMFILE: b"over a limit",
           errno.EMLINK: b"over a limit", errno.EAGAIN: b"in use"}


class Fault:
    """What is to fail in one program: struct control of tests/preload/fault.c."""

    def __init__(self, top, program):
        if rftptest.SANITIZED:
            rftptest.skip("a sanitizer has allocations of its own")
        if not os.path.exists(LIBRARY):
            rftptest.skip("tests/preload/fault.so is not built")
        self.program = program
        self.path = f"{top}/fault-{program}"
        with open(self.path, "w+b") as f:
            f.truncate(SIZE)
            self.memory = mmap.mmap(f.fileno(), SIZE)
        self.env = {"LD_PRELOAD": LIBRARY, "RFTP_FAULT": self.path, "RFTP_FAULT_PROGRAM": program}

    def word(self, at, kind="Q"):
        return struct.unpack_from(f"={kind}", self.memory, at)[0]

    def only(self, part):
        """Of system calls, from now on only those count that are about what has this in its path."""
        self.memory[1264:SIZE] = part.encode().ljust(64, b"\0")

    def arm(self, number=0, class_=MEMORY, choice=0, span=0):
        """The call of the class with this number fails, of those from now on; and so many behind it."""
        self.class_ = class_
        struct.pack_into("=Q", self.memory, 0, 0)
        struct.pack_into("=5Q", self.memory, 8, span, class_, choice, 0, 0)
        self.memory[64:1264] = bytes(1200)
        struct.pack_into("=Q", self.memory, 0, number + span if number else 0)

    def disarm(self):
        struct.pack_into("=Q", self.memory, 0, 0)
        struct.pack_into("=Q", self.memory, 16, 0)

    @property
    def calls(self):
        return self.word(32)

    @property
    def fired(self):
        return self.word(40)

    @property
    def live(self):
        return self.word(48, "q")

    @property
    def name(self):
        return self.memory[200:232].rstrip(b"\0")

    @property
    def error(self):
        return self.word(232, "q")

    @property
    def object(self):
        """The path that the call was about, or what /proc says of the descriptor; b"": nothing."""
        return self.memory[240:1264].partition(b"\0")[0]

    def __str__(self):
        base, count = self.word(56), self.word(64)
        places = [hex(self.word(72 + 8 * i) - base) for i in range(min(count, 16))]
        text = f"{self.name.decode()} of {os.fsdecode(self.object) or 'nothing'} by {self.program}, " \
            f"{os.strerror(self.error)}"
        try:
            lines = subprocess.run(["addr2line", "-sfpe", os.path.join(rftptest.BUILD, self.program), *places],
                                   capture_output=True, text=True, check=False).stdout.splitlines()
        except OSError:
            return text
        return "\n".join([text] + [f"   {line}" for line in lines if not line.startswith("??")])


# ---- what is done while something fails ----

def read(path):
    with open(path, "rb") as f:
        return f.read()


class Put:
    """One file, in the place of another."""
    options = ("--block", "64K", "--channels", "2")
    repeats = True  # what was done to a part can be done again
    marks = False   # the mark of a tree may stay, where the next one has nothing to go on with

    def __init__(self, top, daemon):
        self.daemon, self.local = daemon, f"{top}/local"
        os.makedirs(self.local, exist_ok=True)
        self.source, self.target = f"{self.local}/new", daemon.path("f")
        self.old = b"o" * 1000
        make_file(self.source, 300 * K)
        self.new = read(self.source)

    def prepare(self):
        with open(self.target, "wb") as f:
            f.write(self.old)

    def arguments(self):
        return (self.source, self.daemon.url("f"))

    def verify(self, code):
        now = read(self.target)
        check(now == self.new or (code and now == self.old), "a file of", len(now), "bytes is there")

    def places(self):
        return self.local, self.daemon.top

    def called(self, path):
        """What a message may call a file that bears a name."""
        path = os.path.normpath(path)
        return {b": /: "} if path == os.fsencode(self.daemon.top) else {os.path.basename(path)}

    def names(self):
        """Last parts of the names of all that is moved."""
        there = [os.path.basename(n) for n in rftptest.tree(self.source)] if os.path.isdir(self.source) else []
        return {*there, *(os.path.basename(os.fsencode(n)) for n in (self.source, self.target))}


class Get(Put):
    def __init__(self, top, daemon):
        super().__init__(top, daemon)
        self.target = f"{self.local}/f"
        self.source = daemon.path("new")
        with open(self.source, "wb") as f:
            f.write(self.new)

    def arguments(self):
        return (self.daemon.url("new"), self.target)


class PrivateGet(Get):
    """What blocks hold is encrypted."""
    options = (*Put.options, "--protect", "private")


class PutTree(Put):
    """Some files, of which one has two names and one nothing but a hole, in four directories."""

    def __init__(self, top, daemon):
        super().__init__(top, daemon)
        self.source, self.target = f"{self.local}/tree", daemon.path("tree")
        self.make()

    def make(self):
        shutil.rmtree(self.source, ignore_errors=True)
        for i in range(10):
            directory = f"{self.source}/d{i % 3}/{'deep' if i == 9 else ''}"
            os.makedirs(directory, exist_ok=True)
            with open(f"{directory}/f{i}", "wb") as f:
                f.write(bytes([i]) * (i * 3000))
            with contextlib.suppress(OSError):  # none here
                os.setxattr(f"{directory}/f{i}", "user.number", bytes([i]))
        os.link(f"{self.source}/d0/f0", f"{self.source}/d2/f0")
        with open(f"{self.source}/d1/holes", "wb") as f:
            f.truncate(300000)

    def prepare(self):
        shutil.rmtree(self.target, ignore_errors=True)

    def arguments(self):
        return ("-aXAH", self.source, self.daemon.url())

    def verify(self, code):
        wanted, found = rftptest.tree(self.source), rftptest.tree(self.target)
        if not code:
            equal(found, wanted, "the tree")
        for name, digest in found.items():
            if not os.path.basename(name).startswith(b".rftp-"):
                check(name in wanted and wanted[name] == digest, "another file is there:", name)


class GetTree(PutTree):
    def __init__(self, top, daemon):
        super().__init__(top, daemon)
        self.source, self.target = daemon.path("source"), f"{self.local}/source"
        self.make()

    def arguments(self):
        return ("-aXAH", self.daemon.url("source"), self.local)


class SyncTo(PutTree):
    """Of the directory that is there some files are as they should be, others older, of another mode, extra, or
    called otherwise: copied, changed, removed, renamed; nothing that was not meant to be, as what is excluded in a
    directory that is extra."""
    marks = True
    options = (*Put.options, "--compare=digest", "--delete", "--detect-renames", "--exclude=*.kept")

    def make(self):
        super().make()
        make_file(f"{self.source}/d0/large", 300 * K)
        self.was = f"{self.local}/was"
        shutil.rmtree(self.was, ignore_errors=True)
        shutil.copytree(self.source, self.was, symlinks=True, copy_function=shutil.copy2)
        with open(f"{self.was}/d1/f4", "wb") as f:
            f.write(b"older")
        make_file(f"{self.was}/d0/large", 300 * K)
        os.unlink(f"{self.was}/d1/holes")
        os.chmod(f"{self.was}/d2/f5", 0o640)
        os.utime(f"{self.was}/d0/f6", (5, 5))
        os.makedirs(f"{self.was}/extra/deep")
        make_file(f"{self.was}/extra/deep/file", 100)
        make_file(f"{self.was}/extra/deep/one.kept", 100)
        os.rename(f"{self.was}/d1/f7", f"{self.was}/extra/seven")
        os.unlink(f"{self.was}/d2/f8")
        self.files = {hash for tree in (self.source, self.was) for hash in rftptest.tree(tree).values()}

    def prepare(self):
        super().prepare()
        shutil.copytree(self.was, self.target, symlinks=True, copy_function=shutil.copy2)

    def arguments(self):
        return ("sync", self.source, self.daemon.url("tree"))

    def verify(self, code):
        wanted, found = rftptest.tree(self.source), rftptest.tree(self.target)
        found = {name: digest for name, digest in found.items() if not os.path.basename(name).startswith(b".rftp-")}
        kept = {b"extra", b"extra/deep", b"extra/deep/one.kept"}
        check(kept <= found.keys(), "what is excluded is gone")
        if not code:
            equal({n: d for n, d in found.items() if n not in kept}, wanted, "the tree")
            equal(os.stat(f"{self.target}/d2/f5").st_mode, os.stat(f"{self.source}/d2/f5").st_mode, "a mode alone")
        for name, digest in found.items():
            check(digest in self.files, "what was in no file is there:", name)
        # what both sides had is never lost
        for name in rftptest.tree(self.was).keys() & wanted.keys():
            check(name in found, "a file is gone:", name)


class SyncFrom(SyncTo):
    def __init__(self, top, daemon):
        super().__init__(top, daemon)
        self.source, self.target = daemon.path("source"), f"{self.local}/tree"
        self.make()

    def arguments(self):
        return ("sync", self.daemon.url("source"), self.target)


class Feed(Put):
    """Two streams, kept as segments."""
    repeats = False

    def prepare(self):
        shutil.rmtree(self.daemon.path("feed"), ignore_errors=True)

    def arguments(self):
        return ("feed", "--segment", "64K", f"a={self.source}", f"b={self.source}", self.daemon.url("feed"))

    def called(self, path):
        """What is read is a device, which has a name of its own."""
        return {b": a: ", b": b: "} if path == os.fsencode(self.source) else super().called(path)

    def verify(self, code):
        for stream in "ab":
            where = self.daemon.path(f"feed/{stream}")
            names = sorted(n for n in os.listdir(where) if n.endswith(".seg")) if os.path.isdir(where) else []
            at, before = 0, 0
            for name in names:
                data, number = read(f"{where}/{name}"), int(name[:-4])
                if number > before + 1 and code:  # one is lost, which the numbers show
                    at = self.new.find(data, at)
                equal(data, self.new[at:at + len(data)], f"stream {stream}, segment {name}")
                at, before = at + len(data), number
            check(code or at == len(self.new), f"stream {stream}:", at, "bytes of", len(self.new), "are kept")


class SqueezedPut(Put):
    """Blocks are compressed."""
    options = (*Put.options, "-z")

    def __init__(self, top, daemon):
        super().__init__(top, daemon)
        with open(self.source, "wb") as f:
            f.write(b"all that is sent is said twice\n" * 10000)
        self.new = read(self.source)


class Sums(Put):
    """Computed at both ends, and the same."""

    def prepare(self):
        shutil.copy(self.source, self.target)

    def arguments(self):
        return ("cmp", self.source, self.daemon.url("f"))

    def verify(self, code):
        pass


class Names(Put):
    """Requests without a transfer."""
    repeats = False

    def prepare(self):
        for name in ("made", "moved"):
            shutil.rmtree(self.daemon.path(name), ignore_errors=True)
        with open(self.daemon.path("gone"), "wb"):
            pass

    def arguments(self):
        return ("-c", "mkdir -p made/deep; ls -l /; stat gone; rm gone; df; mv made moved; ls moved/*; "
                "chmod -R 700 moved; sum -r /; touch -d @5 moved/deep; ln -s deep moved/link",
                self.daemon.url())

    def verify(self, code):
        if not code:
            check(os.path.isdir(self.daemon.path("moved/link")) and
                  os.stat(self.daemon.path("moved/deep")).st_mtime == 5 and not os.path.exists(self.daemon.path("gone")),
                  "exit code 0, and not all is done")


class Left(Put):
    """What was left behind is removed, here and there; what is no such thing stays."""
    left = (".rftp-0123456789abcdef.partial", ".rftp-fedcba9876543210.journal", ".rftp-0123456789abcdef.tree")

    def prepare(self):
        for where in (self.local, self.daemon.path("d")):
            os.makedirs(f"{where}/e", exist_ok=True)
            for name in (*self.left, ".rftp-kept"):
                make_file(f"{where}/e/{name}", 100)

    def arguments(self):
        return ("leftovers", "--remove", self.local, self.daemon.url())

    def places(self):
        return ()

    def verify(self, code):
        for where in (self.local, self.daemon.path("d")):
            there = os.listdir(f"{where}/e")
            check(".rftp-kept" in there, "what was not meant is gone")
            check(code or there == [".rftp-kept"], "exit code 0, and there is still", there)


# ---- one after the other ----

def numbers(count, all_of_them):
    """Which of so many calls fail: all of them, or some, spread over them."""
    given = os.environ.get("RFTP_FAULT_AT")
    if given:
        return [int(n) for n in given.split(",")]
    wanted = scaled(8)
    if wanted >= count or all_of_them:
        return range(1, count + 1)
    step = count / wanted
    return sorted({1 + int(step * (i + rftptest.rng().random())) for i in range(wanted)})


def run(job, env=None):
    started = time.monotonic()
    process = start_rftp(*job.options, *job.arguments(), env=env)
    try:
        return finish(process, timeout=PROMPT)
    finally:
        took = time.monotonic() - started
        if took > 3 * rftptest.PATIENCE:
            print(f"# {took:.1f} s", flush=True)


def is_temporary(path):
    """Of our own, or of no name at all (which /proc calls deleted)."""
    return os.path.basename(path).startswith(b".rftp-") or path.endswith(b" (deleted)")


def judge_message(job, fault, result):
    """It names the file that could not be dealt with, and says why."""
    check(result.code == 0 or result.err.strip(), "no message:", result)
    path = fault.object
    if not result.code or fault.class_ != SYSTEM or not path.startswith(b"/") or path.startswith((b"/proc/", b"/dev/")):
        return
    # a status of its own is not for every errno: the others cross as one
    reasons = (os.strerror(fault.error).lower().encode(), REASONS.get(fault.error, b"?"), b"some other error")
    check([r for r in reasons if r in result.err.lower()], "no reason:", result)
    # of a directory that cannot be flushed it is the file in it that is told of; and without memory there may be
    # none for a name
    names = job.names() | (set() if is_temporary(path) else job.called(path))
    check(fault.error == errno.ENOMEM or [n for n in names if n in result.err], "not said of which file:", names, result)
    check(not re.search(rb"(?<!whether it )changed while", result.err), "nothing has changed:", result)


def judge(job, fault, result):
    judge_message(job, fault, result)
    if fault.name in CLEANERS:
        job.daemon.settled()
    else:
        for place in job.places():
            # the mark of a tree stays, to be gone on with
            wait_until(lambda p=place: not [n for n in leftovers(p) if not n.endswith(b".tree")],
                       f"temporary files in {place} are gone")
    job.verify(result.code)  # with nobody at work there any more


def judge_next(job, fault):
    """The same once more, with nothing that fails: all is done then, and what the first one left is gone."""
    if not job.repeats:
        job.prepare()
    again = run(job)
    equal(again.code, 0, "the next one", again)
    job.verify(0)
    for place in job.places():
        there = leftovers(place)
        names = [n for n in there if not (job.marks and n.endswith(b".tree"))]
        check(not names or fault.name in CLEANERS, "left behind, also by the next one:", there)
        for path in there:
            os.unlink(path)


def error_of(class_, choice):
    return choice if choice is not None else rftptest.rng().randrange(420) if class_ == SYSTEM else 0


def each(job, fault, one, classes=tuple(CLASSES), span=0, only="", choice=None):
    """Runs `one` for call after call, class by class; all that goes wrong is told."""
    wrong = []
    fault.only(only)
    for class_ in classes:
        what = CLASSES[class_]
        job.prepare()
        fault.arm(class_=class_)
        count = one(None)
        check(count, "nothing is counted")
        for number in numbers(count, bool(only)):
            job.prepare()
            fault.arm(number, class_, error_of(class_, choice), span)
            try:
                one(number)
            except Failure as e:
                wrong.append(f"{what} {number} of {count} (choice {fault.word(24)}): {fault}\n{e}")
                print(f"# {wrong[-1]}".replace("\n", "\n#   "), flush=True)
                if len(wrong) > scaled(2):
                    break
    if wrong:
        raise Failure(f"{len(wrong)} calls that fail are not survived, as told above")


def in_the_client(top, kind, **how):
    os.mkdir(f"{top}/export")
    fault = Fault(top, "rftp")
    job = kind(top, Daemon(f"{top}/export", "rw"))
    kept = {}

    def one(number):
        struct.pack_into("=q", fault.memory, 48, 0)
        result = run(job, fault.env)
        if number is None:
            equal(result.code, 0, "without a failure", result)
            # the daemon keeps what it has needed once, for a while
            kept.update(live=fault.live, daemon=kept.get("daemon") or job.daemon.settled())
            job.verify(0)
            return fault.calls
        judge(job, fault, result)
        # an attempt to connect that was let go of ends with the process
        if fault.class_ != CRYPTO and result.code not in (rftptest.CONNECT, rftptest.INTERRUPTED):
            check(fault.live <= kept["live"], "not freed:", fault.live - kept["live"], "allocations", result)
        judge_next(job, fault)
        return None

    each(job, fault, one, **how)
    job.daemon.back_to(kept["daemon"], "after clients in which something failed")


def settled_live(fault):
    """Allocations of a daemon that is idle: the same ten times in a row."""
    seen, same = None, 0
    end = time.monotonic() + 20 * rftptest.PATIENCE
    while same < 10 and time.monotonic() < end:
        now = fault.live
        same = same + 1 if now == seen else 0
        seen = now
        time.sleep(0.02)
    return seen


def in_the_daemon(top, kind, **how):
    os.mkdir(f"{top}/export")
    fault = Fault(top, "rftpd")
    job = kind(top, Daemon(f"{top}/export", "rw", env=fault.env))
    for _ in range(2):
        job.prepare()
        equal(run(job).code, 0, "without a failure")
    before = job.daemon.settled()

    def one(number):
        result = run(job)
        calls = fault.calls
        fault.disarm()
        check(job.daemon.alive(), "the daemon died:", job.daemon.stderr()[-1500:])
        job.daemon.back_to(before, "descriptors and threads")
        if number is None:
            equal(result.code, 0, "without a failure", result)
            return calls
        judge(job, fault, result)
        judge_next(job, fault)
        job.daemon.back_to(before, "descriptors and threads after the next one")
        return None

    each(job, fault, one, **how)
    # What is kept for later is kept by the first two of them.  A leak grows with each; which threads a run has
    # had, which is chance, makes a difference of one or two to either side that does not.
    live = []
    for turn in range(7):
        job.prepare()
        equal(run(job).code, 0, "at the end")
        job.daemon.back_to(before, "at the end")
        if turn > 1 and soon(lambda: fault.live <= live[-1]):
            return
        if turn:
            live.append(settled_live(fault))
    raise Failure(f"allocations that are not freed, run by run: {live}")


def soon(condition):
    end = time.monotonic() + rftptest.PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


for where in (in_the_client, in_the_daemon):
    for kind in (Put, Get, PrivateGet, SqueezedPut, PutTree, GetTree, SyncTo, SyncFrom, Feed, Names, Left, Sums):
        def one_case(top, where=where, kind=kind):
            where(top, kind)
        one_case.__name__ = f"{kind.__name__.lower()}_{where.__name__}"
        case(one_case, seconds=300)

@case(seconds=300)
def what_is_extra_and_denied(top):
    """Each call about a directory that is to be removed, but for what is excluded in it: one that is denied when
    it is looked at once more takes none of that with it."""
    for where, kind in ((in_the_client, SyncFrom), (in_the_daemon, SyncTo)):
        os.mkdir(f"{top}/{kind.__name__}")
        where(f"{top}/{kind.__name__}", kind, classes=(SYSTEM,), only="tree/extra", choice=DENIED)


@case(seconds=300)
def memory_that_stays_short_in_the_client(top):
    in_the_client(top, Put, classes=(MEMORY,), span=1 << 40)


@case(seconds=300)
def memory_that_stays_short_in_the_daemon(top):
    """Until the client has ended; then there is some again."""
    in_the_daemon(top, Put, classes=(MEMORY,), span=1 << 40)


class Start:
    """A daemon that starts and ends."""

    def prepare(self):
        pass


@case(seconds=300)
def a_daemon_that_starts(top):
    """It serves, or ends with a message."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 100 * K)
    fault = Fault(top, "rftpd")
    Daemon(f"{top}/export", "rw").stop()  # its key is made now

    def one(number, *arguments):
        try:
            daemon = Daemon(f"{top}/export", "rw", *arguments, env=fault.env)
        except NotReady as e:
            check(number and (e.code or 0) > 0 and e.said.strip(), e)
            return None
        calls = fault.calls
        fault.disarm()
        rftptest.works(f"{top}/f", daemon.url("f"))
        daemon.stop()
        return calls

    # libseccomp does not survive it where its own allocations fail
    each(Start(), fault, lambda number: one(number, "--sandbox=no"), classes=(MEMORY,))
    each(Start(), fault, one, classes=(SYSTEM,))


if __name__ == "__main__":
    rftptest.main()
