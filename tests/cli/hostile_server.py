#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that break every rule, against the real client.

Whatever a server says, the client ends by itself, says what was wrong, exits with a code that says so, and
has written nothing that was not asked for.
"""

import json
import os
import signal
import socket
import struct
import threading
import time

import iwarp
import rftptest
from rftptest import CONNECT, FAILED, INTEGRITY, KIND, LOST, PROTOCOL, REFUSED, case, check, equal, finish, start_rftp
from rogue import DENIED, DIRECTORY, LINK, NONCE, OTHER, Refused, Rogue, Victim, at_once, attributes, listing, result, right_result, right_retrieve, welcome

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

def pings(session, pause=0):
    """Keep-alives for ever: no answer."""
    while True:
        session.put(iwarp.PING, bytes(8))
        time.sleep(pause)


@case
def pings_before_a_reply(top):
    victim = Victim(top)
    for type_, arguments in ((iwarp.HELLO, ("-c", "pwd", "{}")), (iwarp.LOGIN, ("-c", "pwd", "{}")),
                             (iwarp.LSTAT, ("-c", "stat x", "{}")), (iwarp.LIST, ("-c", "ls", "{}")),
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
def trees_of_large_lists(top):
    """Many directories are asked for before the first is told, and a deep one keeps all of them waiting."""
    victim = Victim(top)
    large, frames = 40, 60  # which are 260 MB in the client
    frame, last = [listing([b"f"] * 1000, more=more) for more in (1, 0)]
    peak = [0]

    def look():
        with open(f"/proc/{client.pid}/status", encoding="ascii") as f:
            peak.append(next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) >> 10)

    def answer(session, data):
        path = data[2:]
        look()
        if path == b"/":
            names = [b"a"] + [b"b%02d" % n for n in range(large)]
            session.reply(iwarp.LIST, listing([(n, attributes(DIRECTORY, mode=0o755)) for n in names]))
        elif path == b"/a":
            session.reply(iwarp.LIST, listing([(b"x", attributes(DIRECTORY, mode=0o755))]))
        elif path == b"/a/x":
            session.reply(iwarp.LIST, listing([]))
        else:
            for n in range(frames):
                session.reply(iwarp.LIST, last if n == frames - 1 else frame)

    rogue = Rogue({iwarp.LIST: answer, iwarp.STAT: lambda s, _: s.reply(iwarp.STAT, attributes(DIRECTORY)),
                   iwarp.BYE: lambda s, _: (look(), s.reply(iwarp.BYE))})
    client = start_rftp("-c", "ls -R", rogue.url(), cwd=victim.top)
    done = finish(client, None, 60)
    rogue.close()
    equal(done.code, 0, done)
    equal(done.out.count(b"f\n"), large * frames * 1000, "names")
    titles = [line for line in done.out.splitlines() if line.endswith(b":")]
    equal(titles, [b"/:", b"/a:", b"/a/x:"] + [b"/b%02d:" % n for n in range(large)], "in their order")
    check(rftptest.SANITIZED or max(peak) < 160, "MiB that the client held at most:", max(peak))


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
    frames |= {"what a file says": listing([b"a"])[:-2] + iwarp.text(b"x")}
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

def sends(*files):
    """A RETRIEVE that gets these: names, or fields of FILE.  What is refused is counted as failed."""
    def answer(session, _):
        arrived = failed = bytes_ = 0
        session.offer(files=len(files))
        for number, f in enumerate(files, 1):
            fields = {"name": f} if isinstance(f, bytes) else f
            try:
                session.file(number=number, **fields)
            except Refused:
                failed += 1
                continue
            arrived += fields.get("kind", 1) != 2
            bytes_ += len(fields.get("payload", b"p" * 32))
        session.complete(arrived, bytes_, failed)
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
def attributes_that_were_not_asked_for(top):
    """Of a file that the user has and that -r would not replace, or would."""
    def answer(session, _):
        session.offer(files=1)
        session.put(iwarp.FILE, iwarp.file(kind=9, mode=0o666, size=0, name=b"canary") + b"\0" + (10).to_bytes(8, "big"))
        session.until(iwarp.RESULT)
        session.complete(0, 0, 1)
    victim = Victim(top)
    was = rftptest.os.stat(f"{victim.top}/in/canary")
    for options in ((), ("--no-replace",), ("--update",)):
        victim.suffers({iwarp.RETRIEVE: answer}, *QUICK, "-r", *options, "{}canary", "in/", code=PROTOCOL,
                       says="attributes came", what=options)
        now = rftptest.os.stat(f"{victim.top}/in/canary")
        equal((now.st_mode, now.st_mtime_ns), (was.st_mode, was.st_mtime_ns), options)


@case
def changes_that_were_not_asked_about(top):
    """SETATTR answered `changed`: of the directory itself, which nobody compared, and of a file, by its mode alone."""
    victim = Victim(top)
    asked = []

    def entry(name=b"", **fields):
        return attributes(**fields) + struct.pack(">HH", 0, 0) + iwarp.text(name) + iwarp.text(b"")

    def tree(session, _):
        was = rftptest.os.stat(f"{victim.top}/in/canary")
        session.reply(iwarp.TREE, struct.pack(">BH", 0, 2) + entry(type_=DIRECTORY, mode=0o711) + entry(
            b"canary", size=was.st_size, mode=0o600, s=was.st_mtime_ns // 10 ** 9, ns=was.st_mtime_ns % 10 ** 9))

    def changed(session, data):
        count, = struct.unpack(">H", data[:2])
        asked.append(data[2:])
        session.reply(iwarp.SETATTR, struct.pack(f">H{count}H", count, *[CHANGED] * count))

    answers = {iwarp.STAT: lambda s, _: s.reply(iwarp.STAT, attributes(DIRECTORY)), iwarp.TREE: tree,
               iwarp.SETATTR: changed}
    done = victim.suffers(answers, *QUICK, "sync", "in/", "{}d/", code=rftptest.CHANGED,
                           says="the directory itself: the server says that it was changed, which it was not asked")
    check(b"canary: the server says" in done.err, "both are errors:", done)
    check(len(asked) == 2 and not any(flags & 128 for flags in (asked[0][0], asked[1][0])), "nothing was to be as seen:", asked)


def told(name, shared=0, status=0, target=b"", **fields):
    """An entry of TREE.  shared: bytes of its name that the one before begins with, too"""
    return attributes(**fields) + struct.pack(">HH", status, shared) + iwarp.text(name[shared:]) + iwarp.text(target)


def lists_tree(*entries):
    return {iwarp.STAT: lambda s, _: s.reply(iwarp.STAT, attributes(DIRECTORY)),
            iwarp.TREE: lambda s, _: s.reply(iwarp.TREE, struct.pack(">BH", 0, len(entries)) + b"".join(entries))}


@case
def names_in_what_is_no_directory(top):
    """What has no place at the destination is not left out without a word."""
    victim = Victim(top)
    for what, entries in (("a link", (told(b"l", target=b"../outside", type_=LINK, mode=0o777), told(b"l/x", 1))),
                          ("a file", (told(b"l"), told(b"l/x", 1))), ("a device", (told(b"l", type_=OTHER), told(b"l/x", 1))),
                          ("nothing", (told(b"l/x"),)), ("nothing, and no text", (told(b"\x1b/l/x"),)),
                          ("a file in a directory", (told(b"d", type_=DIRECTORY, mode=0o755), told(b"d/l", 1),
                                                     told(b"d/l/x", 3)))):
        for options in ((), ("-n",)):
            victim.suffers(lists_tree(*entries), *QUICK, *options, "sync", "{}d/", "in/", code=PROTOCOL,
                           says="l/x, which is in no directory", what=what)
    # one in a directory is one, whatever stands between
    right = lists_tree(told(b"d", type_=DIRECTORY, mode=0o755), told(b"d/a", 1, type_=DIRECTORY, mode=0o755),
                       told(b"d/a/x", 3), told(b"d/b", 2), told(b"e", type_=DIRECTORY, mode=0o755), told(b"e/x", 1))
    rogue = Rogue(right)
    done = victim.run(rogue, *QUICK, "-n", "sync", rogue.url("d/"), "in/")
    rogue.close()
    equal((done.code, len(done.out.splitlines())), (0, 2), done)


@case
def trees_that_are_left_in_the_middle(top):
    """More of a listing comes, which is not wanted any more: the reason is said, and no other."""
    victim = Victim(top)

    def begins(*entries):
        return {iwarp.STAT: lambda s, _: s.reply(iwarp.STAT, attributes(DIRECTORY)),
                iwarp.TREE: lambda s, _: s.reply(iwarp.TREE, struct.pack(">BH", 1, len(entries)) + b"".join(entries))}

    victim.suffers(begins(told(b"b"), told(b"a")), *QUICK, "sync", "{}d/", "in/", code=PROTOCOL,
                   says="broke the protocol", what="names out of order")
    for arguments in (("sync", "{}d/", "in/"), ("-c", "du", "{}")):
        begun = threading.Event()

        def without_end(session, _, begun=begun):
            number = 0
            while True:
                names = [b"n%012d" % n for n in range(number, number + 900)]
                shared = [0] + [len(os.path.commonprefix(pair)) for pair in zip(names, names[1:])]
                session.reply(iwarp.TREE, struct.pack(">BH", 1, 900) + b"".join(map(told, names, shared)))
                number += 900
                if number > 20000:
                    begun.set()

        rogue = Rogue({iwarp.STAT: lambda s, _: s.reply(iwarp.STAT, attributes(DIRECTORY)), iwarp.TREE: without_end})
        client = start_rftp(*QUICK, *[a.replace("{}", rogue.url()) for a in arguments], cwd=victim.top)
        check(begun.wait(20 * rftptest.PATIENCE), "the listing has begun")
        client.send_signal(signal.SIGINT)
        done = finish(client, None, 20)
        rogue.close()
        equal(done.code, rftptest.INTERRUPTED, done)
        check(b"too long" not in done.err, "it was interrupted, and nothing else:", done)
    equal(victim.new(), [], "what was written")


@case
def a_source_that_is_not_there(top):
    """It is said at once: no server is asked for a list first, which may take long."""
    victim = Victim(top)
    asked = []
    answers = {iwarp.STAT: lambda s, _: s.reply(iwarp.STAT, attributes(DIRECTORY)), iwarp.TREE: lambda s, _: asked.append(1)}
    for name, code, says in (("none", rftptest.NO_FILE, "none: no such file"), ("canary", KIND, "canary: not a directory")):
        victim.suffers(answers, *QUICK, "sync", name, "{}d/", code=code, says=says, what=name)
    equal(asked, [], "lists that were asked for")


@case
def links_that_cannot_be_read(top):
    """A listing has a link and a status in the place of where it leads: a plan has no command for that one."""
    victim = Victim(top)
    answers = lists_tree(told(b"good", target=b"where", type_=LINK, mode=0o777),
                         told(b"link", status=DENIED, type_=LINK, mode=0o777))
    for options in ((), ("--json",)):
        done = victim.suffers(answers, *QUICK, "-n", *options, "sync", "{}d/", "in/", code=rftptest.DENIED,
                              says="/d/link: permission denied", what=options)
        plan = [line for line in done.out.splitlines() if b"good" in line or (b'"plan"' in line or not options)]
        check(plan and all(b"good" in line for line in plan), "a plan of the other alone:", done)


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


# ---- silence, and keep-alives without end, at each step ----

def nothing(session, _):
    return False


def stops(*steps):
    """An answer that goes so far, and then says nothing."""
    def answer(session, _):
        for step in steps:
            step(session)
        return False
    return answer


GET, PUT = ("{}report", "in/"), ("canary", "{}x")
OFFER = lambda s: s.offer()
FILE_COMES = lambda s: s.put(iwarp.FILE, iwarp.file(name=b"report", size=65568))
LAST_COMES = lambda s: (s.until(iwarp.READY), s.block(b"p" * 32, session=1, offset=65536))
END_COMES = lambda s: s.put(iwarp.FILE_END, iwarp.file_end(size=65568, blocks=2))
ACCEPT = lambda s: s.accept()
IS_READY = lambda s: (s.until(iwarp.FILE), s.put(iwarp.READY, struct.pack(">IQ", 1, 0)))
RESULT = lambda s: s.put(iwarp.RESULT, right_result(*s.taken()))
SILENCES = [
    ("CHANNELS", GET, {iwarp.CHANNELS: nothing}),
    ("data channels", GET, {}),
    ("RETRIEVE", GET, {iwarp.RETRIEVE: nothing}),
    ("OFFER", GET, {iwarp.RETRIEVE: stops(lambda s: s.reply(iwarp.RETRIEVE))}),
    ("FILE", GET, {iwarp.RETRIEVE: stops(OFFER)}),
    ("blocks", GET, {iwarp.RETRIEVE: stops(OFFER, FILE_COMES)}),
    ("the first of two blocks", GET, {iwarp.RETRIEVE: stops(OFFER, FILE_COMES, LAST_COMES)}),
    ("blocks that FILE_END counts", GET, {iwarp.RETRIEVE: stops(OFFER, FILE_COMES, LAST_COMES, END_COMES)}),
    ("COMPLETE", GET, {iwarp.RETRIEVE: stops(OFFER, lambda s: s.file(b"report"))}),
    ("STAT", PUT, {iwarp.STAT: nothing}),
    ("STORE", PUT, {iwarp.STORE: nothing}),
    ("ACCEPT", PUT, {iwarp.STORE: stops(lambda s: s.reply(iwarp.STORE))}),
    ("READY", PUT, {iwarp.STORE: stops(ACCEPT)}),
    ("GRANT", PUT, {iwarp.STORE: stops(ACCEPT, IS_READY)}),
    ("RESULT", PUT, {iwarp.STORE: stops(ACCEPT, lambda s: s.taken())}),
    ("CLOSED", PUT, {iwarp.STORE: stops(ACCEPT, RESULT)}),
]
ARRIVES = {"COMPLETE": [b"in/report"]}


@case
def silence_at_each_step(top):
    def silent(victim, what, arguments, answers):
        victim.suffers(answers, *QUICK, *arguments, code=LOST,
                       says=("no answer", "timed out", "nothing heard", "nothing moved"),
                       what=f"silence in place of {what}", new=ARRIVES.get(what, ()),
                       connect=(lambda c, private: private[5] == iwarp.CONTROL) if "channels" in what else None)

    at_once(top, silent, SILENCES)


@case
def keep_alives_at_each_step(top):
    """Of a transfer.  They are a sign of life, and no progress."""
    def and_pings(answer):
        return lambda s, d: answer(s, d) is False and pings(s, 0.05)

    def alive(victim, what, arguments, answers):
        answers = {type_: and_pings(answer) for type_, answer in answers.items()}
        victim.suffers(answers, *QUICK, *arguments, code=LOST, says=("nothing moved", "no answer"),
                       what=f"PINGs in place of {what}", new=ARRIVES.get(what, ()))

    at_once(top, alive, [row for row in SILENCES if row[0] != "data channels"])


@case
def silence_while_connecting(top):
    victim = Victim(top)
    for what, connect in (("the answer to a connection", lambda c, p: False),
                          ("half an answer", lambda c, p: c.raw(b"MPA ID Rep Fr")),
                          ("HELLO", None)):
        answers = {} if connect else {iwarp.HELLO: nothing}
        victim.suffers(answers, *QUICK, "-c", "pwd", "{}", code=CONNECT, says="no answer", what=what,
                       connect=connect)


@case
def a_server_that_goes_before_the_data_channels_come(top):
    """The connection is lost, then, and not refused: another try may help."""
    def gone(session, _):
        session.rogue.listener.shutdown(socket.SHUT_RDWR)
        session.reply(iwarp.CHANNELS, struct.pack(">HH", 1, 0) + NONCE + bytes(16))
        return False

    for arguments in (GET, PUT):
        Victim(f"{top}/{arguments[0][:1]}").suffers({iwarp.CHANNELS: gone}, *QUICK, *arguments, code=LOST,
                                                   says=("data channels cannot be opened: refused",
                                                         "data channels cannot be opened: connection lost",
                                                         # they had come, since they are dialled with the request
                                                         "timed out: n", "no answer to "))


@case
def all_of_a_file_and_no_answer_to_the_request(top):
    """Its error is that of this transfer, and not of the next request."""
    victim = Victim(top)

    def unasked(session, data):
        session.reply = lambda *_: None
        right_retrieve(session, data)

    for early, code in (("always", PROTOCOL), ("auto", PROTOCOL), ("never", LOST)):
        victim.suffers({iwarp.RETRIEVE: unasked}, *QUICK, "--early", early, *GET, code=code,
                       says=("no answer to the request", "no answer to RETRIEVE"), what=f"no answer, early {early}",
                       new=[] if early == "never" else [b"in/report"])
        if early != "never":
            rftptest.os.unlink(f"{victim.top}/in/report")


# ---- what does not add up ----

DIGEST, INCOMPLETE, CHANGED = 305, 306, 303


@case
def files_that_do_not_add_up(top):
    """FILE_END, and blocks that are not what FILE and FILE_END say."""
    def ends(victim, what, fields, code, says):
        victim.suffers({iwarp.RETRIEVE: stops(
            OFFER, lambda s: s.file(b"report", wrong=fields.pop("wrong", 0), end=fields),
            lambda s: s.complete(0, 0, 1))}, *QUICK, *GET,
            code=code, says=says, what=f"FILE_END with {what}")

    at_once(top, ends, [
        ("no blocks", {"blocks": 0}, PROTOCOL, "in 0 blocks"),
        ("two blocks", {"blocks": 2}, PROTOCOL, "in 2 blocks"),
        ("2^32 blocks", {"blocks": 1 << 32}, PROTOCOL, "in 4294967296 blocks"),
        ("more than 2^32 blocks", {"blocks": (1 << 32) + 1}, PROTOCOL, "malformed"),
        ("a larger size", {"size": 33}, INTEGRITY, "missing"),
        ("a smaller size", {"size": 31}, INTEGRITY, "missing"),
        ("no size", {"size": 0}, PROTOCOL, "0 bytes cannot"),
        ("the largest size", {"size": (1 << 63) - 1}, PROTOCOL, "cannot have been sent in 1 blocks"),
        ("a size that is none", {"size": 1 << 63}, PROTOCOL, "malformed"),
        ("another digest", {"wrong": 1}, INTEGRITY, "digest"),
        ("another file's number", {"number": 2}, PROTOCOL, "malformed"),
        ("file 0", {"number": 0}, PROTOCOL, "malformed"),
        ("a failure", {"status": DIGEST, "digest": 0}, INTEGRITY, "digest"),
        ("a status of the future", {"status": 9999}, FAILED, "unknown status"),
    ])


@case
def a_block_that_is_refused_is_not_counted(top):
    victim = Victim(top)
    result = victim.suffers({iwarp.RETRIEVE: stops(
        OFFER, FILE_COMES, lambda s: s.until(iwarp.READY),
        lambda s: s.block(b"p" * 32, session=1, offset=65536),
        lambda s: s.block(b"p" * 16, session=1, offset=3))}, *QUICK, "--json", *GET,
        code=PROTOCOL, says="header is not allowed")
    done = [json.loads(line) for line in result.out.splitlines()][-1]
    equal((done["event"], done["crossed_bytes"]), ("done", 32), done)


@case
def sums_that_do_not_add_up(top):
    """COMPLETE that counts other files than came."""
    def counts(victim, what, fields, code=PROTOCOL):
        victim.suffers({iwarp.RETRIEVE: stops(OFFER, lambda s: s.file(b"report"), lambda s: s.complete(**fields))},
                       *QUICK, *GET, code=code, says=("does not add up", "left out"),
                       what=f"COMPLETE with {what}", new=[b"in/report"])

    at_once(top, counts, [
        ("no files", {"files": 0}), ("two files", {"files": 2}), ("2^64 - 1 files", {"files": (1 << 64) - 1}),
        ("fewer bytes", {"bytes_": 31}), ("more bytes", {"bytes_": 33}),
        ("an error", {"errors": 1}, KIND),  # a name that could not cross
    ])


@case
def results_that_do_not_add_up(top):
    """As a sink: RESULT and CLOSED."""
    def lies(victim, what, steps, code, says):
        victim.suffers({iwarp.STORE: stops(ACCEPT, *steps, pings)}, *QUICK, *PUT, code=code, says=says, what=what)

    def failed(s):
        s.until(iwarp.COMPLETE)
        s.put(iwarp.CLOSED, iwarp.complete(0, 0, 1))

    def told(change):
        def step(session):
            number, size, digest = session.taken()
            right = {"number": number, "size": size, "digest": digest}
            session.put(iwarp.RESULT, result(**right | change(size, digest)))
        return step

    def closes(files, errors):
        return lambda s: (s.until(iwarp.COMPLETE), s.put(iwarp.CLOSED, iwarp.complete(files, 10, errors)))

    first = lambda s: s.until(iwarp.FILE)
    number_1 = struct.pack(">IQ", 1, 0)
    grant = lambda *indices: (lambda s: s.put(iwarp.GRANT, iwarp.grant(indices)))
    at_once(top, lies, [
        ("RESULT with another size", [told(lambda n, d: {"size": n - 1}), failed], INTEGRITY, "digest"),
        ("RESULT with another digest", [told(lambda n, d: {"digest": d ^ 1}), failed], INTEGRITY, "digest"),
        ("RESULT of another file", [told(lambda n, d: {"number": 2})], PROTOCOL, "malformed"),
        ("RESULT twice", [told(lambda n, d: {}), lambda s: s.put(iwarp.RESULT, result())], PROTOCOL, "malformed"),
        ("RESULT 0 before FILE_END", [first, lambda s: s.put(iwarp.RESULT, result())], (PROTOCOL, INTEGRITY),
         ("malformed", "digest")),
        ("RESULT 0 before FILE", [lambda s: s.put(iwarp.RESULT, result())], (PROTOCOL, INTEGRITY),
         ("malformed", "digest")),
        ("READY before FILE", [lambda s: s.put(iwarp.READY, struct.pack(">IQ", 7, 0))], PROTOCOL, "malformed"),
        ("READY twice", [first, lambda s: s.put(iwarp.READY, number_1), lambda s: s.put(iwarp.READY, number_1)],
         PROTOCOL, "malformed"),
        ("HAVE behind READY", [first, lambda s: s.put(iwarp.READY, number_1), lambda s: s.put(iwarp.HAVE, iwarp.have())], PROTOCOL,
         "malformed"),
        ("READY of a file that was not announced", [first, lambda s: s.put(iwarp.READY, struct.pack(">IQ", 2, 0))],
         PROTOCOL, "malformed"),
        ("CLOSED before COMPLETE", [first, lambda s: s.put(iwarp.CLOSED, iwarp.complete())], PROTOCOL, "malformed"),
        ("CLOSED with no files", [told(lambda n, d: {}), closes(0, 0)], PROTOCOL, "does not add up"),
        ("CLOSED with an error", [told(lambda n, d: {}), closes(1, 1)], PROTOCOL, "does not add up"),
        ("GRANT beyond the slots", [grant(4)], PROTOCOL, "malformed"),
        ("GRANT twice", [grant(0, 0)], PROTOCOL, "malformed"),
        ("GRANT of 2^32 - 1", [grant(0xffffffff)], PROTOCOL, "malformed"),
        ("a frame of a source", [lambda s: s.put(iwarp.FILE, iwarp.file())], PROTOCOL, "malformed"),
        ("an ABORT", [lambda s: s.put(iwarp.ABORT, iwarp.abort(300, b"no room"))], rftptest.NO_SPACE, "no room"),
        ("an ABORT without a reason", [lambda s: s.put(iwarp.ABORT, iwarp.abort(0, b""))], PROTOCOL, "malformed"),
    ])


@case
def openings_with_wrong_fields(top):
    """Welcome, HELLO, CHANNELS, OFFER and ACCEPT."""
    def opens(victim, what, answers, arguments, code=PROTOCOL, says=("protocol", "a bad ACCEPT"), connect=None):
        victim.suffers(answers, *QUICK, *arguments, code=code, says=says, what=what, connect=connect)

    def hello(**fields):
        return {iwarp.HELLO: lambda s, d: s.hello(d, **fields)}

    def channels(*fields):
        return {iwarp.CHANNELS: lambda s, d: s.reply(iwarp.CHANNELS, struct.pack(">HH", *fields) + bytes(32))}

    def offers(**fields):
        return {iwarp.RETRIEVE: stops(lambda s: s.offer(**fields), pings)}

    def accepts(**fields):
        return {iwarp.STORE: stops(lambda s: s.accept(**fields), pings)}

    def welcomes(data, reject=False):
        return lambda c, p: (c.answer(data, reject), False)[1]

    ls = ("-c", "ls", "{}")
    at_once(top, opens, [
        ("another magic", {}, ls, PROTOCOL, "not as an rftpd", welcomes(welcome(magic=1))),
        ("version 0", {}, ls, PROTOCOL, "not as an rftpd", welcomes(welcome(version=0))),
        ("version 2", {}, ls, PROTOCOL, "not as an rftpd", welcomes(welcome(version=2))),
        ("one credit", {}, ls, PROTOCOL, "not as an rftpd", welcomes(welcome(credits=1))),
        ("no private data", {}, ls, PROTOCOL, "not as an rftpd", welcomes(b"")),
        ("an accepting status", {}, ls, PROTOCOL, "not as an rftpd", welcomes(welcome(status=104))),
        ("a refusal", {}, ls, REFUSED, "refused by the server", welcomes(welcome(status=104), True)),
        ("a refusal with status 0", {}, ls, (PROTOCOL, CONNECT), "", welcomes(welcome(), True)),
    ] + [(f"HELLO with {fields}", hello(**fields), ls) for fields in (
        {"version": 0}, {"version": 2}, {"channels": 0}, {"channels": 65}, {"block": 65535},
        {"block": (16 << 20) + 1}, {"depth": 0}, {"depth": 1}, {"depth": 65537}, {"engines": 0xffffffff}, {"transfers": 0},
        {"transfers": 5})
    ] + [(f"CHANNELS with {fields}", channels(*fields), GET, (PROTOCOL, CONNECT, LOST), "") for fields in (
        (0, 0), (65, 0), (2, 63), (1, 64), (64, 1), (65535, 0))
    ] + [(f"OFFER with {fields}", offers(**fields), GET, (PROTOCOL, REFUSED, KIND), "") for fields in (
        {"engine": 0}, {"engine": 2}, {"engine": 99}, {"notice": 0}, {"notice": 4}, {"channels": 0},
        {"channels": 2}, {"channels": 65535}, {"block": 0}, {"block": 4096}, {"block": 65537}, {"block": 32 << 20},
        {"depth": 0}, {"depth": 65537}, {"flags": 4}, {"flags": 1 << 31})
    ] + [(f"ACCEPT with {fields}", accepts(**fields), PUT) for fields in (
        {"depth": 0}, {"depth": 65536}, {"stride": 0}, {"stride": 65536}, {"stride": 1 << 31},
        {"base": (1 << 64) - 4096}, {"flags": 1}, {"flags": 4}, {"status_key": 1}, {"status_base": 1 << 20})])


@case
def memory_of_gets_that_is_nobodys(top):
    """What a client named for an OFFER that it did not get, or in a transfer that is over."""
    def writes(session, key, base):
        session.channels[0].write(key, base + 4096, b"not wanted" * 10)
        pings(session, 0.05)

    def for_another_offer(session, _):
        session.offer()
        _, _, base, key = struct.unpack(">IIQI", session.named[:20])
        check(key != session.key, "the same key", key)
        writes(session, key, base)

    def of_the_one_before(session, data):
        if hasattr(session, "before"):
            session.offer()
            writes(session, *session.before)
        right_retrieve(session, data)
        session.before = session.key, session.base

    broke = {"code": LOST, "says": ("data channel", "lost")}
    Victim(f"{top}/a").suffers({iwarp.RETRIEVE: for_another_offer}, *QUICK, "--early", "always", *GET, **broke,
                               what="a WRITE to what was named for another OFFER")
    for early in ("always", "never"):
        Victim(f"{top}/{early}").suffers({iwarp.RETRIEVE: of_the_one_before}, *QUICK, "--early", early, "-c",
                                         "get report in/; get report in/again", "{}", **broke, new=[b"in/report"],
                                         what="a WRITE to the memory of an earlier transfer")


@case
def a_refusal_behind_what_the_client_gave_up(top):
    """It has closed its data channels by then, which may be what the server refuses it for: it was cancelled."""
    victim, asked = Victim(top), threading.Event()

    def late(session, _):
        asked.set()
        while session.get()[0] != iwarp.ABORT:
            pass
        session.refuse(iwarp.STORE, 103, b"no data channel")
        session.put(iwarp.ABORT, iwarp.abort())

    rogue = Rogue({iwarp.STORE: late})
    client = rftptest.start_rftp("--fabric", "soft", "--early", "always", "canary", rogue.url("x"), cwd=victim.top)
    check(asked.wait(60 * rftptest.PATIENCE), "it never asked")
    client.send_signal(signal.SIGINT)
    done = rftptest.finish(client)
    rogue.close()
    check(done.code in (rftptest.INTERRUPTED, 128 + signal.SIGINT, -signal.SIGINT) and b"no data channel" not in done.err, done)


# ---- what a terminal would obey ----

EVIL = b"a\x1b]0;owned\x07\x1b[2Jb\rc\nrftp: forged\x7f\xc2\x9b31m\x9b"


@case
def escapes_in_names_and_texts(top):
    """Nothing that a server says reaches the terminal as a command, nor begins a line of its own."""
    victim = Victim(top)
    for what, answers, arguments, code in (
            ("a refusal of LSTAT", {iwarp.LSTAT: lambda s, d: s.refuse(iwarp.LSTAT, 201, EVIL)}, ("-c", "stat x", "{}"),
             rftptest.DENIED),
            ("a refusal of LIST", {iwarp.LIST: lambda s, d: s.refuse(iwarp.LIST, 201, EVIL)}, ("-c", "ls", "{}"),
             rftptest.DENIED),
            ("a refusal of HELLO", {iwarp.HELLO: lambda s, d: s.refuse(iwarp.HELLO, 107, EVIL)},
             ("-c", "ls", "{}"), (LOST, CONNECT)),
            ("a refusal of RETRIEVE", {iwarp.RETRIEVE: lambda s, d: s.refuse(iwarp.RETRIEVE, 201, EVIL)}, GET,
             rftptest.DENIED),
            ("ABORT", {iwarp.RETRIEVE: stops(OFFER, lambda s: s.put(iwarp.ABORT, iwarp.abort(300, EVIL)))}, GET,
             rftptest.NO_SPACE),
            ("RESULT", {iwarp.STORE: stops(ACCEPT, lambda s: s.put(iwarp.RESULT, result(
                *s.taken()[:1], 300, why=EVIL)), lambda s: s.until(iwarp.COMPLETE), lambda s: s.put(
                    iwarp.CLOSED, iwarp.complete(0, 0, 1)))}, PUT, rftptest.NO_SPACE)):
        victim.suffers(answers, *QUICK, *arguments, code=code, says="owned", what=f"escapes in {what}")
    victim.suffers(sends({"name": EVIL}), *QUICK, "{}report", "in/", code=PROTOCOL, says="not asked for",
                   what="escapes in a name")


@case
def escapes_on_a_terminal(top):
    """Names in a listing and the server's name, as a terminal gets them."""
    victim = Victim(top)
    rogue = Rogue({iwarp.HELLO: lambda s, d: s.hello(d, agent=EVIL),
                   iwarp.LIST: lambda s, d: s.reply(iwarp.LIST, listing([EVIL, (EVIL[::-1], attributes(DIRECTORY))]))})
    for commands in ("ls", "ls -l", "ls -la; stat x", "cd /; pwd; ls -1"):
        out, code = rftptest.on_terminal(*QUICK, "-v", "-c", commands, rogue.url(), cwd=victim.top)
        equal(code, 0, out)
        text = out.replace(b"\r\n", b"\n")
        check(not [b for b in text if b < 32 and b != 10 or b == 127] and b"\xc2\x9b" not in text
              and b"\nrftp: forged" not in text, "control characters on the terminal:", text)
    rogue.close()


if __name__ == "__main__":
    rftptest.main()
