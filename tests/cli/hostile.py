#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers that break every rule: garbage, wrong MPA frames, wrong segments, wrong frames, silence.

Each is refused or dropped; the daemon lives, forgets them wholly (descriptors, threads), writes nothing
under a real name, and serves the next one.
"""

import contextlib
import os
import resource
import socket
import struct
import time

import iwarp
import rftptest
from iwarp import Channel, Dropped, Session, Silent
from rftptest import case, check, equal, rng, same_files, scaled, skip, works
from rude import WAIT, Answer, Place, Store, answer, refused, store_is_refused


@contextlib.contextmanager
def connection(port):
    s = socket.create_connection(("127.0.0.1", port), WAIT)
    try:
        yield s
    finally:
        s.close()


def ended(s, seconds=WAIT):
    """Whether the daemon ends the connection."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        s.settimeout(left)
        try:
            data = s.recv(65536)
            if not data:
                return True
            if iwarp.is_reject(data):
                s.shutdown(socket.SHUT_WR)  # who was rejected closes first
        except socket.timeout:
            return False
        except OSError:
            return True
    return False


def must_end(port, data, what):
    with connection(port) as s:
        try:
            s.sendall(data)
        except OSError:
            return
        check(ended(s), what, "was neither refused nor dropped")


# ---- below the session ----

@case
def garbage_on_the_port(top):
    place = Place(top)
    for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
                 b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60), bytes(64),
                 b"\xff" * 64, b"MPA ID Rep Frame" + bytes(4), b"USER anonymous\r\nPASS x\r\n"):
        must_end(place.port, data, data[:20])
    for _ in range(scaled(100)):
        data = rng().randbytes(rng().randrange(20, 3000))
        must_end(place.port, data, data[:20])
    for _ in range(scaled(20)):  # the right key, then garbage
        data = iwarp.REQUEST_KEY + rng().randbytes(600)
        must_end(place.port, data, data[16:40])
    for length in range(20):  # pieces of a right frame, and then the end
        with connection(place.port) as s:
            s.sendall(iwarp.mpa_frame()[:length])
            s.shutdown(socket.SHUT_WR)
            check(ended(s), f"{length} bytes of an MPA frame and the end")
    place.whole()


@case
def mpa_frames_with_wrong_fields(top):
    place = Place(top)
    right = iwarp.greeting()
    for at in range(16):
        key = bytearray(iwarp.REQUEST_KEY)
        key[at] ^= 0x20
        must_end(place.port, iwarp.mpa_frame(key=bytes(key), private=right), f"key, byte {at}")
    for length in (513, 1000, 65535):
        must_end(place.port, iwarp.mpa_frame(private=right + bytes(600), length=length),
                 f"private data length {length}")
    for length in (0, 1, 29):
        must_end(place.port, iwarp.mpa_frame(private=right[:length]), f"{length} bytes of a greeting")
    must_end(place.port, iwarp.mpa_frame(private=right + b"x"), "a greeting with a trailing byte")
    must_end(place.port, iwarp.mpa_frame(private=right + bytes(511 - 30) + b"x"), "512 bytes")
    for revision in (0, 3, 7, 255):
        must_end(place.port, iwarp.mpa_frame(revision=revision, private=right),
                 f"revision {revision}")
    must_end(place.port, iwarp.mpa_frame(flags=iwarp.MARKERS, private=right), "markers")
    must_end(place.port, iwarp.mpa_frame(flags=iwarp.REJECT, private=right + b"x"), "reject")
    # revision 2 with an enhanced header that is not there
    for length in range(4):
        must_end(place.port, iwarp.mpa_frame(flags=iwarp.ENHANCED, revision=2, private=bytes(length)),
                 f"enhanced with {length} bytes")
    for flags in range(0, 256, 8):  # every set of flags: refused, or a session that can be left
        with connection(place.port) as s:
            s.sendall(iwarp.mpa_frame(flags=flags, revision=rng().choice((1, 2)),
                                      private=bytes(4) + right))
            s.shutdown(socket.SHUT_WR)
            check(ended(s), f"flags {flags:#x}")
    place.whole()


@case
def greetings_with_wrong_fields(top):
    place = Place(top)
    for what, fields in (("magic", {"magic": 0x52465451}), ("no magic", {"magic": 0}),
                         ("version 0", {"version": 0}), ("kind 0", {"kind": 0}),
                         ("kind 3", {"kind": 3}), ("no credits", {"credits": 0}),
                         ("one credit", {"credits": 1}),
                         ("a data channel of session 0", {"kind": 2, "session": 0, "credits": 0}),
                         ("a data channel of no session", {"kind": 2, "session": 12345, "credits": 0}),
                         ("a data channel, index 65535", {"kind": 2, "session": 1, "index": 65535,
                                                          "credits": 0})):
        must_end(place.port, iwarp.mpa_frame(private=iwarp.greeting(**fields)), what)
    # newer than this daemon: it answers with what it speaks
    s = Session(place.port, version=200)
    check(1 <= s.version < 200, "version of the answer", s.version)
    s.close()
    place.whole()


@case
def data_channels_that_were_not_expected(top):
    place = Place(top)
    session = Session(place.port)
    session.hello()
    status, data = session.ask(iwarp.CHANNELS, struct.pack(">H", 2))
    equal(status, 0, "CHANNELS")
    count, first, nonce = struct.unpack(">HH16s", data[:20])
    token = iwarp.token(session.bytes, iwarp.TOKEN_GREETING, session.number, first, nonce)
    answer_token = iwarp.token(session.bytes, iwarp.TOKEN_WELCOME, session.number, first, nonce)

    def refused(what, index=first, **fields):
        must_end(place.port, iwarp.mpa_frame(private=session.data_greeting(index, nonce, **fields)), what)

    refused("a wrong token", token=bytes(16 * [7]))
    refused("no token", token=bytes(16))
    refused("the nonce", token=nonce)
    refused("half a token", token=token[:8] + bytes(8))
    refused("the token of the other direction", token=answer_token)
    refused("another channel's token", index=first + 1, token=token)
    refused("an index that is not expected", index=first + count)
    refused("index 65535", index=65535)
    refused("another session", session=session.number + 1)
    # what is right for another session that waits for channels, too
    other = Session(place.port)
    other.hello()
    their_count, their_first, their_nonce = struct.unpack(">HH16s", other.ask(iwarp.CHANNELS, struct.pack(">H", 2))[1][:20])
    refused("another session's token", index=their_first, session=other.number, token=token)
    refused("the token of another session", token=iwarp.token(other.bytes, iwarp.TOKEN_GREETING, other.number,
                                                              their_first, their_nonce))
    theirs = Channel(place.port, other.data_greeting(their_first, their_nonce))
    theirs.close()
    other.close()
    right = Channel(place.port, session.data_greeting(first, nonce))
    equal(right.reply_private[10:26], answer_token, "the token in the welcome")
    right.send(bytes(4))
    refused("the same index again")
    # the session still works
    equal(session.ask(iwarp.PING, b"cookie 8")[0], 0, "PING")
    # what was right for this channel is not for the next of its number
    equal(session.ask(iwarp.CHANNELS, struct.pack(">H", 2))[0], 0, "CHANNELS again")
    refused("the token of an earlier channel")
    right.close()
    session.close()
    place.whole()


