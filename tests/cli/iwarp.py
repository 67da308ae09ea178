# SPDX-License-Identifier: Apache-2.0
"""A second implementation of rftp-protocol(7), small and rude: the client's side, and what a server needs.

MPA, DDP, RDMAP, the control channel and the session messages over plain sockets, for tests that send
what a correct client never would.  Written from the specification, not from the C code.
"""

import socket
import struct
import time

from tls import TOKEN_LABEL, Dropped, Tls

REQUEST_KEY = b"MPA ID Req Frame"
REPLY_KEY = b"MPA ID Rep Frame"
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10

MAGIC = 0x52465450
CONTROL, DATA = 1, 2
SEND_BYTES = 4096
REPLY = 0x8000

HELLO, BYE, PING, CHANNELS, LOGIN, ADMIT = range(1, 7)
RING = 8
LSTAT = 36
STAT, LIST, MKDIR, RMDIR, REMOVE, RENAME, STATFS, REMOVE_TREE, TREE, SUM, SETATTR, MAKE_LINK = range(16, 28)
LEFTOVERS = 35
GRANT_COPY, SEND_COPY = 28, 29
PUT, GET = 30, 31
STORE, RETRIEVE, FEED = 32, 33, 34
ENGINE_CREDIT, ENGINE_STATUS, ENGINE_PULL = 1, 2, 4
NOTICE_BEHIND, NOTICE_GATHERED = 1, 2
OFFER, ACCEPT, GRANT, REQUEST, HOLE = range(64, 69)
FILE, READY, FILE_END, RESULT, COMPLETE, CLOSED, ABORT = range(69, 76)
PAUSED = 76
HAVE = 77
FILES, RESULTS, EXPOSE = 78, 79, 80
QUEUED = 83
HELLO_QUEUED = 16
UNKNOWN = 0xffffffffffffffff

WRITE, READ_REQUEST, READ_RESPONSE, SEND = 0, 1, 2, 3
TERMINATE = 7


def is_reject(data):
    """Whether it begins with an MPA reply that rejects."""
    return data[:16] == REPLY_KEY and len(data) >= 18 and bool(data[16] & REJECT)


class Silent(Exception):
    """The other side says nothing and stays connected."""


def mpa_frame(key=REQUEST_KEY, flags=0, revision=1, private=b"", length=None):
    return key + struct.pack(">BBH", flags, revision, len(private) if length is None else length) \
        + private


def greeting(kind=CONTROL, magic=MAGIC, version=1, index=0, session=0, credits=8, token=bytes(16)):
    return struct.pack(">IBBHIH16s", magic, version, kind, index, session, credits, token)


def fpdu(ulpdu, length=None, crc=bytes(4)):
    pad = -(2 + len(ulpdu)) % 4
    return struct.pack(">H", len(ulpdu) if length is None else length) + ulpdu + bytes(pad) + crc


def untagged(payload, msn, opcode=SEND, queue=0, offset=0, last=True, ddp=None, rdmap=None):
    ddp = (0x41 if last else 0x01) if ddp is None else ddp
    rdmap = 0x40 | opcode if rdmap is None else rdmap
    return struct.pack(">BBIIII", ddp, rdmap, 0, queue, msn, offset) + payload


def tagged(payload, stag, offset, opcode=WRITE, last=True, ddp=None):
    ddp = (0xc1 if last else 0x81) if ddp is None else ddp
    return struct.pack(">BBIQ", ddp, 0x40 | opcode, stag, offset) + payload


