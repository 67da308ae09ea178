#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parents that become links to the outside of the export, and directories again, while a client names what is
beneath them: each operation does its work beneath the export, or fails.  Who changes them is another process of
the host, or another session.  Links that stay inside go on working meanwhile.
"""

import ctypes
import os
import stat
import struct
import sys
import threading
import time

import iwarp
import rftptest
from iwarp import Session, text
from rftptest import Daemon, case, check, equal, make_file, same_files, scaled, works
from rude import WAIT

RENAME_EXCHANGE = 2
LEADS_OUT = 208  # what rftp-protocol(7) calls "outside"
SECRET = b"this must never leave" * 37
ROUNDS = 60


# ---- who changes the parents ----

def flip(directory):
    """In a process of its own: `sub`, a directory, and `trap`, a link to the outside, change places."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.chdir(directory)
    print("there", flush=True)
    while not libc.renameat2(-100, b"sub", -100, b"trap", RENAME_EXCHANGE):
        pass
    print("stopped:", os.strerror(ctypes.get_errno()), flush=True)


class Outside:
    """Another process of the host."""

    def __init__(self, daemon):
        self.process = rftptest.spawn([sys.executable, os.path.abspath(__file__), "--flip", daemon.top], stdout=-1)
        equal(self.process.stdout.readline(), b"there\n", "who flips")

    def stop(self):
        check(self.process.poll() is None, "nothing was flipped", self.process)
        rftptest.kill(self.process)
        self.process.wait()


class Beside:
    """A session of its own, which has RENAME."""

    def __init__(self, daemon):
        self.session = Session(daemon.port, WAIT)
        self.session.hello()
        self.end = False
        self.turns = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def rename(self, source, target):
        return self.session.ask(iwarp.RENAME, struct.pack(">I", 0) + text(source) + text(target))[0]

    def run(self):
        while not self.end:
            self.rename(b"sub", b"other")
            while self.rename(b"trap", b"sub"):  # who makes parents made one meanwhile
                self.session.ask(iwarp.REMOVE_TREE, text(b"sub"))
            self.rename(b"sub", b"trap")
            while self.rename(b"other", b"sub"):
                self.session.ask(iwarp.REMOVE_TREE, text(b"sub"))
            self.turns += 1

    def stop(self):
        self.end = True
        self.thread.join(WAIT)
        check(self.turns > 10, "only", self.turns, "turns of who renames")
        self.session.close()


# ---- what is where ----

def lay_out(top):
    os.makedirs(f"{top}/export/sub/d")
    os.makedirs(f"{top}/export/real/deep")
    os.makedirs(f"{top}/outside/d")
    for name, content in (("export/sub/f", b"f" * 500), ("export/real/deep/f", b"r" * 700), ("outside/f", SECRET),
                          ("outside/secret", SECRET), ("outside/d/f", SECRET)):
        with open(f"{top}/{name}", "wb") as f:
            f.write(content)
        os.utime(f"{top}/{name}", ns=(10**18, 10**18))
    os.chmod(f"{top}/outside/f", 0o640)
    os.symlink("../outside", f"{top}/export/trap")
    os.symlink("real/deep", f"{top}/export/good")
    make_file(f"{top}/local", 3000)
    os.makedirs(f"{top}/tree/in")
    make_file(f"{top}/tree/in/f", 100)
    os.symlink("in/f", f"{top}/tree/link")


def state(top):
    """All of the outside but the times of access."""
    found = {}
    for where, names, files in os.walk(f"{top}/outside"):
        for name in [".", *names, *files]:
            path = os.path.join(where, name)
            s = os.lstat(path)
            found[os.path.normpath(path)] = (s.st_mode, s.st_uid, s.st_gid, s.st_ino, s.st_nlink, s.st_size,
                                             s.st_mtime_ns, s.st_ctime_ns)
            if stat.S_ISREG(s.st_mode):
                with open(path, "rb") as f:
                    check(f.read() == SECRET, path, "was changed")
    return found


# ---- what is asked for: (type, data, what its reply may not have) ----