@case
def segments_with_wrong_fields(top):
    """After a right set-up: every field of MPA, DDP and RDMAP that can be wrong."""
    place = Place(top)
    payload = struct.pack(">HH", 0, 8) + struct.pack(">HHI", iwarp.PING, 0, 0)
    right = struct.pack(">HHHHI", 0, 8 + 8, iwarp.HELLO, 0, 8) + bytes(8)
    raw = iwarp.untagged
    bad = {
        "ULPDU of no bytes": iwarp.fpdu(b"") * 4,
        "ULPDU of 1 byte": iwarp.fpdu(b"\x41"),
        "ULPDU of 2 bytes": iwarp.fpdu(b"\x41\x43"),
        "ULPDU of 17 bytes": iwarp.fpdu(raw(b"", 1)[:17]),
        "tagged of 13 bytes": iwarp.fpdu(iwarp.tagged(b"", 1, 0)[:13]),
        "DDP version 0": iwarp.fpdu(raw(right, 1, ddp=0x40)),
        "DDP version 2": iwarp.fpdu(raw(right, 1, ddp=0x42)),
        "DDP version 3": iwarp.fpdu(raw(right, 1, ddp=0x43)),
        "RDMAP version 0": iwarp.fpdu(raw(right, 1, rdmap=0x03)),
        "RDMAP version 2": iwarp.fpdu(raw(right, 1, rdmap=0x83)),
        "queue 3": iwarp.fpdu(raw(right, 1, queue=3)),
        "queue 0xffffffff": iwarp.fpdu(raw(right, 1, queue=0xffffffff)),
        "send to the read queue": iwarp.fpdu(raw(right, 1, queue=1)),
        "send to the terminate queue": iwarp.fpdu(raw(right, 1, queue=2)),
        "sequence 0": iwarp.fpdu(raw(right, 0)),
        "sequence 2 first": iwarp.fpdu(raw(right, 2)),
        "sequence 0xffffffff": iwarp.fpdu(raw(right, 0xffffffff)),
        "offset of a first segment": iwarp.fpdu(raw(right, 1, offset=4)),
        "offset 0xffffffff": iwarp.fpdu(raw(right, 1, offset=0xffffffff)),
        "second segment that overlaps": iwarp.fpdu(raw(right, 1, last=False)) +
        iwarp.fpdu(raw(right, 1, offset=0)),
        "second segment beyond a gap": iwarp.fpdu(raw(right, 1, last=False)) +
        iwarp.fpdu(raw(right, 1, offset=len(right) + 4)),
        "longer than the receive": iwarp.fpdu(raw(bytes(4097), 1)),
        "much longer, in pieces": iwarp.fpdu(raw(bytes(4000), 1, last=False)) +
        iwarp.fpdu(raw(bytes(4000), 1, offset=4000)),
        "more than was posted": b"".join(
            iwarp.fpdu(raw(struct.pack(">HH", 0, 0), n + 1)) for n in range(200)),
        "write without a key": iwarp.fpdu(iwarp.tagged(bytes(64), 0, 0)),
        "write with a key of nobody": iwarp.fpdu(iwarp.tagged(bytes(64), 0x12345678, 4096)),
        "write that wraps": iwarp.fpdu(iwarp.tagged(bytes(64), 1, (1 << 64) - 8)),
        "read without a key": iwarp.fpdu(raw(struct.pack(">IQIIQ", 1, 0, 4096, 0, 0), 1, opcode=1,
                                             queue=1)),
        "read with a key of nobody": iwarp.fpdu(raw(
            struct.pack(">IQIIQ", 1, 0, 1 << 30, 0x12345678, 0), 1, opcode=1, queue=1)),
        "a short read request": iwarp.fpdu(raw(bytes(10), 1, opcode=1, queue=1)),
        "a read response that nobody asked for": iwarp.fpdu(iwarp.tagged(bytes(64), 1, 0, opcode=2)),
        "terminate": iwarp.fpdu(raw(bytes(4), 1, opcode=7, queue=2)),
        "a short terminate": iwarp.fpdu(raw(b"", 1, opcode=7, queue=2)),
    }
    for opcode in range(4, 16):
        if opcode != 7:
            bad[f"RDMAP opcode {opcode}"] = iwarp.fpdu(raw(payload, 1, opcode=opcode))
    for what, data in bad.items():
        session = Session(place.port, WAIT)
        try:
            session.channel.raw(data)
            if "opcode" in what:  # sends that invalidate or solicit are sends: then the frame is wrong
                session.channel.raw(iwarp.fpdu(raw(payload, 2)))
        except Dropped:
            pass
        check(session.dropped_within(WAIT), what, "was not answered with the end of the connection")
        session.close()
    place.whole()
    for _ in range(scaled(60)):  # and segments of random bytes
        session = Session(place.port, WAIT)
        try:
            for _ in range(4):
                session.channel.raw(iwarp.fpdu(rng().randbytes(rng().randrange(18, 200))))
        except Dropped:
            pass
        session.channel.socket.shutdown(socket.SHUT_WR)
        check(session.dropped_within(WAIT), "random segments")
        session.close()
    place.whole("after random segments")


# ---- frames ----

# type: (right data, shortest, longest)
REQUESTS = {
    iwarp.HELLO: (iwarp.hello(), 28, 28 + 255),
    iwarp.LOGIN: (iwarp.login(), 5, 5 + 255 + 4096),
    iwarp.BYE: (b"", 0, 0),
    iwarp.PING: (b"cookie 8", 8, 8),
    iwarp.CHANNELS: (b"\0\1", 2, 2),
    iwarp.ADMIT: (iwarp.admit(), 14, 14 + 31),
    iwarp.RING: (b"", 0, 0),
    iwarp.STAT: (iwarp.text(b"/f"), 3, 2 + 4095),
    iwarp.LSTAT: (iwarp.text(b"/f"), 3, 2 + 4095),
    iwarp.LIST: (iwarp.text(b"/"), 3, 2 + 4095),
    iwarp.MKDIR: (struct.pack(">II", 0o755, 0) + iwarp.text(b"/x"), 11, 10 + 4095),
    iwarp.RMDIR: (iwarp.text(b"/x"), 3, 2 + 4095),
    iwarp.REMOVE: (iwarp.text(b"/x"), 3, 2 + 4095),
    iwarp.RENAME: (struct.pack(">I", 0) + iwarp.text(b"/x") + iwarp.text(b"/y"), 10, 8 + 2 * 4095),
    iwarp.STATFS: (iwarp.text(b"/"), 3, 2 + 4095),
    iwarp.REMOVE_TREE: (iwarp.text(b"/x"), 3, 2 + 4095),
    iwarp.TREE: (struct.pack(">I", 0) + iwarp.text(b"/") + b"\0\0", 9, 65536),
    iwarp.LEFTOVERS: (struct.pack(">IQ", 0, 0) + iwarp.text(b"/"), 15, 14 + 4095),
    iwarp.SUM: (struct.pack(">BH", 1, 1) + iwarp.text(b"/f"), 6, 65536),
    iwarp.SETATTR: (struct.pack(">HBIqI", 1, 1, 0o644, 0, 0) + iwarp.text(b"/x"), 22, 65536),
    iwarp.MAKE_LINK: (struct.pack(">I", 0) + iwarp.text(b"/etc") + iwarp.text(b"/x"), 10, 8 + 2 * 4095),
    iwarp.GRANT_COPY: (iwarp.grant_copy(), 7, 6 + 4095),
    iwarp.SEND_COPY: (iwarp.send_copy(), 71, 65536),
    iwarp.PUT: (iwarp.put(), 52, 65536),
    iwarp.GET: (iwarp.get(), 11, 8 + 2 + 4095),
    iwarp.STORE: (iwarp.data_request(), 43, 43 + 4095),
    iwarp.RETRIEVE: (iwarp.data_request(), 43, 65536),
}
TRANSFERS = {
    iwarp.OFFER: (iwarp.offer(), 59, 1083),
    iwarp.ACCEPT: (iwarp.accept(), 36, 36),
    iwarp.EXPOSE: (iwarp.expose(), 44, 44),
    iwarp.GRANT: (iwarp.grant([0]), 6, 2 + 4 * 4096),
    iwarp.REQUEST: (b"", 0, 0),
    iwarp.HAVE: (iwarp.have(), 22, 14 + 8 * 4096),
    iwarp.HOLE: (iwarp.hole(), 20, 20),
    iwarp.FILE: (iwarp.file(), 31, 31 + 16383 + 2 + 2 * (6 + 255) + 2 + 32768 + 2 * (2 + 4096)),
    iwarp.READY: (struct.pack(">IQ", 1, 0), 12, 12),
    iwarp.FILE_END: (iwarp.file_end(), 30, 30),
    iwarp.RESULT: (struct.pack(">IHQQ", 1, 0, 0, 0) + iwarp.text(b""), 24, 24 + 512),
    iwarp.COMPLETE: (iwarp.complete(), 28, 28),
    iwarp.CLOSED: (iwarp.complete(), 28, 28),
    iwarp.ABORT: (iwarp.abort(), 4, 4 + 512),
    iwarp.PAUSED: (iwarp.queued(), 22, 22 + 31),
    iwarp.QUEUED: (iwarp.queued(), 22, 22 + 31),
    iwarp.FILES: (iwarp.files([iwarp.entry(size=65536, name=b"")]), 49, 65536),
    iwarp.RESULTS: (iwarp.results(), 15, 65536),
}


@case(seconds=120)
def frames_with_wrong_lengths(top):
    place = Place(top)
    for type_, (right, shortest, longest) in (REQUESTS | TRANSFERS).items():
        lengths = {shortest - 1, longest + 1, 65536, 65537, 0xffffffff, len(right) + 1}
        for length in sorted(n for n in lengths if n >= 0 and n != len(right)):
            session = Session(place.port, WAIT)
            if type_ != iwarp.HELLO:
                session.hello(then_login=type_ != iwarp.LOGIN)
            head = struct.pack(">HHI", type_, 0, length)
            body = (right + bytes(70000))[:min(length, 70000)]
            seen = answer(session, head + body)
            check(refused(seen), f"type {type_}, {length} bytes of data:", seen)
            session.close()
    place.whole()


