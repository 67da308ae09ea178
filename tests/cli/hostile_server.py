#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that break every rule, against the real client.

Whatever a server says, the client ends by itself, says what was wrong, exits with a code that says so, and
has written nothing that was not asked for.
"""

import struct

import iwarp
import rftptest
from iwarp import REPLY
from rftptest import CONNECT, FAILED, INTEGRITY, KIND, LOST, PROTOCOL, REFUSED, case, check, equal
from rogue import (DIRECTORY, FILE, NOT_FOUND, Rogue, Victim, attributes, clean, listing, result)

QUICK = ("--timeout", "1", "--connect-timeout", "1", "--fabric", "soft")


# ---- a right server first: what is wrong below is not our server's own fault ----

@case
def a_right_server(top):
    victim = Victim(top)
    rogue = Rogue()
    done = victim.run(rogue, *QUICK, rogue.url("report"), "in/")
    equal(done.code, 0, done)
    with open(f"{victim.top}/in/report", "rb") as f:
        equal(f.read(), b"p" * 32, "what came")
    equal(victim.run(rogue, *QUICK, "canary", rogue.url("there")).code, 0, "put")
    equal(victim.run(rogue, *QUICK, "-c", "ls", rogue.url()).out, b"report\n", "ls")
    rogue.close()


# ---- answers that never come ----

def pings(session, stop_after=None):
    """Keep-alives for ever: no answer."""
    while True:
        session.put(iwarp.PING, bytes(8))


@case
def pings_before_a_reply(top):
    victim = Victim(top)
    for type_, arguments in ((iwarp.HELLO, ("-c", "pwd", "{}")), (iwarp.PING, ("-c", "pwd", "{}")),
                             (iwarp.STAT, ("-c", "stat x", "{}")), (iwarp.LIST, ("-c", "ls", "{}")),
                             (iwarp.CHANNELS, ("{}report", "in/")), (iwarp.RETRIEVE, ("{}report", "in/")),
                             (iwarp.STORE, ("canary", "{}x"))):
        victim.suffers({type_: lambda s, data: pings(s)}, *QUICK, *arguments, code=(CONNECT, LOST), says="no answer to",
                       what=f"PINGs for ever in place of the reply to {type_}")


@case
def lists_without_end(top):
    victim = Victim(top)
    name = b"n" * 250

    def many(session, _):
        frame = listing([name] * 220, more=1)
        while True:
            session.reply(iwarp.LIST, frame)

    for what, answer, says in (
            ("empty frames", lambda s, _: [s.reply(iwarp.LIST, listing([], more=1)) for _ in range(1 << 30)],
             "broke the protocol"),
            ("keep-alives between frames",
             lambda s, _: (s.reply(iwarp.LIST, listing([b"a"], more=1)), pings(s)), "no answer to LIST"),
            ("a first frame, and no other",
             lambda s, _: s.reply(iwarp.LIST, listing([b"a"], more=1)), "no answer to LIST")):
        for arguments in (("-c", "ls", "{}"), ("{}*", "in/")):
            victim.suffers({iwarp.LIST: answer}, *QUICK, *arguments, code=(LOST, PROTOCOL), says=says, what=what)
    victim.suffers({iwarp.LIST: many}, *QUICK, "-c", "ls", "{}", code=REFUSED, says="LIST is too long",
                   what="more names than a client can hold", seconds=60)


@case
def lists_that_are_malformed(top):
    victim = Victim(top)
    one = attributes()
    bad = {
        "no name": [(b"", one)], ".": [b"."], "..": [b".."], "a slash": [b"a/b"], "NUL": [b"a\0b"],
        "only a slash": [b"/"], "a name of 256 bytes": [b"n" * 256],
        "type 0": [(b"a", attributes(0))], "type 5": [(b"a", attributes(5))],
        "mode": [(b"a", attributes(mode=0o10000))], "nanoseconds": [(b"a", attributes(ns=10 ** 9))],
    }
    frames = {what: listing(names) for what, names in bad.items()}
    frames |= {"a byte more": listing([b"a"]) + b"x", "a byte less": listing([b"a"])[:-1],
               "count 2 of 1": listing([b"a"], count=2), "count 0 of 1": listing([b"a"], count=0),
               "count 65535": listing([b"a"], count=65535), "more 2": listing([b"a"], more=2), "no bytes": b""}
    for what, frame in frames.items():
        for arguments in (("-c", "ls", "{}"), ("-r", "{}*", "in/")):
            victim.suffers({iwarp.LIST: lambda s, _, frame=frame: s.reply(iwarp.LIST, frame)}, *QUICK,
                           *arguments, code=PROTOCOL, says="broke the protocol", what=f"a listing with {what}")
    # a refusal behind the first frame makes void what came before it
    victim.suffers({iwarp.LIST: lambda s, _: (s.reply(iwarp.LIST, listing([b"a"], more=1)),
                                              s.refuse(iwarp.LIST, 201, b"no more"))},
                   *QUICK, "-c", "ls", "{}", code=rftptest.DENIED, says="no more", what="a late refusal")


# ---- names that were not asked for ----

def sends(*files, end=None):
    """A RETRIEVE that gets these: names, or fields of FILE"""
    def answer(session, _):
        session.offer(files=len(files))
        for number, f in enumerate(files, 1):
            fields = {"name": f} if isinstance(f, bytes) else f
            try:
                session.file(number=number, **fields)
            except iwarp.Dropped as e:
                if not str(e).startswith("RESULT"):
                    raise
        session.complete(len(files), 32 * len(files))
    return {iwarp.RETRIEVE: answer}


NAMES = [b".bashrc", b"reports", b"repor", b"Report", b"report/x", b"canary", b"in/report", b"report\n", b""]
BAD_NAMES = [b"/report", b"report/", b"../report", b"..", b".", b"./report", b"report/..", b"report/../../x",
             b"report//x", b"/", b"rep\0ort", b"report/" + b"n" * 256, b"/etc/passwd"]


@case
def names_that_were_not_asked_for(top):
    victim = Victim(top)
    asked = "what was not asked for"
    for name in NAMES:
        victim.suffers(sends(name), *QUICK, "{}report", "in/", code=PROTOCOL, says=asked, what=name)
    for name in NAMES[:-1] + [b"report"]:  # the one name is the user's own
        victim.suffers(sends(name), *QUICK, "{}report", "in/new", code=PROTOCOL, says=asked, what=name)
    for name in BAD_NAMES:
        for arguments in (("{}report", "in/"), ("-r", "{}report", "in/"), ("-r", "{}report", "in/new"),
                          ("-r", "{}", "in/"), ("{}report", "-"), ("{}rep*", "in/")):
            victim.suffers(sends(name), *QUICK, *arguments, code=PROTOCOL, says=("not asked for", "malformed"),
                           what=name)


@case
def more_files_than_were_asked_for(top):
    victim = Victim(top)
    for second in (b"report", b".bashrc"):
        victim.suffers(sends(b"report", second), *QUICK, "{}report", "in/", code=PROTOCOL,
                       says="not asked for", what=second, new=[b"in/report"])
        rftptest.os.unlink(f"{victim.top}/in/report")
    victim.suffers(sends(b"", b""), *QUICK, "{}report", "-", code=(KIND, PROTOCOL, FAILED),
                   says="only one file", what="two files to a stream")


@case
def trees_that_were_not_asked_for(top):
    victim = Victim(top)
    tree = [{"name": b"report", "kind": 2, "payload": b""}]
    for files in (tree, tree + [b"report/x"], [b"report/x"]):
        victim.suffers(sends(*files), *QUICK, "{}report", "in/", code=PROTOCOL, says="not asked for", what=files)
    # with -r: beneath the one name
    for name in (b"other/x", b"report-x", b"reportx/y", b".bashrc"):
        victim.suffers(sends(*tree, name), *QUICK, "-r", "{}report", "in/", code=PROTOCOL, says="not asked for",
                       what=name, new=[b"in/report"])
        rftptest.os.rmdir(f"{victim.top}/in/report")
    # a stream and memory are no files of a tree
    for kind in (4,):
        victim.suffers(sends({"name": b"report", "kind": kind}), *QUICK, "{}report", "in/",
                       code=(KIND, PROTOCOL), says="no bytes to keep", what=kind)


@case
def links_that_lead_out(top):
    """A link that is there already: what comes beneath it does not go where it leads."""
    victim = Victim(top)
    rftptest.os.mkdir(f"{victim.top}/in/report")
    rftptest.os.symlink("../../outside", f"{victim.top}/in/report/link")
    rftptest.os.symlink(f"{victim.top}/outside/canary", f"{victim.top}/in/report/file")
    victim = Victim.__new__(Victim)
    victim.top = f"{top}/victim"
    victim.before = rftptest.tree(victim.top)
    victim.suffers(sends({"name": b"report", "kind": 2, "payload": b""}, b"report/link/x",
                         b"report/link/canary"), *QUICK, "-r", "{}report", "in/",
                   code=(KIND, rftptest.DENIED, PROTOCOL), says=("outside", "leaves", "link"))


if __name__ == "__main__":
    rftptest.main()
