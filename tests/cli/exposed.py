#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a peer reaches of our memory: of a sink the blocks of its own session, to write, until CLOSED; of a
source nothing, but for the engine pull, with which it reads those of its own session, until CLOSED.

Whoever tries more loses the session, or the channel once nothing runs on it; a transfer beside it
arrives whole.
"""

import os
import socket
import struct
import subprocess

import iwarp
import rftptest
from iwarp import Dropped, Session
from rftptest import (Proxy, case, check, equal, finish, leftovers, make_file, scaled, start_rftp, tree,
                      wait_until)
from rude import READS, WAIT, Answer, Place, Store, answer, refused, store_is_refused

RIGHT, WRONG = b"r" * 32, b"w" * 32  # payloads
BROKEN = "data channel 0 broke"
ENGINES = (iwarp.ENGINE_CREDIT, iwarp.ENGINE_STATUS)


class Beside:
    """A transfer of another session, half of which crosses before what is tried, and half after it."""

    def __init__(self, place):
        self.place = place
        self.client = start_rftp("-", place.daemon.url("beside"), stdin=subprocess.PIPE)
        self.data = rftptest.rng().randbytes(3 << 20)
        self.client.stdin.write(self.data[:len(self.data) // 2])
        self.client.stdin.flush()
        wait_until(lambda: leftovers(place.daemon.top), "the transfer beside it is under way")

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if error:
            return
        check(self.client.poll() is None, "the transfer beside it has ended early")
        equal(finish(self.client, self.data[len(self.data) // 2:]).code, 0, "the transfer beside it")
        path = self.place.daemon.path("beside")
        with open(path, "rb") as f:
            check(f.read() == self.data, "what was sent beside it arrived as something else")
        os.unlink(path)


def feed(path=b"feed"):
    return iwarp.FEED, struct.pack(">IHQQ", 0, 255, 0, 0) + iwarp.text(path)


def result_of(store, *frames):
    """Sends frames -> the status of RESULT"""
    for frame in frames:
        store.session.put(*frame)
    while True:
        type_, _, data = store.session.get()
        if type_ == iwarp.RESULT:
            return struct.unpack(">H", data[4:6])[0]
        equal(type_, iwarp.GRANT, "a frame before RESULT")


def file_end(payload):
    return iwarp.FILE_END, lambda session: iwarp.file_end(size=len(payload), digest=iwarp.digest(
        len(payload), iwarp.xxh3(payload), entry=session.entry))


def close_transfer(store):
    store.session.put(iwarp.COMPLETE, iwarp.complete(bytes_=len(RIGHT)))
    while (type_ := store.session.get()[0]) != iwarp.CLOSED:
        equal(type_, iwarp.GRANT, "a frame before CLOSED")


def ended(place, session, what):
    """The daemon says that a data channel broke, and would wait a while for what the client has to say of it."""
    answer(session)
    session.close()
    place.said(session, BROKEN, what)


def whole_store(place, store, path):
    """A file of one block crosses, is RIGHT, and goes again."""
    index = store.credits[0] if store.credits else 0
    store.fill(index, iwarp.right_block(RIGHT)).notice(index)
    equal(result_of(store, file_end(RIGHT)), 0, "RESULT")
    with open(place.daemon.path(path), "rb") as f:
        equal(f.read(), RIGHT, path)
    os.unlink(place.daemon.path(path))


def held(place):
    """A stream's second block has landed, in slot credits[1], and waits for the first."""
    store = Store(place, request=feed())
    store.offer(depth=64).file(kind=3, size=iwarp.UNKNOWN, name=b"device")
    store.fill(store.credits[1], iwarp.right_block(RIGHT, sequence=1, offset=32))
    store.notice(store.credits[1])
    equal(store.session.get()[0], iwarp.GRANT, "the answer to a block that landed")
    return store


def segments(place):
    """What the feed's segments hold; they go."""
    data = b""
    for where, names, files in os.walk(place.daemon.path("feed"), topdown=False):
        for name in sorted(files):
            with open(os.path.join(where, name), "rb") as f:
                data += f.read()
            os.unlink(os.path.join(where, name))
        os.rmdir(where)
    return data


# ---- the sink's blocks ----