@case
def heads_of_sends_with_wrong_fields(top):
    """The credits and the length in front of each piece of the control stream."""
    place = Place(top)
    frame = struct.pack(">HHI", iwarp.PING, 0, 8) + bytes(8)
    for what, message in (("a length that is too small", struct.pack(">HH", 0, 15) + frame),
                          ("a length that is too large", struct.pack(">HH", 0, 17) + frame),
                          ("length 65535", struct.pack(">HH", 0, 65535) + frame),
                          ("no bytes", b""), ("1 byte", b"\0"), ("3 bytes", b"\0\0\0"),
                          ("more credits than 16 bits hold", None)):
        session = Session(place.port, WAIT)
        session.hello()
        try:
            if message is None:
                for _ in range(3):
                    session.channel.send(struct.pack(">HH", 65535, 0))
            else:
                session.channel.send(message)
        except Dropped:
            pass
        check(session.dropped_within(WAIT), what, "was not answered with the end of the session")
        session.close()
    place.whole()


@case(seconds=120)
def frames_with_wrong_types_and_states(top):
    place = Place(top)
    known = set(REQUESTS) | set(TRANSFERS)
    for type_ in [0, 6, 15, 23, 34, 63, 80, 95, 96, 0x7fff, 0xffff] + \
            [t | iwarp.REPLY for t in REQUESTS]:
        session = Session(place.port, WAIT)
        session.hello()
        seen = answer(session, (type_, bytes(8)))
        check(refused(seen), f"type {type_:#x}:", seen)
        session.close()
    for type_ in known - {iwarp.HELLO}:  # before HELLO
        session = Session(place.port, WAIT)
        seen = answer(session, (type_, (REQUESTS | TRANSFERS)[type_][0]))
        check(refused(seen) or type_ == iwarp.BYE, f"type {type_} before HELLO:", seen)
        session.close()
    for type_, (right, _, _) in TRANSFERS.items():  # no transfer is going on
        session = Session(place.port, WAIT)
        session.hello()
        seen = answer(session, (type_, right))
        check(refused(seen), f"type {type_} without a transfer:", seen)
        session.close()
    for type_ in known - {iwarp.HELLO, iwarp.LOGIN}:  # before LOGIN
        session = Session(place.port, WAIT)
        session.hello(then_login=False)
        seen = answer(session, (type_, (REQUESTS | TRANSFERS)[type_][0]))
        check(refused(seen) or type_ == iwarp.BYE, f"type {type_} before LOGIN:", seen)
        session.close()
    for then_login in (False, True):
        session = Session(place.port, WAIT)
        session.hello(then_login)
        check(refused(answer(session, (iwarp.HELLO, iwarp.hello()))), "a second HELLO")
        session.close()
    session = Session(place.port, WAIT)
    session.hello()
    check(refused(answer(session, (iwarp.LOGIN, iwarp.login()))), "a second LOGIN")
    session.close()
    for type_, (right, _, _) in REQUESTS.items():  # a request with a response
        session = Session(place.port, WAIT)
        if type_ != iwarp.HELLO:
            session.hello(then_login=type_ != iwarp.LOGIN)
        seen = answer(session, (type_, right, 200))
        check(refused(seen), f"type {type_} with response 200:", seen)
        session.close()
    place.whole()


@case
def hellos_with_wrong_fields(top):
    place = Place(top)
    for what, fields in (("version 0", {"version": 0}), ("no channels", {"channels": 0}),
                         ("65 channels", {"channels": 65}), ("65535 channels", {"channels": 65535}),
                         ("blocks of 0", {"block": 0}), ("blocks of 65535", {"block": 65535}),
                         ("blocks of 4 GiB", {"block": 0xffffffff}), ("no depth", {"depth": 0}),
                         ("a depth of one block", {"depth": 1}),
                         ("depth 65537", {"depth": 65537}), ("no engine", {"engines": 0}),
                         ("no transfer", {"transfers": 0}), ("five transfers", {"transfers": 5}),
                         ("agent too long", {"agent": b"x" * 256})):
        session = Session(place.port, WAIT)
        seen = answer(session, (iwarp.HELLO, iwarp.hello(**fields)))
        check(refused(seen), what, seen)
        session.close()
    session = Session(place.port, WAIT)  # a newer client
    data = session.hello(version=9, engines=0xffffffff, flags=0xffffffff)
    equal(struct.unpack(">H", data[:2])[0], 1, "the version that both speak")
    session.close()
    place.whole()


@case
def logins_with_wrong_fields(top):
    place = Place(top)
    login, text = iwarp.login, iwarp.text
    for what, data in (("method 0", login(0)), ("method 7", login(7)), ("method 255", login(255)),
                       ("anonymous with a user", login(1, b"a")), ("anonymous with data", login(1, b"", b"x")),
                       ("a password of nobody", login(2, b"", b"x")), ("no password", login(2, b"a")),
                       ("a NUL in the user", login(2, b"a\0b", b"x")), ("in the password", login(2, b"a", b"x\0")),
                       ("a long password", login(2, b"a", b"x" * 1025)), ("no key", login(3, b"a")),
                       ("no signature", login(3, b"a", text(b"k") + text(b""))),
                       ("a key that goes on", login(3, b"a", text(b"k") + text(b"s") + b"x")),
                       ("a key of nobody", login(3, b"", text(b"k") + text(b"s"))),
                       ("a short one-time key", login(4, b"", b"x" * 31)),
                       ("no grant", login(6)), ("a long grant", login(6, b"", b"x" * 257)),
                       ("a grant of a user's", login(6, b"a", b"x")),
                       ("a certificate with data", login(5, b"a", b"x")), ("what goes on", login() + b"x"),
                       ("a user of 256 bytes", login(2, b"a" * 256, b"x")),
                       ("too much data", login(3, b"a", text(b"k" * 4093) + text(b"s")))):
        session = Session(place.port, WAIT)
        session.hello(then_login=False)
        seen = answer(session, (iwarp.LOGIN, data))
        check(refused(seen), what, seen)
        check(seen[-1] == Answer.DROPPED or seen[-1][1] == 100, what, "is no protocol error:", seen)
        session.close()
    place.whole()


