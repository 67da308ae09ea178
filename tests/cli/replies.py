#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replies by READ: with the engine pull the daemon lays what it says where its client reads it, and sends only to a
client that has waited for longer than answers take.  What it is told of that, and whoever reads elsewhere, costs its
own session and nothing else."""

import json
import os
import struct
import subprocess
import threading
import time

import iwarp
import rftptest
from iwarp import Control, Dropped, Session
from rftptest import Daemon, case, check, equal, fails, finish, make_file, same_files, start_rftp, tree, wait_until, works
from rude import READS, WAIT, Place, answer, refused

PULL = "--engine=pull"
HAS, ASKS = 0x8000, 0x4000
LARGE = 3 << 20


def control(top):
    return "--control", f"{top}/control"


def start(top):
    """A daemon that tells what it has done"""
    os.makedirs(f"{top}/export", exist_ok=True)
    return Daemon(f"{top}/export", "rw", *control(top))


def stats(daemon):
    process = rftptest.spawn([os.path.join(rftptest.BUILD, "rftpctl"), "-s", os.path.join(
        os.path.dirname(daemon.top), "control"), "-j", "stats"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    result = finish(process)
    equal(result.code, 0, "rftpctl", result)
    return json.loads(result.out)


def counts(daemon):
    """-> (laid out, asked for, sent)"""
    found = stats(daemon)
    return tuple(found[name] for name in ("replies_laid_out", "replies_asked_for", "replies_sent"))


def only_asked(daemon, what):
    """Every SEND was asked for."""
    laid, asked, sent = counts(daemon)
    print(f"# {what}: {laid} pieces, asked for {asked} SENDs, {sent} sent", flush=True)
    check(sent <= asked, what, sent, "SENDs, of which were asked for", asked)
    return laid, asked, sent


# ---- our own client ----

@case(seconds=120)
def everything_crosses(top):
    daemon = start(top)
    os.makedirs(f"{top}/tree/sub")
    for i in range(300):
        make_file(f"{top}/tree/sub/f{i}", i * 7)
    make_file(f"{top}/tree/large", LARGE)
    works("--engine=credit", "-r", f"{top}/tree", daemon.url("credit"))
    equal(counts(daemon), (0, 0, 0), "replies of another engine")
    said = works(PULL, "-v", "-r", f"{top}/tree", daemon.url("put")).err
    check(b", replies read; host key" in said, said)
    only_asked(daemon, "a tree is put")
    works(PULL, "-r", daemon.url("put"), f"{top}/got")
    only_asked(daemon, "a tree is got")
    equal(tree(f"{top}/tree"), tree(daemon.path("put/tree")), "what was put")
    equal(tree(f"{top}/tree"), tree(f"{top}/got/put/tree"), "what was got")
    listed = works(PULL, "-c", "ls put/tree/sub", daemon.url("")).out
    equal(listed, works("-c", "ls put/tree/sub", daemon.url("")).out, "a listing")
    works(PULL, "-c", "rm -r put", daemon.url(""))
    check(not os.path.exists(daemon.path("put")), "what was removed is there")
    laid, _, sent = only_asked(daemon, "all of it")
    check(laid > 0, "nothing was laid out, but", sent, "SENDs")


@case(seconds=120)
def both_ends_count(top):
    """What the client reports with --json, and what the daemon does: whatever was sent was asked for."""
    daemon = start(top)
    os.makedirs(f"{top}/tree")
    for i in range(100):
        make_file(f"{top}/tree/f{i}", i)
    make_file(f"{top}/tree/large", LARGE)
    before = counts(daemon)
    for ours, arguments in (("writes", (f"{top}/tree", daemon.url("put"))), ("reads", (daemon.url("put"), f"{top}/got"))):
        equal(works("--json", "--engine=credit", "-r", *arguments).done()["replies"], None, "replies that are sent")
        equal(counts(daemon), before, "replies of another engine")
        done = works("--json", PULL, "-r", *arguments).done()
        said, requests = done["replies"], done["requests"]
        check(said["pieces"] + said["sent"] > 0 and said["sent"] <= said["asked_for"] and said["reads"] > 0, said)
        laid, asked, sent = (now - then for now, then in zip(only_asked(daemon, "both ends"), before))
        check(said["pieces"] <= laid and said["asked_for"] <= asked and said["sent"] <= sent, said, laid, asked, sent)
        check(requests[ours] > 0, "the client's requests on data channels", requests)
        before = counts(daemon)


@case(seconds=120)
def a_session_that_changes_its_engine(top):
    """It may ask for replies by READ later on, and goes on with them."""
    daemon = start(top)
    make_file(f"{top}/export/f", 100)
    works("-c", "ls; stat f; set engine pull" + "; stat f" * 50, daemon.url(""))
    laid, _, sent = only_asked(daemon, "after set engine pull")
    check(laid + sent >= 50, laid, "pieces", sent, "SENDs")  # on a busy host it may have asked for each


@case(seconds=120)
def several_transfers_at_once(top):
    """Of one session, whose threads all read what it is told; and a job during which the engine is changed."""
    daemon = start(top)
    os.mkdir(f"{top}/in")
    for name in ("f0", "f1"):
        make_file(daemon.path(name), LARGE)
        make_file(f"{top}/l{name}", LARGE + 1)
    jobs = f"lcd {top}; put lf0 & put lf1 & get f0 in/ & "
    for options, commands in (((PULL,), jobs + "ls; stat f0; stat f1; wait; get f1 in/; stat lf0"),
                              ((), jobs + "set engine pull; stat f0; stat f1; wait; get f1 in/; stat lf0")):
        works(*options, "-c", commands, daemon.url(""))
        for name in ("f0", "f1"):
            same_files(daemon.path(name), f"{top}/in/{name}")
            same_files(f"{top}/l{name}", daemon.path(f"l{name}"))
            os.unlink(f"{top}/in/{name}")
            os.unlink(daemon.path(f"l{name}"))
        only_asked(daemon, commands)


@case(seconds=120)
def an_idle_session_costs_nothing(top):
    """Neither side says anything, nor reads in vain for ever."""
    daemon = start(top)
    make_file(f"{top}/export/f", 100)
    client = start_rftp(PULL, daemon.url(""), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client.stdin.write(b"stat f\n")
    client.stdin.flush()
    wait_until(lambda: client.stdout.readline(), "the answer is shown")
    before = counts(daemon)
    cpu = time.clock_gettime(~daemon.process.pid << 3 | 2)
    time.sleep(0.5)
    equal(counts(daemon), before, "what an idle session says")
    spent = time.clock_gettime(~daemon.process.pid << 3 | 2) - cpu
    check(spent < 0.25, "an idle session costs the daemon", spent, "s of CPU in half a second")
    equal(finish(client, b"stat f\n").code, 0, "the session goes on")
    only_asked(daemon, "all of it")


@case(seconds=120)
def last_words(top):
    """Who is refused for good, or whose session an administrator ends, is told why although nothing is sent."""
    daemon = start(top)
    make_file(f"{top}/export/f", LARGE)
    fails(rftptest.NO_FILE, PULL, daemon.url("none"), f"{top}/x", says="none")
    client = start_rftp(PULL, "-", daemon.url("stream"), stdin=subprocess.PIPE)
    client.stdin.write(bytes(LARGE))
    client.stdin.flush()
    wait_until(lambda: rftptest.leftovers(daemon.top), "the transfer is under way")
    begun = time.monotonic()
    daemon.stop()
    done = finish(client, b"")
    check(done.code != 0 and b"ending" in done.err or b"ends" in done.err, "what is said at the end", done.code, done.err)
    check(time.monotonic() - begun < 60, "it took long")


# ---- a client of the test's own ----

class Ring(Control):
    """A control channel whose way here is read."""

    def __init__(self, old, place):
        super().__init__(old.channel, old.credits)
        self.bytes, self.key, self.base = place
        self.position, self.number, self.says = 0, 1, True
        self.owed = old.owed

    def fetch(self):
        """One READ of a head and what may be behind it -> whether there was a piece"""
        at = self.position % self.bytes
        data = self.channel.fetch(self.key, self.base + at, min(4096, self.bytes - at))
        number, length, credits, reserved, checksum = struct.unpack(">QIHHQ", data[:24])
        if number != self.number:
            return False
        equal(reserved, 0, "reserved")
        if length > len(data) - 24:
            data = self.channel.fetch(self.key, self.base + at, 24 + length)
        piece = data[24:24 + length]
        check(b"a file with a long name" not in piece, "what is encrypted lies in the ring as it is", piece)
        if 16 <= length <= 128:  # others xxh3 does not know here
            equal(checksum, iwarp.xxh3(data[:16]) ^ iwarp.xxh3(piece), "the checksum of piece", number)
        self.stream += piece
        self.credits += credits
        self.number += 1
        self.position += -(-(24 + length) // 64) * 64
        return True

    def pump(self):
        end = time.monotonic() + WAIT
        while not self.fetch():
            if time.monotonic() > end:
                raise iwarp.Silent("nothing in the ring")

    def head(self, length, position=None, flags=HAS):
        self.credits -= 1
        return struct.pack(">HHI", 0, length | flags, self.position if position is None else position)

    def piece(self, data, **fields):
        while not self.credits:
            self.pump()
        self.channel.send(self.head(len(data), **fields) + data)

    def write(self, data):
        for at in range(0, len(data), iwarp.SEND_BYTES - 8):
            while self.credits < 2:
                self.pump()
            self.piece(data[at:at + iwarp.SEND_BYTES - 8])


class Reader(Session):
    """A session that has asked for RING."""

    def __init__(self, port, engines=1 << iwarp.ENGINE_PULL, **more):
        super().__init__(port, WAIT, reads=READS, **more)
        self.hello(engines=engines)
        status, data = self.ask(iwarp.RING)
        equal(status, 0, "RING", data)
        self.ring = Ring(self.control, struct.unpack(">IIQ", data))
        self.control = self.ring
        self.bytes.stream = self.ring

    def works(self, times=1):
        for _ in range(times):
            equal(self.ask(iwarp.PING, b"cookie 8"), (0, b"cookie 8"), "PING")

    def close(self):
        self.channel.close()


@case
def what_lies_there(top):
    """Pieces, read by another program than ours, round and round."""
    place = Place(top, *control(top))
    for i in range(1000):
        make_file(place.daemon.path(f"a file with a long name, number {i}"), 0)
    place.files, place.before = tree(place.daemon.top), place.daemon.settled()
    reader = Reader(place.port)
    check(not any(reader.channel.fetch(reader.ring.key, reader.ring.base, reader.ring.bytes)), "the ring at first")
    seen = 0
    while reader.ring.position < 3 * reader.ring.bytes:
        reader.put(iwarp.LIST, iwarp.text(b"/"))
        more = 1
        while more:
            type_, status, data = reader.get()
            equal((type_, status), (iwarp.LIST | iwarp.REPLY, 0), "LIST")
            more = data[0]
            seen += struct.unpack(">H", data[1:3])[0]
    reader.works()
    check(seen > 3000, seen, "entries")
    reader.close()
    place.whole()


@case
def a_client_that_asks(top):
    """It gets one SEND, at once if it has not read all, or when there is something to say."""
    place = Place(top, *control(top))
    reader = Reader(place.port)
    before = counts(place.daemon)
    for _ in range(3):
        reader.ring.piece(b"", flags=HAS | ASKS)  # and then a request, which it is told the answer to
        wait_until(lambda: counts(place.daemon)[1] > before[1], "it has asked")
        before = counts(place.daemon)
        reader.put(iwarp.PING, b"cookie 8")
        message = reader.channel.receive()
        credits, length = struct.unpack(">HH", message[:4])
        equal(length, len(message) - 4, "the SEND's length")
        check(length, "a SEND without the answer")
        reader.ring.credits += credits
        reader.ring.stream += message[4:]
        equal(reader.get(), (iwarp.PING | iwarp.REPLY, 0, b"cookie 8"), "the answer")
        equal(counts(place.daemon), (before[0], before[1], before[2] + 1), "counts")
        before = counts(place.daemon)
    reader.put(iwarp.PING, b"cookie 8")
    wait_until(lambda: counts(place.daemon)[0] > before[0], "the answer lies there")
    reader.ring.piece(b"", flags=HAS | ASKS)
    equal(len(reader.channel.receive()), 4, "a SEND to who has not read all")
    equal(reader.get(), (iwarp.PING | iwarp.REPLY, 0, b"cookie 8"), "the answer")
    reader.works(100)
    laid, asked, sent = counts(place.daemon)
    equal((asked, sent), (4, 4), "SENDs that were asked for, and sent")
    reader.close()
    place.whole()


HEADS = (
    ("a position that is no piece's", lambda r: r.head(0, position=r.position + 1)),
    ("a position that was not written", lambda r: r.head(0, position=r.position + 64)),
    ("a position far away", lambda r: r.head(0, position=1 << 31)),
    ("a position that goes back", lambda r: r.head(0, position=r.position - 256)),
    ("a request for a SEND without a position", lambda r: struct.pack(">HH", 0, ASKS)),
    ("a head without its position", lambda r: struct.pack(">HH", 0, HAS)),
    ("a length that is not the SEND's", lambda r: r.head(1)),
)


@case
def heads_that_lie(top):
    place = Place(top, *control(top))
    for what, head in HEADS:
        reader = Reader(place.port)
        reader.works(8)  # which says how far it has read
        reader.channel.send(head(reader.ring))
        check(reader.channel.dropped_within(WAIT), what)
        reader.close()
    reader = Reader(place.port)
    for _ in range(2):
        reader.ring.piece(b"", flags=HAS | ASKS)
    check(reader.channel.dropped_within(WAIT), "a client that asks twice")
    reader.close()
    place.whole()


@case
def requests_that_are_refused(top):
    place = Place(top, *control(top))
    session = Session(place.port, WAIT, reads=READS)
    session.hello(engines=1 << iwarp.ENGINE_CREDIT)
    equal(session.ask(iwarp.RING)[0], 102, "RING without the engine")
    equal(session.ask(iwarp.PING, b"cookie 8")[0], 0, "PING after it")
    session.channel.send(struct.pack(">HHI", 0, HAS, 0))
    check(session.channel.dropped_within(WAIT), "a position without a ring")
    session.channel.close()
    reader = Reader(place.port)
    check(refused(answer(reader, (iwarp.RING, b""))), "a second RING")
    reader.close()
    place.whole()


@case
def a_ring_of_ones_own(top):
    """Nobody reads another one's, nobody writes there, and nobody reads it when the session is over."""
    place = Place(top, *control(top))
    mine = Reader(place.port)
    for what, action in (
            ("a read of another session's ring", lambda c, r: c.read(r.key, r.base, 64)),
            ("a write to it", lambda c, r: c.write(r.key, r.base, b"x")),
            ("a read by a guessed key", lambda c, r: c.read(r.key ^ 0x100, r.base, 64))):
        other = Reader(place.port)
        action(other.channel, mine.ring)
        check(other.channel.dropped_within(WAIT), what)
        other.close()
        mine.works()
    for what, action in (
            ("a write to one's own", lambda c, r: c.write(r.key, r.base, b"x")),
            ("a read behind the ring", lambda c, r: c.read(r.key, r.base + r.bytes, 1)),
            ("a read across its end", lambda c, r: c.read(r.key, r.base + r.bytes - 8, 64)),
            ("a read before it", lambda c, r: c.read(r.key, r.base - 8, 64))):
        reader = Reader(place.port)
        action(reader.channel, reader.ring)
        check(reader.channel.dropped_within(WAIT), what)
        reader.close()
    # the key of a session that is over, in a session that goes on
    key, base = mine.ring.key, mine.ring.base
    before = stats(place.daemon)["sessions"]
    mine.put(iwarp.BYE)
    check(mine.channel.dropped_within(WAIT), "after BYE")
    mine.close()
    wait_until(lambda: stats(place.daemon)["sessions"] < before, "the session is over")
    late = Reader(place.port)
    if key != late.ring.key:
        late.channel.read(key, base, 64)
        check(late.channel.dropped_within(WAIT), "a READ of the ring of a session that is over")
    late.close()
    place.whole()


