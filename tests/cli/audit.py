#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log: a line of JSON for each session, file and change of a name, also for what was refused."""

import fcntl
import json
import os
import re
import signal
import subprocess

import iwarp
import rftptest
from iwarp import Session
from rftptest import (DENIED, KIND, NO_FILE, Daemon, case, check, equal, fails, make_file, rftp, same_files, skip, wait_until,
                      works)
from rude import WAIT

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def served(top, mode="rw", *arguments):
    os.makedirs(f"{top}/export/d")
    make_file(f"{top}/export/f", 3000)
    make_file(f"{top}/local", 5000)
    return Daemon(f"{top}/export", mode, "--audit-log", f"{top}/audit", *arguments)


def lines(path):
    """Each line is a whole object, and has nothing that a terminal obeys."""
    with open(path, "rb") as f:
        raw = f.read()
    check(raw.endswith(b"\n") or not raw, "a half line:", raw[-300:])
    found = []
    for line in raw.decode("utf-8").splitlines():
        check(line.isprintable(), "not printable:", line)
        event = json.loads(line)
        check(TIME.fullmatch(event["time"]), "the time:", line)
        check(event["event"] == "refused" or event["session"] > 0, "the session:", line)
        check(re.fullmatch(r"127\.0\.0\.1:\d+", event["peer"]), "the peer:", line)
        found.append(event)
    return found


def told(top, count, what="lines"):
    wait_until(lambda: len(lines(f"{top}/audit")) >= count, lambda: f"{count} {what}: {lines(f'{top}/audit')}")
    found = lines(f"{top}/audit")
    equal(len(found), count, what, found)
    return found


def one(events, event, **members):
    """The one of this event and these members."""
    found = [e for e in events if e["event"] == event and members.items() <= e.items()]
    equal(len(found), 1, event, members, "in", events)
    return found[0]


@case
def what_a_session_does(top):
    daemon = served(top)
    works("-c", f"mkdir -p a/b; put {top}/local a/new; get f {top}/got; mv a/new a/moved; rm a/moved; rmdir a/b",
          daemon.url())
    events = told(top, 9)
    equal([e["event"] for e in events], ["begin", "login", "mkdir", "put", "get", "mv", "rm", "rmdir", "end"], "the order")
    equal({e["status"] for e in events}, {"ok"}, "how all ended")
    equal(len({(e["session"], e["peer"]) for e in events}), 1, "sessions")
    begin, login, mkdir, put, get, mv, rm, rmdir, end = events
    equal((login["user"], login["method"]), ("anonymous", "anonymous"), "the login")
    equal((begin["fabric"], begin["agent"].split("/")[0]), ("soft", "rftp"), "the client")
    equal([e["path"].lstrip("/") for e in (mkdir, put, get, mv, rm, rmdir)],
          ["a/b", "a/new", "f", "a/new", "a/moved", "a/b"], "the names")
    equal(mv["to"].lstrip("/"), "a/moved", "the new name")
    equal((put["bytes"], get["bytes"], end["bytes"], end["files"]), (5000, 3000, 8000, 2), "bytes")
    check(0 <= put["seconds"] <= end["seconds"] < 60, "seconds:", put, end)


@case
def a_tree_that_is_removed(top):
    daemon = served(top)
    for i in range(5):
        make_file(daemon.path(f"d/{i}"), 1)
    works("-c", "rm -r d", daemon.url())
    removed = [e for e in lines(f"{top}/audit") if e["event"] == "rmtree"]
    equal(sum(e["removed"] for e in removed), 6, "names", removed)
    equal({(e["path"].strip("/"), e["status"]) for e in removed}, {("d", "ok")}, "how it ended")
    fails(NO_FILE, "-c", "rm -r nothing", daemon.url())


@case
def modes_times_and_links(top):
    daemon = served(top)
    works("-c", "chmod 640 f; touch new; touch -d @5 f; ln -s f l", daemon.url())
    fails(DENIED, "-c", "chmod 4755 f", daemon.url())
    events = [e for e in told(top, 11) if e["event"] in ("chmod", "touch", "ln")]
    equal([(e["event"], e["path"].lstrip("/"), e.get("mode"), e.get("to"), e["status"]) for e in events],
          [("chmod", "f", "0640", None, "ok"), ("touch", "new", None, None, "ok"), ("touch", "f", None, None, "ok"),
           ("ln", "l", None, "f", "ok"), ("chmod", "f", "4755", None, "denied")], "what was told")