@case(seconds=120)
def requests_with_wrong_values(top):
    place = Place(top)
    text = iwarp.text
    bad = []
    for path in (b"a\0b", b"\0"):
        for type_ in (iwarp.STAT, iwarp.LIST, iwarp.RMDIR, iwarp.REMOVE, iwarp.STATFS,
                      iwarp.REMOVE_TREE):
            bad.append((type_, text(path)))
    for type_ in (iwarp.STAT, iwarp.LSTAT, iwarp.LIST, iwarp.RMDIR, iwarp.REMOVE, iwarp.REMOVE_TREE):
        bad += [(type_, text(p)) for p in (b"../x", b"/../../etc/passwd", b"x/../../y",
                                           b"n" * 300, b"missing")]
    bad += [
        (iwarp.STAT, struct.pack(">H", 0) + b"x"), (iwarp.STAT, struct.pack(">H", 5) + b"xxx"),
        (iwarp.STAT, text(b"f") + b"x"),
        (iwarp.CHANNELS, struct.pack(">H", 0)), (iwarp.CHANNELS, struct.pack(">H", 65)),
        (iwarp.CHANNELS, struct.pack(">H", 65535)),
        (iwarp.MKDIR, struct.pack(">II", 0o20000, 0) + text(b"x")),
        (iwarp.MKDIR, struct.pack(">II", 0o755, 2) + text(b"x")),
        (iwarp.MKDIR, struct.pack(">II", 0o755, 0) + text(b"../x")),
        (iwarp.MKDIR, struct.pack(">II", 0o755, 1) + text(b"../a/x")),
        (iwarp.SUM, struct.pack(">BH", 0, 1) + text(b"f")), (iwarp.SUM, struct.pack(">BH", 5, 1) + text(b"f")),
        (iwarp.SUM, struct.pack(">BH", 1, 0)), (iwarp.SUM, struct.pack(">BH", 1, 2) + text(b"f")),
        (iwarp.SUM, struct.pack(">BH", 1, 1) + text(b"f") + text(b"f")),
        (iwarp.SUM, struct.pack(">BH", 1, 1) + text(b"a\0b")),
        (iwarp.RENAME, struct.pack(">I", 4) + text(b"f") + text(b"g")),
        (iwarp.RENAME, struct.pack(">I", 0) + text(b"f") + text(b"../g")),
        (iwarp.RENAME, struct.pack(">I", 0) + text(b"../f") + text(b"g")),
        (iwarp.RENAME, struct.pack(">I", 0) + text(b"f") + text(b"g") + b"x"),
    ]
    bad += [(iwarp.MAKE_LINK, struct.pack(">I", flags) + text(target) + text(path)) for flags, target, path in (
        (1, b"f", b"g"), (0, b"", b"g"), (0, b"a\0b", b"g"), (0, b"f", b"a\0b"), (0, b"f", b"../g"), (0, b"f", b"f"),
        (0, b"f", b"/"))]
    bad += [(iwarp.SETATTR, struct.pack(">HBIqI", count, flags, mode, s, ns) + text(path))
            for count, flags, mode, s, ns, path in (
        (0, 1, 0, 0, 0, b"f"), (2, 1, 0, 0, 0, b"f"), (1, 0, 0, 0, 0, b"f"), (1, 1, 0o10000, 0, 0, b"f"),
        (1, 2, 0, 0, 10**9, b"f"), (1, 6, 0, 0, 0, b"f"), (1, 32, 0, 0, 0, b"f"), (1, 128, 0, 0, 0, b"f"), (1, 1, 0, 0, 0, b"a\0b"),
        (1, 25, 0, 0, 0, b"f"), (1, 1, 0, 0, 0, b""))]
    bad += [(iwarp.TREE, struct.pack(">I", flags) + text(path) + rules) for flags, path, rules in (
        (3, b"/", b"\0\0"), (7, b"/", b"\0\0"), (64, b"/", b"\0\0"), (512, b"/", b"\0\0"), (0, b"a\0b", b"\0\0"), (0, b"../x", b"\0\0"), (0, b"/", b"\0\1"),
        (0, b"/", b"\0\1\2" + text(b"x")), (0, b"/", b"\0\1\0" + text(b"")), (0, b"/", b"\0\0x"))]
    bad += [(iwarp.LEFTOVERS, struct.pack(">IQ", flags, age) + text(path)) for flags, age, path in (
        (2, 0, b"/"), (0, 1, b"/"), (1, 1 << 63, b"/"), (0, 0, b""), (0, 0, b"a\0b"))]
    bad.append((iwarp.STORE, iwarp.data_request(flags=130, more=[b"g"])))
    bad += [(iwarp.GRANT_COPY, iwarp.grant_copy(*f)) for f in (
        (b"a\0b",), (b"/x", 8), (b"/x", 0x80000000))]
    bad += [(iwarp.GRANT_COPY, iwarp.grant_copy() + b"x")]
    bad += [(iwarp.SEND_COPY, iwarp.send_copy(**f)) for f in (
        {"host": b""}, {"host": b"a b"}, {"host": b"x" * 64}, {"host": b"localhost"}, {"host": b"x\x1b[2J"}, {"port": 0},
        {"key": b""}, {"key": b"\n"}, {"key": b"x" * 64}, {"protect": 3}, {"rate": 1 << 63}, {"right": b""},
        {"right": b"x" * 257}, {"flags": 8}, {"flags": 0x300000}, {"flags": 0x80000000}, {"to": b""}, {"to": b"a\0b"},
        {"kind": 2, "path": b""}, {"request": b""}, {"size": 1}, {"request": iwarp.data_request() + b"x"},
        {"request": iwarp.data_request(flags=8)}, {"request": iwarp.data_request(flags=130, more=[b"g"])})]
    bad += [(iwarp.SEND_COPY, iwarp.send_copy())]  # it may send nowhere
    bad += [(iwarp.STORE, iwarp.data_request(flags=0x8000 | more)) for more in (1, 2, 4, 64, 16384, 0x800000)]
    bad.append((iwarp.RETRIEVE, iwarp.data_request(flags=0x8000)))
    for type_ in (iwarp.STORE, iwarp.RETRIEVE):
        for fields in ({"kind": 0}, {"kind": 3}, {"kind": 255}, {"flags": 48}, {"flags": 128}, {"flags": 0x80000000},
                       {"engine": 5}, {"engine": 255}, {"channels": 65}, {"block": 1},
                       {"block": 65537}, {"block": 0xffffffff}, {"depth": 65537}, {"direct": 3},
                       {"size": 1 << 63}, {"resume": 1 << 63}, {"path": b"a\0b"}, {"path": b"../x", "flags": 0},
                       {"kind": 2, "path": b"x"}, {"kind": 2, "size": 1 << 63, "path": b""},
                       {"more": [b"g"]}, {"flags": 1, "more": [b"g"], "more_count": 2},
                       {"flags": 1, "more": [b"g", b"h"], "more_count": 1}, {"more_count": 1},
                       {"flags": 1, "more": [b""]}, {"flags": 1, "more": [b"a\0b"]},
                       {"flags": 1, "more": [b"x" * 4096]}, {"flags": 1, "more": [b"g"] * 4096},
                       {"kind": 2, "path": b"", "flags": 1, "more": [b"g"]},
                       {"flags": 130}, {"flags": 131, "more": [b"g"]},
                       {"flags": 130, "more": [b"/g"]}, {"flags": 130, "more": [b"../g"]},
                       {"flags": 130, "more": [b"/"]}, {"flags": 130, "more": [b"a//"]},
                       {"flags": 256}, {"rules": [(0, b"*.o")]}, {"flags": 3, "rule_count": 1},
                       {"flags": 3, "rules": [(2, b"x")]}, {"flags": 3, "rules": [(0, b"")]},
                       {"flags": 3, "rules": [(0, b"a\0b")]}, {"flags": 3, "rules": [(0, b"x" * 4096)]},
                       {"flags": 3, "rules": [(0, b"x"), (1, b"y")], "rule_count": 1},
                       {"flags": 3, "rules": [(0, b"x")], "rule_count": 2},
                       {"flags": 3, "rules": [(0, b"x")] * 4097}):
            bad.append((type_, iwarp.data_request(**fields)))
        bad.append((type_, iwarp.data_request() + b"x"))
        bad.append((type_, iwarp.data_request()[:-1]))
    bad += [(iwarp.RETRIEVE, iwarp.data_request(**f)) for f in ({"size": 1}, {"flags": 8})]
    bad.append((iwarp.STORE, iwarp.data_request(flags=1, more=[b"g"])))
    bad.append((iwarp.STORE, iwarp.data_request(flags=2, rules=[(0, b"*.o")])))
    bad += [(iwarp.PUT, iwarp.put(**f)) for f in (
        {"flags": 2}, {"flags": 0x4001, "name": b"n"}, {"flags": 0x300000}, {"flags": 1}, {"name": b"n"}, {"path": b""},
        {"path": b"a\0b"}, {"length": 63}, {"length": 65}, {"length": 0}, {"length": 0xffffffff}, {"number": 2},
        {"kind": 2}, {"kind": 3}, {"kind": 0x81}, {"flags": 1, "name": b"../x"}, {"flags": 1, "name": b"/x"},
        {"data": iwarp.file(size=65)}, {"data": iwarp.file(size=1 << 40)}, {"data": b"", "digest": 1}, {"mode": 0o20644},
        {"bytes_": bytes(61441), "digest": 1})]
    bad += [(iwarp.PUT, iwarp.put() + b"x"), (iwarp.PUT, iwarp.put()[:-1])]
    bad += [(iwarp.GET, iwarp.get(**f)) for f in (
        {"most": 0}, {"most": 61441}, {"flags": 1}, {"path": b""}, {"path": b"a\0b"}, {"path": b"../x"})]
    bad += [(iwarp.GET, iwarp.get() + b"x"), (iwarp.GET, iwarp.get()[:-1])]
    for type_, data in bad:
        session = Session(place.port, WAIT)
        session.hello()
        session.open_channels(1) if type_ in (iwarp.STORE, iwarp.RETRIEVE) else None
        seen = answer(session, (type_, data))
        if type_ == iwarp.STORE and seen[-1] == (iwarp.STORE | iwarp.REPLY, 0):
            # what the path means is said when the file comes
            seen = answer(session, (iwarp.OFFER, iwarp.offer()), (iwarp.FILE, iwarp.file()))
        check(refused(seen), f"type {type_} with {data!r}:", seen)
        session.close()
    place.whole()


# ---- transfers ----

@case(seconds=120)
def offers_with_wrong_fields(top):
    place = Place(top)
    for fields in ({"engine": 0}, {"engine": 2}, {"engine": 255}, {"notice": 0}, {"notice": 3},
                   {"engine": 3, "notice": 2},
                   {"channels": 0}, {"channels": 2}, {"channels": 65}, {"block": 0},
                   {"block": 65535}, {"block": 65537}, {"block": 32768}, {"block": 1 << 25},
                   {"block": 0xfffff000}, {"depth": 0}, {"depth": 65537}, {"depth": 0xffffffff},
                   {"flags": 4}, {"flags": 0xffffffff}, {"roots": b"x"}, {"roots": iwarp.text(b"")},
                   {"roots": iwarp.text(b"../x")}, {"roots": iwarp.text(b"/x")}, {"roots": iwarp.text(b"x") + b"\0"},
                   {"roots": iwarp.text(b"x" * 200) * 6}):
        store_is_refused(place, f"OFFER with {fields}",
                         lambda store, f=fields: [(iwarp.OFFER, iwarp.offer(**f))])
    place.whole()


@case(seconds=120)
def frames_in_the_wrong_state_of_a_transfer(top):
    place = Place(top)
    for type_, (right, _, _) in TRANSFERS.items():
        if type_ not in (iwarp.OFFER, iwarp.ABORT):
            store_is_refused(place, f"type {type_} instead of OFFER",
                             lambda store, t=type_, d=right: [(t, d)])
        if type_ not in (iwarp.FILE, iwarp.FILES, iwarp.COMPLETE, iwarp.REQUEST, iwarp.ABORT):
            store_is_refused(place, f"type {type_} after ACCEPT",
                             lambda store, t=type_, d=right: store.offer() and [(t, d)])
    store_is_refused(place, "COMPLETE with a file open",
                     lambda s: s.offer().file() and [(iwarp.COMPLETE, iwarp.complete())])
    place.whole()


