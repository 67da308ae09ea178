#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Early data that is not what it should be: slots, notices, files, requests; and connections that end in its midst."""

import os
import struct
import time

import iwarp
import rftptest
from iwarp import Dropped, Session
from rftptest import case, check, equal, leftovers, scaled, wait_until
from rude import READS, WAIT, Answer, Place, answer, refused

EARLY = 1 << 25
FIRST = 65536  # number of the area's first slot
BLOCK, STRIDE = 65536, 65536 + 4096
SLOTS = (1 << 20) // STRIDE
CHECKSUM = 304
PAYLOAD = b"early bird, worm"
TWO = BLOCK + len(PAYLOAD)


class Early:
    """A session with data channels and an area, and what is sent without waiting."""

    def __init__(self, port, channels=1, source=None):
        self.session = Session(port, WAIT, reads=READS, source=source)
        self.session.hello(block=4 << 20)
        self.open(channels)

    def open(self, channels=1):
        self.channels = self.session.open_channels(channels)
        self.bytes, self.key, self.base = self.session.area

    def store(self, path=b"stored", flags=EARLY, **fields):
        self.session.put(iwarp.STORE, iwarp.data_request(path=path, flags=flags, **fields))
        return self

    def offer(self, **fields):
        self.session.put(iwarp.OFFER, iwarp.offer(**fields))
        return self

    def file(self, **fields):
        fields = {"size": len(PAYLOAD)} | fields
        self.announced = iwarp.file(**fields)
        self.session.put(iwarp.FILE, self.announced)
        return self

    def write(self, slot, data, key=None, base=None):
        self.channels[0].write(self.key if key is None else key,
                               (self.base if base is None else base) + slot * STRIDE + 4096 - 32, data)
        return self

    def notice(self, slot, channel=0):
        self.channels[channel].send(struct.pack(">I", FIRST + slot))
        return self

    def block(self, slot=0, payload=PAYLOAD, **fields):
        return self.write(slot, iwarp.right_block(payload, **fields)).notice(slot)

    def end(self, **fields):
        right = {"size": len(PAYLOAD), "digest": iwarp.digest(len(PAYLOAD), iwarp.xxh3(PAYLOAD),
                                                              entry=iwarp.xxh3(self.announced))}
        self.session.put(iwarp.FILE_END, iwarp.file_end(**(right | fields)))
        return self

    def landed(self):
        """What was written on a data channel is there before what is said next: a PING went there and back."""
        self.session.put(iwarp.PING, bytes(range(8)))
        while self.session.get()[0] != iwarp.PING | iwarp.REPLY:
            pass
        return self

    def one_of_two(self):
        """FILE_END of a file of two blocks, of which one comes."""
        return self.block(0, sequence=1, offset=BLOCK).end(size=TWO, blocks=2)

    def result(self):
        """-> the status of RESULT, past all that comes before it"""
        while True:
            type_, status, data = self.session.get()
            if type_ == iwarp.RESULT:
                return struct.unpack(">H", data[4:6])[0]
            if type_ not in (iwarp.STORE | iwarp.REPLY, iwarp.ACCEPT, iwarp.GRANT, iwarp.READY) or \
                    type_ & iwarp.REPLY and status:
                raise Dropped(f"{type_} {status} {data!r}")

    def complete(self, files=0, bytes_=0, errors=0, open_=1):
        self.session.put(iwarp.COMPLETE, iwarp.complete(files, bytes_, errors, open_))
        return self

    def closed(self, bytes_=len(PAYLOAD), files=1, errors=0):
        self.complete(files, bytes_, errors, 0)
        while self.session.get()[0] != iwarp.CLOSED:
            pass

    def close(self):
        for c in self.channels:
            c.close()
        self.session.close()


def stored(place, name="stored"):
    with open(place.daemon.path(name), "rb") as f:
        equal(f.read(), PAYLOAD)
    os.unlink(place.daemon.path(name))


@case
def all_at_once(top):
    """In any order of the channels: the blocks may be there before the request is."""
    place = Place(top)
    e = Early(place.port, channels=2)
    equal(e.bytes, 1 << 20)
    for turn in range(3):
        if turn == 1:
            e.block(turn)
        e.store().offer(channels=2)
        if turn == 2:
            e.block(turn)
        e.file()
        if not turn:
            e.block(turn)
        e.end()
        equal(e.result(), 0, "RESULT")
        e.closed()
        stored(place)
    # each slot of the area, in one transfer; the next one may use them all again
    for _ in range(2):
        e.store().offer()
        e.file(size=len(PAYLOAD) * 1)
        e.block(SLOTS - 1).end()
        equal(e.result(), 0, "RESULT")
        e.closed()
        stored(place)
    e.close()
    place.whole()