@case
def whose_a_file_becomes(top):
    """Also when it is refused: to whom somebody wanted to give a file away is what an administrator looks for."""
    daemon = served(top)
    mine = os.geteuid(), os.getegid()
    works("-c", f"chown {mine[0]} f; chown :{mine[1]} f; chown {mine[0]}:{mine[1]} f", daemon.url())
    fails(KIND, "-c", "chown nobody-of-that-name:4711 f", daemon.url())
    fails(NO_FILE, "-c", "chown root none", daemon.url())
    found = [e for e in lines(f"{top}/audit") if e["event"] == "chown"]
    equal([(e["path"].lstrip("/"), e["owner"], e["status"]) for e in found],
          [("f", f"{mine[0]}", "ok"), ("f", f":{mine[1]}", "ok"), ("f", f"{mine[0]}:{mine[1]}", "ok"),
           ("f", "nobody-of-that-name:4711", "invalid"), ("none", "root", "not-found")], "whose it was to be")


@case
def what_is_refused(top):
    daemon = served(top, "ro", "--max-sessions", "1")
    for command in ("mkdir x", "rm f", "rmdir d", "mv f g", "chmod 600 f", "touch f", "touch new",
                    "ln -s f g", f"put {top}/local"):
        fails(DENIED, "-c", command, daemon.url())
        wait_until(lambda: lines(f"{top}/audit")[-1]["event"] == "end", "the session's end")
    fails(NO_FILE, daemon.url("nothing"), f"{top}/got")
    wait_until(lambda: lines(f"{top}/audit")[-1]["event"] == "end", "the session's end")
    events = lines(f"{top}/audit")
    for event in ("mkdir", "rm", "rmdir", "mv", "chmod", "ln", "put"):
        equal(one(events, event)["status"], "read-only", event)
    equal([e["status"] for e in events if e["event"] == "touch"], ["read-only"] * 2, "touch")
    equal([e for e in events if e["event"] == "get" and e["status"] == "ok"], [], "what was got")
    session = Session(daemon.port, WAIT)
    fails(rftptest.REFUSED, daemon.url("f"), f"{top}/got")
    equal(one(lines(f"{top}/audit"), "refused")["status"], "limit", "one session too many")
    session.close()


@case
def names_that_forge_nothing(top):
    """No name makes a line of its own, or ends its string."""
    daemon = served(top)
    names = [b'a\n{"event":"rm","path":"x"}', b'quote"\\', b"esc\x1b[2J", b"\xff\xfe", "\u00e9\u009b\u202e".encode(),
             b"cr\r\ttab\x7f"]
    session = Session(daemon.port, WAIT)
    session.hello(agent=b'rude\n"/1')
    for name in names:
        status, _ = session.ask(iwarp.RENAME, b"\0\0\0\0" + iwarp.text(b"f") + iwarp.text(name))
        equal(status, 0, "RENAME to", name)
        status, _ = session.ask(iwarp.RENAME, b"\0\0\0\0" + iwarp.text(name) + iwarp.text(b"f"))
        equal(status, 0, "RENAME from", name)
    session.close()
    events = told(top, 3 + 2 * len(names))
    equal(events[0]["agent"], 'rude\n"/1', "the agent")
    for i, name in enumerate(names):
        equal(events[2 + 2 * i]["to"].encode("utf-8", "surrogateescape"), name, "as it was")
        equal(events[3 + 2 * i]["path"].encode("utf-8", "surrogateescape"), name, "as it was")


@case
def what_was_cut(top):
    """A client that dies in a put, and one in a get."""
    daemon = served(top)
    make_file(f"{top}/large", 4 << 20)
    make_file(daemon.path("large"), 4 << 20)
    for event, arguments in (("put", [f"{top}/large", "put"]), ("get", ["large", f"{top}/got"])):
        proxy = rftptest.Proxy(daemon.port, hold=1 << 20)
        arguments = [proxy.url(a) if a in ("put", "large") else a for a in arguments]
        client = rftptest.start_rftp(*arguments)
        wait_until(proxy.held.is_set, "the transfer begins")
        rftptest.kill(client)
        proxy.close()
        client.wait()
        wait_until(lambda: lines(f"{top}/audit")[-1]["event"] == "end", "the session's end")
        ended = [e for e in lines(f"{top}/audit") if e["event"] == event]
        equal(len(ended), 1, event, "lines:", ended)
        check(ended[0]["status"] != "ok", "how it ended:", ended)


@case
def many_at_once(top):
    """Lines of many sessions do not mix."""
    daemon = served(top)
    clients = [rftptest.start_rftp("-c", "; ".join(f"mkdir m{i}.{k}; rmdir m{i}.{k}" for k in range(20)), daemon.url())
               for i in range(8)]
    for client in clients:
        equal(rftptest.finish(client).code, 0, "a client")
    events = told(top, 8 * 43)
    for i in range(8):
        for k in range(20):
            one([e for e in events if e.get("path", "").lstrip("/") == f"m{i}.{k}"], "mkdir")