def begins(session, transfer, path):
    """A STORE that runs, up to ACCEPT."""
    channels = session.open_channels(1, transfer)
    equal(session.ask(iwarp.STORE, iwarp.data_request(path=path), transfer)[0], 0, "STORE of", path)
    session.put(iwarp.OFFER, iwarp.offer(), transfer)
    equal(next_frame(session)[:2], (iwarp.ACCEPT, transfer), "the answer to OFFER of", path)
    return channels


def next_frame(session):
    """That is no grant."""
    while True:
        frame = session.get()
        if frame[0] != iwarp.GRANT:
            return frame


NOTHING = iwarp.complete(0, 0)


@case
def requests_beside_transfers(top):
    """They are answered while transfers run; what is about a transfer that runs waits for its end, as BYE
    does for that of all."""
    place = Place(top)
    session = Session(place.port, WAIT)
    session.hello(transfers=2)
    channels = begins(session, 0, b"a")
    for type_ in (iwarp.STAT, iwarp.LIST, iwarp.STATFS, iwarp.PING):
        session.put(type_, REQUESTS[type_][0])
        equal(next_frame(session)[:2], (type_ | iwarp.REPLY, 0), "while a transfer runs")
    channels += begins(session, 1, b"b")
    session.put(iwarp.RETRIEVE, iwarp.data_request(path=b"missing"), 0)
    session.put(iwarp.STAT, iwarp.text(b"/f"))
    session.put(iwarp.COMPLETE, NOTHING, 1)
    equal(next_frame(session)[:2], (iwarp.CLOSED, 1), "the end of transfer 1")
    session.put(iwarp.COMPLETE, NOTHING, 0)
    session.put(iwarp.BYE)
    equal(next_frame(session)[:2], (iwarp.CLOSED, 0), "the end of transfer 0")
    type_, status, _ = session.get()
    check(type_ == iwarp.RETRIEVE | iwarp.REPLY and status, "the RETRIEVE that waited:", type_, status)
    equal(session.get()[:2], (iwarp.STAT | iwarp.REPLY, 0), "what was behind it")
    equal(session.get()[:2], (iwarp.BYE | iwarp.REPLY, 0), "BYE")
    for channel in channels:
        channel.close()
    session.close()
    place.whole()


@case(seconds=120)
def transfers_of_numbers_that_were_not_agreed_on(top):
    place = Place(top)
    for type_ in (iwarp.CHANNELS, iwarp.STORE, iwarp.RETRIEVE, iwarp.FEED, iwarp.ABORT):
        right = struct.pack(">IHQQ", 0, 1, 0, 0) + iwarp.text(b"/d") if type_ == iwarp.FEED \
            else (REQUESTS | TRANSFERS)[type_][0]
        for number in (2, 3, 4, 65535):
            session = Session(place.port, WAIT)
            session.hello(transfers=2)
            seen = answer(session, (type_, right, number))
            check(refused(seen), f"type {type_} of transfer {number}:", seen)
            session.close()
    for type_, (right, _, _) in TRANSFERS.items():  # of one that does not run, beside one that does
        if type_ == iwarp.ABORT:
            continue
        session = Session(place.port, WAIT)
        session.hello(transfers=2)
        channels = begins(session, 0, b"a")
        seen = answer(session, (type_, right, 1))
        check(refused(seen), f"type {type_} of a transfer that does not run:", seen)
        for channel in channels:
            channel.close()
        session.close()
    place.whole()


@case
def another_transfer_is_given_up_while_one_waits(top):
    """Its channels are closed, and the one that waits for its own goes on waiting."""
    place = Place(top)
    session = Session(place.port, WAIT)
    session.hello(transfers=2)
    channels = session.open_channels(2, transfer=1)
    status, _ = session.ask(iwarp.CHANNELS, struct.pack(">H", 1))
    equal(status, 0, "CHANNELS")
    session.put(iwarp.STORE, iwarp.data_request(path=b"waits"))
    for _ in range(2):  # again, with nothing to close
        session.put(iwarp.ABORT, iwarp.abort(), 1)
        equal(session.get()[:2], (iwarp.ABORT, 1), "the answer")
    check(channels[0].dropped_within(WAIT), "a data channel of the transfer that was given up is open")
    equal(session.ask(iwarp.PING, b"cookie 8")[0], 0, "PING")
    session.put(iwarp.ABORT, iwarp.abort(), 0)
    equal(session.get()[:2], (iwarp.ABORT, 0), "the answer of the one that waits")
    for channel in channels:
        channel.close()
    session.close()
    place.whole()


@case(seconds=120)
def files_with_wrong_fields(top):
    place = Place(top)
    for fields in ({"number": 0}, {"kind": 0}, {"kind": 6}, {"kind": 7}, {"kind": 255}, {"mode": 0o10000},
                   {"mtime_ns": 1000000000}, {"size": 1 << 63}, {"size": iwarp.UNKNOWN},
                   {"name": b"../x"}, {"name": b"/etc/x"}, {"name": b"a//b"}, {"name": b"a/"},
                   {"name": b"."}, {"name": b".."}, {"name": b"a/./b"}, {"name": b"a\0b"},
                   {"name": b"n" * 256}, {"name": b"a/b/c/d"}):
        store_is_refused(place, f"FILE with {fields}",
                         lambda store, f=fields: store.offer() and [(iwarp.FILE, iwarp.file(**f))])
    for what, has in (("nothing", b"\0\0"), ("unknown bits", b"\0\x40"), ("half an owner", b"\0\1\0\0"),
                      ("an attribute without a name", b"\0\4" + iwarp.text(iwarp.text(b"") + iwarp.text(b"v"))),
                      ("half an attribute", b"\0\4" + iwarp.text(iwarp.text(b"user.a") + b"\0\5v")),
                      ("a NUL in a list", b"\0\x08" + iwarp.text(b"u::r\0") + iwarp.text(b"")),
                      ("a file's default list", b"\0\x08" + iwarp.text(b"") + iwarp.text(b"u::rwx"))):
        store_is_refused(place, f"FILE that has {what}", lambda store, h=has: store.offer() and [
            (iwarp.FILE, iwarp.file(kind=0x81, name=b"x") + h)])
    for what, rest in (("no size", b"\0"), ("a size that is none", b"\0" + b"\xff" * 8), ("a byte more", bytes(10)),
                       ("seen neither yes nor no", b"\2" + bytes(8)), ("half of what was seen", b"\1" + bytes(20)),
                       ("a time that is none", b"\1" + bytes(16) + b"\xff" * 4 + bytes(8))):
        store_is_refused(place, f"ATTRIBUTES with {what}", lambda store, r=rest: store.offer() and [
            (iwarp.FILE, iwarp.file(kind=9, size=0, name=b"x") + r)])
    store_is_refused(place, "a number that was used", lambda s: s.offer().file() and [
        (iwarp.FILE, iwarp.file(number=1))])
    store_is_refused(place, "a number that goes back", lambda s: s.offer().file(number=5) and [
        (iwarp.FILE, iwarp.file(number=4))])
    store_is_refused(place, "a file that was offered and not accepted ends", lambda s: s.offer() and [
        (iwarp.FILE_END, iwarp.file_end())])
    for what, fields in (("of another file", {"number": 2}), ("with size 2^63", {"size": 1 << 63}),
                         ("with too many blocks", {"blocks": (1 << 32) + 1}),
                         ("with two blocks where there is one", {"blocks": 2}),
                         ("with more bytes than in FILE", {"size": 65537, "blocks": 2}),
                         ("with bytes and no blocks", {"blocks": 0}),
                         ("with a block and no bytes", {"size": 0}),
                         ("with more bytes than its block", {"size": 1 << 62}),
                         ("that failed, with blocks that were not sent", {"status": 301, "blocks": 1 << 31}),
                         ("with a source's error", {"status": 301, "blocks": 0})):
        store_is_refused(place, f"FILE_END {what}", lambda s, f=fields: s.offer().file() and [
            (iwarp.FILE_END, iwarp.file_end(**f))])
    for fields in ({"size": 5, "blocks": 6}, {"size": 65537, "blocks": 1}, {"size": 0, "blocks": 1}):
        store_is_refused(place, f"FILE_END of a stream with {fields}",
                         lambda s, f=fields: s.offer().file(kind=3, size=iwarp.UNKNOWN) and [
                             (iwarp.FILE_END, iwarp.file_end(**f))])
    store = Store(place, b"/", flags=1)
    store.offer()
    seen = answer(store.session, *[(iwarp.FILE, iwarp.file(number=n + 1, name=b"x%d" % n))
                                   for n in range(257)])
    while isinstance(seen[-1], tuple) and seen[-1][0] in (iwarp.READY, iwarp.GRANT):
        seen = answer(store.session)
    check(seen[-1] == Answer.DROPPED or seen[-1][0] == iwarp.ABORT, "257 files at once:", seen[-3:])
    store.close()
    place.whole()


