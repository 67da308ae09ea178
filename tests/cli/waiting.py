#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transfers that wait: for what others have (memory, threads), and for data channels; and sessions
whose connection ends at that moment.

The daemon has little to lend here, so that a few transfers are enough to take all of it.
"""

import os
import re
import signal
import socket
import struct

import iwarp
import rftptest
from iwarp import Session
from rftptest import (Daemon, Proxy, case, check, equal, finish, leftovers, make_file, same_files, scaled,
                      start_rftp, wait_until, works)
from rude import WAIT, Place

M = 1 << 20
TIGHT = ["--threads", "8", "--memory", "32M", "--open-files", "16"]


def held(top, *arguments):
    """A daemon all of whose threads are lent: two transfers of at least four each."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/local", 300000)
    daemon = Daemon(f"{top}/export", "rw", *TIGHT, "--log-level", "debug", *arguments)
    holder = []
    while True:
        session = Session(daemon.port, WAIT)
        session.hello()
        channels = session.open_channels(1)
        session.put(iwarp.STORE, iwarp.data_request(path=b"held%d" % len(holder)))
        type_, status, data = session.get()
        holder.append((session, channels))
        if type_ == iwarp.QUEUED:
            equal(data, iwarp.queued(), "its place in line")
            return daemon, holder
        equal((type_, status), (iwarp.STORE | iwarp.REPLY, 0), "a STORE")
        check(len(holder) < 9, "eight threads are enough for", len(holder), "transfers")


def let_go(one):
    session, channels = one
    for channel in channels:
        channel.close()
    session.close()


def waiting(daemon):
    """A client that has been told that it waits."""
    client = start_rftp("-v", f"{daemon.top}/../local", daemon.url("put"))
    wait_until(lambda: daemon.stderr().count(b"STORE waits") >= 2, "another one waits")
    return client


@case
def many_clients_share_little(top):
    """All succeed, with fewer threads than they would like to have all together."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/local", 3 * M + 17)
    daemon = Daemon(f"{top}/export", "rw", *TIGHT)
    before = daemon.threads()
    most = 0
    clients = [start_rftp("--json", f"{top}/local", daemon.url(f"f{i}")) for i in range(scaled(24))]
    for client in clients:
        most = max(most, daemon.threads())
        result = finish(client, timeout=100)
        equal(result.code, 0, result)
        # a busy host is no long way, for which more channels are opened than there are CPUs for
        check(result.done()["channels"] <= 4, "channels:", result.done())
        most = max(most, daemon.threads())
    for i in range(len(clients)):
        same_files(f"{top}/local", daemon.path(f"f{i}"))
    check(most <= before + 8, most, "threads, but", before, "and 8 were to be enough")
    equal(leftovers(daemon.top), [], "left over")
    daemon.stop()


@case
def a_relay_is_not_the_peer(top):
    """The daemon says whether the control channel is the client's own; through a relay the round trip is
    that of a reply, and not what TCP sees of the way to the relay."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    session = Session(daemon.port, WAIT)
    port = session.channel.socket.getsockname()[1]
    for told, direct in ((0, 0), (port, 2), (port ^ 1, 0)):
        session = session or Session(daemon.port, WAIT)
        told = told and told - port + session.channel.socket.getsockname()[1]
        reply = session.hello(flags=told << 16 | iwarp.HELLO_QUEUED)
        equal(struct.unpack(">I", reply[22:26])[0] & 2, direct, "the flag of HELLO's reply to port", told)
        session.close()
        session = None
    proxy = Proxy(daemon.port, delay=0.02)
    try:
        for url, least, most in ((daemon.url(), 0, 20), (proxy.url(), 20, 10000)):
            said = works("-v", "-c", "pwd", url).err.decode()
            rtt = float(re.search(r"rtt ([0-9.]+) ms", said)[1])
            check(least <= rtt < most, "a round trip of", rtt, "ms to", url)
    finally:
        proxy.close()
    daemon.stop()


@case
def who_waits_is_told_and_served(top):
    daemon, holder = held(top)
    client = waiting(daemon)
    let_go(holder.pop(0))
    let_go(holder.pop())  # the one that waited: it leaves the line
    result = finish(client)
    equal(result.code, 0, result)
    check(b"waiting: " in result.err, "told:", result.err)
    same_files(f"{top}/local", daemon.path("put"))
    for one in holder:
        let_go(one)
    daemon.stop()


@case
def who_dies_in_line_is_forgotten(top):
    daemon, holder = held(top)
    client = waiting(daemon)
    rftptest.kill(client)
    client.wait()
    waiter = holder.pop()
    let_go(holder.pop(0))
    type_, status, _ = waiter[0].get()
    while type_ == iwarp.QUEUED:
        type_, status, _ = waiter[0].get()
    equal((type_, status), (iwarp.STORE | iwarp.REPLY, 0), "the reply to who waited")
    let_go(waiter)
    works(f"{top}/local", daemon.url("served"))
    for one in holder:
        let_go(one)
    wait_until(lambda: not leftovers(daemon.top), "temporary files are gone")
    daemon.stop()