@case
def blocks_in_slots_that_were_not_granted(top):
    place = Place(top)

    def not_yet(store):
        store.offer(depth=64).file(size=32)
        index = next(i for i in range(store.depth) if i not in store.credits)
        store.fill(index, iwarp.right_block(RIGHT)).notice(index)
        return [file_end(RIGHT)]

    with Beside(place):
        store_is_refused(place, "a block in a slot that was not granted yet", not_yet,
                         "is not allowed")
        store = held(place)
        store.fill(store.credits[1], iwarp.right_block(WRONG, sequence=2, offset=64))
        seen = answer(store.notice(store.credits[1]).session)
        check(refused(seen), "a block in a slot that is still full:", seen)
        place.said(store.session, "is not allowed", "a slot that is still full")
        store.close()
    place.daemon.back_to(place.before, "the stream is closed")
    equal(segments(place), b"", "nothing of the stream was whole")
    place.whole()


@case
def writes_that_are_not_told_of(top):
    """In a slot that is not the source's they change nothing, or are found by the checksum."""
    place = Place(top)
    junk = bytes(32) + WRONG
    with Beside(place):
        store = Store(place)
        store.offer(depth=64).file(size=32)
        others = [i for i in range(store.depth) if i not in store.credits]
        check(others, "all slots were granted at once")
        for index in others:
            store.fill(index, junk)
        whole_store(place, store, "stored")
        store.fill(store.credits[0], junk)  # was used, and may be granted again or not
        close_transfer(store)
        store.close()

        store = held(place)
        store.fill(store.credits[1], junk)
        store.fill(store.credits[0], iwarp.right_block(RIGHT)).notice(store.credits[0])
        equal(result_of(store), 304, "RESULT of a stream whose block was changed after it had landed")
        store.close()
    place.daemon.back_to(place.before, "the stream is closed")
    check(segments(place) in (b"", RIGHT), "what was changed is in a segment")
    place.whole()


@case(seconds=120)
def writes_while_a_block_is_verified_and_written(top):
    """They may come before the checksum is taken, or after the block was written; between the two they can
    change what is written.  A file is not there, or each byte is one that its source has sent for it."""
    place = Place(top)
    seen = {}
    with Beside(place):
        for _ in range(scaled(40)):
            store = Store(place)
            store.offer().file(size=32)
            at = store.base + store.credits[0] * store.stride + 4096
            store.fill(store.credits[0], iwarp.right_block(RIGHT)).notice(store.credits[0])
            store.channels[0].raw(b"".join(iwarp.fpdu(iwarp.tagged(piece, store.key, at))
                                           for piece in (WRONG, RIGHT) * 20 + (WRONG,)))
            status = result_of(store, file_end(RIGHT))
            check(status in (0, 304), "RESULT", status)
            path = place.daemon.path("stored")
            check(os.path.exists(path) == (not status), "RESULT", status, "and a file, or none")
            if not status:
                with open(path, "rb") as f:
                    check(set(f.read()) <= set(RIGHT + WRONG), "a file of other bytes")
                os.unlink(path)
            seen[status] = seen.get(status, 0) + 1
            store.close()
    print("# results:", seen)
    place.whole()


@case
def reads_of_the_sinks_memory(top):
    place = Place(top)
    with Beside(place):
        for engine in ENGINES:
            for what in ("by their key", "by the key of what may be read"):
                store = Store(place, engine=engine)
                store.offer().file()
                key = store.key if what == "by their key" else store.status_key
                store.channels[0].read(key, store.base, 64)
                check(store.channels[0].dropped_within(WAIT), f"engine {engine}: a read of blocks {what}")
                ended(place, store.session, what)
                store.close()
    place.whole()


ACCESSES = (
    ("a write of a block", lambda s: s.fill(0, iwarp.right_block(WRONG))),
    ("a write of one byte", lambda s: s.channels[0].write(s.key, s.base, b"x")),
    ("a read of a block", lambda s: s.channels[0].read(s.key, s.base, 64)),
    ("a status byte", lambda s: s.channels[0].write(s.status_key, s.status_base, b"\1")),
    ("a read of the status bytes", lambda s: s.channels[0].read(s.status_key, s.status_base, 64)),
)


