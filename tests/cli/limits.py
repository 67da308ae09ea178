#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits that keep one client from keeping all others out: sessions in all and of one address, and the end of
those that are idle."""

import os
import subprocess
import time

import iwarp
import rftptest
from iwarp import Dropped, Session
from rftptest import Daemon, case, check, equal, fails, make_file, same_files, wait_until, works
from rude import WAIT


def served(top, *arguments):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/local", 300000)
    return Daemon(f"{top}/export", "rw", *arguments)


def session(daemon, source=None):
    s = Session(daemon.port, WAIT, source=source)
    s.hello()
    return s


def is_refused(daemon, source=None):
    time.sleep(0.02)  # whoever asks again and again
    try:
        Session(daemon.port, WAIT, source=source).close()
    except Dropped as e:
        equal(str(e), "rejected", "the daemon's answer")
        return True
    return False


@case
def sessions_of_one_address(top):
    daemon = served(top, "--max-sessions", "6", "--max-per-address", "3")
    mine = [session(daemon, "127.0.0.2") for _ in range(3)]
    check(is_refused(daemon, "127.0.0.2"), "a fourth session of one address")
    check(b"127.0.0.2" in daemon.stderr() and b"max-per-address" in daemon.stderr(), "logged:",
          daemon.stderr()[-300:])
    works(f"{top}/local", daemon.url("put"))  # another address
    wait_until(lambda: b"(bye)" in daemon.stderr(), "the daemon knows that it has ended")
    others = [session(daemon, "127.0.0.3") for _ in range(3)]
    check(is_refused(daemon, "127.0.0.4"), "a seventh session")
    fails(rftptest.REFUSED, daemon.url("put"), f"{top}/got", says="as many sessions as it allows")
    mine.pop().close()
    wait_until(lambda: not is_refused(daemon, "127.0.0.2"), "there is room again")
    for s in mine + others:
        equal(s.ask(iwarp.PING, b"cookie 8")[0], 0, "PING")
        s.close()
    daemon.stop()


@case
def who_says_nothing_counts_too(top):
    """Connected, and no HELLO: until the time for it is over."""
    daemon = served(top, "--max-per-address", "2", "--handshake-timeout", "1")
    mute = [Session(daemon.port, WAIT, source="127.0.0.2") for _ in range(2)]
    works(f"{top}/local", daemon.url("put"))
    wait_until(lambda: not is_refused(daemon, "127.0.0.2"), "those that said nothing are gone")
    for s in mute:
        check(s.dropped_within(WAIT), "it is still there")
        s.close()


@case
def idle_sessions_end(top):
    """All sessions there are, idle: after a while another one gets in."""
    daemon = served(top, "--max-sessions", "3", "--idle-timeout", "1")
    idle = [session(daemon) for _ in range(3)]
    wait_until(lambda: not is_refused(daemon), "the idle ones are gone")
    for s in idle:
        check(s.dropped_within(WAIT), "it is still there")
        s.close()
    check(b"(idle" in daemon.stderr(), "logged:", daemon.stderr()[-300:])
    wait_until(lambda: rftptest.rftp(f"{top}/local", daemon.url("put")).code == 0, "a client is served")


@case
def idle_sessions_give_way(top):
    """All sessions there are, idle, for an hour: who comes is served, at the expense of who is idle for longest."""
    daemon = served(top, "--max-sessions", "3", "--idle-timeout", "3600")  # a minute until they give way
    idle = [session(daemon) for _ in range(3)]
    check(is_refused(daemon), "they were all busy a moment ago")
    daemon.stop()
    daemon = Daemon(f"{top}/export", "rw", "--max-sessions", "3", "--idle-timeout", "60")  # a second
    idle = [session(daemon) for _ in range(3)]
    working = idle[1]

    def asks():
        equal(working.ask(iwarp.PING, b"cookie 8")[0], 0, "PING")

    def gets_in():
        asks()
        return not is_refused(daemon)

    wait_until(gets_in, "one gives way")
    asks()
    check(idle[0].dropped_within(WAIT), "the one that was idle for longest is still there")
    wait_until(lambda: asks() or rftptest.rftp(f"{top}/local", daemon.url("put")).code == 0, "a client is served")
    same_files(f"{top}/local", daemon.path("put"))
    check(b"idle, and another client needs its place" in daemon.stderr(), "logged:", daemon.stderr()[-300:])
    # who sits at its prompt comes back by itself
    client = rftptest.start_rftp(daemon.url(""), stdin=subprocess.PIPE)
    client.stdin.write(b"ls\n")
    client.stdin.flush()
    equal(client.stdout.readline(), b"put\n", "ls")
    others = [working]

    def full():
        for s in others:
            s.ask(iwarp.PING, b"cookie 8")
        try:
            others.append(session(daemon))
        except Dropped:
            time.sleep(0.02)
        return len(others) == 3

    wait_until(full, "its place is taken", 20)
    before = daemon.stderr().count(b"(the connection was closed)")
    others.pop().close()
    wait_until(lambda: daemon.stderr().count(b"(the connection was closed)") > before, "there is room")
    result = rftptest.finish(client, b"ls\n")
    equal((result.code, result.out), (0, b"put\n"), "ls again", result)
    daemon.stop()


@case
def a_slow_transfer_is_not_idle(top):
    daemon = served(top, "--idle-timeout", "1")
    make_file(f"{top}/large", 2 << 20)
    proxy = rftptest.Proxy(daemon.port, hold=1 << 20)
    client = rftptest.start_rftp(f"{top}/large", proxy.url("put"))
    wait_until(proxy.held.is_set, "the transfer begins")
    idle = session(daemon)  # is ended meanwhile
    check(idle.dropped_within(WAIT), "an idle session is still there")
    proxy.release()
    result = rftptest.finish(client)
    equal(result.code, 0, result)
    same_files(f"{top}/large", daemon.path("put"))
    proxy.close()


@case
def sessions_of_one_user(top):
    for user in ("alice", "bob"):
        done = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "passwd", user, "--users", f"{top}/users"],
                              input=b"secret\n", capture_output=True, env=rftptest.clean_environment())
        equal(done.returncode, 0, "passwd", done.stderr)
    with open(f"{top}/password", "w") as f:
        f.write("secret\n")
    os.chmod(f"{top}/password", 0o600)
    daemon = served(top, "--users", f"{top}/users", "--max-per-user", "2")

    def shell(user):
        client = rftptest.start_rftp("--password-file", f"{top}/password", "-b", "-",
                                     daemon.url().replace("//", f"//{user}@"), stdin=-1)
        client.stdin.write(b"ls\n")
        client.stdin.flush()
        return client
    two = [shell("alice") for _ in range(2)]
    wait_until(lambda: daemon.stderr().count(b"logged in as alice") == 2, "two sessions of hers")
    fails((rftptest.REFUSED, rftptest.CONNECT), "--password-file", f"{top}/password", "-c", "ls",
          daemon.url().replace("//", "//alice@"), says="as many sessions as a user may have")
    works("--password-file", f"{top}/password", "-c", "ls", daemon.url().replace("//", "//bob@"))
    rftptest.finish(two.pop(), b"")
    wait_until(lambda: rftptest.rftp("--password-file", f"{top}/password", "-c", "ls",
                                     daemon.url().replace("//", "//alice@")).code == 0, "there is room again")
    rftptest.finish(two.pop(), b"")


@case
def the_defaults_have_limits(top):
    shown = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "--help"], check=True, capture_output=True,
                           env=rftptest.clean_environment()).stdout
    for name in (b"--idle-timeout", b"--max-per-address"):
        said = [line for line in shown.splitlines() if name in line]
        check(len(said) == 1 and b"(0)" not in said[0], "the default of", name, said)


rftptest.main()