PAYLOAD = b"p" * 32


class Files:
    """Files of one block each, in a directory; number n is called xN, with another letter."""

    def __init__(self, place, letter=b"x"):
        self.letter = letter
        self.store = Store(place, b"/", flags=1)
        self.store.offer()
        self.entries = {}

    def begin(self, *numbers):
        for number in numbers:
            self.store.file(number=number, size=len(PAYLOAD), name=self.letter + b"%d" % number)
            self.entries[number] = self.store.session.entry
        return self

    def block(self, number):
        index = self.store.credits.pop(0)
        self.store.fill(index, iwarp.right_block(PAYLOAD, session=number)).notice(index)
        return self

    def end(self, number, fields=None):
        right = {"number": number, "size": len(PAYLOAD), "digest": iwarp.digest(
            len(PAYLOAD), iwarp.xxh3(PAYLOAD), entry=self.entries[number])}
        self.store.session.put(iwarp.FILE_END, iwarp.file_end(**right | (fields or {})))
        return self

    def result(self, number):
        """The status of its RESULT, which is the next"""
        while (frame := self.store.session.get())[0] == iwarp.GRANT:
            count, = struct.unpack(">H", frame[2][:2])
            self.store.credits += struct.unpack(f">{count}I", frame[2][2:])
        equal(frame[0], iwarp.RESULT, "a frame before RESULT", frame)
        equal(struct.unpack(">I", frame[2][:4]), (number,), "the file of RESULT")
        return struct.unpack(">H", frame[2][4:6])[0]


@case
def what_a_bad_end_of_a_file_costs(top):
    """Of several files of a transfer, with another session's beside it.  An end that tells of a failure, or
    whose digest is another, costs the file; one that cannot be costs the session.  Nothing costs what has
    arrived, what was there before, or what others do."""
    old = {name: b"old" for name in ("x1", "x2", "x3", "x4", "x5", "y1")}
    place = Place(top, **old)
    for fields in {"blocks": 2}, {"blocks": 0}, {"size": 33, "blocks": 2}, {"number": 9}:
        beside = Files(place, b"y").begin(1)
        files = Files(place).begin(1, 2, 3, 4, 5)
        files.block(1).end(1)
        equal(files.result(1), 0, "a whole file")
        files.block(2).end(2, {"status": 301})
        check(files.result(2) not in (0, 108), "a file that its source could not read")
        files.block(3).end(3, {"digest": 1})
        equal(files.result(3), 305, "a file with another digest")
        files.block(4).end(4)
        equal(files.result(4), 0, "a file behind those that failed")
        files.block(5).end(5, fields)
        seen = answer(files.store.session)
        check(seen[-1] in (Answer.DROPPED, (iwarp.ABORT, 100)), "an end with", fields, seen)
        files.store.close()
        beside.block(1).end(1)
        equal(beside.result(1), 0, "what crossed beside it")
        beside.store.close()
        for name, data in old.items():
            with open(place.daemon.path(name), "r+b") as f:
                equal(f.read(), PAYLOAD if name in ("x1", "x4", "y1") else b"old", fields, name)
            with open(place.daemon.path(name), "wb") as f:
                f.write(data)
    place.whole()


@case(seconds=120)
def holes_with_wrong_fields(top):
    """A file of three blocks and a byte, with holes: HAS_HOLES, the bit 64."""
    place = Place(top)
    size = 3 * 65536 + 1

    def sparse(store, holes=True):
        store.offer()
        store.session.put(iwarp.FILE, iwarp.file(kind=0x81, size=size) + b"\0\x40" if holes else iwarp.file(size=size))
        while store.session.get()[0] != iwarp.READY:
            pass
        return True

    for what, fields in (("of another file", [{"number": 2}]), ("of file 0", [{"number": 0}]),
                         ("of nothing", [{"length": 0}]), ("within a block", [{"offset": 4096}]),
                         ("of half a block", [{"length": 4096}]), ("beyond the end", [{"length": 4 * 65536}]),
                         ("far beyond the end", [{"offset": 1 << 62}]), ("of 2^63 bytes", [{"length": 1 << 63}]),
                         ("that wraps", [{"offset": (1 << 64) - 65536, "length": 131072}])):
        store_is_refused(place, f"HOLE {what}", lambda s, f=fields: sparse(s) and [
            (iwarp.HOLE, iwarp.hole(**one)) for one in f])
    store_is_refused(place, "HOLE of a file that has none", lambda s: sparse(s, False) and [
        (iwarp.HOLE, iwarp.hole())])
    store_is_refused(place, "HOLE after FILE_END", lambda s: sparse(s) and [
        (iwarp.FILE_END, iwarp.file_end(size=size, blocks=4)), (iwarp.HOLE, iwarp.hole())])
    store_is_refused(place, "FILE_END that counts the blocks of a hole", lambda s: sparse(s) and [
        (iwarp.HOLE, iwarp.hole()), (iwarp.FILE_END, iwarp.file_end(size=size, blocks=4))])
    # the same bytes twice fail the file, and it alone
    store = Store(place)
    sparse(store)
    store.session.put(iwarp.HOLE, iwarp.hole(length=131072))
    store.session.put(iwarp.HOLE, iwarp.hole(offset=65536))
    type_, _, data = store.session.get()
    while type_ == iwarp.GRANT:
        type_, _, data = store.session.get()
    equal((type_, b"came twice" in data), (iwarp.RESULT, True), "bytes that came twice:", data)
    store.close()
    # a hole of 2^63 - 1 bytes costs the daemon nothing: the file system says that it is too large, or, as tmpfs, takes
    # it: then the daemon waits for what follows
    store = Store(place)
    store.offer()
    store.session.put(iwarp.FILE, iwarp.file(kind=0x81, size=(1 << 63) - 1) + b"\0\x40")
    begun = time.monotonic()
    seen = answer(store.session, (iwarp.HOLE, iwarp.hole(length=(1 << 63) - 1)), (iwarp.ABORT, iwarp.abort()))
    check(seen[-1] != Answer.QUIET, "no answer", seen)
    check(time.monotonic() - begun < 10 * rftptest.PATIENCE, "it took", time.monotonic() - begun, seen)
    store.close()
    check(not os.path.exists(place.daemon.path("stored")), "a file is there")
    place.whole()


@case(seconds=120)
def bundles_with_wrong_fields(top):
    place = Place(top)
    entry, files = iwarp.entry, iwarp.files

    def refused_files(what, data, says="FILES from the source is malformed"):
        store_is_refused(place, f"FILES {what}", lambda s: s.offer() and [(iwarp.FILES, data)],
                         says if len(data) >= TRANSFERS[iwarp.FILES][1] else None)

    for fields in ({"number": 0}, {"number": 2}, {"number": 0xffffffff}, {"count": 0}, {"count": 2},
                   {"count": 257}, {"count": 65535}):
        refused_files(f"with {fields}", files([entry()], **fields))
    refused_files("of 257 entries", files([entry(n + 1, name=b"%d" % n) for n in range(257)]))
    refused_files("and a byte more", files([entry()]) + b"x")
    refused_files("a byte short", files([entry()])[:-1])
    for fields in ({"place": 0}, {"place": 2}, {"status": 200, "size": 1}, {"status": 200, "digest": 1},
                   {"kind": 0}, {"kind": 3}, {"kind": 4}, {"kind": 6}, {"kind": 8}, {"kind": 255},
                   {"kind": 2, "size": 1}, {"kind": 5, "size": 1}, {"mode": 0o10000},
                   {"mtime_ns": 1000000000}, {"size": 1 << 63}, {"name": b"../x"}, {"name": b"/etc/x"},
                   {"name": b"a//b"}, {"name": b"."}, {"name": b"a\0b"}, {"name": b"n" * 256},
                   {"data": b""}, {"data": iwarp.file() + b"x"}, {"data": iwarp.file()[:-1]},
                   {"data": iwarp.file(number=1, kind=6, size=0, name=b"l") + iwarp.text(b"a\0")}):
        refused_files(f"with an entry with {fields}", files([entry(**fields)]))
    refused_files("with a place twice", files([entry(1), entry(1, name=b"o")]))
    # what it holds has to fit one block, however the sizes are made up
    refused_files("larger than a block", files([entry(size=65537)]))
    refused_files("two that are larger than a block",
                  files([entry(1, size=65536), entry(2, size=1, name=b"o")]))
    refused_files("sizes that overflow",
                  files([entry(1, size=1), entry(2, size=(1 << 63) - 1, name=b"o")]))
    store_is_refused(place, "FILES of a number that was used", lambda s: s.offer().bundle(
        entry(size=9, name=b"")) and [(iwarp.FILES, files([entry(size=9, name=b"o")]))])
    store_is_refused(place, "FILE of the number of a bundle", lambda s: s.offer().bundle(
        entry(size=9, name=b"")) and [(iwarp.FILE, iwarp.file())])
    store_is_refused(place, "FILE_END of a bundle", lambda s: s.offer().bundle(
        entry(size=9, name=b"")) and [(iwarp.FILE_END, iwarp.file_end(size=9))])
    store_is_refused(place, "COMPLETE with a bundle open", lambda s: s.offer().bundle(
        entry(size=9, name=b"")) and [(iwarp.COMPLETE, iwarp.complete())])
    store_is_refused(place, "257 bundles at once", lambda s: s.offer() and [
        (iwarp.FILES, files([entry(size=9, name=b"%d" % n)], number=n + 1)) for n in range(257)])
    # a digest that is not that of what came fails that name, and no other
    for what, one in (("a file of no bytes", entry(name=b"", digest=1)),
                      ("a directory", entry(kind=2, digest=1)),
                      ("a link", entry(data=iwarp.file(number=1, kind=6, size=0, name=b"l") +
                                       iwarp.text(b"to"), digest=1))):
        store_is_refused(place, f"{what} with another digest",
                         lambda s, e=one: s.offer() and [(iwarp.FILES, files([e]))])
    store_is_refused(place, "a bundle's file that the source could not read", lambda s: s.offer() and [
        (iwarp.FILES, files([entry(status=301, name=b"")]))])
    # where a file may stay away the sink wants to be asked
    store = Store(place, flags=4)
    seen = answer(store.offer().session, (iwarp.FILES, files([entry(name=b"")])))
    check(refused(seen), "FILES to a sink that takes none:", seen)
    store.close()
    place.whole()


