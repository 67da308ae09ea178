#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chmod, touch and ln of the shell: as the programs of these names do it."""

import grp
import os
import pwd
import struct
import subprocess
import time

import iwarp
import rftptest
from rftptest import DENIED, KIND, NO_FILE, USAGE, Daemon, case, check, equal, fails, make_file, rng, works


def served(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(daemon.path("f"), 10)
    return daemon


def mode(path):
    return os.lstat(path).st_mode & 0o7777


@case
def modes_as_chmod_has_them(top):
    """A file and a directory here and there, changed by both programs, in a random order of random modes."""
    os.umask(0o022)
    daemon = served(top)
    os.mkdir(f"{top}/here")
    for where in (f"{top}/here", daemon.path("")):
        make_file(f"{where}/f", 1, mode=0o644)
        os.mkdir(f"{where}/d")
        os.chmod(f"{where}/d", 0o755)
    wanted = ["644", "0", "700"]
    for _ in range(40):
        clauses = []
        for _ in range(rng().randrange(1, 3)):
            who = "".join(rng().sample("ugoa", rng().randrange(0, 3)))
            what = "".join(rng().sample("rwxX", rng().randrange(0, 4))) if rng().random() < .8 else rng().choice("ugo")
            clauses.append(who + rng().choice("+-=") + what)
        wanted.append(",".join(clauses))
    results = []
    for text in wanted:
        done = subprocess.run(["chmod", "--", text, "f", "d"], cwd=f"{top}/here", capture_output=True)
        # chmod(1) complains of what umask has kept from "-w"
        check(done.returncode == 0 or b"new permissions" in done.stderr, done)
        results.append((mode(f"{top}/here/f"), mode(f"{top}/here/d")))
    commands = "; ".join(f"chmod '{text}' f d; stat f; stat d" for text in wanted)
    events = [e for e in works("--json", "-c", commands, daemon.url()).events() if e["event"] == "stat"]
    modes = [int(e["mode"], 8) if isinstance(e["mode"], str) else e["mode"] for e in events]
    for i, text in enumerate(wanted):
        equal(tuple(modes[2 * i:2 * i + 2]), results[i], text, "after", wanted[:i])


@case
def a_tree_of_modes(top):
    daemon = served(top)
    for i in range(30):
        os.makedirs(daemon.path(f"t/d{i}"))
        for k in range(50):
            make_file(daemon.path(f"t/d{i}/{k}"), 0)
    os.symlink("/etc", daemon.path("t/l"))
    works("-c", "chmod -R go-rwx,u-w t", daemon.url())
    for where, directories, files in os.walk(daemon.path("t")):
        equal({mode(f"{where}/{name}") for name in directories if name != "l"} - {0o500}, set(), where)
        equal({mode(f"{where}/{name}") for name in files} - {0o400}, set(), where)
    equal(mode(daemon.path("t")), 0o500, "the directory itself")
    works("-c", "chmod -R 755 t", daemon.url())
    # a link that takes the place of what was found is not followed
    os.mkdir(daemon.path("outside"))
    session = iwarp.Session(daemon.port)
    session.hello()
    os.symlink("outside", daemon.path("t/swapped"))
    session.put(iwarp.SETATTR, struct.pack(">HBIqI", 1, 1 | 16, 0, 0, 0) + iwarp.text(b"/t/swapped"))
    reply = session.get()
    check(reply[:2] == (iwarp.SETATTR | iwarp.REPLY, 0) and reply[2][2:] != b"\0\0", reply)
    session.close()
    check(mode(daemon.path("outside")) != 0, "it was followed")
    os.unlink(daemon.path("t/swapped"))
    done = fails(NO_FILE, "-c", "chmod 600 none f nothing", daemon.url(), says=b"none")
    check(b"nothing" in done.err, done)
    equal(mode(daemon.path("f")), 0o600, "between names that are not there")
    fails(DENIED, "-c", "chmod 755 /", daemon.url())
    for wrong in ("chmod f", "chmod 888 f", "chmod u+q f", "chmod -R", "chmod -x"):
        fails(USAGE, "-c", wrong, daemon.url())


@case
def times(top):
    daemon = served(top)
    os.symlink("f", daemon.path("l"))
    before = time.time()
    works("-c", "touch -d @1700000000.000000123 f; touch new; touch -h -d 2001-02-03T04:05:06.5Z l", daemon.url())
    equal(os.stat(daemon.path("f")).st_mtime_ns, 1700000000000000123, "a time in nanoseconds")
    equal(os.lstat(daemon.path("l")).st_mtime, 981173106.5, "a link's own")
    check(before - 2 <= os.stat(daemon.path("new")).st_mtime <= time.time() + 2, "now")
    equal(os.stat(daemon.path("new")).st_size, 0, "a new file")
    works("-c", "touch f l", daemon.url())
    check(os.stat(daemon.path("f")).st_mtime >= before - 2, "now")
    equal(os.lstat(daemon.path("l")).st_mtime, 981173106.5, "the link led to the file")
    fails(NO_FILE, "-c", "touch -c none", daemon.url())
    check(not os.path.exists(daemon.path("none")))
    fails(NO_FILE, "-c", "touch no/where", daemon.url())
    for wrong in ("touch", "touch -d", "touch -d tomorrow f", "touch -t 1 f", "touch -q f"):
        fails(USAGE, "-c", wrong, daemon.url())


@case
def owners(top):
    """By number and by name, of the name itself, a link and a tree; what may not be is told, and keeps none back."""
    daemon = served(top)
    os.makedirs(daemon.path("d/e"))
    make_file(daemon.path("d/e/f"), 1)
    os.symlink("f", daemon.path("d/e/l"))
    os.symlink("../f", daemon.path("d/to-f"))

    def owner(name):
        st = os.lstat(daemon.path(name))
        return st.st_uid, st.st_gid

    mine = (os.getuid(), os.getgid())
    fails(USAGE, "-c", "chown", daemon.url(""))
    for who in ("1000:", "4294967295", ":", "''"):
        fails(USAGE, "-c", f"chown {who} f", daemon.url(""), says="chown")
    fails(KIND, "-c", "chown nobody-of-that-name f", daemon.url(""), says="no user or group of that name")
    fails(NO_FILE, "-c", "chown 1 none", daemon.url(""), says="none")
    works("-c", f"chown {mine[0]}:{mine[1]} f", daemon.url(""))
    if os.getuid():
        fails(DENIED, "-c", "chown 0 f", daemon.url(""), says="f")
        return
    user, group = pwd.getpwnam("daemon"), grp.getgrnam("daemon")
    works("-c", "chown daemon f; chown :daemon d", daemon.url(""))
    equal((owner("f"), owner("d")), ((user.pw_uid, mine[1]), (mine[0], group.gr_gid)), "by name")
    works("-c", "chown 4711:4712 f", daemon.url(""))
    equal(owner("f"), (4711, 4712), "by number")
    works("-c", "chown 1 d/to-f; chown -h 2:3 d/to-f", daemon.url(""))
    equal((owner("f"), owner("d/to-f")), ((1, 4712), (2, 3)), "through a link, and of it")
    works("-c", "chown -R 5:6 d", daemon.url(""))
    equal([owner(n) for n in ("d", "d/e", "d/e/f", "d/e/l", "d/to-f")], [(5, 6)] * 3 + [mine, (2, 3)], "a tree")
    works("-c", "chown -hR root:root d", daemon.url(""))
    equal([owner(n) for n in ("d", "d/e", "d/e/f", "d/e/l", "d/to-f")], [(0, 0)] * 5, "its links, too")
    os.symlink("d", daemon.path("to-d"))
    works("-c", "chown -hR 7:8 to-d", daemon.url(""))
    equal([owner(n) for n in ("to-d", "d", "d/e/f")], [(7, 8), (0, 0), (0, 0)], "a link to a directory, and nothing in that")
    works("-c", "chown -hR 9:9 to-d/", daemon.url(""))
    equal([owner(n) for n in ("to-d", "d", "d/e/f", "d/to-f")], [(7, 8)] + [(9, 9)] * 3, "what it leads to")
    works("-c", "chown -hR 0:0 d", daemon.url(""))
    fails((DENIED, rftptest.FAILED), "-c", "chown 1 none-such / f", daemon.url(""))
    equal((owner(""), owner("f")[0]), (mine, 1), "the top of the export stays")
    os.chmod(top, 0o755)
    for user in (4711,):
        other = Daemon(daemon.path("d"), user=user)
        fails(DENIED, "-c", "chown 0 e", other.url(""), says="e")
    read_only = Daemon(daemon.path(""), "ro")
    result = fails((DENIED, rftptest.FAILED), "-c", "chown 1 d", read_only.url(""))
    check(b"read-only" in result.err, result)


@case
def links(top):
    daemon = served(top)
    os.mkdir(daemon.path("d"))
    works("-c", "ln -s f l; ln -s ../f d; ln -s 'any thing/' 'd/a b'; cat l", daemon.url())
    equal(os.readlink(daemon.path("l")), "f")
    equal(os.readlink(daemon.path("d/f")), "../f", "into a directory")
    equal(os.readlink(daemon.path("d/a b")), "any thing/")
    fails(KIND, "-c", "ln -s x l", daemon.url(),
          says=b"exists")
    equal(os.readlink(daemon.path("l")), "f", "it is as it was")
    fails(USAGE, "-c", "ln f g", daemon.url())
    fails(USAGE, "-c", "ln -s f", daemon.url())


rftptest.main()
