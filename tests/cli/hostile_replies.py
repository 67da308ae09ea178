#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that lie in the memory from which their client reads what they say.

Whatever lies there, the client ends by itself and says what was wrong; and it reads for a bounded time, however
long a server has taken to answer.
"""

import struct

import iwarp
import rftptest
from iwarp import Control
from rftptest import CONNECT, LOST, PROTOCOL, case, check, equal
from rogue import Rogue, ServerSession, Victim, lstat

PULL = ("--timeout", "30", "--connect-timeout", "30", "--fabric", "soft", "--engine", "pull")
BYTES, KEY, BASE = 1 << 17, 77, 1 << 40
HAS, ASKS = 0x8000, 0x4000
ENGINES = 1 << iwarp.ENGINE_PULL | 2


class Ring(Control):
    """A server's control channel after RING."""

    def __init__(self, session):
        super().__init__(session.control.channel, session.control.credits)
        self.owed, self.stream = session.control.owed, session.control.stream
        self.memory, self.position, self.number = bytearray(BYTES), 0, 0
        self.reads = self.asks = 0
        self.by_send = self.asked = False
        self.channel.memory = self.read_by_client

    def read_by_client(self, stag, offset, length):
        check(stag == KEY and BASE <= offset and offset + length <= BASE + BYTES, "a READ beside the ring", stag, offset, length)
        self.reads += 1
        return bytes(self.memory[offset - BASE:offset - BASE + length])

    def pump(self):
        message = self.channel.receive()
        credits, length = struct.unpack(">HH", message[:4])
        self.credits += credits
        self.stream += message[8 if length & HAS else 4:]
        self.owed += 1
        if length & ASKS:
            self.asks += 1
            self.asked = True
            if struct.unpack(">I", message[4:8])[0] != self.position:
                self.ring_bell()

    def ring_bell(self):
        """A client that has asked is told to read."""
        if self.asked:
            self.asked = False
            self.channel.send(struct.pack(">HH", 0, 0))

    def lay(self, data, **lies):
        at = self.position % BYTES
        head = struct.pack(">QIHH", lies.get("number", self.number + 1), lies.get("length", len(data)),
                           lies.get("credits", self.owed), lies.get("reserved", 0))
        checksum = iwarp.xxh3(head) ^ iwarp.xxh3(data)
        piece = head + struct.pack(">Q", lies.get("checksum", checksum)) + data
        self.memory[at:at + len(piece)] = piece
        self.position += -(-len(piece) // 64) * 64
        self.number += 1
        self.owed = 0
        self.ring_bell()

    def write(self, data):
        if self.by_send:
            self.by_send = self.asked = False
            super().write(data)
        else:
            self.lay(data)


def hello(session, data):
    ServerSession.hello(session, data, engines=ENGINES)


def ring(session, _=None, **fields):
    """The right answer to RING"""
    fields = {"bytes_": BYTES, "key": KEY, "base": BASE} | fields
    session.reply(iwarp.RING, struct.pack(">IIQ", fields["bytes_"], fields["key"], fields["base"]))
    session.control = session.bytes.stream = Ring(session)


def run(victim, answers, *arguments, code=0, says=None, what=""):
    """-> the ring of the last session"""
    rogue = Rogue({iwarp.HELLO: hello, iwarp.RING: ring} | answers)
    done = victim.run(rogue, *PULL, *(arguments or ("-c", "stat x")), rogue.url())
    check(done.code in (code if isinstance(code, tuple) else (code,)), what, done)
    check(says is None or says.encode() in done.err, what, says, done)
    rogue.close()
    return rogue.session.control


@case
def a_right_server(top):
    control = run(Victim(top), {}, "-c", "stat x; stat x; pwd")
    check(control.reads and control.number >= 2, control.reads, control.number)


LIES = (
    ("a piece that is longer than the ring", {"length": BYTES}),
    ("a piece that goes beyond its end", {"length": BYTES - 32}),
    ("a piece that is longer than one may be", {"length": 65537}),
    ("a length of 32 bits", {"length": 0xffffffff}),
    ("a piece that is shorter than its bytes", {"length": 8}),
    ("a reserved field", {"reserved": 1}),
    ("a wrong checksum", {"checksum": 0}),
    ("more credits than there are", {"credits": 65535}),
)


@case(seconds=120)
def pieces_that_lie(top):
    victim = Victim(top)
    for what, lies in LIES:
        def lie(session, _, lies=lies):
            session.control.lay(bytes(40), **lies)
            session.control.pump()  # until the client has enough
        run(victim, {iwarp.LSTAT: lie}, code=PROTOCOL, says="broke the protocol", what=what)
    run(victim, {iwarp.LSTAT: lambda s, _: s.control.lay(b"\x17\3\3\0\x23" + bytes(35))}, code=PROTOCOL,
        what="bytes that are no record of TLS")


@case(seconds=120)
def sends_that_nobody_asked_for(top):
    victim = Victim(top)
    for what, message in (("a SEND of nothing", struct.pack(">HH", 0, 0)),
                          ("a SEND with bytes", struct.pack(">HH", 0, 4) + b"bytes"[:4]),
                          ("a SEND that asks", struct.pack(">HHI", 0, HAS | ASKS, 0)),
                          ("a position far away", struct.pack(">HHI", 0, HAS, 1 << 30)),
                          ("a position of no piece", struct.pack(">HHI", 0, HAS, 1)),
                          ("a head without its position", struct.pack(">HH", 0, HAS))):
        def send(session, _, message=message):
            session.control.channel.send(message)
            session.control.pump()
        run(victim, {iwarp.LSTAT: send}, code=PROTOCOL, says="broke the protocol", what=what)


@case(seconds=120)
def rings_that_cannot_be(top):
    victim = Victim(top)
    for fields in ({"bytes_": 0}, {"bytes_": 2048}, {"bytes_": 5000}, {"bytes_": 2 << 20}, {"base": (1 << 64) - 4096}):
        run(victim, {iwarp.RING: lambda s, _, f=fields: ring(s, **f)}, code=(PROTOCOL, CONNECT),
            what=f"a ring of {fields}")
    # a ring that is refused is none: replies are sent
    run(victim, {iwarp.RING: lambda s, _: s.refuse(iwarp.RING, 102, b"none")}, what="a refusal")


@case(seconds=120)
def answers_that_never_come(top):
    """It asks for a SEND, once, and reads no more."""
    control = run(Victim(top), {iwarp.LSTAT: lambda s, _: [s.control.pump() for _ in range(100)]}, "--timeout", "1",
                  "-c", "stat x", code=LOST, says="no answer to LSTAT")
    equal(control.asks, 1, "SENDs that were asked for")
    check(control.reads < 200, control.reads, "READs in vain")


@case(seconds=120)
def answers_that_take_long(top):
    """Each comes only once it has been asked for, by SEND: the time after which the client asks stays bounded."""
    def late(session, _):
        before = session.control.asks
        while session.control.asks == before:
            session.control.pump()
        session.control.by_send = True
        session.reply(iwarp.LSTAT, lstat())
    control = run(Victim(top), {iwarp.LSTAT: late}, "-c", "; ".join(["stat x"] * 40))
    equal(control.asks, 40, "SENDs that were asked for")


@case(seconds=120)
def a_server_that_laid_it_down_already(top):
    """Who has asked is told by an empty SEND to read."""
    def late(session, _):
        before = session.control.asks
        while session.control.asks == before:
            session.control.pump()
        session.reply(iwarp.LSTAT, lstat())  # and the bell
    control = run(Victim(top), {iwarp.LSTAT: late}, "-c", "; ".join(["stat x"] * 40))
    equal(control.asks, 40, "SENDs that were asked for")


rftptest.main()