@case
def a_key_after_the_transfer(top):
    """After CLOSED it is nobody's, in the same session, too."""
    place = Place(top)
    with Beside(place):
        for engine in ENGINES:
            for what, action in ACCESSES if engine == iwarp.ENGINE_STATUS else ACCESSES[:3]:
                store = Store(place, engine=engine)
                store.offer().file(size=32)
                whole_store(place, store, "stored")
                close_transfer(store)
                action(store)
                check(store.channels[0].dropped_within(WAIT), f"engine {engine}: {what} after CLOSED")
                equal(store.session.ask(iwarp.PING, b"cookie 8")[0], 0, "PING after", what)
                store.close()
    place.whole()


@case
def a_key_of_another_session(top):
    """What one session may write is nobody else's, and nobody loses it by another's trying."""
    place = Place(top)
    for engine in ENGINES:
        for what, action in ACCESSES if engine == iwarp.ENGINE_STATUS else ACCESSES[:3]:
            mine, other = (Store(place, path, engine=engine) for path in (b"mine", b"other"))
            mine.offer().file(size=32)
            other.offer().file(size=32)
            for name in ("key", "base", "status_key", "status_base"):
                setattr(other, name, getattr(mine, name))
            action(other)
            check(other.channels[0].dropped_within(WAIT), f"engine {engine}: {what} of another session")
            ended(place, other.session, what)
            whole_store(place, mine, "mine")
            close_transfer(mine)
            mine.close()
            other.close()
    place.whole()


@case
def a_key_of_an_earlier_transfer(top):
    """Of the same session, while another transfer of it runs, to which it means nothing."""
    place = Place(top)
    with Beside(place):
        for engine in ENGINES:
            for what, action in ACCESSES if engine == iwarp.ENGINE_STATUS else ACCESSES[:3]:
                store = Store(place, engine=engine)
                store.offer().file(size=32)
                whole_store(place, store, "stored")
                old = {name: getattr(store, name) for name in ("key", "base", "status_key", "status_base")}
                close_transfer(store)
                store.credits = []
                status, data = store.session.ask(iwarp.STORE, iwarp.data_request(path=b"second", engine=engine))
                equal(status, 0, "another STORE", data)
                store.offer().file(size=32)
                check(store.key != old["key"], f"engine {engine}: the second transfer has the key of the first")
                for name, value in old.items():
                    setattr(store, name, value)
                action(store)
                check(store.channels[0].dropped_within(WAIT), f"engine {engine}: {what} by the key of before")
                ended(place, store.session, what)
                store.close()
                check(not os.path.exists(place.daemon.path("second")), f"engine {engine}: {what}: a file is there")
    place.whole()


@case(seconds=120)
def keys_that_are_guessed(top):
    """Each guess costs its session; a transfer beside it, whose key is among the neighbours, is not touched."""
    place = Place(top)
    rng = rftptest.rng()
    with Beside(place):
        near = [lambda k, d=d: (k + d) % (1 << 32) for d in (-0x200, -0x100, -2, -1, 1, 2, 0x100, 0x200)]
        bits = [lambda k, b=b: k ^ 1 << b for b in rng.sample(range(32), 8)]
        far = [lambda k: rng.randrange(1 << 32), lambda k: 0, lambda k: (1 << 32) - 1, lambda k: 1]
        for guess in near + bits + far * scaled(2):
            store = Store(place)
            store.offer().file(size=32)
            key = guess(store.key)
            if key != store.key:
                what = f"a write by key {key:#x}, near {store.key:#x}"
                store.channels[0].write(key, store.base, rng.randbytes(4096))
                check(store.channels[0].dropped_within(WAIT), what)
                ended(place, store.session, what)
            store.close()
    place.whole()


# ---- the source's ----