@case
def a_log_that_is_rotated(top):
    daemon = served(top)
    works("-c", "mkdir one", daemon.url())
    told(top, 4)
    os.rename(f"{top}/audit", f"{top}/audit.1")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(f"{top}/audit"), "a new file")
    works("-c", "mkdir two", daemon.url())
    equal(one(told(top, 4), "mkdir")["path"].lstrip("/"), "two", "in the new file")
    equal(one(lines(f"{top}/audit.1"), "mkdir")["path"].lstrip("/"), "one", "in the old file")


@case
def one_that_is_named_anew(top):
    """The configuration names another file, then none."""
    def configure(line):
        with open(f"{top}/conf", "w") as f:
            f.write(f"{line}\n")

    os.mkdir(f"{top}/export")
    configure(f"audit-log = {top}/one")
    daemon = Daemon(f"{top}/export", "rw", "--config", f"{top}/conf")
    for i, (line, name) in enumerate(((f"audit-log = {top}/two", "one"), ("", "two"))):
        works("-c", f"mkdir in-{name}", daemon.url())
        wait_until(lambda: len(lines(f"{top}/{name}")) == 4, "four lines")
        equal(one(lines(f"{top}/{name}"), "mkdir")["path"].lstrip("/"), f"in-{name}", "in the file")
        configure(line)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: daemon.stderr().count(b"reload: the configuration is in use") == i + 1, "the reload")
    works("-c", "mkdir untold", daemon.url())
    equal([len(lines(f"{top}/{name}")) for name in ("one", "two")], [4, 4], "lines")


@case
def exports_are_named(top):
    """Where there are several, the path alone does not say where a file is: in the xferlog and in the log it is as clients
    write it."""
    for name in "ab":
        os.makedirs(f"{top}/{name}")
    os.makedirs(f"{top}/t")
    make_file(f"{top}/t/f", 10)
    with open(f"{top}/conf", "w") as f:
        f.write("".join(f"export = {name} {top}/{name} rights=read,list,write,delete\n" for name in "ab") +
                f"listen = 127.0.0.1:0\ninsecure = yes\nxferlog = {top}/xferlog\n")
    daemon = Daemon(top, command=["--config", f"{top}/conf"])
    works(f"{top}/t/f", daemon.url("a/g"))
    works("-r", f"{top}/t", daemon.url("b"))
    works(daemon.url("a/g"), f"{top}/got")
    works("-c", "rm b/t/f", daemon.url())
    wanted = [(b"/a/g", b"i"), (b"/b/t", b"i"), (b"/b/t/f", b"i"), (b"/a/g", b"o"), (b"/b/t/f", b"d")]

    def found():
        with open(f"{top}/xferlog", "rb") as f:
            return [(line.split()[8], line.split()[11]) for line in f]
    wait_until(lambda: len(found()) >= len(wanted), found)
    equal(found(), wanted, "files")
    for what in (b"stored 10 bytes in [0-9.]* s: /a/g\n", b"stored 10 bytes in [0-9.]* s: /b/t/f\n", b"sent 10 bytes in [0-9.]* s: /a/g\n"):
        check(re.search(what, daemon.stderr()), what, daemon.stderr())


@case
def as_ftp_servers_do(top):
    """xferlog(5): eighteen fields with blanks between, the date has five."""
    os.makedirs(f"{top}/export")
    make_file(f"{top}/local", 5000)
    log = f"{top}/xferlog"
    daemon = Daemon(f"{top}/export", "rw", "--xferlog", log)
    evil = f"{top}/two words\n\x1b[2J\x9b\udc9b\u202eé\udce9"
    make_file(evil, 10)
    works(f"{top}/local", daemon.url("f"))
    works(evil, daemon.url())
    works(daemon.url("f"), f"{top}/got")
    rftp(daemon.url("missing"), f"{top}/got")
    works("-c", "mkdir d; mv f g; rm g", daemon.url())

    def fields():
        with open(log, errors="surrogateescape") as f:
            return [line.split() for line in f.read().split("\n") if line]
    wait_until(lambda: len(fields()) >= 5, fields)
    found = fields()
    check(all(len(line) == 18 for line in found), "fields:", found)
    for line in found:
        check(re.fullmatch(r"\w{3} \w{3} \d+ \d\d:\d\d:\d\d \d{4} \d+ 127\.0\.0\.1", " ".join(line[:7])), line)
        equal(line[9:11] + line[12:17], ["b", "_", "a", "anonymous", "rftp", "0", "*"], "what is always so")
    equal([(line[7], line[8], line[11], line[17]) for line in found],
          [("5000", "/f", "i", "c"), ("10", "/two_words__[2J___é\udce9", "i", "c"), ("5000", "/f", "o", "c"),
           ("0", "/missing", "o", "i"), ("0", "/g", "d", "c")], "files")
    # it is rotated as the other one is
    os.rename(log, f"{log}.1")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(log), "a new one")
    works(f"{top}/local", daemon.url("f"))
    wait_until(lambda: len(fields()) == 1, fields)