class Channel:
    """One TCP connection after the MPA exchange.  reads: how many READs at once either side may have under
    way, which only revision 2 can agree on."""

    def __init__(self, port, private, timeout=20, flags=0, revision=1, reads=0, source=None):
        self.begin(socket.create_connection(("127.0.0.1", port), timeout, source and (source, 0)), timeout)
        if reads:
            flags, revision, private = ENHANCED, 2, struct.pack(">HH", reads, reads) + private
        self.socket.sendall(mpa_frame(flags=flags, revision=revision, private=private))
        self.reply_private = self.read_reply()[4 if reads else 0:]

    def begin(self, connected, timeout):
        self.socket = connected
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(timeout)
        self.buffer = b""
        self.msn = self.read_msn = 0
        self.partial = b""

    def take(self, count):
        while len(self.buffer) < count:
            try:
                data = self.socket.recv(65536)
            except socket.timeout:
                raise Silent("nothing more within the deadline") from None
            except OSError as e:
                raise Dropped(str(e)) from None
            if not data:
                raise Dropped("closed")
            self.buffer += data
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def read_reply(self):
        head = self.take(20)
        key, self.reply_flags, self.reply_revision, length = struct.unpack(">16sBBH", head)
        if key != REPLY_KEY:
            raise Dropped(f"not an MPA reply: {head!r}")
        private = self.take(length)
        if self.reply_flags & REJECT:
            raise Dropped("rejected")
        return private

    def raw(self, data):
        try:
            self.socket.sendall(data)
        except OSError as e:
            raise Dropped(str(e)) from None

    def send(self, *payloads):
        fpdus = [fpdu(untagged(p, self.msn + i)) for i, p in enumerate(payloads, 1)]
        self.msn += len(payloads)
        self.raw(b"".join(fpdus))

    def write(self, stag, offset, payload):
        for at in range(0, len(payload), 32768):
            piece = payload[at:at + 32768]
            self.raw(fpdu(tagged(piece, stag, offset + at, last=at + len(piece) == len(payload))))

    def read(self, stag, offset, length):
        """Asks for memory of the other side; the answer goes to where nothing is."""
        self.read_msn += 1
        self.raw(fpdu(untagged(struct.pack(">IQIIQ", 1, 0, length, stag, offset), self.read_msn,
                               opcode=READ_REQUEST, queue=1)))

    def fetch(self, stag, offset, length):
        """The same, and takes the answer."""
        self.read(stag, offset, length)
        data = b""
        while True:
            ulpdu = self.segment()
            if not ulpdu[0] & 0x80 or ulpdu[1] & 15 != READ_RESPONSE:
                raise Dropped(f"no answer to a READ: {ulpdu[:22].hex()}")
            data += ulpdu[14:]
            if ulpdu[0] & 0x40:
                return data

    def segment(self):
        """The next DDP segment, header and all."""
        length, = struct.unpack(">H", self.take(2))
        ulpdu = self.take(length)
        self.take(-(2 + length) % 4 + 4)
        return ulpdu

    def placed(self, ulpdu):
        """A WRITE of the other side came."""
        raise Dropped("a tagged segment came to a client")

    def asked(self, sink, to, length, stag, offset):
        """A READ of the other side came."""
        raise Dropped("a READ came to who has nothing to read")

    def receive(self):
        """The next SEND's payload.  A Terminate is a drop."""
        while True:
            ulpdu = self.segment()
            if ulpdu[0] & 0x80:
                self.placed(ulpdu)
                continue
            opcode, queue = ulpdu[1] & 15, struct.unpack(">I", ulpdu[6:10])[0]
            if opcode == TERMINATE or queue == 2:
                raise Dropped(f"terminated: {ulpdu[18:22].hex()}")
            if queue == 1:
                self.asked(*struct.unpack(">IQIIQ", ulpdu[18:46]))
                continue
            self.partial += ulpdu[18:]
            if ulpdu[0] & 0x40:
                whole, self.partial = self.partial, b""
                return whole

    def dropped_within(self, seconds):
        """Whether the other side ends the connection (what it says before is ignored)."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return False
            self.socket.settimeout(left)
            try:
                if not self.socket.recv(65536):
                    return True
            except socket.timeout:
                return False
            except OSError:
                return True

    def close(self):
        self.socket.close()


class Accepted(Channel):
    """The passive side: a connection that was accepted, with the private data of its request."""

    def __init__(self, connected, timeout=20):
        self.begin(connected, timeout)
        key, flags, revision, length = struct.unpack(">16sBBH", self.take(20))
        if key != REQUEST_KEY:
            raise Dropped(f"not an MPA request: {key!r}")
        self.private = self.take(length)
        self.enhanced = revision > 1 and bool(flags & ENHANCED)
        if self.enhanced:
            self.depths, self.private = self.private[:4], self.private[4:]
        self.written = []
        self.memory = super().asked  # (stag, offset, length) -> what a READ of the other side is to bring

    def answer(self, private, reject=False):
        flags = (ENHANCED if self.enhanced else 0) | (REJECT if reject else 0)
        self.raw(mpa_frame(REPLY_KEY, flags, 2 if self.enhanced else 1,
                           (self.depths if self.enhanced else b"") + private))

    def asked(self, sink, to, length, stag, offset):
        data = self.memory(stag, offset, length)
        for at in range(0, length, 32768):
            piece = data[at:at + 32768]
            self.raw(fpdu(tagged(piece, sink, to + at, opcode=READ_RESPONSE, last=at + len(piece) == length)))

    def placed(self, ulpdu):
        stag, offset = struct.unpack(">IQ", ulpdu[2:14])
        self.written.append((stag, offset, ulpdu[14:]))


class Control:
    """The byte stream of a control channel, cut into SENDs with credits.  What is put between the stream
    and the frames takes its place: all that is asked of it is read and write."""

    def __init__(self, channel, credits):
        self.channel = channel
        self.credits = credits
        self.stream = b""
        self.owed = 0

    def pump(self):
        message = self.channel.receive()
        credits, length = struct.unpack(">HH", message[:4])
        if length != len(message) - 4:
            raise Dropped("the other side sent a bad head")
        self.credits += credits
        self.stream += message[4:]
        self.owed += 1
        if self.owed >= 4 and self.credits:
            self.piece(b"")

    def piece(self, data):
        while not self.credits:
            self.pump()
        self.credits -= 1
        owed, self.owed = self.owed, 0
        self.channel.send(struct.pack(">HH", owed, len(data)) + data)

    def write(self, data):
        at, step = 0, SEND_BYTES - 4
        while at < len(data):
            while self.credits < 2:
                self.pump()
            # as many at once as there are credits for
            pieces = [data[i:i + step] for i in range(at, len(data), step)[:self.credits - 1]]
            heads = [struct.pack(">HH", 0 if i else self.owed, len(p)) for i, p in enumerate(pieces)]
            self.owed = 0
            self.credits -= len(pieces)
            self.channel.send(*[h + p for h, p in zip(heads, pieces)])
            at += step * len(pieces)

    def read(self, count):
        """Takes them once all have come."""
        while len(self.stream) < count:
            self.pump()
        taken, self.stream = self.stream[:count], self.stream[count:]
        return taken

    def some(self):
        """Takes what has come, at least one byte."""
        while not self.stream:
            self.pump()
        return self.read(len(self.stream))


class Frames:
    """Frames over a byte stream, of either side.  Data may be a function, which is called with this."""

    def __init__(self, stream):
        self.bytes = stream
        self.head = b""
        self.entry = None  # digest of the last FILE that was sent

    def put(self, type_, data=b"", response=0, length=None):
        data = data(self) if callable(data) else data
        if type_ == FILE and 16 <= len(data) <= 128:
            self.entry = xxh3(data)
        self.bytes.write(struct.pack(">HHI", type_, response, len(data) if length is None else length)
                         + data)

    def get(self):
        """-> (type, response, data)"""
        self.head = self.head or self.bytes.read(8)
        type_, response, length = struct.unpack(">HHI", self.head)
        data = self.bytes.read(length)
        self.head = b""
        return type_, response, data


TOKEN_GREETING, TOKEN_WELCOME = 1, 2


def token(tls, direction, session, index, nonce):
    """What one side shows on a data channel."""
    return tls.export(TOKEN_LABEL, struct.pack(">BBHI16s", direction, 0, index, session, nonce))


class Session(Frames):
    """The client's side of a session.  secure=False: before its TLS handshake, which secure() does."""

    def __init__(self, port, timeout=20, credits=8, reads=0, secure=True, source=None, **private):
        self.port, self.timeout, self.reads = port, timeout, reads
        self.channel = Channel(port, greeting(credits=credits, **private), timeout, reads=reads, source=source)
        magic, self.version, _, credits, self.status = \
            struct.unpack(">IBBHH", self.channel.reply_private[:10])
        if magic != MAGIC:
            raise Dropped("not a welcome")
        self.control = Control(self.channel, credits)  # below TLS
        super().__init__(self.control)
        self.number = 0
        if secure and not self.status:
            self.secure()

    def secure(self):
        self.bytes = Tls(self.control).handshake()

    def put_stream(self, data):
        self.bytes.write(data)

    def ask(self, type_, data=b"", transfer=0):
        """-> (status, data) of the reply"""
        self.put(type_, data, transfer)
        got, response, reply = self.get()
        if got != type_ | REPLY:
            raise Dropped(f"reply {got:#x} to request {type_:#x}")
        return response, reply

    def hello(self, then_login=True, **fields):
        """HELLO, and LOGIN as anonymous.  -> HELLO's reply"""
        status, data = self.ask(HELLO, hello(**fields))
        if status:
            raise Dropped(f"HELLO refused: {status}")
        self.number = struct.unpack(">I", data[18:22])[0]
        if then_login:
            status, said = self.ask(LOGIN, login())
            if status:
                raise Dropped(f"LOGIN refused: {status} {said!r}")
        return data

    def open_channels(self, count=1, transfer=0):
        status, data = self.ask(CHANNELS, struct.pack(">H", count), transfer)
        if status:
            raise Dropped(f"CHANNELS refused: {status}")
        granted, first, nonce, *area = struct.unpack(">HH16sIIQ", data)
        self.area = area  # bytes, key, base
        channels = []
        for i in range(granted):
            c = Channel(self.port, self.data_greeting(first + i, nonce), self.timeout, reads=self.reads)
            if c.reply_private[10:26] != token(self.bytes, TOKEN_WELCOME, self.number, first + i, nonce):
                raise Dropped("a data channel's welcome has the wrong token")
            c.send(bytes(4))
            channels.append(c)
        return channels

    def data_greeting(self, index, nonce, **fields):
        return greeting(DATA, **{"index": index, "session": self.number, "credits": 0,
                                 "token": token(self.bytes, TOKEN_GREETING, self.number, index, nonce)}
                        | fields)

    def dropped_within(self, seconds):
        return self.channel.dropped_within(seconds)

    def close(self):
        self.channel.close()