class Retrieve:
    """A session whose daemon is a source that has run out of slots.  It reads the sink's status bytes, and
    so the sink knows the key of memory of the source's: where the answer is to go."""

    def __init__(self, place):
        self.session = Session(place.port, WAIT, reads=READS)
        self.session.hello(engines=1 << iwarp.ENGINE_STATUS)
        self.channel, = self.session.open_channels(1)
        status, data = self.session.ask(iwarp.RETRIEVE, iwarp.data_request(
            engine=iwarp.ENGINE_STATUS, block=65536, depth=2))
        equal(status, 0, "RETRIEVE", data)
        equal(self.session.get()[0], iwarp.OFFER, "after RETRIEVE")
        self.session.put(iwarp.ACCEPT, iwarp.accept(depth=2, status_base=1 << 20, status_key=2))
        equal(self.session.get()[0], iwarp.FILE, "after ACCEPT")
        self.session.put(iwarp.READY, struct.pack(">IQ", 1, 0))
        while True:
            segment = self.channel.segment()
            if segment[0] & 0x80 == 0 and segment[1] & 15 == iwarp.READ_REQUEST:
                break
        self.key, self.base, self.length, key, base = struct.unpack(">IQIIQ", segment[18:])
        equal((key, base), (2, 1 << 20), "what it reads")

    def close(self):
        self.channel.close()
        self.session.close()


@case
def a_sink_that_reaches_for_the_source(top):
    """A source has nothing that a peer may write or read, but for the answer to its own READ."""
    place = Place(top)
    write, read = iwarp.Channel.write, iwarp.Channel.read
    with Beside(place):
        for what, access in (
                ("a write to where the answer is to go",
                 lambda s: write(s.channel, s.key, s.base, bytes(s.length))),
                ("a read of it", lambda s: read(s.channel, s.key, s.base, s.length)),
                ("a write of a neighbouring key", lambda s: write(s.channel, s.key - 1, s.base, b"x")),
                ("a read of a neighbouring key", lambda s: read(s.channel, s.key - 1, s.base, 1)),
                ("a write with the key that the sink gave",
                 lambda s: write(s.channel, 2, 1 << 20, b"x")),
                ("a read with key 0", lambda s: read(s.channel, 0, s.base, 1)),
                ("an answer that is longer than what was asked for", lambda s: s.channel.raw(iwarp.fpdu(
                    iwarp.tagged(bytes(s.length + 1), s.key, s.base, opcode=iwarp.READ_RESPONSE)))),
                ("an answer that goes elsewhere", lambda s: s.channel.raw(iwarp.fpdu(iwarp.tagged(
                    bytes(s.length), s.key, s.base + 1, opcode=iwarp.READ_RESPONSE))))):
            source = Retrieve(place)
            access(source)
            check(source.channel.dropped_within(WAIT), what, "is not refused")
            seen = answer(source.session)
            check(seen[-1] == Answer.DROPPED or seen[-1][1] != 0, what, seen)
            source.close()  # it waits a while for what the client has to say of it
            place.said(source.session, BROKEN, what)
    place.whole()


# ---- the source's, with the engine pull ----