@case
def frames_while_waiting(top):
    """PING is answered, ABORT and BYE leave the line, anything else breaks the protocol."""
    daemon, holder = held(top)
    waiter, channels = holder.pop()

    def next_frame():
        while True:
            frame = waiter.get()
            if frame[0] != iwarp.QUEUED:
                return frame

    waiter.put(iwarp.PING, struct.pack(">Q", 7))
    equal(next_frame(), (iwarp.PING | iwarp.REPLY, 0, struct.pack(">Q", 7)), "the answer to PING")
    waiter.put(iwarp.ABORT, iwarp.abort())
    equal(next_frame()[0], iwarp.ABORT, "the answer to ABORT")
    status, _ = waiter.ask(iwarp.STAT, iwarp.text(b"/"))
    equal(status, 0, "STAT, after leaving the line")
    for request, wanted in (((iwarp.BYE, b""), iwarp.BYE | iwarp.REPLY),
                            ((iwarp.STAT, iwarp.text(b"/")), iwarp.STAT | iwarp.REPLY)):
        waiter = Session(daemon.port, WAIT)
        waiter.hello()
        channels = waiter.open_channels(1)
        waiter.put(iwarp.STORE, iwarp.data_request(path=b"never"))
        equal(waiter.get()[0], iwarp.QUEUED, "it waits")
        waiter.put(*request)
        type_, status, _ = next_frame()
        equal(type_, wanted, "the answer to", request)
        equal(bool(status), request[0] == iwarp.STAT, "the status of", request)
        let_go((waiter, channels))
    for one in holder:
        let_go(one)
    daemon.stop()


@case
def the_daemon_ends_while_some_wait(top):
    daemon, holder = held(top)
    client = waiting(daemon)
    daemon.process.send_signal(signal.SIGTERM)
    for one in holder:
        let_go(one)
    result = finish(client)
    check(result.code not in (0, -6, -11), result)
    check(b"ended by the server" in result.err or b"the daemon ends" in result.err, result)
    daemon.process.wait(60)
    equal(daemon.process.returncode, 0, "rftpd ended with")
    daemon.stopped = True


@case
def who_stalls_gives_way(top):
    """Two that move nothing lose what they have to one who waits."""
    daemon, holder = held(top, "--stall-timeout", "1")
    result = works("-v", f"{top}/local", daemon.url("put"), timeout=100)
    check(b"waiting: " in result.err, "it did not have to wait:", result.err)
    log = daemon.stderr()
    check(b"nothing moved, and others wait" in log or b"STORE ended" not in log, log)
    # what they had was given back at once, and not when they had answered ABORT, which they do not
    check(b"stored " in log.partition(b"STORE ended")[0], "stored, and then ended:", log)
    for one in holder:
        let_go(one)
    daemon.stop()


@case
def channels_that_close_before_abort_comes(top):
    """A client that gives a transfer up closes its data channels at once: its ABORT, which comes another
    way, says why, and the session goes on."""
    place = Place(top)
    session = Session(place.port, WAIT)
    session.hello()
    for _ in range(scaled(10)):
        channels = session.open_channels(2)
        status, _ = session.ask(iwarp.STORE, iwarp.data_request(path=b"never"))
        equal(status, 0, "a STORE")
        session.put(iwarp.OFFER, iwarp.offer(channels=2))
        equal(session.get()[0], iwarp.ACCEPT, "the answer to OFFER")
        for channel in channels:
            channel.close()
        session.put(iwarp.ABORT, iwarp.abort())
        while (frame := session.get())[0] != iwarp.ABORT:
            pass
        status, _ = session.ask(iwarp.STAT, iwarp.text(b"/"))
        equal(status, 0, "STAT, after", frame)
    session.close()
    place.whole()


@case
def a_request_and_the_end_at_once(top):
    """The connection ends right behind a request that starts a transfer, in each way there is."""
    place = Place(top)
    requests = [(iwarp.STORE, iwarp.data_request(path=b"never")),
                (iwarp.RETRIEVE, iwarp.data_request(path=b"f")),
                (iwarp.FEED, struct.pack(">IHQQ", 0, 1, 0, 0) + struct.pack(">H", 4) + b"feed"),
                (iwarp.LIST, iwarp.text(b"/")), (iwarp.STAT, iwarp.text(b"/")),
                (iwarp.CHANNELS, struct.pack(">H", 3)), (iwarp.BYE, b"")]
    for turn in range(scaled(6)):
        for request in requests:
            for how in ("close", "fin", "rst", "data first"):
                session = Session(place.port, WAIT)
                session.hello()
                channels = session.open_channels(1)
                # the loop is to be busy with others when the request and the end of it arrive
                others = [Session(place.port, WAIT) for _ in range(turn % 3)]
                sock = session.channel.socket
                session.put(*request)
                if how == "data first":
                    for channel in channels:
                        channel.close()
                elif how == "fin":
                    sock.shutdown(socket.SHUT_WR)
                elif how == "rst":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                session.close()
                for channel in channels:
                    channel.close()
                for other in others:
                    other.close()
        check(place.daemon.alive(), "the daemon died:", place.daemon.stderr()[-3000:])
    try:
        os.rmdir(place.daemon.path("feed"))
    except FileNotFoundError:
        pass
    place.whole()


rftptest.main()
