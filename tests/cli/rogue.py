# SPDX-License-Identifier: Apache-2.0
"""A server that does what it likes: what tests of hostile servers share.

By itself it is right: it says hello, grants channels, and answers each request as the protocol's page has
it.  A case puts functions of its own in the place of single answers.
"""

import os
import queue
import socket
import struct
import threading
import traceback

import iwarp
import rftptest
from iwarp import Accepted, Control, Dropped, Frames, Silent
from tls import Identity, Tls
from rftptest import PATIENCE, check, finish, start_rftp, tree

CREDITS = 16
IDENTITY = Identity()
NONCE = bytes(range(16))
EARLY = 1 << 25  # of the flags of a request
KEY, BASE = 0x1234, 1 << 20  # of the memory that a server names as a sink
BLOCK = 65536

FILE, DIRECTORY, LINK, OTHER = 1, 2, 3, 4
PROTOCOL, LIMIT, NOT_FOUND, DENIED = 100, 104, 200, 201


def welcome(credits=CREDITS, version=1, status=0, magic=iwarp.MAGIC, token=bytes(16)):
    return struct.pack(">IBBHH16s", magic, version, 0, credits, status, token)


def attributes(type_=FILE, size=0, mode=0o644, ns=0, s=0):
    return struct.pack(">BIIIQqI", type_, mode, 0, 0, size, s, ns)


def lstat(target=b"", **fields):
    return attributes(**fields) + iwarp.text(target)


def listing(names, more=0, count=None):
    """names: each a name, or (name, attributes)"""
    entries = [(n, attributes()) if isinstance(n, bytes) else n for n in names]
    return struct.pack(">BH", more, len(entries) if count is None else count) \
        + b"".join(a + iwarp.text(n) + iwarp.text(b"") for n, a in entries)


def result(number=1, status=0, size=0, digest=0, why=b""):
    return struct.pack(">IHQQ", number, status, size, digest) + iwarp.text(why)


def right_result(number, size, digest_):
    return result(number, 0, size, digest_)


class Refused(Dropped):
    """The client does not want the file."""


