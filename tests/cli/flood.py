#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crowds of connections that stall at each step of a session's set-up: others are served meanwhile, and memory is
bounded.  And what keeps such crowds small: early random drop, places that are given up, penalties.

RFTP_SCALE=25 is a crowd of 5,000; it also says what became of the rate of a transfer.
"""

import os
import resource
import selectors
import socket
import struct
import sys
import time

import iwarp
import rftptest
from iwarp import Dropped, Session, Silent
from rftptest import Daemon, case, check, equal, make_file, same_files, scaled, wait_until, works
from rude import WAIT

CROWD = 200
FEW = "0.1"  # seconds for one that stalls to get there


# ---- one that stalls, from an address of its own ----

def connected(port, source):
    return socket.create_connection(("127.0.0.1", port), 20, source_address=(source, 0))


def half_request(port, source):
    s = connected(port, source)
    s.sendall(iwarp.mpa_frame(private=iwarp.greeting())[:23])
    return s


def accepted(port, source):
    return Session(port, WAIT, secure=False, source=source)


def half_hello(port, source):
    """Of TLS: a record whose end never comes."""
    s = Session(port, WAIT, secure=False, source=source)
    s.control.write(b"\x16\x03\x01\x02\x00" + bytes(50))
    return s


def secured(port, source):
    return Session(port, WAIT, source=source)


def half_frame(port, source):
    s = Session(port, WAIT, source=source)
    s.put_stream(struct.pack(">HHI", iwarp.HELLO, 0, 40)[:5])
    return s


def greeted(port, source):
    s = Session(port, WAIT, source=source)
    s.hello()
    return s


def expecting(port, source):
    """Data channels are asked for, and never come."""
    s = greeted(port, source)
    s.ask(iwarp.CHANNELS, struct.pack(">H", 4))
    return s


# the first ones are cheap for both sides, and so most of a crowd
STEPS = [connected, half_request, accepted, half_hello] * 4 + [secured, half_frame, greeted, expecting]


def flood(port, count):
    """In a process of its own: opens so many, says so, and opens those that are dropped again.  Its own work is not
    to be measured: elsewhere it is done on other hosts."""
    os.nice(19)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    selector = selectors.DefaultSelector()
    tries = 0

    def one(i):
        nonlocal tries
        tries += 1
        try:
            s = STEPS[i % len(STEPS)](port, f"127.1.{i >> 8 & 255}.{i & 255 or 1}")
        except (OSError, Dropped, Silent):
            return False
        selector.register(s if isinstance(s, socket.socket) else s.channel.socket, selectors.EVENT_READ, (i, s))
        return True

    for i in range(count):
        one(i)
    print("there", len(selector.get_map()), flush=True)
    while True:
        for key, _ in selector.select(1):
            i, s = key.data
            try:
                if key.fileobj.recv(65536):
                    continue  # what it says before it drops us
            except OSError:
                pass
            selector.unregister(key.fileobj)
            s.close()
            one(i)
            time.sleep(0.002)  # a crowd, and not a test of how fast this is


class Flood:
    def __init__(self, daemon, count):
        self.process = rftptest.spawn([sys.executable, os.path.abspath(__file__), "--flood", str(daemon.port),
                                       str(count)], stdout=-1)
        line = self.process.stdout.readline().split()
        check(line and line[0] == b"there", "no flood:", line)
        self.there = int(line[1])

    def close(self):
        rftptest.kill(self.process)
        self.process.wait()


@case(seconds=120)
def a_crowd_that_stalls(top):
    count = scaled(CROWD)
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw", "--handshake-timeout", "20", "--log-level", "warning")
    large = 16 << 20 if count < 1000 else 1 << 30
    make_file(f"{top}/export/large", large)
    make_file(f"{top}/f", 100000)
    works(f"{top}/f", daemon.url("f"))
    before = daemon.resident_bytes()

    def seconds():
        started = time.monotonic()
        works(daemon.url("large"), f"{top}/got", timeout=100)
        return time.monotonic() - started
    alone = min(seconds() for _ in range(3))
    crowd = Flood(daemon, count)
    check(crowd.there > count * 0.9, "of", count, "only", crowd.there, "came so far")
    during = min(seconds() for _ in range(3))
    logins = []
    for i in range(10):
        started = time.monotonic()
        works(f"{top}/f", daemon.url(f"f{i}"))
        logins.append(time.monotonic() - started)
        same_files(f"{top}/f", daemon.path(f"f{i}"))
    grown = daemon.resident_bytes() - before
    threads = daemon.threads()
    crowd.close()
    # once more: other work of the host comes and goes
    alone = (alone + min(seconds() for _ in range(3))) / 2
    print(f"# {crowd.there} of {count} stall: {large / alone / 1e6:.0f} MB/s alone, {large / during / 1e6:.0f} beside "
          f"them ({alone / during:.2f}); a put of 100 kB took {max(logins):.3f} s at most; "
          f"{grown / 2**20:.1f} MiB more memory, {threads} threads", flush=True)
    # what OpenSSL, buffers and queues of a session take, and what a transfer kept
    check(grown < (32 << 20) + count * (160 << 10), "memory grew by", grown)
    wait_until(lambda: daemon.fds() < 100, lambda: f"{daemon.fds()} descriptors are left", 30)


def stall(daemon, source):
    return Session(daemon.port, WAIT, secure=False, source=source)


def is_refused(daemon, source):
    try:
        stall(daemon, source).close()
    except Dropped as e:
        equal(str(e), "rejected", "the daemon's answer")
        return True
    return False


@case
def early_random_drop(top):
    daemon = Daemon(top, "ro", "--max-startups", "4:50:8")
    one = [stall(daemon, "127.0.0.2") for _ in range(4)]
    check(not is_refused(daemon, "127.0.0.3"), "another address")
    found = {True: 0, False: 0}
    while min(found.values()) < 3 and sum(found.values()) < 200:  # half of them, the others hold on until they end
        found[is_refused(daemon, "127.0.0.2")] += 1
        time.sleep(0.02)
    check(min(found.values()) >= 3, "refused or not:", found)
    check(b"max-startups" in daemon.stderr(), "logged:", daemon.stderr()[-300:])
    while len(one) < 8:
        try:
            one.append(stall(daemon, "127.0.0.2"))
        except Dropped:
            pass
    for _ in range(10):
        check(is_refused(daemon, "127.0.0.2"), "where it is full, one more")
    check(not is_refused(daemon, "127.0.0.3"), "another address")
    for s in one:
        s.close()
    wait_until(lambda: not is_refused(daemon, "127.0.0.2"), "it is served again")
    daemon.stop()
    daemon = Daemon(top, "ro", "--max-startups", "2")
    one = [stall(daemon, "127.0.0.2") for _ in range(2)]
    check(is_refused(daemon, "127.0.0.2"), "a third one")
    one[0].secure()
    one[0].hello()  # it is set up, and counts no more
    stall(daemon, "127.0.0.2")


@case
def who_takes_longest_gives_way(top):
    daemon = Daemon(top, "ro", "--max-half-open", "3")
    done = Session(daemon.port, WAIT)
    done.hello()
    three = [stall(daemon, f"127.0.0.{i}") for i in (2, 3, 4)]
    works("-c", "ls", daemon.url())
    check(three[0].dropped_within(WAIT), "the oldest is still there")
    for s in three[1:]:
        s.secure()
        s.hello()
    equal(done.ask(iwarp.PING, b"cookie 8")[0], 0, "PING of one that was there before")
    check(b"another client needs its place" in daemon.stderr(), daemon.stderr()[-300:])


@case
def penalties(top):
    os.mkdir(f"{top}/export")
    audit = f"{top}/audit"
    daemon = Daemon(f"{top}/export", "ro", "--penalties", "all", "--audit-log", audit)

    def fail(source):
        try:
            iwarp.Channel(daemon.port, b"no greeting", WAIT, source=source).close()
        except Dropped:
            pass
    fail("127.0.0.2")
    Session(daemon.port, WAIT, source="127.0.0.2").hello()
    fail("127.0.0.2")
    wait_until(lambda: b"is refused for" in daemon.stderr(), "it says so")
    for _ in range(5):
        check(is_refused(daemon, "127.0.0.2"), "who failed twice")
    for _ in range(5):
        fail("127.0.0.2")
        try:
            iwarp.Channel(daemon.port, iwarp.greeting(kind=iwarp.DATA, session=77), WAIT, source="127.0.0.2").close()
        except Dropped:
            pass
    Session(daemon.port, WAIT, source="127.0.0.3").hello()
    equal(daemon.stderr().count(b"is refused for"), 1, "how often it is said")
    check(daemon.stderr().count(b"refused: ") <= 2, "not for each connection", daemon.stderr())
    with open(audit) as f:
        said = f.read()
    equal(said.count("(penalties)"), 1, "lines of the audit log")
    check(said.count('"refused"') <= 3, "lines of the audit log", said)
    # what no client says, before and after a login: the frame's own length, its sense, its turn
    for source, login, type_, data in (("127.0.0.6", False, iwarp.HELLO, b"x"),
                                       ("127.0.0.7", False, iwarp.STAT, iwarp.text(b"/")),
                                       ("127.0.0.8", True, iwarp.STAT, iwarp.text(b"a\0b")),
                                       ("127.0.0.9", True, iwarp.HELLO, iwarp.hello())):
        for _ in range(2):
            session = Session(daemon.port, WAIT, source=source)
            if login:
                session.hello()
            session.put(type_, data)
            check(session.dropped_within(WAIT), "it goes on after", type_)
        check(is_refused(daemon, source), "who said twice what no client says", source)
    # those that say nothing, from another one
    daemon.stop()
    daemon = Daemon(f"{top}/export", "ro", "--penalties", "all", "--handshake-timeout", "1")
    mute = [stall(daemon, "127.0.0.4") for _ in range(2)]
    for s in mute:
        check(s.dropped_within(WAIT), "it is still there")
    check(is_refused(daemon, "127.0.0.4"), "who said nothing twice")
    daemon.stop()
    # loopback is not another host
    daemon = Daemon(f"{top}/export", "ro")
    for _ in range(5):
        fail("127.0.0.2")
    check(not is_refused(daemon, "127.0.0.2"), "loopback is refused")
    daemon.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--flood"]:
        flood(int(sys.argv[2]), int(sys.argv[3]))
    rftptest.main()
