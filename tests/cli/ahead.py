#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that are sent before those in front of them were answered: in order, bounded, and of no effect
where the login that they came with was refused."""

import os
import struct
import subprocess
import threading

import iwarp
import rftptest
from iwarp import Channel, Dropped, Session, Silent
from rftptest import BUILD, Daemon, case, check, equal, leftovers, make_file, same_files, scaled, works
from rude import WAIT, Place, refused

STATUS_LOGIN, STATUS_INVALID = 110, 103
BEHIND_LOGIN = 16  # requests that may come with a login


def statuses(session, *requests):
    """Sends them all, then takes as many replies.  -> their statuses"""
    for type_, data in requests:
        session.put(type_, data)
    replies = [session.get() for _ in requests]
    equal([r[0] for r in replies], [t | iwarp.REPLY for t, _ in requests], "the order of the replies")
    return [r[1] for r in replies]


@case
def all_of_a_session_at_once(top):
    place = Place(top)
    session = Session(place.port, WAIT)
    path = iwarp.text
    seen = statuses(session, (iwarp.HELLO, iwarp.hello()), (iwarp.LOGIN, iwarp.login()),
                    (iwarp.STAT, path(b"f")), (iwarp.MKDIR, struct.pack(">II", 0o755, 0) + path(b"d")),
                    (iwarp.STAT, path(b"d")), (iwarp.RMDIR, path(b"d")), (iwarp.STAT, path(b"d")),
                    (iwarp.CHANNELS, struct.pack(">H", 2)), (iwarp.PING, b"cookie 8"), (iwarp.BYE, b""))
    equal(seen[:6] + seen[7:], [0] * 9, "statuses")
    check(seen[6], "a directory that was removed by the request in front is there")
    check(session.dropped_within(WAIT), "BYE did not end the session")
    session.close()
    place.whole()


def expects(session, count=2):
    """CHANNELS.  -> index of the first, nonce"""
    status, data = session.ask(iwarp.CHANNELS, struct.pack(">H", count))
    equal(status, 0, "CHANNELS")
    return struct.unpack(">HH16s", data[:20])[1:]


@case
def transfers_before_their_channels(top):
    place = Place(top)
    for type_, path in ((iwarp.STORE, b"stored"), (iwarp.RETRIEVE, b"f")):
        session = Session(place.port, WAIT)
        session.hello()
        first, nonce = expects(session)
        session.put(type_, iwarp.data_request(path=path))
        session.put(iwarp.PING, b"in front")  # is answered meanwhile
        equal(session.get()[0], iwarp.PING | iwarp.REPLY, "what is answered before a channel is there")
        channels = []
        for i in range(2):
            channels.append(Channel(place.port, session.data_greeting(first + i, nonce), WAIT))
            channels[-1].send(bytes(4))
        got, status, _ = session.get()
        equal((got, status), (type_ | iwarp.REPLY, 0), "once they are there")
        # no other has a place beside them
        try:
            Channel(place.port, session.data_greeting(first, nonce), WAIT)
            raise rftptest.Failure("a channel was accepted twice")
        except Dropped:
            pass
        session.close()
        for c in channels:
            c.close()
    place.whole()


@case
def channels_that_never_come(top):
    place = Place(top, "--handshake-timeout", "1")
    session = Session(place.port, WAIT)
    session.hello()
    expects(session)
    equal(session.ask(iwarp.STORE, iwarp.data_request(path=b"stored"))[0], STATUS_INVALID, "the STORE")
    equal(session.ask(iwarp.PING, b"cookie 8")[0], 0, "the session goes on")
    # one who gives up meanwhile
    expects(session)
    session.put(iwarp.STORE, iwarp.data_request(path=b"stored"))
    session.put(iwarp.ABORT, iwarp.abort())
    equal(session.get()[0], iwarp.ABORT, "the answer to ABORT")
    session.close()
    place.whole()


def daemon_with_users(top):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/export/f", 5000)
    made = subprocess.run([f"{BUILD}/rftpd", "passwd", "alice", "--users", f"{top}/users"], input=b"secret\n",
                          capture_output=True, env=rftptest.clean_environment(), timeout=60 * rftptest.PATIENCE)
    equal(made.returncode, 0, made.stderr)
    return Daemon(f"{top}/export", "rw", "--users", f"{top}/users")


def behind(login, count, path=b"f"):
    kinds = [(iwarp.STAT, iwarp.text(path)), (iwarp.CHANNELS, struct.pack(">H", 2)),
             (iwarp.LIST, iwarp.text(b"/")), (iwarp.STORE, iwarp.data_request(path=b"new")),
             (iwarp.MKDIR, struct.pack(">II", 0o755, 0) + iwarp.text(b"d")), (iwarp.STAT, b"no path")]
    return [(iwarp.LOGIN, login), *(kinds[i % len(kinds)] for i in range(count))]


@case(seconds=120)
def what_comes_with_a_login_that_is_refused(top):
    daemon = daemon_with_users(top)
    before = daemon.settled()
    wrong = iwarp.login(method=2, user=b"alice", data=b"wrong")
    for path in (b"f", b"missing"):
        session = Session(daemon.port, WAIT)
        session.hello(then_login=False)
        equal(statuses(session, *behind(iwarp.login(), BEHIND_LOGIN, path)), [STATUS_LOGIN] * (BEHIND_LOGIN + 1),
              "anonymous, and what came with it")
        # the next login counts anew
        equal(statuses(session, *behind(wrong, BEHIND_LOGIN, path)), [STATUS_LOGIN] * (BEHIND_LOGIN + 1),
              "a wrong password, and what came with it")
        equal(statuses(session, (iwarp.LOGIN, iwarp.login(method=2, user=b"alice", data=b"secret")),
                       (iwarp.STAT, iwarp.text(b"f"))), [0, 0], "the right one")
        session.close()
    session = Session(daemon.port, WAIT)
    session.hello(then_login=False)
    for request in behind(iwarp.login(), BEHIND_LOGIN + 1):
        session.put(*request)
    for _ in range(BEHIND_LOGIN + 1):
        equal(session.get()[1], STATUS_LOGIN, "the first ones")
    check(session.get()[1], "one too many")
    check(session.dropped_within(WAIT), "one too many does not end the session")
    session.close()
    equal(sorted(os.listdir(daemon.top)), ["f"], "the export")
    daemon.back_to(before, "after refused logins")
    daemon.stop()


@case(seconds=120)
def floods_of_requests(top):
    """Who sends without a pause, and takes no answer, is held back or ended; others are served."""
    place = Place(top)
    count, stop = scaled(20000, 4000), threading.Event()
    sent = []

    def flood(request):
        session = Session(place.port, WAIT)
        try:
            session.hello()
            for i in range(count):
                if stop.is_set():
                    break
                session.put(*request)
                sent.append(1)
        except (Dropped, Silent, OSError):
            pass
        session.close()

    memory = place.daemon.resident_bytes()
    requests = [(iwarp.STAT, iwarp.text(b"f")), (iwarp.LIST, iwarp.text(b"/")),
                (iwarp.CHANNELS, struct.pack(">H", 64)), (iwarp.PING, b"cookie 8")]
    threads = [threading.Thread(target=flood, args=(r,)) for r in requests]
    for t in threads:
        t.start()
    for i in range(scaled(8, 3)):
        works(f"{top}/local", place.daemon.url("beside"))
        same_files(f"{top}/local", place.daemon.path("beside"))
    stop.set()
    for t in threads:
        t.join()
    os.unlink(place.daemon.path("beside"))
    print(f"# {len(sent)} requests", flush=True)
    grown = place.daemon.resident_bytes() - memory
    check(rftptest.SANITIZED or grown < 64 << 20, "the daemon has grown by", grown)
    equal(leftovers(top), [], "left over")
    place.whole()


rftptest.main()