@case(seconds=120)
def blocks_of_bundles_with_wrong_fields(top):
    place = Place(top)

    def refused_block(what, says="a block's header is not allowed", size=65536, **fields):
        def action(store):
            store.offer().bundle(iwarp.entry(size=size, name=b""))
            store.block(store.credits[0], **fields)
        store_is_refused(place, f"a block of a bundle {what}", action, says)

    refused_block("that is shorter", None, length=65535)
    refused_block("that is longer", None, size=100)
    refused_block("that has none", None, size=0)
    refused_block("at an offset", None, offset=4096, length=100, size=100)
    refused_block("with a sequence", None, sequence=1)
    refused_block("with a wrong checksum", says="wrong checksum of the block")
    refused_block("that cannot be announced yet", session=258)

    def twice(store):
        store.offer().bundle(iwarp.entry(size=65536, name=b""))
        store.block(store.credits[0]).block(store.credits[1])
    store_is_refused(place, "two blocks of a bundle", twice)

    def early(what, *frames, blocks=1):
        def action(store):
            store.offer().granted()
            for i in range(blocks):
                store.block(store.credits[i])
            return frames
        store_is_refused(place, f"a block that comes first, and {what}", action)

    early("another one of its number", blocks=2)
    early("a FILE of its number", (iwarp.FILE, iwarp.file()))
    early("a bundle without bytes", (iwarp.FILES, iwarp.files([iwarp.entry(name=b"")])))
    early("a bundle of another size", (iwarp.FILES, iwarp.files([iwarp.entry(size=9, name=b"")])))
    early("COMPLETE", (iwarp.COMPLETE, iwarp.complete(0, 0)))
    early("its bundle, and a wrong checksum",
          (iwarp.FILES, iwarp.files([iwarp.entry(size=65536, name=b"")])))
    # and one whose FILES never comes is given back with all the rest
    store = Store(place)
    store.offer().granted()
    store.block(store.credits[0])
    store.close()
    place.whole()


@case
def files_that_never_become_whole(top):
    """Blocks that do not come may be late: the daemon waits, and forgets all when the client goes."""
    place = Place(top)
    for fields in ({}, {"size": 65535}, {"size": 1}):
        store = Store(place)
        store.offer().file()
        store.session.put(iwarp.FILE_END, iwarp.file_end(**fields))
        time.sleep(0.05)
        check(not os.path.exists(place.daemon.path("stored")), f"FILE_END {fields}: a file is there")
        store.close()
    for size in (0, 1, 65536):  # and one that ends before it was begun
        store = Store(place)
        store.offer().file(size=size)
        store.close()
    place.whole()


@case(seconds=120)
def blocks_and_notices_with_wrong_fields(top):
    place = Place(top)
    for kind in iwarp.NOTICE_BEHIND, iwarp.NOTICE_GATHERED:
        wrong_blocks_and_notices(place, kind)


def wrong_blocks_and_notices(place, kind):
    end = [(iwarp.FILE_END, iwarp.file_end())]

    def refused_store(what, do, says=None):
        def action(store):
            do(store.offer(notice=kind).file())
            return end
        store_is_refused(place, f"notices {kind}: {what}", action, says)

    def block(what, says="a block's header is not allowed", **fields):
        refused_store(f"a block {what}", lambda s: s.block(s.credits[0], **fields), says)

    block("with a wrong checksum", "wrong checksum of the block")
    block("of file 0", session=0)
    block("of another file", session=258)  # and of no bundle that might be announced now
    block("of no bytes", length=0)
    block("longer than a block", length=65537)
    block("of 4 GiB", length=0xffffffff)
    block("beyond the file", offset=1 << 20)
    block("at an offset that overflows", offset=(1 << 63) - 10)
    block("at offset 2^64 - 1", offset=(1 << 64) - 1)
    block("with unknown flags", flags=4)
    block("that is compressed to nothing", flags=2)
    block("that is compressed to more than it was", flags=2 | 65536 << 8)
    block("that is not compressed, to something", flags=1 << 8)
    block("that says it is compressed, and is not", "wrong checksum of the block", flags=2 | 100 << 8)
    block("that says it is the last of a stream", "wrong checksum of the block", flags=1)

    def notice(what, index, says="is not allowed"):
        refused_store(f"a notice {what}", lambda s: s.notice(index(s)), says)

    notice("of a block without data", lambda s: s.credits[0], "a block's header is not allowed")
    notice("beyond the depth", lambda s: s.depth)
    notice("of index 65536", lambda s: 65536)
    notice("of index 2^32 - 1", lambda s: 0xffffffff)

    def send(what, data, says="is not allowed"):
        refused_store(f"a notice {what}", lambda s: s.channels[0].send(data(s)), says)

    def entry(index):
        return struct.pack(">I", index) + iwarp.block()

    refused_store("a notice that comes twice",
                  lambda s: s.block(s.credits[0]).notice(s.credits[0], iwarp.block()))
    send("of 1 byte", lambda s: b"\0")
    send("that is another frame", lambda s: struct.pack(">HHI", iwarp.PING, 0, 8) + bytes(8))
    send("that is too long for a receive", lambda s: bytes(289), "data channel 0 broke")
    if kind == iwarp.NOTICE_GATHERED:
        send("of no block", lambda s: b"")
        send("a byte short", lambda s: entry(s.credits[0])[:-1])
        send("of a block, and 4 bytes", lambda s: entry(s.credits[0]) + bytes(4))
        send("of a block twice", lambda s: 2 * entry(s.credits[0]))
        send("of a good block and a bad one", lambda s: entry(s.credits[0]) + entry(s.depth))
    place.whole()


@case(seconds=120)
def writes_beyond_the_memory(top):
    place = Place(top)
    end = [(iwarp.FILE_END, iwarp.file_end())]

    for what, place_of in (("before the memory", lambda s: s.base - 4096),
                           ("behind the memory", lambda s: s.base + s.depth * s.stride),
                           ("across the end", lambda s: s.base + s.depth * s.stride - 100),
                           ("at the top of the address space", lambda s: (1 << 64) - 4096)):
        def beyond(store, place_of=place_of):
            store.offer().file()
            store.channels[0].write(store.key, place_of(store) % (1 << 64), bytes(4096))
            return end
        store_is_refused(place, f"a write {what}", beyond, "data channel 0 broke")

    def another_key(store):
        store.offer().file()
        store.channels[0].write(store.key ^ 0x100, store.base, bytes(4096))
        return end
    store_is_refused(place, "a write with another key", another_key, "data channel 0 broke")

    def vanish(store):
        store.offer().file()
        store.channels[0].close()
        return end
    store_is_refused(place, "a data channel that goes away", vanish)
    place.whole()