DEPTH = 20  # of directories that take a tenth of a second each


def listing_that_takes_long(top):
    """-> a place whose directory "slow" is looked through for some seconds, then for as long as the gate is there"""
    hang = os.path.join(rftptest.BUILD, "tests/preload/hang.so")
    if not os.path.exists(hang):
        rftptest.skip("tests/preload is not built")
    gate = f"{top}/gate"
    env = {"LD_PRELOAD": hang, "RFTP_TEST_GATE": gate, "RFTP_TEST_SLOW": "slow", "RFTP_TEST_HANG": "hangs"}
    for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"):
        env[name] = ":".join(filter(None, (os.environ.get(name), "verify_asan_link_order=0", "halt_on_error=1")))
    os.makedirs(f"{top}/export/" + "slow/" * DEPTH + "hangs")
    daemon = Daemon(f"{top}/export", "rw", "--sandbox=no", *control(top), env=env)
    open(gate, "w").close()
    return daemon, gate


LISTINGS = ((iwarp.LEFTOVERS, struct.pack(">IQ", 0, 0) + iwarp.text(b"slow")),
            (iwarp.TREE, struct.pack(">I", 0) + iwarp.text(b"slow") + b"\0\0"))


@case(seconds=300)
def who_asks_during_a_listing(top):
    """Is sent its next frame, though the listing never comes to its end; the more so what lies there already."""
    daemon, gate = listing_that_takes_long(top)
    for type_, request in LISTINGS:
        for at_once in (False, True):
            reader = Reader(daemon.port)
            reader.works(8)
            laid, asked, sent = counts(daemon)
            reader.put(type_, request)
            if not at_once:
                wait_until(lambda: counts(daemon)[0] > laid, "the first frame lies there")
            reader.ring.piece(b"", flags=HAS | ASKS)
            message = reader.channel.receive()
            equal(counts(daemon)[1:], (asked + 1, sent + 1), "SENDs that were asked for, and sent")
            credits, length = struct.unpack(">HH", message[:4])
            equal(length, len(message) - 4, "the SEND's length")
            reader.ring.credits += credits
            reader.ring.stream += message[4:]
            got, status, data = reader.get()
            equal((got, status, data[0]), (type_ | iwarp.REPLY, 0, 1), "a frame that is not the last")
            reader.close()
    os.unlink(gate)
    daemon.stop()


