#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""File systems and devices that take their time, or do not answer at all: who uses one waits, and nobody else.

tests/preload/hang.c makes a directory that does not answer, and a device that frees nothing.
"""

import glob
import os
import signal
import socket
import struct
import threading
import time

import iwarp
import rftptest
from iwarp import Dropped, Session
from rftptest import (Daemon, case, check, equal, leftovers, make_file, rng, same_files, scaled, wait_until,
                      works)
from rude import WAIT

HANG = os.path.join(rftptest.BUILD, "tests/preload/hang.so")
EARLY = 1 << 25
FEED = struct.pack(">IHQQ", 0, 1, 0, 0)


class Slow:
    """A daemon whose directory "hangs" does not answer until the gate opens."""

    def __init__(self, top, *arguments, shut=False, hangs={"RFTP_TEST_HANG": "hangs"}):
        if not os.path.exists(HANG):
            rftptest.skip("tests/preload is not built")
        os.makedirs(f"{top}/export/hangs/d")
        os.makedirs(f"{top}/export/well")
        make_file(f"{top}/export/hangs/f", 1000)
        make_file(f"{top}/export/well/f", 300000)
        make_file(f"{top}/local", 300000)
        self.top, self.gate = top, f"{top}/gate"
        env = {"LD_PRELOAD": HANG, "RFTP_TEST_GATE": self.gate} | hangs
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"):
            env[name] = ":".join(filter(None, (os.environ.get(name), "verify_asan_link_order=0", "halt_on_error=1")))
        if shut:  # from the beginning
            open(self.gate, "w").close()
        # what is preloaded makes files beside the export
        self.daemon = Daemon(f"{top}/export", "rw", "--sandbox=no", *arguments, env=env)
        self.port = self.daemon.port
        if shut:
            return
        works(f"{top}/local", self.daemon.url("warm-up"))
        self.before = self.daemon.settled()
        open(self.gate, "w").close()

    def stuck(self):
        return len(glob.glob(f"{glob.escape(self.gate)}.*"))

    def session(self, channels=0):
        session = Session(self.port, WAIT)
        session.hello()
        session.channels = session.open_channels(channels) if channels else []
        return session

    def others_work(self):
        """Another session looks about, puts and gets."""
        local, url = f"{self.top}/local", self.daemon.url
        works("-c", "ls; ls -l well; mkdir well/new; mv well/new well/newer; rmdir well/newer; df", url(""))
        works(local, url("well/put"))
        works(url("well/f"), f"{self.top}/got")
        works("-r", url("well/"), f"{self.top}/tree")
        same_files(local, self.daemon.path("well/put"))
        same_files(f"{self.top}/got", self.daemon.path("well/f"))
        for name in ("f", "put"):
            same_files(f"{self.top}/tree/{name}", self.daemon.path(f"well/{name}"))

    def open_gate(self):
        os.unlink(self.gate)


REQUESTS = [
    (iwarp.STAT, iwarp.text(b"hangs/f")),
    (iwarp.LIST, iwarp.text(b"hangs")),
    (iwarp.MKDIR, struct.pack(">II", 0o755, 1) + iwarp.text(b"hangs/a/b/c")),
    (iwarp.STATFS, iwarp.text(b"hangs")),
    (iwarp.RMDIR, iwarp.text(b"hangs/d")),
    (iwarp.RENAME, struct.pack(">I", 1) + iwarp.text(b"hangs/f") + iwarp.text(b"hangs/g")),
    (iwarp.REMOVE, iwarp.text(b"hangs/nothing")),
    (iwarp.RETRIEVE, iwarp.data_request(path=b"hangs/f")),
    (iwarp.STORE, iwarp.data_request(path=b"hangs/new")),
    (iwarp.FEED, FEED + iwarp.text(b"hangs/feed")),
]


@case
def a_directory_that_does_not_answer(top):
    """More sessions wait for it than the daemon has threads at first; nobody else notices."""
    slow = Slow(top)
    sessions = []
    for i, (type_, data) in enumerate(REQUESTS + REQUESTS[:1] * 4):
        session = slow.session(channels=1)
        session.put(type_, data)
        sessions.append((type_, session))
        wait_until(lambda: slow.stuck() == i + 1, lambda: f"{slow.stuck()} of {i + 1} are stuck")
        if i % 4 == 0:
            status, _ = slow.session().ask(iwarp.STAT, iwarp.text(b"well/f"))
            equal(status, 0, "STAT beside", i + 1)
    slow.others_work()
    slow.open_gate()
    for type_, session in sessions:
        got, status, _ = session.get()
        equal(got, type_ | iwarp.REPLY, "the reply")
        if type_ not in (iwarp.REMOVE, iwarp.STAT, iwarp.RETRIEVE):  # another one renames
            equal(status, 0, "the status of", hex(type_))
        for channel in session.channels:
            channel.close()
        session.close()
    check(os.path.isdir(slow.daemon.path("hangs/a/b/c")), "mkdir -p")
    wait_until(lambda: not leftovers(slow.daemon.top), "temporary files are gone")
    slow.daemon.back_to(slow.before, "after all have their answers")


@case
def one_session_has_one_thread(top):
    """However many requests it sends at once."""
    slow = Slow(top)
    session = slow.session()
    stat = iwarp.text(b"hangs/f")
    session.put_stream(60 * (struct.pack(">HHI", iwarp.STAT, 0, len(stat)) + stat))
    wait_until(lambda: slow.stuck() == 1, "one is stuck")
    slow.others_work()
    equal(slow.stuck(), 1, "requests of one session that are under way")
    slow.open_gate()
    for _ in range(60):
        got, status, _ = session.get()
        equal((got, status), (iwarp.STAT | iwarp.REPLY, 0), "a reply")
    session.close()


@case
def who_dies_while_it_waits(top):
    """The session is kept until its thread is done with it, and then freed."""
    slow = Slow(top)
    count = 0
    for turn in range(scaled(3)):
        for type_, data in REQUESTS:
            session = slow.session(channels=1)
            sock = session.channel.socket
            session.put(type_, data)
            if rng().random() < 0.5:
                session.put(*rng().choice(REQUESTS))
            how = rng().choice(("at once", "close", "fin", "rst"))
            if how != "at once":
                count += 1
                wait_until(lambda: slow.stuck() >= count, "it is stuck")
            if how == "fin":
                sock.shutdown(socket.SHUT_WR)
            elif how == "rst":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            for channel in session.channels:
                channel.close()
            session.close()
            if how == "at once":
                slow.session().ask(iwarp.STAT, iwarp.text(b"well/f"))  # the daemon has seen it since
                count = slow.stuck()
    slow.others_work()
    slow.open_gate()
    wait_until(lambda: not leftovers(slow.daemon.top), "temporary files are gone")
    slow.daemon.back_to(slow.before, "after those that died")
    works(f"{top}/local", slow.daemon.url("well/again"))


@case
def the_daemon_ends_when_it_answers(top):
    slow = Slow(top)
    sessions = [slow.session(channels=1) for _ in range(3)]
    for session, request in zip(sessions, (REQUESTS[0], REQUESTS[1], REQUESTS[8])):
        session.put(*request)
    wait_until(lambda: slow.stuck() == 3, "all are stuck")
    slow.daemon.process.send_signal(signal.SIGTERM)
    wait_until(lambda: b"SIGTERM: ending" in slow.daemon.stderr(), "it heard the signal")
    slow.open_gate()
    for session in sessions:
        try:
            session.get()
        except Dropped:
            pass
    slow.daemon.process.wait(20 * rftptest.PATIENCE)
    equal(slow.daemon.process.returncode, 0, "rftpd ended with", slow.daemon.stderr()[-2000:])
    rftptest.no_sanitizer_report(slow.daemon.stderr(), "rftpd")
    slow.daemon.stopped = True
    equal(leftovers(slow.daemon.top), [], "temporary files")


@case
def the_daemon_ends_though_it_never_answers(top):
    """Also when it is the sweeper that waits, and no session."""
    slow = Slow(top, shut=True)
    wait_until(lambda: slow.stuck() == 1, "the sweeper is stuck")
    slow.daemon.stop()
    check(b"does not answer" in slow.daemon.stderr(), slow.daemon.stderr()[-500:])


@case
def a_device_that_does_not_answer(top):
    """To free channels takes as long as a device likes: of sessions that have ended, of transfers that are given up,
    of channels in whose place others are asked for, and of transfers that are refused though they have begun."""
    slow = Slow(top, hangs={"RFTP_TEST_HANG_FREE": "yes"})
    other = slow.session()
    gone, given_up, anew, early = (slow.session(channels=2) for _ in range(4))

    def answers(what):
        status, _ = other.ask(iwarp.STAT, iwarp.text(b"well/f"))
        equal(status, 0, "STAT of another session while", what)
    for channel in gone.channels:
        channel.close()
    gone.close()
    wait_until(lambda: slow.stuck() == 1, "the session that ended waits")
    answers("a session is freed")
    given_up.put(iwarp.ABORT, struct.pack(">HH", 108, 0))
    wait_until(lambda: slow.stuck() == 2, "the transfer that was given up waits")
    answers("channels are closed by ABORT")
    anew.put(iwarp.CHANNELS, struct.pack(">H", 1))
    wait_until(lambda: slow.stuck() == 3, "who wants other channels waits")
    answers("channels are closed by CHANNELS")
    early.put(iwarp.STORE, iwarp.data_request(path=b"f", flags=EARLY, channels=9))
    wait_until(lambda: slow.stuck() == 4, "who began what is refused waits")
    answers("channels are closed by a refusal")
    equal(early.get()[:2], (iwarp.STORE | iwarp.REPLY, 103), "the refusal")
    # one of those ends while its task runs
    anew.channel.socket.shutdown(socket.SHUT_WR)
    answers("the session has gone")
    slow.open_gate()
    equal(given_up.get()[0], iwarp.ABORT, "the answer")
    equal(early.ask(iwarp.STORE, iwarp.data_request(path=b"well/f"))[0], 103, "another one, without channels")
    for session in (given_up, anew, early, other):
        for channel in session.channels:
            channel.close()
        session.close()
    slow.daemon.back_to(slow.before, "after those that ended")
    works(f"{top}/local", slow.daemon.url("well/again"))


DEEP = scaled(4)


@case(seconds=180)
def deep_directories_hold_up_nobody(top):
    """One client makes some paths of 2,000 components; another one's requests are answered in between."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/export/f", 10)
    daemon = Daemon(f"{top}/export")
    try:
        answers_between(daemon)
    finally:
        daemon.kill()
        for i in range(DEEP):
            if os.path.isdir(daemon.path(str(i))):
                remove_deep(daemon.path(str(i)))


