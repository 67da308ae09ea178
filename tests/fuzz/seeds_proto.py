#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of fuzz_wire, fuzz_message, fuzz_transfer, fuzz_squeeze, fuzz_daemon
and fuzz_journal.

Encodes from the specification (rftp-protocol(7)) on its own; run it again after a change of the
protocol: tests/fuzz/seeds_proto.py
"""
import os
import struct
import zlib

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
REPLY = 0x8000


def pack(form, *values):
    return struct.pack(">" + form, *values)


def text(data):
    return pack("H", len(data)) + data


def write(target, seeds):
    folder = os.path.join(TOP, target)
    os.makedirs(folder, exist_ok=True)
    for name, data in seeds.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(data)


def frame(kind, data, response=0):
    return pack("HHI", kind, response, len(data)) + data


TOKEN = bytes(range(0xA0, 0xB0))
ATTR = pack("BIIIQqI", 1, 0o644, 1000, 1001, 4096, 1700000000, 5)
HELLO = pack("HHIIHIII", 1, 8, 4 << 20, 512, 4, 2, 0, 0) + text(b"rftp/0.1.0")
FILES = pack("BIBHIIIBQQ", 1, 7, 1, 8, 4 << 20, 512, 50000, 0, 0, 0) + text(b"/a") + pack("HH", 0, 0)
SEVERAL = FILES[:-4] + pack("H", 2) + text(b"/b/c") + text(b"d") \
    + pack("HB", 2, 1) + text(b"*.c") + pack("B", 0) + text(b"/x/**")
NULLS = pack("BIBHIIIBQQ", 2, 0, 0, 0, 0, 0, 0, 0, 1 << 32, 0) + text(b"") + pack("HH", 0, 0)


def whole(name, content):
    return pack("Q", 0x0123456789ABCDEF) + text(pack("IBIqIQ", 1, 1, 0o644, 1, 2, len(content)) + text(name)) \
        + pack("I", len(content)) + content


write("fuzz_message", {
    "greeting-control": frame(0, pack("IBBHIH", 0x52465450, 1, 1, 0, 0, 64) + bytes(16)),
    "greeting-data": frame(0, pack("IBBHIH", 0x52465450, 1, 2, 3, 7, 0) + TOKEN + bytes(26)),
    "welcome": frame(REPLY, pack("IBBHH", 0x52465450, 1, 0, 64, 0) + TOKEN),
    "hello": frame(1, HELLO),
    "hello-reply": frame(1 | REPLY, HELLO),
    "refusal": frame(16 | REPLY, text(b"no such file"), 200),
    "login-anonymous": frame(5, pack("B", 1) + text(b"") + text(b"")),
    "login-password": frame(5, pack("B", 2) + text(b"alice") + text(b"sesame")),
    "login-key": frame(5, pack("B", 3) + text(b"alice") + text(text(b"k" * 51) + text(b"s" * 64))),
    "login-once": frame(5, pack("B", 4) + text(b"") + text(b"o" * 32)),
    "login-certificate": frame(5, pack("B", 5) + text(b"alice") + text(b"")),
    "login-reply": frame(5 | REPLY, pack("IHI", 31, 2, 61440) + text(b"alice") + text(b"/home/alice")),
    "bye": frame(2, b""),
    "ping": frame(3, pack("Q", 0x0123456789ABCDEF)),
    "channels": frame(4, pack("H", 8)),
    "channels-reply": frame(4 | REPLY, pack("HH", 8, 64) + TOKEN),
    "stat": frame(16, text(b"/a/b")),
    "stat-reply": frame(16 | REPLY, ATTR),
    "lstat": frame(36, text(b"/a/b")),
    "lstat-reply": frame(36 | REPLY, b"\3" + ATTR[1:] + text(b"../x")),
    "list-reply": frame(17 | REPLY, pack("BH", 1, 2) + ATTR + text(b"name") + text(b"") + b"\3" + ATTR[1:] + text(b"link") + text(b"../x")),
    "mkdir": frame(18, pack("II", 0o755, 1) + text(b"/d")),
    "rename": frame(21, pack("I", 1) + text(b"/a") + text(b"/b")),
    "statfs-reply": frame(22 | REPLY, pack("QQQQQ", 5, 4, 3, 2, 1)),
    "remove-tree": frame(23, text(b"/a")),
    "remove-tree-reply": frame(23 | REPLY, pack("QB", 7, 1)),
    "tree": frame(24, pack("I", 1) + text(b"/a") + pack("HB", 1, 0) + text(b"*.o")),
    "tree-reply": frame(24 | REPLY, pack("BH", 1, 2) + ATTR + pack("HH", 0, 0) + text(b"ab") + text(b"")
                        + pack("BIIIQqI", 3, 0o777, 0, 0, 1, 7, 9) + pack("HH", 0, 1) + text(b"c") + text(b"x")),
    "tree-has": frame(24 | REPLY, pack("BH", 0, 1) + ATTR + pack("HH", 0, 0x8000) + text(b"ab") + text(b"") + b"\x0f"
                      + text(b"ann") + text(b"staff") + pack("QQ", 5, 6)),
    "tree-change": frame(24 | REPLY, pack("BH", 0, 1) + ATTR + pack("HH", 0, 0x8000) + text(b"ab") + text(b"") + b"\x10"
                         + pack("Q", 5)),
    "tree-top": frame(24 | REPLY, pack("BH", 0, 1) + b"\2" + ATTR[1:] + bytes(8)),
    "leftovers": frame(35, pack("IQ", 1, 3600) + text(b"/a")),
    "leftovers-reply": frame(35 | REPLY, pack("BH", 1, 2) + pack("BBHqQQQ", 2, 1, 0, 1700000000, 65536, 1024, 4096) + text(b"a/b")
                             + text(b"c") + pack("BBHqQQQ", 3, 4, 0, -1, 512, 0, 0) + text(b"a") + text(b"")),
    "grant-copy": frame(28, pack("I", 3) + text(b"/d")),
    "grant-copy-reply": frame(28 | REPLY, pack("Q", 4102444800) + text(bytes(56))),
    "send-copy": frame(29, text(b"192.0.2.1") + pack("H", 7387) + text(b"SHA256:x") + pack("BQ", 1, 1 << 20)
                       + text(bytes(56)) + pack("I", 3) + text(b"/to")
                       + pack("BIBHIIIBQQ", 1, 3, 0, 0, 0, 0, 0, 0, 0, 1 << 20) + text(b"/f") + bytes(4)),
    "send-copy-reply": frame(29 | REPLY, pack("BBH", 0, 2, 300) + text(b"full") + bytes(80) + text(b"a") + bytes(13) + text(b"soft")
                             + pack("H", 2) + pack("BHQ", 0, 0, 5) + text(b"a") + text(b"")
                             + pack("BHQ", 4, 300, 0) + text(b"b/c") + text(b"full")),
    "sum": frame(25, pack("BH", 2, 2) + text(b"/a") + text(b"/b")),
    "sum-reply": frame(25 | REPLY, pack("BQH", 0, 7, 2) + pack("HHQ", 1, 200, 0) + text(b"")
                       + pack("HHQ", 0, 0, 7) + text(b"\x12\x34\x56\x78")),
    "setattr": frame(26, pack("H", 2) + pack("BIqI", 11, 0o644, -1, 7) + text(b"/a") + pack("BIqI", 20, 0, 0, 0)
                     + text(b"/b")),
    "setattr-seen": frame(26, pack("H", 1) + pack("BIqI", 0x82, 0, -1, 7) + pack("QqIQ", 7, -2, 8, 99) + text(b"/a")),
    "setattr-owner": frame(26, pack("H", 1) + pack("BIqII", 0x60, 0, 0, 0, 1000) + text(b"") + pack("I", 0xffffffff) + text(b"users")
                           + text(b"/a")),
    "setattr-reply": frame(26 | REPLY, pack("HHH", 2, 0, 201)),
    "make-link": frame(27, pack("I", 0) + text(b"../x") + text(b"/b")),
    "put": frame(30, pack("I", 1) + text(b"/d") + whole(b"n", b"what is in it")),
    "put-reply": frame(30 | REPLY, pack("BHQ", 0, 300, 0) + text(b"no room")),
    "get": frame(31, pack("II", 0x1F00, 61440) + text(b"/f")),
    "get-reply": frame(31 | REPLY, b"\1" + whole(b"", b"what is in it")),
    "get-reply-elsewhere": frame(31 | REPLY, b"\0"),
    "store": frame(32, FILES),
    "retrieve-null": frame(33, NULLS),
    "retrieve-several": frame(33, SEVERAL),
    "feed": frame(34, pack("IHQQ", 0, 7, 64 << 20, 10**10) + text(b"/feed")),
    "paused": frame(76, pack("IQQ", 3, 5 * 10**9, 0) + text(b"")),
    "queued": frame(83, pack("IQQ", 3, 10**9, 1 << 30) + text(b"bulk")),
    "ring": frame(8, b""),
    "ring-reply": frame(8 | REPLY, pack("IIQ", 1 << 17, 9, 0x7F0000002000)),
    "admit": frame(6, pack("QI", 10**9, 1) + text(b"urgent")),
})

BLOCK = pack("IIQIIQ", 1, 2, 4 << 20, 65536, 0, 0x0123456789ABCDEF)
write("fuzz_transfer", {
    "block": b"\0" + pack("I", 65536) + BLOCK,
    "block-last": b"\0" + pack("I", 65536) + pack("IIQIIQ", 1, 2, 0, 7, 1, 0),
    "block-stored": b"\0" + pack("I", 65536) + pack("IIQIIQ", 1, 2, 0, 65536, 2 | 999 << 8, 0),
    "name": b"\1a/b.c/..d",
    "offer": b"\x40" + pack("BBHIIIQQ", 1, 1, 8, 4 << 20, 512, 1, 3, 2**64 - 1) + b"\2" + bytes(16) + pack("Q", 4096) + text(text(b"ab")),
    "accept": b"\x41" + pack("IIQIIQI", 512, (4 << 20) + 4096, 0x7F0000000000, 0xDEADBEEF, 1,
                               0x7E0000000000, 0xCAFEF00D),
    "expose": b"\x50" + pack("IIQIQIQI", 512, (4 << 20) + 4096, 0x7F0000000000, 0xDEADBEEF, 0x7E0000000000, 0xCAFEF00D,
                             0x7D0000000000, 0xFEEDFACE),
    "grant": b"\x42" + pack("HIII", 3, 0, 1, 65535),
    "request": b"\x43",
    "file": b"\x45" + pack("IBIqIQ", 1, 1, 0o644, 1700000000, 5, 1 << 32) + text(b"a/b"),
    "file-stream": b"\x45" + pack("IBIqIQ", 2, 3, 0o600, -1, 0, 2**64 - 1) + text(b""),
    "file-link": b"\x45" + pack("IBIqIQ", 3, 6, 0o777, 5, 0, 0) + text(b"a/l") + text(b"../b"),
    "file-has": b"\x45" + pack("IBIqIQ", 4, 0x81, 0o644, 5, 0, 7) + text(b"a/f") + pack("HI", 31, 1000) + text(b"ann")
                + pack("I", 100) + text(b"staff") + text(text(b"user.a") + text(b"value"))
                + text(b"u::rw-,u:bob:r--,g::r--,m::r--,o::---") + text(b""),
    "file-special": b"\x45" + pack("IBIqIQ", 5, 7, 0o777, 5, 0, 0) + text(b"a/p"),
    "file-hard-link": b"\x45" + pack("IBIqIQ", 6, 8, 0o644, 5, 0, 0) + text(b"a/h") + pack("I", 4) + text(b"a/f"),
    "file-attributes": b"\x45" + pack("IBIqIQ", 6, 0x89, 0o644, 5, 0, 0) + text(b"a/h") + pack("BQH", 0, 7, 1) + pack("I", 1000) + text(b"ann"),
    "file-attributes-seen": b"\x45" + pack("IBIqIQ", 6, 9, 0o644, 5, 0, 0) + text(b"a/h") + pack("BQqIQ", 1, 7, -1, 7, 99),
    "have": b"\x4d" + pack("IQHQQ", 1, 7, 2, 0x0123456789ABCDEF, 3),
    "file-identity": b"\x45" + pack("IBIqIQ", 7, 0x81, 0o644, 5, 0, 7) + text(b"a/i") + pack("HQ", 128, 99),
    "hole": b"\x44" + pack("IQQ", 1, 4 << 20, 65536),
    "ready": b"\x46" + pack("IQ", 1, 0),
    "file-end": b"\x47" + pack("IHQQQ", 1, 0, 5 << 20, 2, 0x0123456789ABCDEF),
    "result": b"\x48" + pack("IHQQ", 1, 304, 0, 0) + text(b"checksum of block 3"),
    "complete": b"\x49" + pack("QQQ", 1, 2, 3),
    "abort": b"\x4b" + pack("H", 108) + text(b"interrupted"),
    "files": b"\x4e" + pack("IH", 7, 2)
             + text(pack("IBIqIQ", 1, 1, 0o644, 5, 6, 3) + text(b"d/f")) + pack("HQ", 0, 2**63)
             + text(pack("IBIqIQ", 2, 6, 0o777, 5, 6, 0) + text(b"l") + text(b"d/f")) + pack("HQ", 201, 0),
    "results": b"\x4f" + pack("IBQH", 7, 0, 2**63, 2) + pack("HH", 1, 304) + text(b"")
               + pack("HH", 2, 0) + text(b"its owner is not kept"),
})

write("fuzz_wire", {
    "integers": bytes([4, 0, 1, 2, 3]) + bytes(range(15)),
    "raw": bytes([2, 4 | 8 << 3, 7]) + b"12345678",
    "bytes": bytes([2, 5 | 1 << 3, 6]) + text(b"abc") + text(b"defgh"),
    "refused": bytes([2, 7 | 31 << 3, 0]) + b"x",
})


def squeezed(data, level=6, length=None):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return pack("H", (len(data) if length is None else length) - 1) + packer.compress(data) + packer.flush()


write("fuzz_squeeze", {
    "text": squeezed(b"all that is sent is said twice\n" * 30),
    "zeros": squeezed(bytes(65536)),
    "stored": squeezed(bytes(range(256)), level=0),
    "fixed": squeezed(b"aaaaaaaaaa"),
    "longer": squeezed(b"x" * 1000, length=999),
    "shorter": squeezed(b"x" * 1000, length=1001),
})

FILE = pack("IBIqIQ", 1, 1, 0o644, 1700000000, 5, 0) + text(b"")
NEW, READY, EXPECTING, CONNECTED, STORING, OFFERED, RETRIEVING, FEEDING = (bytes([n]) for n in range(8))
write("fuzz_daemon", {
    "hello": NEW + frame(1, HELLO) + frame(3, bytes(8)),
    "names": READY + frame(18, pack("II", 0o755, 1) + text(b"d/e")) + frame(21, pack("I", 0) + text(b"f")
                                                                            + text(b"d/g"))
             + frame(16, text(b"d/g")) + frame(20, text(b"d/g")) + frame(19, text(b"d/e")),
    "listings": READY + frame(17, text(b"/")) + frame(22, text(b"d")) + frame(17, text(b"out")),
    "leftovers": READY + frame(35, pack("IQ", 0, 0) + text(b"/")) + frame(35, pack("IQ", 1, 0) + text(b"a")),
    "trees": READY + frame(18, pack("II", 0o755, 1) + text(b"a/b/c")) + frame(23, text(b"a")) + frame(23, text(b"out")),
    "ring": READY + frame(8, b"") + frame(16, text(b"f")) + frame(17, text(b"/")),
    "store": READY + frame(32, FILES),
    "expecting": EXPECTING + frame(4, pack("H", 8)) + frame(33, NULLS),
    "connected": CONNECTED + frame(34, pack("IHQQ", 0, 7, 64 << 20, 10**10) + text(b"/feed")) + frame(2, b""),
    "offer": STORING + frame(64, pack("BBHIIIQQ", 1, 1, 1, 65536, 4, 0, 1, 65536) + b"\0" + bytes(16) + pack("Q", 0) + text(b"")),
    "files": OFFERED + frame(69, FILE) + frame(71, pack("IHQQQ", 1, 0, 0, 0, 0x0123456789ABCDEF))
             + frame(73, pack("QQQI", 0, 0, 0, 1)),
    "request": OFFERED + frame(67, b"") + frame(75, pack("H", 108) + text(b"")),
    "accept": RETRIEVING + frame(65, pack("IIQIIQI", 4, 65536 + 4096, 1 << 20, 1, 0, 0, 0))
              + frame(70, pack("IQ", 1, 0)) + frame(66, pack("HIII", 3, 0, 1, 2)),
    "feed": FEEDING + frame(64, pack("BBHIIIQQ", 1, 1, 1, 65536, 4, 0, 1, 65536) + b"\0" + bytes(16)),
})

JOURNAL = pack("HIQqIQ", 1, 65536, 1 << 30, 1700000000, 5, 99) + text(b"name")
BLOCKS = pack("QQQQ", 1, 0x0123456789ABCDEF, 0, 2)
write("fuzz_journal", {
    "file": pack("IHH", len(JOURNAL), 1, 0) + JOURNAL,
    "tree": pack("IHHH", 6, 3, 0, 1) + text(b"ab"),
    "blocks": pack("IHH", len(JOURNAL), 1, 0) + JOURNAL + pack("IHH", len(BLOCKS), 2, 0) + BLOCKS,
})

PIECE = pack("QIHHQ", 1, 40, 2, 0, 0) + bytes(40) + pack("QIHHQ", 2, 4000, 0, 0, 0)
write("fuzz_reply_ring", {
    "right": b"\1" + PIECE,
    "wrong": b"\0" + PIECE,
    "positions": b"\1" + pack("IIIIII", 40, 64, 400, 512, 4000, 0),
})