@case(seconds=120)
def who_asks_behind_requests(top):
    """Is answered although the one before takes for ever."""
    daemon, gate = listing_that_takes_long(top)
    reader = Reader(daemon.port)
    reader.works(8)
    laid, asked, sent = counts(daemon)
    stat = iwarp.text(b"slow/" * DEPTH + b"hangs")
    ping = struct.pack(">HHI", iwarp.PING, 0, 8) + b"cookie 8"
    reader.put_stream(ping + struct.pack(">HHI", iwarp.STAT, 0, len(stat)) + stat + ping)
    wait_until(lambda: counts(daemon)[0] > laid, "the first answer lies there")
    reader.ring.piece(b"", flags=HAS | ASKS)
    equal(len(reader.channel.receive()), 4, "a SEND to who has not read all")
    equal(counts(daemon)[1:], (asked + 1, sent + 1), "SENDs that were asked for, and sent")
    equal(reader.get(), (iwarp.PING | iwarp.REPLY, 0, b"cookie 8"), "the first answer")
    os.unlink(gate)
    equal(reader.get()[:2], (iwarp.STAT | iwarp.REPLY, 0), "the second")
    equal(reader.get(), (iwarp.PING | iwarp.REPLY, 0, b"cookie 8"), "the third")
    reader.close()
    daemon.stop()