def answers_between(daemon):
    maker, other = Session(daemon.port, 60 * rftptest.PATIENCE), Session(daemon.port, 60 * rftptest.PATIENCE)
    maker.hello()
    other.hello()
    made, failed = [], []

    def take():
        try:
            for _ in range(DEEP):
                got, status, _ = maker.get()
                equal((got, status), (iwarp.MKDIR | iwarp.REPLY, 0), "a MKDIR")
                made.append(answered[0])
        except Exception as e:
            failed.append(e)

    answered = [0]
    for i in range(DEEP):
        path = b"%d" % i + b"/d" * 1999
        maker.put(iwarp.MKDIR, struct.pack(">II", 0o755, 1) + iwarp.text(path))
    thread = threading.Thread(target=take)
    thread.start()
    while thread.is_alive():
        status, _ = other.ask(iwarp.STAT, iwarp.text(b"f"))
        equal(status, 0, "STAT")
        answered[0] += 1
        time.sleep(0.001)
    thread.join()
    equal(failed, [], "the maker")
    print(f"# requests of another session answered when each path was made: {made}")
    check(made[-1] >= DEEP, DEEP, "paths were made while", made[-1], "requests of another session were answered")
    maker.close()
    other.close()
    daemon.stop()


def remove_deep(top):
    """A chain of directories that is deeper than rmtree goes."""
    here = os.getcwd()
    os.chdir(top)
    depth = 0
    while os.path.isdir("d"):
        os.chdir("d")
        depth += 1
    for _ in range(depth):
        os.chdir("..")
        os.rmdir("d")
    os.chdir(here)


rftptest.main(together=4)