@case
def a_large_file_in_all_slots(top):
    place = Place(top)
    size = SLOTS * BLOCK
    e = Early(place.port)
    # all are there before the request is: more blocks than the sink has slots of its own
    for slot in range(SLOTS):
        e.write(slot, iwarp.block(sequence=slot, offset=slot * BLOCK) + bytes(BLOCK)).notice(slot)
    e.store().offer(depth=4).file(size=size).end(size=size, blocks=SLOTS, digest=1)
    equal(e.result(), CHECKSUM, "RESULT of wrong sums")
    e.closed(files=0, bytes_=0, errors=1)
    e.store().offer().file().block(0).end()
    equal(e.result(), 0, "RESULT")
    e.closed()
    stored(place)
    e.close()
    place.whole()


@case
def behind_all_other_slots(top):
    """A block that is early, while each slot of the sink's own holds one that is not paid for yet: it pays, too."""
    rate = 4 * BLOCK
    place = Place(top, "--limit", f"rate={rate}")
    for early in (1, 0):
        e = Early(place.port)
        start = time.monotonic()
        e.store().offer(depth=2).file(size=(2 + early) * BLOCK)
        slots = []
        while len(slots) < 2:
            type_, _, data = e.session.get()
            if type_ == iwarp.ACCEPT:
                depth, stride, base, key = struct.unpack(">IIQI", data[:20])
                equal(depth, 2, "slots")
            elif type_ == iwarp.GRANT:
                slots += struct.unpack(f">{data[1]}I", data[2:])
        for sequence, slot in enumerate(slots):
            e.channels[0].write(key, base + slot * stride + 4096 - 32,
                                iwarp.block(sequence=sequence, offset=sequence * BLOCK) + bytes(BLOCK))
            e.channels[0].send(struct.pack(">I", slot))
        e.landed()
        if early:
            e.write(0, iwarp.block(sequence=2, offset=2 * BLOCK) + bytes(BLOCK)).notice(0)
        e.end(size=(2 + early) * BLOCK, blocks=2 + early, digest=1).complete(open_=1)
        while e.session.get()[0] != iwarp.CLOSED:
            pass
        seconds = time.monotonic() - start
        check(seconds > (2 + early) * BLOCK / rate - 0.1, 2 + early, "blocks at", rate, "a second in", seconds, "s")
        e.close()
    place.whole()


def wrong(place, what, action, says=None, late=False):
    """`action(early)` does something wrong, and gives the frames that follow.  `late`: once the file is stored."""
    e = Early(place.port)
    try:
        frames = action(e) or ()
        seen = answer(e.session, *frames)
        while not refused(seen) and seen[-1] != Answer.QUIET:
            seen = answer(e.session)
    except (Dropped, OSError):  # while it still did its wrong
        seen = [Answer.DROPPED]
    check(refused(seen), what, seen)
    if late:
        stored(place)
    check(not os.path.exists(place.daemon.path("stored")), what, "left a file under the real name")
    if says:
        place.said(e.session, says, what)
    e.close()


