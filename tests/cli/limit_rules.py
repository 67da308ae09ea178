#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user, an address, an export may have in all, by lines `limit = ...`: sessions, rate, memory and open
files: the refusal, and that nobody else is touched by it.

Nothing here measures: rates are so small that who has to wait for them waits for as long as a case takes."""

import json
import os
import struct
import subprocess
import time

import iwarp
import rftptest
from iwarp import Session
from rftptest import (CONNECT, REFUSED, USAGE, Daemon, case, check, equal, fails, finish, make_file, same_files,
                      start_rftp, wait_until, works)
from rude import WAIT, Place, Store
from users_daemon import Users

M = 1 << 20
TURNED_AWAY = (REFUSED, CONNECT)  # at the login
STATUS_LIMIT = 104


@case
def sessions_of_each_user(top):
    daemon = Users(top, "limit = user=bob sessions=2", "limit = user=* sessions=1")
    make_file(f"{top}/a/x", 10)
    first = daemon.shell("alice", "a")
    fails(TURNED_AWAY, *daemon.ls("alice", "a"), says="as many sessions of your user, address, or in all, as may be")
    check(b"limit = user=* sessions=1" in daemon.stderr(), "logged", daemon.stderr()[-500:])
    # another user has his own, and more; nobody is no user
    second = daemon.shell("bob", "a")
    works(*daemon.ls("bob", "a"))
    third = daemon.shell("bob", "a")
    fails(TURNED_AWAY, *daemon.ls("bob", "a"))
    for _ in range(2):
        works(*daemon.ls(None, "a"))
    finish(first, b"")
    wait_until(lambda: rftptest.rftp(*daemon.ls("alice", "a")).code == 0, "there is room again")
    # another rule, for who comes from now on
    daemon.reload("limit = user=* sessions=3")
    works(*daemon.ls("bob", "a"))
    for one in (second, third):
        finish(one, b"")
    daemon.stop()


@case
def sessions_in_all_and_of_addresses(top):
    daemon = Users(top, "limit = address=127.0.0.2 sessions=1", "limit = address=127.0.0.0/8 sessions=2",
                   "limit = sessions=4")

    def comes(source):
        s = Session(daemon.port, WAIT, source=source)
        s.hello(then_login=False)
        return s, s.ask(iwarp.LOGIN, iwarp.login())[0]

    two, status = comes("127.0.0.2")
    equal(status, 0, "the first of 127.0.0.2")
    equal(comes("127.0.0.2")[1], STATUS_LIMIT, "the second one")
    others = []
    for _ in range(2):
        s, status = comes("127.0.0.3")
        equal(status, 0, "one of the network")
        others.append(s)
    equal(comes("127.0.0.4")[1], STATUS_LIMIT, "the third of the network")
    others.pop().close()
    wait_until(lambda: comes("127.0.0.4")[1] == 0, "there is room in the network")
    daemon.stop()


@case
def sessions_of_an_export(top):
    daemon = Users(top, "limit = export=a sessions=1", "limit = export=* sessions=2", f"audit-log = {top}/audit")
    for name in "ab":
        make_file(f"{top}/{name}/x", 10)
    first = daemon.shell("alice", "a")
    fails(REFUSED, *daemon.ls("bob", "a"), says="the export has as many sessions as it may have")
    fails(REFUSED, *daemon.login, daemon.at("bob", "a/x"), f"{top}/got", says="as many sessions")
    fails(REFUSED, *daemon.login, f"{top}/a/x", daemon.at("bob", "a/y"), says="as many sessions")
    fails(REFUSED, *daemon.login, "-c", "rm x", daemon.at("bob", "a"), says="as many sessions")
    for line in ("touch x", "chmod 600 x", "ln -s x z"):
        fails(REFUSED, *daemon.login, "-c", line, daemon.at("bob", "a"), says="as many sessions")
    check(not os.path.exists(f"{top}/a/y") and os.path.exists(f"{top}/a/x"), "something was done")
    check(b"may not use the export a" in daemon.stderr(), "logged", daemon.stderr()[-500:])
    with open(f"{top}/audit") as f:
        told = [e for e in map(json.loads, f) if e["event"] == "refused" and "export" in e]
    equal({(e["user"], e["export"], e["status"], e["text"]) for e in told},
          {("bob", "a", "limit", "export=a sessions=1")}, "the audit log")
    check({"x", "y"} <= {e["path"].lstrip("/") for e in told}, "what was asked for", told)
    # the list of exports is nobody's, and the other one has two
    works(*daemon.ls("bob"))
    second = daemon.shell("bob", "b")
    works(*daemon.ls("alice", "b"))
    third = daemon.shell("alice", "b")
    fails(REFUSED, *daemon.ls("bob", "b"))
    finish(first, b"")
    wait_until(lambda: rftptest.rftp(*daemon.ls("bob", "a")).code == 0, "there is room again")
    for one in (second, third):
        finish(one, b"")
    daemon.stop()


@case
def a_rate_is_shared_by_who_has_it_and_nobody_else(top):
    """32 MiB at 64 KiB a second take eight minutes."""
    daemon = Users(top, "limit = user=alice rate=64K")
    make_file(f"{top}/f", 32 * M)
    slow = daemon.begins("alice", f"{top}/f", "a/slow")
    works(*daemon.login, f"{top}/f", daemon.at("bob", "a/bobs"))
    same_files(f"{top}/f", f"{top}/a/bobs")
    works(*daemon.login, daemon.at("bob", "a/bobs"), f"{top}/back")
    equal(slow.poll(), None, "hers is over")
    # her second one waits with the first, whatever it is
    second = start_rftp(*daemon.login, daemon.at("alice", "a/bobs"), f"{top}/second")
    works(f"-c", "ls", daemon.at(None, "a"))
    equal((slow.poll(), second.poll()), (None, None), "they are over")
    check(not os.path.exists(f"{top}/second"), "it is there")
    # another rate holds for those that run, too
    daemon.reload("limit = user=alice rate=1000M")
    for one in (slow, second):
        equal(finish(one).code, 0, "hers")
    same_files(f"{top}/f", f"{top}/a/slow")
    same_files(f"{top}/f", f"{top}/second")
    daemon.stop()


@case
def a_rate_of_an_export_and_of_an_address(top):
    daemon = Users(top, "limit = export=a rate=64K")
    make_file(f"{top}/f", 32 * M)
    slow = daemon.begins("alice", f"{top}/f", "a/slow")
    works(*daemon.login, f"{top}/f", daemon.at("alice", "b/f"))
    equal(slow.poll(), None, "it is over")
    rftptest.kill(slow)
    slow.wait()
    daemon.reload("limit = user=* address=127.0.0.0/8 rate=64K", "limit = user=bob address=127.0.0.0/8 rate=none")
    slow = daemon.begins("bob", f"{top}/f", "b/slow")  # the first line counts
    works(f"-c", "ls", daemon.at(None, "a"))
    equal(slow.poll(), None, "it is over")
    daemon.reload("limit = user=bob address=127.0.0.0/8 rate=none", "limit = user=* address=127.0.0.0/8 rate=64K")
    equal(finish(slow).code, 0, "his")
    slow = daemon.begins("alice", f"{top}/f", "b/slow2")
    works(*daemon.login, f"{top}/f", daemon.at("bob", "b/bobs"))
    equal(slow.poll(), None, "hers is over")
    daemon.stop()


@case
def the_rate_is_the_rate(top):
    """Two at once take as long as it takes at least; a lower bound, which no load makes false."""
    daemon = Users(top, "limit = user=* rate=4M")
    make_file(f"{top}/f", 6 * M)
    two = [start_rftp("--json", *daemon.login, f"{top}/f", daemon.at("alice", f"a/{i}")) for i in range(2)]
    seconds = []
    for one in two:
        result = finish(one)
        equal(result.code, 0, result)
        seconds.append(result.done()["seconds"])
    check(max(seconds) >= (12 - 5) / 4, "12 MiB at 4 MiB/s in", seconds)
    daemon.stop()


@case
def small_files_pay_too(top):
    """One after the other, each of them less than may be ahead."""
    daemon = Users(top, "limit = user=* rate=256K")
    make_file(f"{top}/f", 128 << 10)
    make_file(f"{top}/a/small", 4096)
    for early in ("auto", "never"):
        start = time.monotonic()
        works(*daemon.login, f"--early={early}", "-c", "; ".join(f"put {top}/f a/{early}{i}" for i in range(4)),
              daemon.at("alice"))
        seconds = time.monotonic() - start
        check(seconds >= 1.5, "512 KiB at 256 KiB/s in", seconds, "s, with --early =", early)
        start = time.monotonic()
        works(*daemon.login, "-c", "; ".join(f"get a/small {top}/{early}{i}" for i in range(64)), daemon.at("alice"))
        seconds = time.monotonic() - start
        check(seconds >= 0.4, "256 KiB in small files at 256 KiB/s in", seconds, "s")
    daemon.stop()


def cpu_seconds(daemon):
    """User and system time of the daemon, all threads."""
    return time.clock_gettime(~daemon.process.pid << 3 | 2)


def costs_little(daemon, what):
    """A loop that spins takes about a second of CPU in a second, however busy the host is with others: less only
    if it is not let."""
    least = 10.0
    for _ in range(3):
        before, start = cpu_seconds(daemon), time.monotonic()
        time.sleep(0.5)
        least = min(least, (cpu_seconds(daemon) - before) / (time.monotonic() - start))
    check(least < 0.1, what, "costs the daemon", least, "s of CPU a second")


@case
def who_waits_for_the_last_blocks_sleeps(top):
    """Slots are held until they are paid for; the source has said all, and one block of it does not come."""
    place = Place(top, "--limit", "rate=1M")
    block = 65536
    for complete in (False, True):
        store = Store(place).offer(depth=4).file(size=3 * block)
        end = iwarp.file_end(size=3 * block, blocks=3, digest=1)
        for sequence in range(2):
            store.fill(store.credits[sequence], iwarp.block(sequence=sequence, offset=sequence * block) + bytes(block))
            store.notice(store.credits[sequence])
        while len(store.credits) < 3:
            type_, _, data = store.session.get()
            if type_ == iwarp.GRANT:
                store.credits += struct.unpack(f">{data[1]}I", data[2:])
        store.session.put(iwarp.FILE_END, end)
        if complete:
            store.session.put(iwarp.COMPLETE, iwarp.complete(0, 0, 0, open_=1))
        time.sleep(0.5)  # the two slots may be given by now
        costs_little(place.daemon, "a block that does not come" + ", all being said" * complete)
        store.fill(store.credits[2], iwarp.block(sequence=2, offset=2 * block) + bytes(block)).notice(store.credits[2])
        if complete:
            while store.session.get()[0] != iwarp.CLOSED:
                pass
        store.close()
    place.whole()


@case
def who_sends_nothing_keeps_nobody_waiting(top):
    """Room for two large blocks, 32 s of the rate, and none that comes."""
    place = Place(top, "--limit", "rate=1M")
    store = Store(place).offer(block=16 * M, depth=2).file(size=64 * M)
    make_file(f"{top}/small", 4096)
    start = time.monotonic()
    works("--inline-max=0", f"{top}/small", place.daemon.url("small"))
    seconds = time.monotonic() - start
    check(seconds < 16, "4 KiB in", seconds, "s")
    os.unlink(place.daemon.path("small"))
    store.close()
    place.whole()


@case
def what_is_flushed_is_so_meanwhile(top):
    """Who has to pay for what went early does not wait for the disk behind that.  (Within the sandbox nothing could
    be noted.)"""
    log = f"{top}/flushes"
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 960 << 10)
    daemon = Daemon(f"{top}/export", "rw", "--sandbox=no", "--limit", "rate=16K",
                    env=rftptest.preloaded("disk", RFTP_TEST_FLUSHES=log))
    process = start = None

    def is_flushed():
        with open(log) as f:
            return "syncfs" in f.read()

    def is_flushed_soon():
        """What has not gone early when the server is ready is paid for before it goes: then it is tried again."""
        nonlocal process, start
        start = time.monotonic()
        process = start_rftp("--fsync=end", f"{top}/f", daemon.url())
        while time.monotonic() < start + 5:
            if os.path.exists(log) and is_flushed():
                return True
            time.sleep(0.05)
        rftptest.kill(process)
        return False

    check(any(is_flushed_soon() for _ in range(6)), "it is never flushed before it is paid for")
    costs_little(daemon, "what is waited for")
    check(process.poll() is None, "960 KiB at 16 KiB/s in", time.monotonic() - start, "s")
    rftptest.kill(process)
    daemon.stop()


@case
def memory_and_open_files_are_waited_for(top):
    for what in ("memory=2M", "open-files=1"):
        path = f"{top}/{what}"
        os.mkdir(path)
        daemon = Users(path, f"limit = user=alice {what} rate=64K")
        make_file(f"{path}/f", 8 * M)
        slow = daemon.begins("alice", f"{path}/f", "a/slow")
        waits = start_rftp(*daemon.login, f"{path}/f", daemon.at("alice", "a/waits"))
        wait_until(lambda: b"STORE waits" in daemon.stderr(), "it waits", 30)
        works(*daemon.login, f"{path}/f", daemon.at("bob", "a/bobs"))  # who passes it
        equal((slow.poll(), waits.poll()), (None, None), "they are over")
        daemon.reload("limit = user=alice rate=1000M")
        for one in (slow, waits):
            equal(finish(one).code, 0, what)
        same_files(f"{path}/f", f"{path}/a/waits")
        daemon.stop()


@case
def they_are_shown(top):
    daemon = Users(top, "limit = user=* rate=4M", "limit = sessions=100")
    equal(daemon.rules(), ["user=* rate=4M", "sessions=100"], "rftpctl --json limit")
    check("user=* rate=4M" in daemon.ctl("limit"), "rftpctl limit")
    check("configuration" in daemon.ctl("limit", "limit", "user=*", code=1), "rftpctl limit limit")
    daemon.reload("limit = sessions=7")
    equal(daemon.rules(), ["sessions=7"], "after the reload")
    daemon.stop()


@case
def wrong_ones_are_refused(top):
    os.mkdir(f"{top}/export")
    for line, says in (("user=alice", b"limits nothing"), ("rate=9", b"outside"), ("user=a user=b rate=1M", b"twice"),
                       ("quota=1G", b"of an export")):
        done = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "--export", f"{top}/export", "--limit", line],
                              capture_output=True, env=rftptest.clean_environment())
        equal(done.returncode, USAGE, line, done.stderr)
        check(says in done.stderr, line, done.stderr)


rftptest.main()
