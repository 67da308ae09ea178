#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of either side and cut connections, at seeded moments, in both directions.

Whatever happens: under the real name is the old file or the whole new one, the daemon serves on, and
a side that lives leaves no temporary file behind.
"""

import os
import signal

import rftptest
from rftptest import CONNECT, INTERRUPTED, LOST, OK, PROTOCOL, Daemon, Proxy, case, check, equal, \
    leftovers, make_file, rng, scaled, wait_until, works

SIZE = 3 << 20
ROUNDS = scaled(8)
# more of them where sessions, channels and transfers are set up and ended
POINTS = [0, 1, 19, 20, 50, 100, 300, 600, 1000, 2000]


class Place:
    def __init__(self, top):
        self.export, self.local = f"{top}/export", f"{top}/local"
        os.makedirs(self.export)
        os.makedirs(self.local)
        make_file(f"{top}/new", SIZE + 123)
        make_file(f"{top}/old", 777)
        self.new, self.old = f"{top}/new", f"{top}/old"
        self.turn = 0
        self.digests = {rftptest.digest(self.new): "new", rftptest.digest(self.old): "old"}

    def prepare(self, way):
        """-> the path of the copy, and what the client is to do through `proxy`"""
        source, copy = (f"{self.local}/f", f"{self.export}/f")[::1 if way == "put" else -1]
        for path, what in ((source, self.new), (copy, self.old)):
            if os.path.lexists(path):
                os.unlink(path)
            os.link(what, path) if what == self.new else self.copy_old(path)
        return copy

    def copy_old(self, path):
        with open(self.old, "rb") as a, open(path, "wb") as b:
            b.write(a.read())

    def arguments(self, way, proxy):
        options = ["--connect-timeout", "5", "--channels", "2"]
        self.turn += 1
        if self.turn % 2:  # what leaves before it is asked for is of blocks of its own
            options += ["--early", "always"] + ["--block", "64K"] * (way == "put")
        else:
            options += ["--block", "64K"]
        if way == "put":
            return [*options, f"{self.local}/f", proxy.url("f")]
        return [*options, proxy.url("f"), f"{self.local}/f"]

    def judge(self, copy, what):
        got = self.digests.get(rftptest.digest(copy))
        check(got, what, "left something that is neither the old nor the new file:",
              os.path.getsize(copy), "bytes")
        return got

    def sweep(self):
        for where in (self.export, self.local):
            for name in leftovers(where):
                os.unlink(os.path.join(os.fsencode(where), name))


def points():
    some = [rng().choice(POINTS) + rng().randrange(20) for _ in range(ROUNDS // 2)]
    return some + [rng().randrange(SIZE + 200000) for _ in range(ROUNDS - len(some))]


def cut_codes(point):
    """What the client may say of a connection that ended after so many bytes: half an answer to its
    set-up may as well come from something that is no rftpd."""
    return (OK, LOST, CONNECT) + ((PROTOCOL,) if point < 500 else ())


@case(seconds=120)
def connection_cut(top):
    place = Place(top)
    daemon = Daemon(place.export)
    works(place.new, daemon.url("warm-up"))
    before = daemon.settled()
    for way in ("put", "get"):
        for point in points():
            copy = place.prepare(way)
            proxy = Proxy(daemon.port, cut=point)
            result = rftptest.rftp(*place.arguments(way, proxy))
            what = f"{way} cut after {point} bytes"
            proxy.close()
            check(result.code in cut_codes(point), what, result)
            wait_until(lambda: not leftovers(top), f"{what}: temporary files are gone", 20)
            got = place.judge(copy, what)
            if result.code == OK:
                equal(got, "new", what, "and said to be well")
            else:
                check(result.err.strip(), what, "no message")
    works(place.new, daemon.url("after"))
    daemon.back_to(before, "after cut connections")


@case(seconds=120)
def client_killed(top):
    place = Place(top)
    daemon = Daemon(place.export)
    works(place.new, daemon.url("warm-up"))
    before = daemon.settled()
    for way in ("put", "get"):
        for point in points():
            copy = place.prepare(way)
            started = []  # it may come as far as that before start_rftp returns
            proxy = Proxy(daemon.port, call=point, called=lambda: rftptest.kill(
                wait_until(lambda: started, "the client is started")[0]))
            client = rftptest.start_rftp(*place.arguments(way, proxy))
            started.append(client)
            what = f"{way}, client killed after {point} bytes"
            result = rftptest.finish(client)
            check(result.code in (OK, -signal.SIGKILL), what, result)
            proxy.close()
            if way == "put":  # the daemon lives and cleans up
                wait_until(lambda: not leftovers(place.export), f"{what}: temporary files are gone",
                           20)
            got = place.judge(copy, what)
            if result.code == OK:
                equal(got, "new", what, "and said to be well")
            place.sweep()
    works(place.new, daemon.url("after"))
    daemon.back_to(before, "after killed clients")


@case(seconds=180)
def daemon_killed(top):
    place = Place(top)
    for way in ("put", "get"):
        for point in points():
            daemon = Daemon(place.export)
            copy = place.prepare(way)
            proxy = Proxy(daemon.port, call=point, called=lambda: rftptest.kill(daemon.process))
            result = rftptest.rftp(*place.arguments(way, proxy))
            what = f"{way}, daemon killed after {point} bytes"
            proxy.close()
            daemon.kill()
            check(result.code in cut_codes(point), what, result)
            equal(leftovers(place.local), [], what, "the client's temporary files")
            got = place.judge(copy, what)
            if result.code == OK:
                equal(got, "new", what, "and said to be well")
            else:
                check(result.err.strip(), what, "no message")
            place.sweep()


@case(seconds=120)
def client_interrupted(top):
    """SIGINT and SIGTERM: a word, the exit code, nothing left on either side."""
    place = Place(top)
    daemon = Daemon(place.export)
    works(place.new, daemon.url("warm-up"))
    before = daemon.settled()
    for way in ("put", "get"):
        for number in (signal.SIGINT, signal.SIGTERM):
            copy = place.prepare(way)
            proxy = Proxy(daemon.port, hold=SIZE // 2)
            client = rftptest.start_rftp(*place.arguments(way, proxy))
            what = f"{way}, {number.name}"
            wait_until(lambda: proxy.held.is_set() or client.poll() is not None,
                       f"{what}: the transfer begins")
            client.send_signal(number)
            proxy.release()
            result = rftptest.finish(client, timeout=20)
            proxy.close()
            check(result.code in (INTERRUPTED, 128 + number, OK), what, result)
            wait_until(lambda: not leftovers(top), f"{what}: temporary files are gone", 20)
            got = place.judge(copy, what)
            if result.code == OK:
                equal(got, "new", what)
    daemon.back_to(before, "after interrupted clients")


@case(seconds=300)
def bytes_changed_on_the_way(top):
    """One byte of the stream is flipped: an error, or the whole new file, and never another one."""
    place = Place(top)
    daemon = Daemon(place.export)
    for way in ("put", "get"):
        for options in ([], ["--crc"]):
            for _ in range(scaled(4)):
                copy = place.prepare(way)
                point = rng().randrange(1000, SIZE)
                proxy = Proxy(daemon.port)
                carried = proxy.count

                def flip(data, carried=carried, point=point, proxy=proxy):
                    at = point - proxy.carried
                    if 0 <= at < len(data):
                        data = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]
                    return carried(data)
                proxy.count = flip
                result = rftptest.rftp(*options, *place.arguments(way, proxy), timeout=100)
                what = f"{way} {options}, a bit flipped at byte {point}"
                proxy.close()
                check(result.code in (OK, LOST, CONNECT, PROTOCOL, rftptest.INTEGRITY,
                                      rftptest.FAILED), what, result)
                got = place.judge(copy, what)
                if result.code == OK:
                    equal(got, "new", what, "and said to be well")
                wait_until(lambda: not leftovers(top), f"{what}: temporary files are gone", 20)
    works(place.new, daemon.url("after"))


rftptest.main()