@case
def on_standard_error(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw", "--audit-log", "stderr", "-q", "-q")
    works("-c", "mkdir x", daemon.url())
    wait_until(lambda: daemon.stderr().count(b"\n") >= 4, "four lines")
    equal([json.loads(line)["event"] for line in daemon.stderr().splitlines()], ["begin", "login", "mkdir", "end"], "events")


def fill(path):
    """A FIFO that takes no more.  -> what its reader has"""
    os.mkfifo(path)
    reader, writer = os.open(path, os.O_RDONLY | os.O_NONBLOCK), os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        while True:
            os.write(writer, b"x" * 4095 + b"\n")
    except BlockingIOError:
        pass
    os.close(writer)
    return reader


@case
def nobody_waits_for_it(top):
    """A FIFO that nobody reads from, or that is full, and a full disk: each costs lines, and no session."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 100000)
    os.mkfifo(f"{top}/unread")
    daemon = Daemon(f"{top}/export", "rw", "--audit-log", f"{top}/unread")
    works("-c", "mkdir early; rmdir early", daemon.url())
    late = rftptest.opened_fifo(f"{top}/unread")  # who reads later has what the FIFO took
    wait_until(lambda: b'"rmdir"' in late(), "the lines")
    daemon.stop()
    reader = fill(f"{top}/full")
    fill(f"{top}/full-too")
    for log, also in ((f"{top}/full", None), ("/dev/full", f"{top}/full-too")):
        daemon = Daemon(f"{top}/export", "rw", "--audit-log", log, *(["--xferlog", also] if also else []))
        for n in range(3):
            works(f"{top}/f", daemon.url(f"f{n}"))
        works("-c", "mkdir d; rmdir d", daemon.url())
        equal(daemon.stderr().count(b"audit-log: a line is lost"), 1, "what is said", daemon.stderr())
        # nor does a reload
        daemon.process.send_signal(signal.SIGHUP)
        works("-c", "ls", daemon.url())
        if also:
            equal(daemon.stderr().count(b"xferlog: a line is lost"), 1, "what is said", daemon.stderr())
        else:  # who reads again has whole lines
            os.read(reader, 1 << 20)
            works("-c", "mkdir again; rmdir again", daemon.url())
            wait_until(lambda: b'"rmdir"' in os.read(reader, 1 << 20), "lines again")
        daemon.stop()


@case
def a_line_that_broke_off_is_one(top):
    """The disk is full in the middle of a line, and then is not: the next line is whole."""
    if not rftptest.ROOT:
        skip("only root mounts a small disk")
    os.makedirs(f"{top}/export")
    os.makedirs(f"{top}/small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", f"{top}/small"], capture_output=True).returncode:
        skip("no tmpfs can be mounted")
    try:
        make_file(f"{top}/small/filler", 4096)
        daemon = Daemon(f"{top}/export", "rw", "--audit-log", f"{top}/small/audit")
        for n in range(40):
            works("-c", "mkdir d; rmdir d", daemon.url())
            if b"a line is lost" in daemon.stderr():
                break
        check(b"a line is lost: No space" in daemon.stderr(), "the disk is not full:", daemon.stderr())
        os.unlink(f"{top}/small/filler")
        works("-c", "mkdir after", daemon.url())
        daemon.stop()
        with open(f"{top}/small/audit", "rb") as f:
            found = f.read().splitlines()
        torn = []
        for line in found:
            try:
                json.loads(line)
            except ValueError:
                torn.append(line)
        check(len(torn) == 1 and torn[0].count(b'"time"') == 1, "lines that are none:", torn)
        check(any(b'"after"' in line or b'"/after"' in line for line in found if line not in torn), "the next one:", found[-6:])
    finally:
        rftptest.kill_all()
        subprocess.run(["umount", f"{top}/small"], check=False)


@case
def one_that_cannot_be(top):
    os.mkdir(f"{top}/export")
    for extra in ([], ["-t"]):
        try:
            daemon = Daemon(f"{top}/export", "rw", "--audit-log", f"{top}/no/where", *extra)
        except rftptest.Failure as e:
            check("audit-log" in str(e) and "No such file" in str(e), "the message:", str(e))
        else:
            check(False, "it serves, and keeps no log", daemon.stderr())


rftptest.main()