# ---- messages ----

def text(data):
    return struct.pack(">H", len(data)) + data


def hello(version=1, channels=8, block=16 << 20, depth=1024, engines=2, session=0, flags=HELLO_QUEUED,
          agent=b"rude/1", transfers=1):
    return struct.pack(">HHIIHIII", version, channels, block, depth, transfers, engines, session, flags) \
        + text(agent)


ANONYMOUS, PASSWORD, KEY, ONCE, CERTIFICATE, BY_GRANT = range(1, 7)  # methods of LOGIN
LOGIN_LABEL = b"EXPERIMENTAL rftp login"


def login(method=ANONYMOUS, user=b"", data=b""):
    return struct.pack(">B", method) + text(user) + text(data)


def login_signed(tls, user, method=KEY):
    """What the key of a LOGIN signs."""
    return LOGIN_LABEL + tls.export(LOGIN_LABEL, bytes([method]) + user, 32)


def login_reply(rights=31, exports=0, user=b"", home=b"/", max_inline=0):
    return struct.pack(">IHI", rights, exports, max_inline) + text(user) + text(home)


def data_request(path=b"f", kind=1, flags=0, engine=0, channels=0, block=0, depth=0, rtt=0,
                 direct=0, size=0, resume=0, more=(), more_count=None, rules=(), rule_count=None):
    return struct.pack(">BIBHIIIBQQ", kind, flags, engine, channels, block, depth, rtt, direct,
                       size, resume) + text(path) \
        + struct.pack(">H", len(more) if more_count is None else more_count) \
        + b"".join(text(other) for other in more) \
        + struct.pack(">H", len(rules) if rule_count is None else rule_count) \
        + b"".join(bytes([include]) + text(pattern) for include, pattern in rules)


