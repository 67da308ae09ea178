#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-z: blocks that cross compressed."""

import os
import time

import rftptest
from rftptest import Daemon, case, check, equal, make_file, rng, same_files, works


class Slow(rftptest.Proxy):
    """So many bytes a second, both ways together."""

    def __init__(self, port, rate):
        self.rate, self.due, self.bytes = rate, time.monotonic(), 0
        super().__init__(port)

    def count(self, data):
        with self.lock:
            self.bytes += len(data)
            self.due = max(self.due, time.monotonic()) + len(data) / self.rate
            due = self.due
        time.sleep(max(0, due - time.monotonic()))
        return data


def make_text(path, size):
    words = [rng().randbytes(rng().randrange(2, 9)).hex() for _ in range(300)]
    with open(path, "w") as f:
        while f.tell() < size:
            f.write(" ".join(rng().choice(words) for _ in range(1000)) + "\n")


def places(top):
    os.makedirs(f"{top}/export")
    os.makedirs(f"{top}/l")
    make_text(f"{top}/l/text", 3 << 20)
    make_file(f"{top}/l/random", 3 << 20)
    with open(f"{top}/l/mixed", "wb") as f:  # blocks that shrink beside ones that do not
        for i in range(40):
            f.write(rng().randbytes(65536) if i % 3 else bytes([i]) * 65536)
        f.write(b"end")
    return Daemon(f"{top}/export")


def done(*arguments, **options):
    return works("--json", *arguments, **options).events()[-1]


@case(seconds=120)
def whatever_the_way(top):
    daemon = places(top)
    for flags in (("-z",), ("-z9",), ("--compress=5", "--protect", "private"), ("-z", "--protect", "safe"),
                  ("-z", "--engine", "status"), ("-z", "--engine", "pull"), ("-z", "--engine", "window", "--channels", "3"),
                  ("-z", "--block", "64K"), ("-z", "--direct", "on")):
        for name in ("text", "random", "mixed"):
            put = done(*flags, f"{top}/l/{name}", daemon.url(name))
            same_files(f"{top}/l/{name}", daemon.path(name), *flags, name)
            get = done(*flags, daemon.url(name), f"{top}/back")
            same_files(f"{top}/l/{name}", f"{top}/back", *flags, name)
            for one in (put, get):
                equal(one["sent_bytes"], os.path.getsize(f"{top}/l/{name}"), "bytes")
                check(one["crossed_bytes"] <= one["sent_bytes"], one)
                equal(one["compression"], round(one["sent_bytes"] / one["crossed_bytes"], 3), "the ratio")
                if name == "random":
                    equal(one["compression"], 1, "of what does not shrink")
        os.unlink(f"{top}/back")
    plain = done(f"{top}/l/text", daemon.url("plain"))
    equal((plain["crossed_bytes"], plain["compression"]), (plain["sent_bytes"], 1), "without -z")
    # a stream, both ways
    with open(f"{top}/l/text", "rb") as f:
        whole = f.read()
    works("-z", "-", daemon.url("piped"), input=whole)
    equal(works("-z", daemon.url("piped"), "-").out, whole, "a stream")
    result = works("-vz", f"{top}/l/text", daemon.url("said"))
    check(b"rftp: compressed " in result.err and b" to 1: " in result.err, result)


@case(seconds=120)
def a_slow_link(top):
    """What crosses is less, and it takes less time than the bytes would."""
    daemon = places(top)
    slow = Slow(daemon.port, 3 << 20)
    for name, arguments in (("text", (f"{top}/l/text", slow.url("text"))), ("back", (slow.url("text"), f"{top}/l/back"))):
        before = slow.bytes
        one = done("-z", "--block", "64K", *arguments)
        check(one["compression"] > 1.5, "the ratio:", one)
        check(slow.bytes - before < 0.75 * (3 << 20), slow.bytes - before, "bytes crossed")
        same_files(f"{top}/l/text", daemon.path(name) if name == "text" else f"{top}/l/back")
    slow.close()


@case
def feeds(top):
    daemon = places(top)
    works("feed", "-z", f"a={top}/l/text", f"b={top}/l/random", daemon.url("feed"))
    for stream, name in (("a", "text"), ("b", "random")):
        where = daemon.path(f"feed/{stream}")
        found = b"".join(open(f"{where}/{n}", "rb").read() for n in sorted(os.listdir(where)))
        with open(f"{top}/l/{name}", "rb") as f:
            equal(found == f.read(), True, "what arrived of", name)


@case
def the_setting(top):
    daemon = places(top)
    for value, shown in (("on", "1"), ("off", "off"), ("7", "7")):
        events = works("--json", "-c", f"set compress {value}; set compress").events()
        equal([e["value"] for e in events if e["event"] == "setting"][-1], shown, value)
    for bad in ("10", "0", "fast"):
        rftptest.fails(rftptest.USAGE, f"--compress={bad}", f"{top}/l/text", daemon.url("x"), says="level")
    found = works("--json", "-c", f"lcd {top}/l; put -z text; get -z text back", daemon.url("")).events()
    equal(len([e for e in found if e["event"] == "done"]), 2, "in the shell")
    same_files(f"{top}/l/text", f"{top}/l/back")


rftptest.main()