def requests(number):
    n = str(number % 7).encode()
    size = struct.pack(">Q", len(SECRET))
    return {
        "stat": (iwarp.STAT, text(b"sub/f"), size),
        "stat of what is only outside": (iwarp.STAT, text(b"sub/secret"), size),
        "stat of a directory": (iwarp.STAT, text(b"sub/d"), None),
        "opendir": (iwarp.LIST, text(b"sub"), b"secret"),
        "opendir below": (iwarp.LIST, text(b"sub/d"), size),
        "statfs": (iwarp.STATFS, text(b"sub/d"), None),
        "mkdir": (iwarp.MKDIR, struct.pack(">II", 0o755, 0) + text(b"sub/new" + n), None),
        "mkdir with parents": (iwarp.MKDIR, struct.pack(">II", 0o755, 1) + text(b"sub/p" + n + b"/q/r"), None),
        "rmdir": (iwarp.RMDIR, text(b"sub/new" + n), None),
        "unlink of what is only outside": (iwarp.REMOVE, text(b"sub/secret"), None),
        "unlink": (iwarp.REMOVE, text(b"sub/spare"), None),
        "remove a tree": (iwarp.REMOVE_TREE, text(b"sub/p" + n), None),
        "remove a tree that is outside, too": (iwarp.REMOVE_TREE, text(b"sub/d/f"), None),
        "rename within": (iwarp.RENAME, struct.pack(">I", 0) + text(b"sub/f") + text(b"sub/moved"), None),
        "rename back": (iwarp.RENAME, struct.pack(">I", 0) + text(b"sub/moved") + text(b"sub/f"), None),
        "rename from outside": (iwarp.RENAME, struct.pack(">I", 0) + text(b"sub/secret") + text(b"got"), None),
        "rename to outside": (iwarp.RENAME, struct.pack(">I", 0) + text(b"spare" + n) + text(b"sub/spare"), None),
    }


def drain(session, status, data):
    """All frames of a listing."""
    whole = data
    while not status and data[:1] == b"\1":
        _, status, data = session.get()
        whole += data
    return whole


def ask_all(top, daemon):
    """-> {operation: how often it was done}, and how often the link was seen and refused"""
    session = Session(daemon.port, WAIT)
    session.hello()
    done, refused, good = {}, 0, 0
    for number in range(scaled(ROUNDS)):
        with open(daemon.path(f"spare{number % 7}"), "wb"):
            pass
        for what, (type_, data, never) in requests(number).items():
            status, reply = session.ask(type_, data)
            if type_ == iwarp.LIST:
                reply = drain(session, status, reply)
            if never and not status:
                check(never not in reply, what, "told of the outside:", reply)
            done[what] = done.get(what, 0) + (not status)
            refused += status == LEADS_OUT
        status, _ = session.ask(iwarp.STAT, text(b"good/f"))
        good += not status
    equal(good, scaled(ROUNDS), "a link that stays inside")
    session.close()
    check(not done["stat of what is only outside"] and not done["unlink of what is only outside"]
          and not done["rename from outside"], "done outside:", done)
    return done, refused


def copy_all(top, daemon):
    """Files and trees through the parent: open, create, rename, chmod, utimes, links and their targets."""
    moved = 0
    for number in range(scaled(8)):
        for arguments in ((f"{top}/local", daemon.url("sub/put")), (f"{top}/local", daemon.url("sub/f")),
                          ("-r", f"{top}/tree", daemon.url("sub/tree")),
                          ("feed", f"a={top}/local", daemon.url("sub/feed"))):
            moved += rftptest.rftp(*arguments).code == 0
        for source in ("sub/f", "sub/secret", "sub/d/f"):
            got = f"{top}/got"
            if rftptest.rftp(daemon.url(source), got).code == 0:
                moved += 1
                with open(got, "rb") as f:
                    check(f.read(len(SECRET)) != SECRET, source, "came from outside")
                os.unlink(got)
        rftptest.rftp("-r", daemon.url("sub"), f"{top}/trees")
        for where, _, files in os.walk(f"{top}/trees"):
            for name in files:
                with open(os.path.join(where, name), "rb") as f:
                    check(f.read() != SECRET, name, "came from outside")
        rftptest.rftp("-c", "rm -r sub/tree", daemon.url())
        works(f"{top}/local", daemon.url("good/put"))
        same_files(f"{top}/local", daemon.path("real/deep/put"))
    return moved


def races(top, who):
    lay_out(top)
    # what resolves names is tested here, and not what the sandbox would forbid
    daemon = Daemon(f"{top}/export", "rw", "--sandbox=no", "--log-level", "warning")
    before = state(top)
    flipper = who(daemon)
    end = time.monotonic() + 20
    done, refused = ask_all(top, daemon)
    while not (refused and done["stat"] and done["mkdir"]) and time.monotonic() < end:
        done, refused = ask_all(top, daemon)
    moved = copy_all(top, daemon)
    flipper.stop()
    print(f"# {sum(done.values())} requests were done, {refused} led out; {moved} files were moved", flush=True)
    check(refused and done["stat"] and done["mkdir"], "no race:", done, refused)
    equal(state(top), before, "the outside")


@case(seconds=120)
def another_process(top):
    races(top, Outside)


@case(seconds=120)
def another_session(top):
    races(top, Beside)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--flip"]:
        flip(sys.argv[2])
    else:
        rftptest.main()