class Fetch:
    """A session that fetches a file by the engine pull, as rftp-protocol(7) has it."""

    def __init__(self, place, depth=4):
        self.place = place
        self.session = Session(place.port, WAIT, reads=READS)
        self.session.hello(engines=1 << iwarp.ENGINE_PULL)
        self.channel, = self.session.open_channels(1)
        status, data = self.session.ask(iwarp.RETRIEVE, iwarp.data_request(
            engine=iwarp.ENGINE_PULL, block=65536, depth=depth))
        equal(status, 0, "RETRIEVE", data)
        equal(self.session.get()[0], iwarp.OFFER, "after RETRIEVE")
        self.session.put(iwarp.ACCEPT, iwarp.accept(depth=depth, base=0, key=0))
        type_, _, data = self.session.get()
        equal(type_, iwarp.EXPOSE, "after ACCEPT")
        (self.blocks, self.stride, self.base, self.key, self.records_base, self.records_key, self.given_base,
         self.given_key) = struct.unpack(">IIQIQIQI", data)
        check(2 <= self.blocks <= depth and self.stride == 65536 + 4096, "EXPOSE", self.blocks, self.stride)
        equal(self.session.get()[0], iwarp.FILE, "after EXPOSE")
        self.session.put(iwarp.READY, struct.pack(">IQ", 1, 0))
        self.given = bytearray(self.blocks)

    def records(self):
        """(sequence, length) of each slot"""
        found = []
        data = self.channel.fetch(self.records_key, self.records_base, max(64, 8 * self.blocks))
        for i in range(self.blocks):
            sequence, length = struct.unpack(">II", data[8 * i:8 * i + 8])
            fold = 0
            for shift in range(0, 32, 7):
                fold ^= sequence >> shift
            equal(length >> 25, fold & 127, "the check of record", i)
            found.append((sequence, length & 0x1ffffff))
        check(not any(data[8 * self.blocks:]), "behind the records:", data)
        return found

    def full(self, count=1):
        """Waits until so many slots hold something -> their numbers, oldest first"""
        def there():
            records = self.records()
            slots = sorted((r, i) for i, r in enumerate(records) if r[0])
            return [i for _, i in slots] if len(slots) >= count else None
        return wait_until(there, "slots hold blocks")

    def block(self, slot, length):
        """-> (offset, payload) of what is in a slot"""
        data = self.channel.fetch(self.key, self.base + slot * self.stride + 4096 - 32, 32 + length)
        number, _, offset, size, _, _ = struct.unpack(">IIQIIQ", data[:32])
        equal((number, size), (1, length), "header of a block")
        return offset, data[32:]

    def give(self, slot, by=1):
        self.given[slot] = (self.given[slot] + by) % 256
        self.channel.write(self.given_key, self.given_base + slot, bytes([self.given[slot]]))

    def whole(self):
        """Fetches all of the file, and ends the transfer."""
        with open(self.place.daemon.path("f"), "rb") as f:
            right = f.read()
        data, seen = bytearray(len(right)), 0
        while seen * 65536 < len(right):
            for sequence, slot, length in sorted((s, i, n) for i, (s, n) in enumerate(self.records())):
                if sequence != seen + 1:
                    continue
                offset, payload = self.block(slot, length)
                data[offset:offset + length] = payload
                self.give(slot)
                seen += 1
        check(data == right, "what was fetched is not the file")
        type_, _, end = self.session.get()
        equal(type_, iwarp.FILE_END, "after the blocks")
        _, status, size, blocks, digest = struct.unpack(">IHQQQ", end)
        equal((status, size, blocks), (0, len(right), seen), "FILE_END")
        self.session.put(iwarp.RESULT, struct.pack(">IHQQ", 1, 0, size, digest) + iwarp.text(b""))
        equal(self.session.get()[0], iwarp.COMPLETE, "after RESULT")
        self.session.put(iwarp.CLOSED, iwarp.complete(bytes_=size))

    def close(self):
        self.channel.close()
        self.session.close()


PULLS = (
    ("a write of a block", lambda s: s.channel.write(s.key, s.base + 4096, b"x")),
    ("a write of a record", lambda s: s.channel.write(s.records_key, s.records_base, bytes(8))),
    ("a read of what is to be written", lambda s: s.channel.read(s.given_key, s.given_base, 1)),
    ("a read behind the slots", lambda s: s.channel.read(s.key, s.base + s.blocks * s.stride, 1)),
    ("a read across their end", lambda s: s.channel.read(s.key, s.base + s.blocks * s.stride - 8, 64)),
    ("a read before them", lambda s: s.channel.read(s.key, s.base - 8, 64)),
    ("a read behind the records", lambda s: s.channel.read(s.records_key, s.records_base + max(64, 8 * s.blocks), 1)),
    ("a read of a block by the key of the records", lambda s: s.channel.read(s.records_key, s.base, 64)),
    ("a read by a neighbouring key", lambda s: s.channel.read(s.key - 1, s.base, 64)),
    ("a read by key 0", lambda s: s.channel.read(0, s.base, 64)),
    ("a slot given back by a wrong number", lambda s: s.give(s.full()[0], 2)),
    ("a slot given back that there is not",
     lambda s: s.channel.write(s.given_key, s.given_base + s.blocks, b"\1")),
)
NOT_GIVEN_BACK = {"a slot given back by a wrong number": "gave slot"}