@case(seconds=120)
def slots_and_notices(top):
    place = Place(top)

    def begun(e, size=len(PAYLOAD), **fields):
        return e.store().offer(**fields).file(size=size)

    wrong(place, "a slot that the area has not", lambda e: begun(e).notice(SLOTS) and (), "is not allowed")
    wrong(place, "no slot at all", lambda e: begun(e).notice(1 << 20) and (), "is not allowed")
    wrong(place, "a slot twice", lambda e: begun(e).block(1).notice(1) and (), "is not allowed")
    wrong(place, "a slot whose block is garbage", lambda e: begun(e).notice(0) and (), "is not allowed")
    wrong(place, "blocks larger than the area", lambda e: begun(e, block=2 << 20).notice(0) and (), "is not allowed")
    wrong(place, "a block beyond its file", lambda e: begun(e).block(0, offset=1 << 20) and (), "not allowed")
    wrong(place, "a block of a file that is over", lambda e: begun(e).block(0, session=0) and (), "not allowed")
    wrong(place, "a block of a file far ahead", lambda e: begun(e).block(0, session=300) and (), "not allowed")
    wrong(place, "a block of a stream", lambda e: e.store().offer().file(kind=3, size=(1 << 64) - 1).block(0) and (),
          "not allowed")
    wrong(place, "a block of a directory", lambda e: e.store().offer().block(0).file(kind=2, size=0, name=b"d") and (),
          "malformed or out of turn")

    def unsaid(e):
        equal(e.session.ask(iwarp.STORE, iwarp.data_request(path=b"stored"))[0], 0)
        return e.offer().block(0) and ()
    wrong(place, "a request that does not say so", unsaid, "is not allowed")

    def unannounced(e):
        begun(e).block(0).end()
        equal(e.result(), 0)
        os.unlink(place.daemon.path("stored"))
        e.block(1, session=2).landed()
        return [(iwarp.COMPLETE, iwarp.complete(bytes_=len(PAYLOAD)))]
    wrong(place, "a file that is never announced", unannounced, None)

    def behind_complete(e):  # the transfer is not over: a block is missing
        return begun(e, size=TWO).one_of_two().complete()
    wrong(place, "a slot twice, behind COMPLETE", lambda e: behind_complete(e).notice(0) and (), "is not allowed")
    wrong(place, "a file that is never announced, behind COMPLETE",
          lambda e: behind_complete(e).block(1, session=2) and (), "not allowed")
    wrong(place, "FILE behind COMPLETE", lambda e: behind_complete(e).file(number=2) and (), "out of turn")
    wrong(place, "COMPLETE twice", lambda e: behind_complete(e).complete() and (), "out of turn")
    wrong(place, "COMPLETE before FILE_END", lambda e: begun(e).block(0).complete() and (), "out of turn")
    wrong(place, "COMPLETE of a file that has no RESULT",
          lambda e: begun(e, size=TWO).one_of_two().complete(files=1, bytes_=TWO, open_=0) and (), "out of turn")
    for what, fields in (("files", {"files": 2}), ("bytes", {"files": 1, "bytes_": 17})):
        wrong(place, f"COMPLETE that counts more {what}",
              lambda e, fields=fields: begun(e).block(0).end().complete(**fields) and (), "does not add up", late=True)
    wrong(place, "FILE_END of more blocks than the file has", lambda e: begun(e).block(0).end(blocks=2) and (),
          "cannot have been sent")
    wrong(place, "FILE_END twice", lambda e: begun(e).end(blocks=1).end() and (), "malformed or out of turn")
    wrong(place, "FILE_END of a directory", lambda e: e.store().offer().file(kind=2, size=0, name=b"dd").end() and (), None)
    if os.path.isdir(place.daemon.path("stored")):
        os.rmdir(place.daemon.path("stored"))
    for name in ("d", "dd"):
        if os.path.isdir(place.daemon.path(name)):
            os.rmdir(place.daemon.path(name))
    place.whole()


@case
def memory_that_is_not_the_areas(top):
    place = Place(top)

    def beyond(e):
        e.store().offer().file()
        e.write(0, bytes(100), base=e.base + e.bytes - 4096)
        return ()
    wrong(place, "a write across the end", beyond)
    wrong(place, "a write before the area", lambda e: e.store().offer().write(0, bytes(100), base=e.base - 8192) and ())
    wrong(place, "a write with another key", lambda e: e.store().offer().write(0, bytes(100), key=e.key ^ 1) and ())
    # the area goes with its channels: a new set has a new one
    e = Early(place.port)
    old = e.key
    e.open()
    check(e.key != old, "the key of the earlier area")
    wrong(place, "the key of an earlier area", lambda x: x.store().offer().write(0, bytes(100), key=old) and ())

    def earlier(x):
        before = x.key
        x.open()
        return x.store().offer().write(0, bytes(100), key=before) and ()
    wrong(place, "the key of an earlier area of the same session", earlier)
    e.store().offer().file().block(0).end()
    equal(e.result(), 0, "RESULT")
    e.closed()
    stored(place)
    e.close()
    place.whole()