class ServerSession(Frames):
    """One control channel and its data channels."""

    def __init__(self, rogue, channel, credits):
        self.control = Control(channel, credits)
        super().__init__(Tls(self.control, IDENTITY).handshake())
        self.rogue = rogue
        self.arrived = queue.Queue()  # data channels
        self.channels = []
        self.sink = None
        self.early = False
        self.named = None  # the memory that passes by
        self.passing = []  # frames of an early get, which names memory that no OFFER here is for

    def get(self):
        while True:
            type_, response, data = super().get()
            if type_ == iwarp.RETRIEVE:
                self.early = int.from_bytes(data[1:5], "big") & EARLY
            if type_ == iwarp.RETRIEVE and self.early:
                self.passing = [iwarp.ACCEPT, iwarp.GRANT]
            if self.passing[:1] != [type_]:
                return type_, response, data
            if self.passing.pop(0) == iwarp.ACCEPT:
                self.named = data

    # ---- what a right server does ----

    def serve(self):
        while True:
            type_, _, data = self.get()
            if type_ == iwarp.PING and not any(data):
                continue
            handler = self.rogue.answers.get(type_) or RIGHT.get(type_)
            if handler is None:
                self.refuse(type_, 102, b"not here")
            elif handler(self, data) is False:
                return
            if type_ == iwarp.BYE:
                return

    def reply(self, type_, data=b"", status=0):
        self.put(type_ | iwarp.REPLY, data, status)

    def refuse(self, type_, status, why=b""):
        self.reply(type_, iwarp.text(why), status)

    def hello(self, data, **fields):
        fields = {"session": 1, "channels": 4, "engines": 2} | fields
        self.reply(iwarp.HELLO, iwarp.hello(**fields))

    def login(self, _, **fields):
        self.reply(iwarp.LOGIN, iwarp.login_reply(**fields))

    def grant_channels(self, _, **fields):
        """The answer alone: a client that has asked ahead may need none."""
        fields = {"count": 1, "first": 0} | fields
        self.reply(iwarp.CHANNELS, struct.pack(">HH", fields["count"], fields["first"]) + NONCE + bytes(16))

    def open_channels(self, data, **fields):
        fields = {"count": 1, "first": 0} | fields
        self.grant_channels(data, **fields)
        for _ in range(fields["count"]):
            self.channels.append(self.arrived.get(timeout=20 * PATIENCE))

    # ---- as the source of a RETRIEVE ----

    def offer(self, **fields):
        """The reply to RETRIEVE, and OFFER; until it is accepted."""
        self.reply(iwarp.RETRIEVE)
        self.put(iwarp.OFFER, iwarp.offer(**fields))
        data = self.until(iwarp.ACCEPT)
        self.depth, self.stride, self.base, self.key = struct.unpack(">IIQI", data[:20])
        self.slots = []
        return self

    def until(self, *types):
        """The data of the next frame of these types; credits are gathered on the way."""
        while True:
            type_, _, data = self.get()
            if type_ == iwarp.GRANT:
                count, = struct.unpack(">H", data[:2])
                self.slots += struct.unpack(f">{count}I", data[2:])
            elif type_ in types:
                return data
            elif type_ == iwarp.ABORT:
                self.put(iwarp.ABORT, iwarp.abort())
                raise Dropped(f"aborted: {data!r}")
            elif type_ == iwarp.RESULT:
                raise Refused(f"RESULT: {data!r}")

    def block(self, payload, **fields):
        while not self.slots:
            self.until_grant()
        slot = self.slots.pop(0)
        self.channels[0].write(self.key, self.base + slot * self.stride + 4064,
                               iwarp.right_block(payload, **fields))
        self.channels[0].send(struct.pack(">I", slot))

    def until_grant(self):
        type_, _, data = self.get()
        if type_ == iwarp.GRANT:
            count, = struct.unpack(">H", data[:2])
            self.slots += struct.unpack(f">{count}I", data[2:])
        elif type_ == iwarp.ABORT:
            raise Dropped(f"aborted: {data!r}")

    def file(self, name=b"", payload=b"p" * 32, number=1, end=None, wrong=0, **fields):
        """A whole file of one block.  end: fields of FILE_END that are others; wrong: bits of its digest"""
        self.put(iwarp.FILE, iwarp.file(number=number, name=name, size=len(payload), **fields))
        if fields.get("kind") == 2:
            answer = self.until(iwarp.RESULT)
            if any(answer[4:6]):
                raise Refused(f"RESULT: {answer!r}")
            return answer
        try:
            self.until(iwarp.READY)
        except Refused:
            if self.early:
                self.put(iwarp.FILE_END, iwarp.file_end(number=number, size=0, blocks=0))
            raise
        if payload:
            self.block(payload, session=number)
        right = {"number": number, "size": len(payload), "blocks": 1 if payload else 0,
                 "digest": iwarp.digest(len(payload), *[iwarp.xxh3(payload)] if payload else [],
                                        entry=self.entry) ^ wrong}
        self.put(iwarp.FILE_END, iwarp.file_end(**right | (end or {})))
        return self.until(iwarp.RESULT)

    def complete(self, files=1, bytes_=32, errors=0):
        self.put(iwarp.COMPLETE, iwarp.complete(files, bytes_, errors))
        return self.until(iwarp.CLOSED)

    # ---- as the sink of a STORE ----

    def accept(self, **fields):
        """The reply to STORE, and what the client's OFFER gets."""
        self.reply(iwarp.STORE)
        data = self.until(iwarp.OFFER)
        self.block_bytes, self.wished = struct.unpack(">II", data[4:12])
        self.depth = min(self.wished, 4)
        right = {"depth": self.depth, "stride": self.block_bytes + 4096, "base": BASE, "key": KEY}
        self.put(iwarp.ACCEPT, iwarp.accept(**right | fields))
        return self

    def taken(self):
        """FILE of a small file, and its block and FILE_END: (number, size, digest)"""
        number, = struct.unpack(">I", self.until(iwarp.FILE)[:4])
        self.put(iwarp.READY, struct.pack(">IQ", number, 0))
        self.put(iwarp.GRANT, iwarp.grant(range(self.depth)))
        data = self.until(iwarp.FILE_END)
        number, _, size, _, digest = struct.unpack(">IHQQQ", data)
        return number, size, digest


def right_stat(session, data):
    session.reply(iwarp.STAT, attributes(FILE if len(data) > 3 else DIRECTORY))


def right_retrieve(session, data):
    session.offer()
    session.file(last_name(data))
    session.complete()


def last_name(request):
    """Of a RETRIEVE into a directory: what was asked for."""
    flags, = struct.unpack(">I", request[1:5])
    path = request[39:39 + int.from_bytes(request[37:39], "big")]
    return path.rpartition(b"/")[2] if flags & 1 else b""


def right_store(session, _):
    session.accept()
    number, size, digest = session.taken()
    session.put(iwarp.RESULT, right_result(number, size, digest))
    session.until(iwarp.COMPLETE)
    session.put(iwarp.CLOSED, iwarp.complete(1, size, 0))


RIGHT = {
    iwarp.HELLO: ServerSession.hello,
    iwarp.LOGIN: ServerSession.login,
    iwarp.PING: lambda s, data: s.reply(iwarp.PING, data),
    iwarp.BYE: lambda s, data: s.reply(iwarp.BYE),
    iwarp.CHANNELS: ServerSession.open_channels,
    iwarp.STAT: right_stat,
    iwarp.LSTAT: lambda s, data: s.reply(iwarp.LSTAT, lstat()),
    iwarp.LIST: lambda s, data: s.reply(iwarp.LIST, listing([b"report"])),
    iwarp.RETRIEVE: right_retrieve,
    iwarp.STORE: right_store,
    # of what was refused and did not wait for that
    iwarp.OFFER: lambda s, data: None,
    iwarp.FILE: lambda s, data: None,
    iwarp.FILE_END: lambda s, data: None,
    iwarp.COMPLETE: lambda s, data: None,
    iwarp.ABORT: lambda s, data: s.put(iwarp.ABORT, iwarp.abort()),
}


