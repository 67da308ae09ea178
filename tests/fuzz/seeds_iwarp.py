#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of fuzz_mpa and fuzz_ddp.

Encodes from RFC 5040, 5041, 5044 and 6581 on its own; run it again when the targets change what they
read: tests/fuzz/seeds_iwarp.py
"""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(target, seeds):
    folder = os.path.join(TOP, target)
    os.makedirs(folder, exist_ok=True)
    for name, data in seeds.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(data)


def mpa(reply, flags, revision, private):
    key = b"MPA ID Rep Frame" if reply else b"MPA ID Req Frame"
    return bytes([reply]) + key + struct.pack(">BBH", flags, revision, len(private)) + private


def tagged(opcode, last=1):
    return struct.pack(">BBIQ", 0x81 | last << 6, 0x40 | opcode, 0x1234ABCD, 0x7F0000001000)


def untagged(opcode, queue, msn=1, offset=0, last=1):
    return struct.pack(">BBIIII", 0x01 | last << 6, 0x40 | opcode, 0, queue, msn, offset)


READ = struct.pack(">IQIIQ", 1, 0x1000, 4096, 2, 0x2000)
write("fuzz_mpa", {
    "request-1": mpa(0, 0x00, 1, b""),
    "request-1-private": mpa(0, 0x40, 1, b"private data"),
    "request-2": mpa(0, 0x10, 2, struct.pack(">HH", 16, 16)),
    "request-2-peer": mpa(0, 0x50, 2, struct.pack(">HH", 0xC010, 0xC010) + bytes(56)),
    "request-markers": mpa(0, 0x80, 1, b""),
    "reply-1": mpa(1, 0x00, 1, b"hello"),
    "reply-2": mpa(1, 0x10, 2, struct.pack(">HH", 0x8001, 0x8001)),
    "reply-reject": mpa(1, 0x20, 1, b"no"),
})
write("fuzz_ddp", {
    "write": tagged(0),
    "write-more": tagged(0, last=0),
    "read-response": tagged(2),
    "send": untagged(3, 0) + b"payload",
    "send-second": untagged(3, 0, msn=7, offset=1024),
    "send-invalidate": untagged(4, 0),
    "read-request": untagged(1, 1) + READ,
    "terminate": untagged(7, 2) + bytes([0x10, 0x00, 0x00, 0x00]),
    "terminate-write": untagged(7, 2) + bytes([0x11, 0x01, 0xC0, 0x00, 0x00, 0x40]) + tagged(0),
    "terminate-read": untagged(7, 2) + bytes([0x01, 0x02, 0xE0, 0x00, 0x00, 0x2E])
                      + untagged(1, 1) + READ,
})