@case
def a_file_is_fetched(top):
    """And its memory is nobody's after CLOSED, in the same session, too: a late READ brings nothing."""
    place = Place(top)
    late = (
        ("a read of a slot", lambda s: s.channel.read(s.key, s.base, 64)),
        ("a read of the records", lambda s: s.channel.read(s.records_key, s.records_base, 64)),
        ("a slot given back", lambda s: s.give(0)),
    )
    with Beside(place):
        for what, action in late:
            source = Fetch(place)
            source.whole()
            # which waits until the transfer has ended
            equal(source.session.ask(iwarp.RETRIEVE, iwarp.data_request(path=b"none"))[0], 200, "RETRIEVE after it")
            action(source)
            check(source.channel.dropped_within(WAIT), what, "after CLOSED")
            equal(source.session.ask(iwarp.PING, b"cookie 8")[0], 0, "PING after", what)
            source.close()
    place.whole()


@case(seconds=120)
def what_is_fetched_is_ones_own(top):
    place = Place(top)
    with Beside(place):
        for what, access in PULLS:
            source = Fetch(place)
            access(source)
            check(source.channel.dropped_within(WAIT), what, "is not refused")
            seen = answer(source.session)
            check(seen[-1] == Answer.DROPPED or seen[-1][1] != 0, what, seen)
            source.close()  # it waits a while for what the client has to say of it
            place.said(source.session, NOT_GIVEN_BACK.get(what, BROKEN), what)
    place.whole()


@case
def a_slot_of_another_session(top):
    """What one session may read is nobody else's, and nobody loses it by another's trying."""
    place = Place(top)
    for what, access in (
            ("a slot", lambda s: s.channel.read(s.key, s.base, 64)),
            ("the records", lambda s: s.channel.read(s.records_key, s.records_base, 64)),
            ("a slot given back", lambda s: s.channel.write(s.given_key, s.given_base, b"\1"))):
        mine, other = Fetch(place), Fetch(place)
        mine.full()
        for name in ("key", "base", "records_key", "records_base", "given_key", "given_base"):
            setattr(other, name, getattr(mine, name))
        access(other)
        check(other.channel.dropped_within(WAIT), what, "of another session")
        ended(place, other.session, what)
        mine.whole()
        mine.close()
        other.close()
    place.whole()


@case
def who_gives_nothing_back(top):
    """Fetches all slots, and no more comes; ABORT ends it, and closes the channel."""
    place = Place(top)
    with Beside(place):
        source = Fetch(place, depth=2)
        equal(len(source.full(2)), 2, "slots that are full")
        before = source.records()
        for slot, (_, length) in enumerate(before):
            source.block(slot, length)
        source.session.ask(iwarp.PING, b"cookie 8")
        equal(source.records(), before, "the records, with nothing given back")
        source.session.put(iwarp.ABORT, iwarp.abort())
        check(source.channel.dropped_within(WAIT), "the channel after ABORT")
        source.close()
    place.whole()


def reset(channel):
    channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    channel.close()


@case
def who_dies_between_a_read_and_the_release(top):
    """Its slots go with it, whatever of it goes first, and whatever is under way."""
    place = Place(top)
    ends = (
        ("both channels", lambda s: s.close()),
        ("both channels, by a reset", lambda s: (reset(s.channel), reset(s.session.channel))),
        ("the control channel alone", lambda s: s.session.close()),
        ("the data channel alone", lambda s: s.channel.close()),
        ("the data channel alone, by a reset", lambda s: reset(s.channel)),
    )
    with Beside(place):
        for what, die in ends:
            source = Fetch(place)
            slots = source.full(2)
            for slot in slots:
                source.block(slot, source.records()[slot][1])
            for slot in slots:  # whose answers nobody takes
                source.channel.read(source.key, source.base + slot * source.stride, source.stride)
            source.give(slots[0])
            die(source)
            place.said(source.session, "RETRIEVE ended after", what)
            source.close()
    place.whole()


@case(seconds=120)
def a_client_that_is_killed_while_it_fetches(top):
    place = Place(top)
    make_file(place.daemon.path("large"), 32 << 20)
    place.files, place.before = tree(place.daemon.top), place.daemon.settled()
    with Beside(place):
        for ring in ("64K", "1M"):
            proxy = Proxy(place.port, hold=3 << 20)
            client = start_rftp("--engine", "pull", "--block", ring, proxy.url("large"), f"{top}/got")
            wait_until(proxy.held.is_set, "it is under way")
            client.kill()
            client.wait()
            proxy.close()
    place.whole()


rftptest.main()