@case(seconds=120)
def sinks_that_lie(top):
    """RETRIEVE: the daemon is the source, and what the client accepts and grants is wrong."""
    place = Place(top, small=b"12345")

    def retrieve(what, *frames, path=b"f"):
        session = Session(place.port, WAIT)
        session.hello()
        channels = session.open_channels(1)
        status, data = session.ask(iwarp.RETRIEVE, iwarp.data_request(path=path, block=65536, depth=4))
        equal(status, 0, "RETRIEVE", data)
        type_, _, _ = session.get()
        equal(type_, iwarp.OFFER, "after RETRIEVE")
        seen = answer(session, *frames)
        check(refused(seen), what, seen)
        for c in channels:
            c.close()
        session.close()

    for fields in ({"depth": 0}, {"depth": 65537}, {"stride": 0}, {"stride": 4096},
                   {"base": (1 << 64) - 1}, {"flags": 4}, {"status_base": (1 << 64) - 1},
                   {"status_base": (1 << 64) - 64}, {"status_base": 4096}, {"status_key": 1}):
        retrieve(f"ACCEPT with {fields}", (iwarp.ACCEPT, iwarp.accept(**fields)))
    good = (iwarp.ACCEPT, iwarp.accept(stride=65536 + 4096))
    for type_, (right, _, _) in TRANSFERS.items():
        if type_ not in (iwarp.ACCEPT, iwarp.ABORT):
            retrieve(f"type {type_} instead of ACCEPT", (type_, right))
    for what, data in (("no index", iwarp.grant([])), ("a count that is too large", iwarp.grant([0], 2)),
                       ("a count that is too small", iwarp.grant([0, 1], 1)),
                       ("count 65535", iwarp.grant([0], 65535)),
                       ("an index beyond the depth", iwarp.grant([4])),
                       ("index 2^32 - 1", iwarp.grant([0xffffffff])),
                       ("an index twice", iwarp.grant([1, 1]))):
        retrieve(f"GRANT with {what}", good, (iwarp.GRANT, data))
    for what, data in (("READY of another file", struct.pack(">IQ", 77, 0)),
                       ("READY of file 0", struct.pack(">IQ", 0, 0)),
                       ("READY with blocks that it was not told of", struct.pack(">IQ", 1, 4096))):
        retrieve(what, good, (iwarp.READY, data))
    for what, *fields in (("another file", 77), ("file 0", 0), ("no blocks", 1, 0, []),
                          ("more blocks than leaves", 1, 0, [1], 2), ("fewer of them", 1, 0, [1, 2], 1),
                          ("a block beyond the file", 1, 1 << 20), ("block 2^32", 1, 1 << 32),
                          ("blocks up to beyond the file", 1, 0, [0] * 4096),
                          ("block 2^64 - 1", 1, (1 << 64) - 1)):
        retrieve(f"HAVE of {what}", good, (iwarp.HAVE, iwarp.have(*fields)))
    retrieve("HAVE of a block twice", good, *[(iwarp.HAVE, iwarp.have())] * 2)
    retrieve("HAVE behind READY", good, (iwarp.READY, struct.pack(">IQ", 1, 0)), (iwarp.HAVE, iwarp.have()))
    for what, number, status in (("another file", 77, 0), ("file 0", 0, 0),
                                 ("a file that is not sent", 1, 0)):
        retrieve(f"RESULT of {what}", good,
                 (iwarp.RESULT, struct.pack(">IHQQ", number, status, 1, 1) + iwarp.text(b"")))
    bundles = (iwarp.ACCEPT, iwarp.accept(stride=65536 + 4096, flags=2))
    grants = (iwarp.GRANT, iwarp.grant([0, 1]))
    for what, data in (("of another bundle", iwarp.results(77)), ("of file 0", iwarp.results(0)),
                       ("before its block", iwarp.results()),
                       ("with more, and none", iwarp.results(more=1)),
                       ("with more than there are", iwarp.results(named=[(2, 301, b"")])),
                       ("of place 0", iwarp.results(named=[(0, 301, b"")])),
                       ("of a place twice", iwarp.results(named=[(1, 301, b""), (1, 301, b"")])),
                       ("of one that is well, and no word", iwarp.results(named=[(1, 0, b"")])),
                       ("with a text that is too long", iwarp.results(named=[(1, 301, b"x" * 513)])),
                       ("with a count that is too large", iwarp.results(count=1)),
                       ("and a byte more", iwarp.results() + b"x")):
        retrieve(f"RESULTS {what}", bundles, (iwarp.RESULTS, data))
    retrieve("READY of a bundle", bundles, grants, (iwarp.READY, struct.pack(">IQ", 1, 0)), path=b"small")
    retrieve("RESULT of a bundle", bundles, grants,
             (iwarp.RESULT, struct.pack(">IHQQ", 1, 0, 1, 1) + iwarp.text(b"")), path=b"small")
    retrieve("CLOSED too early", good, (iwarp.CLOSED, iwarp.complete()))
    retrieve("OFFER from the sink", good, (iwarp.OFFER, iwarp.offer()))
    place.whole()


@case
def a_round_trip_that_no_link_has(top):
    """71 minutes: the window is the daemon's largest all the same."""
    place = Place(top)
    session = Session(place.port, WAIT)
    session.hello()
    channels = session.open_channels(1)
    request = iwarp.data_request(kind=2, path=b"", size=1 << 40, rtt=0xffffffff)
    equal(session.ask(iwarp.RETRIEVE, request)[0], 0, "RETRIEVE")
    type_, _, data = session.get()
    equal(type_, iwarp.OFFER, "after RETRIEVE")
    block, depth = struct.unpack(">II", data[4:12])
    check(0 < block * depth <= 512 << 20, "the window:", block, depth)
    for c in channels:
        c.close()
    session.close()
    place.whole()


@case
def a_sink_whose_channel_goes_away(top):
    """While it has all blocks that it granted, nothing of the source's is under way there to fail."""
    place = Place(top)
    session = Session(place.port, WAIT)
    session.hello()
    channel, = session.open_channels(1)
    equal(session.ask(iwarp.RETRIEVE, iwarp.data_request(block=65536, depth=2))[0], 0, "RETRIEVE")
    equal(session.get()[0], iwarp.OFFER, "after RETRIEVE")
    session.put(iwarp.ACCEPT, iwarp.accept(depth=2))
    equal(session.get()[0], iwarp.FILE, "after ACCEPT")
    session.put(iwarp.READY, struct.pack(">IQ", 1, 0))
    session.put(iwarp.GRANT, iwarp.grant([0, 1]))
    told = 0
    while told < 2:
        segment = channel.segment()
        told += 0 if segment[0] & 0x80 else len(segment[18:]) // 36
    equal(session.get()[0], iwarp.REQUEST, "the source waits")
    channel.close()
    equal(answer(session)[-1], (iwarp.ABORT, 109), "a source without a data channel")
    place.said(session, "data channel 0 broke", "a data channel that goes away")
    session.close()
    place.whole()


@case(seconds=120)
def random_frames(top):
    place = Place(top)
    types = list(REQUESTS) + list(TRANSFERS)
    for _ in range(scaled(150)):
        session = Session(place.port, WAIT)
        try:
            session.hello()
            for _ in range(rng().randrange(1, 6)):
                type_ = rng().choice(types)
                data = bytearray((REQUESTS | TRANSFERS)[type_][0])
                if type_ in (iwarp.MKDIR, iwarp.RENAME, iwarp.REMOVE, iwarp.RMDIR, iwarp.REMOVE_TREE,
                             iwarp.SETATTR, iwarp.MAKE_LINK, iwarp.PUT):
                    type_ = iwarp.STAT  # not what random paths would change
                for _ in range(rng().randrange(0, 4)):
                    if data:
                        data[rng().randrange(len(data))] = rng().randrange(256)
                session.put(type_, bytes(data))
        except (Dropped, Silent, OSError):
            pass
        session.close()
    place.whole()


# ---- silence ----

@case(seconds=120)
def a_client_that_says_nothing(top):
    """Nothing at all, half an MPA frame, a channel without HELLO: each is dropped after a deadline."""
    place = Place(top)
    silent = []
    for data in (b"", b"M", iwarp.mpa_frame(private=iwarp.greeting())[:-1]):
        s = socket.create_connection(("127.0.0.1", place.port))
        s.sendall(data)
        silent.append((f"{len(data)} bytes of an MPA frame", s))
    session = Session(place.port)
    silent.append(("a control channel without HELLO", session.channel.socket))
    half = Session(place.port)
    half.put_stream(struct.pack(">HHI", iwarp.HELLO, 0, 40)[:5])
    silent.append(("half a HELLO", half.channel.socket))
    started = time.monotonic()
    for what, s in silent:
        check(ended(s, max(1, 60 * rftptest.PATIENCE - (time.monotonic() - started))), what,
              "is not dropped within 60 s")
        s.close()
    place.whole()


@case(seconds=120)
def a_thousand_silent_clients(top):
    count = scaled(1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 100:
        skip(f"only {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 100), hard))
    place = Place(top)
    silent = [socket.create_connection(("127.0.0.1", place.port)) for _ in range(count)]
    started = time.monotonic()
    for i in range(3):
        works(f"{top}/local", place.daemon.url("through"))
        same_files(f"{top}/local", place.daemon.path("through"))
    os.unlink(place.daemon.path("through"))
    check(time.monotonic() - started < 10 * rftptest.PATIENCE, "transfers took",
          time.monotonic() - started, "s beside the silent ones")
    check(place.daemon.threads() <= place.before[1] + 4, "threads:", place.daemon.threads())
    for s in silent:
        check(ended(s, 60 * rftptest.PATIENCE), "a silent client is not dropped")
        s.close()
    place.whole()


rftptest.main(together=4)