def grant_copy(path=b"/x", flags=0):
    return struct.pack(">I", flags) + text(path)


def send_copy(host=b"127.0.0.1", port=7387, key=b"SHA256:", protect=0, rate=0, right=b"g", flags=0, to=b"/x",
              request=None, **fields):
    return text(host) + struct.pack(">H", port) + text(key) + struct.pack(">BQ", protect, rate) + text(right) \
        + struct.pack(">I", flags) + text(to) + (data_request(**fields) if request is None else request)


def whole(bytes_=b"", data=None, digest=None, length=None, **fields):
    """A file and its bytes, as in PUT and in the reply to GET; `data`: its FILE."""
    data = file(size=len(bytes_), **fields) if data is None else data
    if digest is None:  # of at most one block
        digest = xxh3(struct.pack(">QQQ", len(bytes_), xxh3(bytes_) if bytes_ else 0, xxh3(data)))
    return struct.pack(">Q", digest) + text(data) \
        + struct.pack(">I", len(bytes_) if length is None else length) + bytes_


def put(path=b"/put", bytes_=b"12345678" * 8, flags=0, **fields):
    return struct.pack(">I", flags) + text(path) + whole(bytes_, **fields)


def get(path=b"/f", most=61440, flags=0):
    return struct.pack(">II", flags, most) + text(path)


def admit(class_=b"", deadline=UNKNOWN, flags=0):
    return struct.pack(">QI", deadline, flags) + text(class_)


def queued(position=1, wait=UNKNOWN, share=0, class_=b""):
    return struct.pack(">IQQ", position, wait, share) + text(class_)


def offer(engine=1, notice=1, channels=1, block=65536, depth=4, flags=0, files=1, bytes_=65536, protect=0,
          salt=bytes(16), disk=0, roots=b""):
    return struct.pack(">BBHIIIQQB16sQ", engine, notice, channels, block, depth, flags, files, bytes_, protect,
                       salt, disk) + text(roots)