class Rogue:
    """Listens.  answers: {type: function(session, data)}, which may return False to serve no more, and
    then the connection stays as it is.  connect: function(channel, private), in the place of the answer to a connection."""

    def __init__(self, answers=None, connect=None):
        self.answers, self.connect = answers or {}, connect
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.session = None
        self.kept, self.failures = [], []
        threading.Thread(target=self.listen, daemon=True).start()

    def url(self, path=""):
        start = f"rftp://127.0.0.1:{self.port}/"
        return start.encode() + path if isinstance(path, bytes) else start + path

    def listen(self):
        while True:
            try:
                connected, _ = self.listener.accept()
            except OSError:
                return
            self.kept.append(connected)
            threading.Thread(target=self.guard, args=(connected,), daemon=True).start()

    def guard(self, connected):
        try:
            self.take(connected)
        except (Dropped, Silent, OSError, queue.Empty):
            pass  # the client had enough
        except Exception:  # pylint: disable=broad-except
            self.failures.append(traceback.format_exc())

    def take(self, connected):
        channel = Accepted(connected, 60 * PATIENCE)
        kind, = struct.unpack(">B", channel.private[5:6])
        if self.connect and self.connect(channel, channel.private) is not True:
            return
        if kind == iwarp.DATA:
            index, session = struct.unpack(">HI", channel.private[6:12])
            channel.answer(welcome(credits=0, token=iwarp.token(
                self.session.bytes, iwarp.TOKEN_WELCOME, session, index, NONCE)))
            channel.receive()  # whoever connects sends first
            self.session.arrived.put(channel)
            return
        credits, = struct.unpack(">H", channel.private[12:14])
        channel.answer(welcome())
        self.session = ServerSession(self, channel, credits)
        self.session.serve()

    def close(self):
        self.listener.close()
        for s in self.kept:
            s.close()
        check(not self.failures, "the server itself failed:", *self.failures)


class Victim:
    """A client's own place: a directory to copy into, and files round it that nobody may touch."""

    def __init__(self, top):
        self.top = f"{top}/victim"
        os.makedirs(f"{self.top}/in")
        os.mkdir(f"{self.top}/outside")
        for name in ("canary", "outside/canary", "in/canary"):
            with open(f"{self.top}/{name}", "w", encoding="ascii") as f:
                f.write("untouched\n")
        self.before = tree(self.top)

    def new(self):
        """What is there now and was not: names, of files and directories that are not as they were."""
        now = tree(self.top)
        check(all(now.get(n, 0) == d for n, d in self.before.items()), "something that was there has changed:",
              now)
        return sorted(set(now) - set(self.before))

    def run(self, rogue, *arguments, seconds=30, **options):
        """The client against it, which always ends by itself."""
        options = {"cwd": self.top} | options
        return finish(start_rftp(*arguments, **options), None, seconds)

    def suffers(self, answers, *arguments, code, says, what="", new=(), seconds=30, connect=None, **options):
        """A client that is told such things ends with an error, and has written nothing but `new`.
        {} in an argument stands for the server's URL up to the path."""
        rogue = Rogue(answers, connect)
        try:
            result = self.run(rogue, *[a.replace("{}", rogue.url()) if isinstance(a, str) else a
                                       for a in arguments], seconds=seconds, **options)
        finally:
            rogue.close()
        codes = code if isinstance(code, tuple) else (code,)
        check(result.code in codes, what, arguments, "should exit with", code, ":", result)
        wanted = says if isinstance(says, tuple) else (says,)
        check(any(w.encode() in result.err for w in wanted), what, "should say", wanted, ":", result)
        rftptest.equal(self.new(), sorted(new), what, "what was written")
        clean(result, what)
        return result


def at_once(top, function, rows):
    """function(victim, *row) for each, side by side, since they wait for time to pass: with a victim each."""
    failures = []

    def run(number, row):
        try:
            function(Victim(f"{top}/{number}"), *row)
        except Exception as e:  # pylint: disable=broad-except
            failures.append(str(e) if isinstance(e, rftptest.Failure) else traceback.format_exc())

    threads = [threading.Thread(target=run, args=(n, row)) for n, row in enumerate(rows)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not failures, *failures)


def clean(result, what=""):
    """Nothing that a terminal would take for a command, and no forged line."""
    for text in (result.out, result.err):
        bad = [b for b in text or b"" if b != 10 and (b < 32 or b == 127)]
        check(not bad and b"\xc2\x9b" not in (text or b""), what, "control characters in what it says:", result)
