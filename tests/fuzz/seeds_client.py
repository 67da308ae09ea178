#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpora of what the client reads: fuzz_lexer, fuzz_filter, fuzz_url, fuzz_remote_path, fuzz_escape,
fuzz_acl_names, fuzz_completion, fuzz_feed_source, fuzz_calls; and of two that go in steps, fuzz_control and fuzz_soft_rx.
Run it again after a change of their inputs."""
import os
import struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(target, *seeds):
    folder = os.path.join(TOP, target)
    os.makedirs(folder, exist_ok=True)
    for number, data in enumerate(seeds):
        with open(os.path.join(folder, f"seed-{number:02}"), "wb") as out:
            out.write(data)


write("fuzz_lexer", b"get 'a b' \"c\\\"d\" e\\ f; ls # all", b"-rm $'\\n\\xff\\'' *.[ch]", b"!echo x; y",
      b"put \"a\0b\" 'open", b"a;b;;c", b"cd $'\\u'", b"'", b"\\")
write("fuzz_filter", b"- *.o\0+ /a/**\0x/y.o", b"- a*[!b-d]?**/x\0\0abc", b"exclude tmp/***\0!\0tmp/x")
write("fuzz_url", b"rftp://host/a/b", b"rftp://[::1]:7387/x%20y", b"RFTP://h:1/%2a*?", b"rftp://h/%00", b"rftp://h",
      b"rftp://h:99999/", b"sftp://h/", b"rftp://[fe80::1%25eth0]/d")
write("fuzz_remote_path", b"/a\0b/../c\0", b"/\0*/x?[a-c]\0dir\0aile\0\0x1\0xb\0\0", b"/d*\0..\0", b"x\0//a/./\0",
      b"/\0\\*a\\\\\0", b"/\0[!a]*\0b\0.hidden\0\0")
write("fuzz_escape", b"plain", b"with 'quotes' and \\", b"\x1b[31m\n\t\r\x7f", "\u00fcml\u2028\U0001f600\u0085".encode(),
      b"\xff\xfe\xc0\x80\xed\xa0\x80", b"-x", b"", b"$'!~*")
write("fuzz_acl_names", b"u::rw-,u:alice:r--,g::r--,m::r--,o::---", b"user:0:rwx,group:root:x,mask::rwx,other::r",
      b"u:a\\072b:r--", b"u:4294967296:r", b"d:u:1:r", b"g:\\1:w")
write("fuzz_completion", b"pu", b"get -r x ", b"set engine c", b"help ", b"put 'a", b"lcd *", b"ls; rm x", b"!x", b"a\0b")
write("fuzz_feed_source", b"name=fifo", b"n=|cmd -x", b"=x", b"a/b=c", b"..=x", b"n=", b"n=|", b"\xff\n=x=y")


def frame(data, kind=0, response=0, type_=None):
    return bytes([kind]) + (struct.pack(">H", type_) if kind > 2 else b"") \
        + struct.pack(">HH", response, len(data)) + data


def text(data):
    return struct.pack(">H", len(data)) + data


ATTR = struct.pack(">BIIIQqI", 1, 0o644, 1000, 1001, 4096, 1700000000, 5)
HELLO = struct.pack(">HHIIHIII", 1, 4, 1 << 20, 16, 2, 2, 7, 1) + text(b"rftpd/1")
LIST = ATTR + text(b"b") + text(b"") + ATTR + text(b"a") + text(b"")
PINGS = b"".join(frame(struct.pack(">Q", i)) for i in range(1, 5))
write("fuzz_calls",
      b"\0" + frame(ATTR), b"\0" + frame(text(b"no such file"), response=200),
      b"\1" + frame(b"\1\0\2" + LIST) + frame(b"\0\0\2" + LIST), b"\1" + frame(b"\1\0\0"),
      b"\1" + frame(b"\0\0\0") + frame(struct.pack(">5Q", 5, 4, 3, 2, 1)) + frame(b""),
      b"\4" + frame(struct.pack(">I", 3), kind=2) + frame(bytes(8), kind=1) + frame(b""),
      b"\7" + frame(struct.pack(">HH", 2, 0) + bytes(range(16))),
      b"\x80" + frame(HELLO) + PINGS + frame(ATTR), b"\x80" + frame(text(b"another version"), response=101),
      b"\2" + frame(b"", kind=3, type_=0x8011))


def send(data, credits=1):
    return b"\0" + struct.pack(">BH", credits, len(data)) + data


def message(type_, data, response=0):
    return struct.pack(">HHI", type_, response, len(data)) + data


STAT = message(0x8010, ATTR)
write("fuzz_control",
      b"\6" + send(STAT) + b"\4", b"\6" + send(STAT[:5]) + send(STAT[5:] + STAT) + b"\4\2\4",
      b"\0" + b"\3\0\x80" * 4 + send(b"", 4) + b"\2" * 4, b"\6" + b"\1\0\5" + b"\0\1\0\1x" + b"\4",
      b"\6\1\0\2\0\0", b"\3\3\1\0" + b"\5\4", b"\6" + send(message(0x7777, b"")) + b"\4")
write("fuzz_soft_rx",
      b"\1\x10\0\0" + b"x" * 16, b"\5\x40\0\0" + b"x" * 64 + b"\1\x40\0\x40" + b"y" * 64,
      b"\2\x20" + b"s" * 32, b"\6\x20" + b"s" * 32 + b"\2\x20" + b"s" * 32, b"\3\1\0\0\0",
      b"\x21\x10\x80\x10" + b"w" * 16, b"\x2a\4\x11\0\0\0", b"\0\4\0\2\0\0", b"\x41\1\0\0z")
write("fuzz_known_hosts", b"host ssh-ed25519 AAAA\n", b"[host]:7388 ssh-ed25519 AAAB a comment\n#x\n",
      b"@revoked * ssh-ed25519 AAAA\nh*,!host ssh-ed25519 AAAA", b"|1|a=|b= ssh-ed25519 AAAA\r\n\0\nhost",
      b"|1|c2FsdA==|HTaAJnQ397DFDw7nGYI3YRODWDA= ssh-ed25519 AAAA\n",  # host, and [host]:7388
      b"@revoked |1|AAECAwQFBgcICQoLDA0ODxAREhM=|QZUERULSc/oABJBAsBiYW4+QH/k= ssh-ed25519 AAAB\n#")