def expose(blocks=2, stride=65536 + 4096, base=1 << 20, key=1, records_base=1 << 30, records_key=2,
           given_base=1 << 31, given_key=3):
    return struct.pack(">IIQIQIQI", blocks, stride, base, key, records_base, records_key, given_base, given_key)


def accept(depth=4, stride=65536 + 4096, base=0, key=1, flags=0, status_base=0, status_key=0):
    return struct.pack(">IIQIIQI", depth, stride, base, key, flags, status_base, status_key)


def grant(indices, count=None):
    return struct.pack(">H", len(indices) if count is None else count) \
        + b"".join(struct.pack(">I", i) for i in indices)


def file(number=1, kind=1, mode=0o644, mtime_s=0, mtime_ns=0, size=65536, name=b""):
    return struct.pack(">IBIqIQ", number, kind, mode, mtime_s, mtime_ns, size) + text(name)


def have(number=1, first=0, leaves=(0,), count=None):
    """Blocks that the sink has already."""
    return struct.pack(f">IQH{len(leaves)}Q", number, first, len(leaves) if count is None else count, *leaves)


def hole(number=1, offset=0, length=65536):
    return struct.pack(">IQQ", number, offset, length)


def entry(place=1, status=0, digest=0, size=0, name=b"n", data=None, **fields):
    """One of FILES; `data`: of its FILE."""
    if data is None:
        data = file(number=place, size=size, name=name, **fields)
    return text(data) + struct.pack(">HQ", status, digest)


def files(entries, number=1, count=None):
    return struct.pack(">IH", number, len(entries) if count is None else count) + b"".join(entries)


def results(number=1, more=0, digest=0, named=(), count=None):
    """`named`: (place, status, text)"""
    return struct.pack(">IBQH", number, more, digest, len(named) if count is None else count) \
        + b"".join(struct.pack(">HH", place, status) + text(why) for place, status, why in named)


def file_end(number=1, status=0, size=65536, blocks=1, digest=0):
    return struct.pack(">IHQQQ", number, status, size, blocks, digest)


def complete(files=1, bytes_=65536, errors=0, open_=0):
    return struct.pack(">QQQI", files, bytes_, errors, open_)


def abort(status=108, why=b""):
    return struct.pack(">H", status) + text(why)


# ---- checksums ----

# the first bytes of XXH3's secret: as many as it takes for 16 to 128 bytes of input
SECRET = struct.unpack("<16Q", bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"))
BITS = (1 << 64) - 1


def fold(a, b):
    return a * b & BITS ^ a * b >> 64


def xxh3(data):
    """XXH3 of 64 bits with seed 0, of 16 to 128 bytes."""
    assert 16 <= len(data) <= 128
    if len(data) == 16:
        first, second = struct.unpack("<2Q", data)
        low, high = first ^ SECRET[3] ^ SECRET[4], second ^ SECRET[5] ^ SECRET[6]
        h = 16 + int.from_bytes(low.to_bytes(8, "little"), "big") + high + fold(low, high)
    else:
        h = len(data) * 0x9e3779b185ebca87
        for i in range((len(data) - 1) // 32 + 1):
            for at, secret in ((16 * i, 4 * i), (len(data) - 16 * i - 16, 4 * i + 2)):
                a, b = struct.unpack("<2Q", data[at:at + 16])
                h += fold(a ^ SECRET[secret], b ^ SECRET[secret + 1])
    h &= BITS
    h = (h ^ h >> 37) * 0x165667919e3779f9 & BITS
    return h ^ h >> 32


def digest(size, *leaves, entry):
    """The root of the tree over a file's leaves, with the digest of its FILE."""
    while len(leaves) > 1:
        leaves = [xxh3(struct.pack(">2Q", *pair)) if len(pair) > 1 else pair[0]
                  for pair in (leaves[i:i + 2] for i in range(0, len(leaves), 2))]
    return xxh3(struct.pack(">3Q", size, leaves[0] if leaves else 0, entry))


def right_block(payload, **fields):
    """A block whose sum is right, with its payload of 16 to 32 bytes."""
    head = block(length=len(payload), **fields)[:24]
    return head + struct.pack(">Q", xxh3(payload) ^ xxh3(head)) + payload


def block(session=1, sequence=0, offset=0, length=65536, flags=0, sum_=0):
    return struct.pack(">IIQIIQ", session, sequence, offset, length, flags, sum_)