@case(seconds=120)
def much_behind_a_request(top):
    """More than the daemon keeps unread: it gives no credit for that, and ends no session because of it."""
    daemon, gate = listing_that_takes_long(top)
    reader = Reader(daemon.port)
    reader.works(8)
    nothing = iwarp.text(b"n/" * 2000 + b"n")
    stats_ = [struct.pack(">HHI", iwarp.STAT, 0, len(path)) + path
              for path in [iwarp.text(b"slow/" * DEPTH + b"hangs")] + [nothing] * 400]
    failed = []

    def write():
        try:
            reader.put_stream(b"".join(stats_))
        except Exception as e:
            failed.append(e)
    thread = threading.Thread(target=write)
    thread.start()
    before = None
    while before != reader.ring.credits or before is None or before > 1:  # it has no credit, and gets none
        before = reader.ring.credits
        time.sleep(0.2)
        if not thread.is_alive():
            break
    check(thread.is_alive(), "all was taken before the first answer", failed)
    os.unlink(gate)
    thread.join()
    equal(failed, [], "who writes")
    for i in range(len(stats_)):
        got, status, _ = reader.get()
        equal((got, bool(status)), (iwarp.STAT | iwarp.REPLY, i > 0), "answer", i)
    reader.close()
    daemon.stop()


@case(seconds=120)
def who_never_says_that_it_has_read(top):
    """Costs the ring and what waits behind it, and then gets no more; others are served."""
    place = Place(top, *control(top))
    for i in range(1000):
        make_file(place.daemon.path(f"a file with a long name, number {i}"), 0)
    place.files, place.before = tree(place.daemon.top), place.daemon.settled()
    reader = Reader(place.port)
    reader.works()
    asked = 0
    try:
        reader.channel.socket.settimeout(1)
        while asked < 400 and reader.ring.credits > 2:
            reader.put(iwarp.LIST, iwarp.text(b"/"))
            asked += 1
    except (Dropped, OSError):
        pass
    laid = wait_until(lambda: counts(place.daemon)[0], "something is laid out")
    check(asked > 5, asked)
    works(f"{top}/local", place.daemon.url("beside"))
    os.unlink(place.daemon.path("beside"))
    check(counts(place.daemon)[0] < laid + asked, "what was laid out for who reads nothing")
    reader.close()
    place.whole()


rftptest.main()