@case
def what_was_there_before(top):
    """A right block that was written, and told of or not, is in no area that comes later: who tells of a slot has
    to fill it."""
    place = Place(top)
    for told in (False, True):
        e = Early(place.port)
        for slot in range(SLOTS):
            e.write(slot, iwarp.right_block(PAYLOAD))
            if told:
                e.notice(slot)
        e.landed()
        e.open()
        e.store().offer().file()
        try:
            for slot in range(SLOTS):
                e.notice(slot)
            e.end()
        except iwarp.Dropped:  # the first was refused by then
            pass
        seen = answer(e.session)
        while not refused(seen) and seen[-1] != Answer.QUIET:
            seen = answer(e.session)
        check(refused(seen), "a block of an earlier area of the session", seen)
        e.close()
        for slot in range(SLOTS):
            wrong(place, f"slot {slot} of another session", lambda e, s=slot: e.store().offer().file().notice(s).end() and ())
    place.whole()


@case
def blocks_that_never_come(top):
    """FILE_END promises them: they may be late, so that the daemon waits, and forgets all when the client goes."""
    place = Place(top)
    old = rftptest.digest(place.daemon.path("f"))
    for behind in (lambda e: e, lambda e: e.complete()):
        for path in (b"f", b"stored"):
            e = Early(place.port)
            behind(e.store(path).offer().file(size=TWO).one_of_two())
            e.session.put(iwarp.STAT, iwarp.text(b"/f"))
            while (type_ := e.session.get()[0]) != iwarp.STAT | iwarp.REPLY:
                check(type_ in (iwarp.STORE | iwarp.REPLY, iwarp.ACCEPT, iwarp.GRANT, iwarp.READY),
                      "it ends without its block:", type_)
            e.close()
            wait_until(lambda: not leftovers(place.daemon.top), "temporary files are gone")
            equal(rftptest.digest(place.daemon.path("f")), old, "the old file")
            check(not os.path.exists(place.daemon.path("stored")), "half a file under its name")
    place.whole()


@case
def offers_that_are_refused(top):
    place = Place(top)
    for what, fields in (("an engine that was not agreed on", {"engine": 2}), ("more channels", {"channels": 2}),
                         ("a window of one", {"depth": 1}), ("another protection", {"protect": 1}),
                         ("blocks larger than was agreed on", {"block": 8 << 20})):
        wrong(place, what, lambda e, fields=fields: e.store().offer(**fields).file().block(0).end() and ())
    place.whole()


@case
def more_at_once_than_is_taken_in_at_once(top):
    """What follows a refused request goes by, however much of it is in one piece: the ABORT behind it is answered."""
    place = Place(top)
    e = Early(place.port)
    frames = [(iwarp.STORE, iwarp.data_request(path=b"no/such/directory/x", flags=EARLY)), (iwarp.OFFER, iwarp.offer())]
    frames += [(iwarp.FILE, iwarp.file(number=number, size=1, name=b"n")) for number in range(1, 1000)]
    frames += [(iwarp.ABORT, iwarp.abort())]
    e.session.put_stream(b"".join(struct.pack(">HHI", type_, 0, len(data)) + data for type_, data in frames))
    type_, status, _ = e.session.get()
    check(type_ == iwarp.STORE | iwarp.REPLY and status, type_, status)
    equal(e.session.get()[0], iwarp.ABORT, "the answer to ABORT")
    equal(e.session.ask(iwarp.STAT, iwarp.text(b"/f"))[0], 0, "STAT")
    e.close()
    place.whole()


@case
def a_request_that_is_refused(top):
    """All that follows it goes by, also a flood, until ABORT; then the session goes on with new channels."""
    place = Place(top)
    e = Early(place.port)
    for path in (b"no/such/directory/x", b"f/x"):
        e.block(0).store(path).offer().file().end()  # the daemon closes the data channels at once
        for number in range(2, 10000):  # 2.5 MB: more than is kept for anybody
            e.session.put(iwarp.FILE, iwarp.file(number=number, size=1, name=b"n" * 200))
        type_, status, _ = e.session.get()
        equal(type_, iwarp.STORE | iwarp.REPLY)
        check(status, "it is not refused")
        e.session.put(iwarp.ABORT, iwarp.abort())
        equal(e.session.get()[0], iwarp.ABORT, "the answer to ABORT")
        check(e.channels[0].dropped_within(WAIT), "the data channel stays")
        equal(e.session.ask(iwarp.STAT, iwarp.text(b"/f"))[0], 0, "STAT")
        e.open()
    e.store().offer().file().block(0).end()
    equal(e.result(), 0, "RESULT")
    e.closed()
    stored(place)
    e.close()
    place.whole()


