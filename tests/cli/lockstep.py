# SPDX-License-Identifier: Apache-2.0
"""A line whose round trips are counted and not timed.

It relays TCP connections to a daemon of this host, and hands on what was sent in steps, each half a
round trip: what a side sent before a step reaches the other side with it, all of it and in both
directions, as on a line that is long and limits no rate.  The next step is taken once both sides have
nothing to do any more but to wait: no thread of theirs runs, and they send no more.  So the count does
not depend on how busy the machine is.

A connection is there for its client at once, since the kernel answers for the relay; what the client
sends on it first is therefore kept back for the round trip that TCP takes for that.

What the relay cannot see is a thread that sleeps for a disk, or by the clock.  Such a one can make a
count too large, never too small: the least of some is right (least_trips)."""

import glob
import os
import select
import socket
import time

from rftptest import PATIENCE, Failure, finish, start_rftp

SAMPLES = 4  # in a row, in which nothing happens
SAMPLE_SECONDS = 0.002
PIECE = 1 << 18
SYN_STEPS = 2


def runs(pid):
    """Whether a thread of the process does something, or is about to, or one of a process that it started: who looks
    up names for it, or for leaks in it, which a sanitizer does at its end while it stands still."""
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(f"{task}/stat") as f:
                state = f.read().rpartition(")")[2].split()[0]
        except OSError:
            return True  # it has just gone: others may see that
        if state in "RDt":
            return True
        try:
            with open(f"{task}/children") as f:
                started = f.read().split()
        except OSError:  # it has gone, or this kernel does not say
            continue
        if any(map(runs, started)):
            return True
    return False


class Way:
    """One direction of a connection: pieces and the steps they arrive with; b"" is the end."""

    def __init__(self):
        self.pieces, self.ended, self.rest = [], False, b""


class Line:
    def __init__(self, port, host="127.0.0.1", user=""):
        """`user`: of the URLs, with its @"""
        self.target, self.user = (host, port), user
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, 0), family=family, backlog=256)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.lines = []  # [near, far, there, back, step of the set-up]
        self.step = 0
        self.bytes = 0

    def url(self, path=""):
        host = self.target[0]
        return f"rftp://{self.user}{f'[{host}]' if ':' in host else host}:{self.port}/{path}"

    def accept(self):
        """-> whether somebody came"""
        try:
            near, _ = self.listener.accept()
        except BlockingIOError:
            return False
        near.setblocking(False)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines.append([near, None, Way(), Way(), self.step])
        return True

    def take(self, sock, way, step):
        """Takes in what came on a socket.  -> whether anything did"""
        if sock is None or way.ended:
            return False
        try:
            data = sock.recv(PIECE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self.bytes += len(data)
        way.ended = not data
        way.pieces.append((step, data))
        return True

    def take_all(self):
        came = self.accept()
        for near, far, there, back, since in self.lines:
            came |= self.take(near, there, max(self.step, since + SYN_STEPS) + 1)
            came |= self.take(far, back, self.step + 1)
        return came

    def settle(self, pids):
        """Until nobody does anything any more."""
        quiet = 0
        while quiet < SAMPLES:
            if self.take_all() | self.push_all() or any(map(runs, pids)):
                quiet = 0
            else:
                quiet += 1
                select.select([self.listener], [], [], SAMPLE_SECONDS)

    def push(self, sock, way):
        """What is due and the kernel takes.  -> whether anything moved"""
        moved = False
        while sock is not None and (way.rest or (way.pieces and way.pieces[0][0] <= self.step)):
            try:
                if not way.rest:
                    _, way.rest = way.pieces.pop(0)
                    moved = True
                    if not way.rest:
                        sock.shutdown(socket.SHUT_WR)
                        break
                way.rest = way.rest[sock.send(way.rest):]
                moved = True
            except BlockingIOError:
                break
            except OSError:
                way.rest = b""
                break
        return moved

    def push_all(self):
        moved = False
        for line in self.lines:
            near, far, there, back, since = line
            if far is None and self.step > since:
                far = line[1] = socket.create_connection(self.target)
                far.setblocking(False)
                far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            moved |= self.push(far, there)
            moved |= self.push(near, back)
        return moved

    def waits(self):
        """Whether something is under way."""
        return any(far is None or there.pieces or back.pieces for _, far, there, back, _ in self.lines)

    def carry(self, client, daemon, seconds=60):
        """Until the client has ended.  -> steps that it took"""
        end = time.monotonic() + seconds * PATIENCE
        while client.poll() is None:
            self.settle((client.pid, daemon.process.pid))
            if client.poll() is not None:
                break
            if time.monotonic() > end:
                raise Failure(f"the client has not ended after {self.step / 2} round trips")
            if self.waits():
                self.step += 1
                self.push_all()
            else:
                time.sleep(SAMPLE_SECONDS)
        return self.step

    def close(self):
        self.listener.close()
        for near, far, *_ in self.lines:
            for s in (near, far):
                if s is not None:
                    s.close()


def trips(daemon, *arguments, input=None, before=None, user=""):
    """Runs the client with {url} in its arguments.  -> round trips, result"""
    if before:
        before()
    line = Line(daemon.port, daemon.host.strip("[]"), user)
    with open(os.devnull if input is None else input, "rb") as stdin:
        client = start_rftp(*[a.replace("{url}", line.url()) for a in arguments], stdin=stdin)
    steps = line.carry(client, daemon)
    line.close()
    result = finish(client)
    if result.code:
        raise Failure(f"rftp {arguments} failed: {result}")
    return steps / 2, result


def least_trips(daemon, bar, *arguments, tries=4, **options):
    """-> the least of some runs; no more of them once it is within the bar"""
    least = None
    for _ in range(tries):
        count, _result = trips(daemon, *arguments, **options)
        least = count if least is None else min(least, count)
        if least <= bar:
            break
    return least