@case
def a_file_that_is_refused(top):
    """Its early blocks go by; the next file of the transfer is stored, in other slots."""
    place = Place(top)
    e = Early(place.port)
    e.store(b"/", flags=EARLY | 1 | 4).offer(files=2)
    e.file(name=b"f").block(0).end()  # it is there already
    e.file(number=2, name=b"stored").block(1, session=2).end(number=2)
    check(e.result(), "it replaced a file")
    equal(e.result(), 0, "RESULT of the other one")
    e.closed(errors=1)
    stored(place)
    # and one of which FILE_END promises more than came
    e.store(b"/", flags=EARLY | 1 | 4).offer().file(name=b"f", size=3 * BLOCK).end(size=3 * BLOCK, blocks=3, digest=0)
    check(e.result(), "it replaced a file")
    e.close()
    place.whole()


def cut_behind(place, e, steps, by):
    """A client goes behind these steps, its data channel first or with all the rest."""
    for step in steps:
        step(e)
    if by == "data":
        e.channels[0].close()
    e.session.close()
    e.close()
    place.daemon.back_to(place.before, f"after a cut behind step {len(steps)}")


@case
def cut_at_each_step(top):
    """The old file, or the whole new one; and nothing else."""
    place = Place(top)
    steps = [lambda e: e.store(b"f"), lambda e: e.offer(), lambda e: e.file(),
             lambda e: e.write(0, iwarp.right_block(PAYLOAD)), lambda e: e.notice(0), lambda e: e.end(),
             lambda e: e.complete()]
    whole = 6
    with open(place.daemon.path("f"), "rb") as f:
        old = f.read()
    for count in range(len(steps) + 1):
        for by in ("control", "data"):
            e = Early(place.port)
            cut_behind(place, e, steps[:count], by)
            with open(place.daemon.path("f"), "rb") as f:
                now = f.read()
            check(now in (old, PAYLOAD) if count >= whole else now == old, "step", count, "by", by)
            with open(place.daemon.path("f"), "wb") as f:
                f.write(old)
    os.utime(place.daemon.path("f"))
    place.files = rftptest.tree(place.daemon.top)
    place.whole()


class EarlyGet(Early):
    """Asks for the file of 5 bytes, and names memory with it."""

    def ask(self, path=b"small", **fields):
        fields = {"flags": EARLY, "engine": 1, "channels": 1, "block": BLOCK, "depth": 4} | fields
        self.session.put(iwarp.RETRIEVE, iwarp.data_request(path=path, **fields))
        return self

    def accept(self, **fields):
        self.session.put(iwarp.ACCEPT, iwarp.accept(**{"base": 1 << 20, "stride": STRIDE} | fields))
        return self

    def grant(self, *indices):
        self.session.put(iwarp.GRANT, iwarp.grant(indices))
        return self

    def until(self, wanted):
        while True:
            type_, status, data = self.session.get()
            if type_ == wanted:
                return data
            check(type_ != iwarp.ABORT and not (type_ & iwarp.REPLY and status), type_, status, data)


def wrong_get(place, what, action):
    e = EarlyGet(place.port)
    try:
        frames = action(e) or ()
        seen = answer(e.session, *frames)
        while not refused(seen) and seen[-1] != Answer.QUIET:
            seen = answer(e.session)
    except (Dropped, OSError):
        seen = [Answer.DROPPED]
    check(refused(seen), what, seen)
    e.close()


@case(seconds=120)
def gets_that_lie(top):
    """What a client says with an early RETRIEVE, and behind it."""
    place = Place(top, small=b"small")
    for fields in ({"engine": 0}, {"channels": 0}, {"block": 0}, {"depth": 0}, {"engine": 4}, {"engine": 9},
                   {"channels": 2}, {"block": BLOCK + 1}, {"depth": 1 << 20}):
        wrong_get(place, f"RETRIEVE with {fields}", lambda e, f=fields: e.ask(**f).accept().grant(0) and ())
    for fields in ({"depth": 0}, {"depth": 5}, {"stride": STRIDE - 4096}, {"stride": 0}, {"flags": 1}, {"flags": 4},
                   {"base": (1 << 64) - 1}, {"status_key": 1}, {"status_base": 4096}):
        wrong_get(place, f"ACCEPT with {fields}", lambda e, f=fields: e.ask().accept(**f).grant(0) and ())
    for what, indices in (("beyond the depth", (4,)), ("of 2^32 - 1", (0xffffffff,)), ("twice", (1, 1)), ("none", ())):
        wrong_get(place, f"GRANT {what}", lambda e, i=indices: e.ask().accept().grant(*i) and ())
    ready, result = struct.pack(">IQ", 1, 0), struct.pack(">IHQQ", 1, 0, 5, 1) + iwarp.text(b"")
    for what, frames in (("GRANT before ACCEPT", [(iwarp.GRANT, iwarp.grant([0])), (iwarp.ACCEPT, iwarp.accept())]),
                         ("READY before ACCEPT", [(iwarp.READY, ready)]),
                         ("RESULT before ACCEPT", [(iwarp.RESULT, result)]),
                         ("CLOSED before ACCEPT", [(iwarp.CLOSED, iwarp.complete(0, 0))]),
                         ("OFFER", [(iwarp.OFFER, iwarp.offer())])):
        wrong_get(place, what, lambda e, f=frames: e.ask() and f)
    for what, frames in (("ACCEPT twice", [(iwarp.ACCEPT, iwarp.accept(stride=STRIDE))]),
                         ("HAVE of what is sent early", [(iwarp.HAVE, iwarp.have())]),
                         ("READY with blocks that it was not told of", [(iwarp.READY, struct.pack(">IQ", 1, 4096))]),
                         ("READY of another file", [(iwarp.READY, struct.pack(">IQ", 2, 0))]),
                         ("CLOSED without RESULT", [(iwarp.CLOSED, iwarp.complete(1, 5))])):
        def behind(e, f=frames):
            e.ask().accept().grant(0, 1, 2, 3).until(iwarp.COMPLETE)
            return f
        wrong_get(place, what, behind)
    # a file larger than the memory: that ACCEPT passes by, whatever it says, and then the right one counts
    for fields in ({}, {"depth": 9999}, {"stride": 0}):
        e = EarlyGet(place.port)
        e.ask(path=b"f").accept(**fields).grant(*range(4))
        data = e.until(iwarp.OFFER)
        block, depth = struct.unpack(">II", data[4:12])
        check((block, depth) != (BLOCK, 4), "the same offer", block, depth)
        e.accept(depth=depth, stride=block + 4096).grant(0).until(iwarp.FILE)
        e.close()
        wrong_get(place, "and a wrong one then", lambda e: e.ask(path=b"f").accept().grant(0).accept(depth=0) and ())
    place.whole()


@case
def gets_that_are_cut(top):
    place = Place(top, small=b"small")
    steps = [lambda e: e.ask(), lambda e: e.accept(), lambda e: e.grant(0, 1), lambda e: e.until(iwarp.FILE),
             lambda e: e.until(iwarp.FILE_END), lambda e: e.until(iwarp.COMPLETE)]
    for count in range(1, len(steps) + 1):
        for by in ("control", "data"):
            e = EarlyGet(place.port)
            cut_behind(place, e, steps[:count], by)
    place.whole()


@case
def areas_stay_within_the_budget(top):
    """Sessions that say nothing hold what they have; who comes later gets none, and it is given back."""
    place = Place(top, "--early-memory", "3M")
    sessions = [Early(place.port) for _ in range(5)]
    equal([e.bytes for e in sessions], 3 * [1 << 20] + 2 * [0])
    equal([bool(e.key or e.base) for e in sessions[3:]], [False, False])
    sessions[4].store().offer().file()
    wrong_one = sessions[4]
    wrong_one.notice(0)
    seen = answer(wrong_one.session)
    while not refused(seen):
        seen = answer(wrong_one.session)
    for e in sessions:
        e.close()
    place.daemon.back_to(place.before, "after silent sessions")
    again = [Early(place.port) for _ in range(3)]
    equal([e.bytes for e in again], 3 * [1 << 20])
    # a second set of channels of one session has none while the first has
    equal(again[0].session.area[0], 1 << 20)
    for e in again:
        e.close()
    place.whole()


@case(seconds=300)
def many_silent_sessions(top):
    """RFTP_SCALE=12: a thousand."""
    place = Place(top)
    count = scaled(80)
    grown = place.daemon.resident_bytes()
    sessions = [Early(place.port) for _ in range(count)]
    equal(sum(e.bytes for e in sessions), min(count, 64) << 20, "areas")
    grown = place.daemon.resident_bytes() - grown
    print(f"# {count} sessions, {grown >> 20} MiB", flush=True)
    check(rftptest.SANITIZED or grown < (64 << 20) + count * (512 << 10), "the daemon has grown by", grown)
    for e in sessions:
        e.close()
    place.whole()


if __name__ == "__main__":
    rftptest.main()
