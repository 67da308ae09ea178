#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies from one daemon to another: rftp URL1 URL2.  The data go from one to the other, with a grant."""

import contextlib
import json
import os
import signal
import socket
import struct
import time

import iwarp
import rftptest
from iwarp import Session
from rftptest import (DENIED, INTEGRITY, INTERRUPTED, LOST, NO_FILE, OK, REFUSED, USAGE, Daemon, Proxy, case, check,
                      equal, fails, finish, leftovers, make_file, same_files, start_rftp, tree, wait_until, works)
from rude import WAIT

ANYWHERE = "127.0.0.0/8 ports=1-65535"
DISK = os.path.join(rftptest.BUILD, "tests", "preload", "disk.so")
SOURCE, DESTINATION, BETWEEN = 1, 2, 3


class Place:
    """Two daemons: from one, to the other."""

    def __init__(self, top, *there, to=ANYWHERE, source_env=None, there_env=None):
        self.top = top
        for name in ("from", "to"):
            os.makedirs(f"{top}/{name}", exist_ok=True)
        allowed = ["--copies-to", to] if to else []
        self.source = Daemon(f"{top}/from", "ro", "--audit-log", f"{top}/from.log", *allowed, env=source_env)
        self.there = Daemon(f"{top}/to", "rw", "--audit-log", f"{top}/to.log", *there, env=there_env)

    def file(self, name="f", size=3000000):
        make_file(f"{self.top}/from/{name}", size)
        return f"{self.top}/from/{name}"

    def stop(self):
        self.source.stop()
        self.there.stop()


def audit(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def message(result):
    return result.err.decode()


# ---- what is copied ----

@case
def one_file(top):
    place = Place(top)
    path = place.file()
    os.utime(path, ns=(1234567890123456789, 1234567890123456789))
    os.chmod(path, 0o640)
    result = works("--json", place.source.url("f"), place.there.url("new/deep/g"))
    same_files(path, f"{top}/to/new/deep/g")
    there = os.stat(f"{top}/to/new/deep/g")
    equal((there.st_mtime_ns, there.st_mode & 0o7777), (1234567890123456789, 0o640), "time and mode")
    events = result.events()
    equal([e["event"] for e in events if e["event"] != "progress"], ["start", "file", "done"], result)
    equal([events[0][k] for k in ("command", "server", "destination")],
          ["copy", *(d.url()[7:-1] for d in (place.source, place.there))], result)
    told = next(e for e in events if e["event"] == "file")
    equal((told["path"], told["remote"], told["bytes"], told["status"]), ("/f", "/new/deep/g", 3000000, "ok"), result)
    done = result.done()
    equal((done["bytes"], done["sent_bytes"], done["files"], done["errors"]), (3000000, 3000000, 1, 0), result)
    equal((done["fabric"], done["engine"]), ("soft", "credit"), result)
    place.stop()


@case
def into_a_directory_and_several(top):
    place = Place(top)
    for name in ("a.x", "b.x", "c.y"):
        place.file(name, 70000)
    os.makedirs(f"{top}/to/d")
    works(place.source.url("a.x"), place.there.url("d"))
    same_files(f"{top}/from/a.x", f"{top}/to/d/a.x")
    works(place.source.url("*.x"), place.source.url("c.y"), place.there.url("e/"))
    equal(sorted(os.listdir(f"{top}/to/e")), ["a.x", "b.x", "c.y"], "what came")
    os.makedirs(f"{top}/from/d")
    place.file("d/a.x", 10)
    fails(rftptest.KIND, "-r", place.source.url("a.x"), place.source.url("d/a.x"), place.there.url("two/"),
          says="two sources would become a.x")
    check(not os.path.exists(f"{top}/to/two/a.x"), "something was copied")
    result = fails(NO_FILE, place.source.url("none"), place.there.url("d/none"), says="/none")
    check(b"/none: at the source: no such file" in result.err, result)
    fails(rftptest.KIND, place.source.url("a.x"), place.there.url("e/a.x/none"), says="/e/a.x/none: at the destination: not a")
    fails(rftptest.KIND, place.source.url("d"), place.there.url("dd"), says="use -r")
    place.stop()


@case
def a_tree(top):
    place = Place(top)
    names = ["t", "t/empty", "t/sub", "t/sub/deep"]
    for name in names:
        os.makedirs(f"{top}/from/{name}")
    for i in range(200):
        place.file(f"t/sub/{i}", 100 + i)
    place.file("t/sub/deep/large", 2000000)
    place.file("t/odd \n\x1b name", 5)
    place.file("t/left.o", 5)
    os.symlink("sub/1", f"{top}/from/t/link")
    os.link(f"{top}/from/t/sub/2", f"{top}/from/t/sub/other")
    wanted = {k: v for k, v in tree(f"{top}/from/t").items() if not k.endswith(b".o")}
    os.mkfifo(f"{top}/from/t/fifo")
    result = works("--json", "-a", "-H", "--exclude", "*.o", place.source.url("t"), place.there.url("x/"))
    equal(tree(f"{top}/to/x/t"), wanted, "the tree")
    equal(os.readlink(f"{top}/to/x/t/link"), "sub/1", "the link")
    equal(os.stat(f"{top}/to/x/t/sub/2").st_ino, os.stat(f"{top}/to/x/t/sub/other").st_ino, "the hard link")
    events = result.events()
    files = [e for e in events if e["event"] == "file"]
    done = result.done()
    equal(done["files"], len(files), "files")
    equal(done["bytes"], sum(e["bytes"] for e in files), "bytes")
    equal(done["directories"], len([e for e in events if e["event"] == "directory"]), "directories")
    equal(done["special"], 1, "what is left out")
    check(all(e["remote"] == "/x" + e["path"] for e in files), "paths on both sides", files[:3])
    # what is in it, without a name of its own
    works("-a", place.source.url("t/sub/deep/"), place.there.url("y"))
    same_files(f"{top}/from/t/sub/deep/large", f"{top}/to/y/large")
    place.stop()


@case
def on_one_daemon(top):
    os.makedirs(f"{top}/e")
    make_file(f"{top}/e/f", 500000)
    daemon = Daemon(f"{top}/e", "rw", "--copies-to", ANYWHERE)
    works(daemon.url("f"), daemon.url("g"))
    same_files(f"{top}/e/f", f"{top}/e/g")
    daemon.stop()


@case
def what_is_there_stays(top):
    place = Place(top)
    path = place.file("f", 5000)
    make_file(f"{top}/to/f", 777)
    before = rftptest.digest(f"{top}/to/f")
    result = fails(rftptest.KIND, "--no-replace", place.source.url("f"), place.there.url("f"), says="at the destination")
    check("/f: " in message(result), result)
    equal(rftptest.digest(f"{top}/to/f"), before, "what was there")
    done = works("--json", "--ignore-existing", place.source.url("f"), place.there.url("f")).done()
    equal((done["skipped"], done["files"]), (1, 0), done)
    works(place.source.url("f"), place.there.url("f"))
    same_files(path, f"{top}/to/f")
    result = works("-n", place.source.url("f"), place.there.url("other"))
    check(not os.path.exists(f"{top}/to/other"), "a dry run copies", result)
    place.stop()


@case
def the_bytes_do_not_pass_the_client(top):
    place = Place(top)
    path = place.file("f", 20 << 20)
    proxy = Proxy(place.source.port)
    works(proxy.url("f"), place.there.url("f"))
    same_files(path, f"{top}/to/f")
    check(proxy.carried < 100000, "the client and the source exchanged", proxy.carried, "bytes")
    wait_until(lambda: len([e for e in audit(f"{top}/to.log") if e["event"] == "end"]) == 2, "the ends of two sessions")
    events = audit(f"{top}/to.log")
    sessions = {e["session"]: e for e in events if e["event"] == "login"}
    moved = {e["session"]: e["bytes"] for e in events if e["event"] == "end"}
    equal(sorted((sessions[s]["method"], moved[s]) for s in moved), [("anonymous", 0), ("grant", 20 << 20)], events)
    told = next(e for e in audit(f"{top}/from.log") if e["event"] == "copy")
    equal((told["bytes"], told["to"], told["path"]), (20 << 20, f"127.0.0.1:{place.there.port}", "/f"), told)
    equal([(e["path"], e["status"]) for e in events if e["event"] == "grant"], [("/f", "ok")], "what was granted")
    proxy.close()
    place.stop()


# ---- who may ----

@case
def the_administrators_decide(top):
    place = Place(top, to=None)
    place.file()
    urls = place.source.url("f"), place.there.url("f")
    fails(DENIED, *urls, says="sends nothing to other servers")
    fails(DENIED, "-r", place.source.url(""), place.there.url("tree"), says="sends nothing to other servers")
    equal([(e["path"], e["to"], e["status"]) for e in audit(f"{top}/from.log") if e["event"] == "copy"][:1],
          [("/f", "127.0.0.1", "denied")], "the audit log of the source")
    check(not os.path.exists(place.there.path("tree")), "a directory for what was refused")
    place.source.stop()
    for rule in ("192.0.2.0/24 ports=1-65535", "127.0.0.1", f"127.0.0.1 ports=1-{place.there.port - 1}"):
        source = Daemon(f"{top}/from", "ro", "--copies-to", rule, "--audit-log", f"{top}/rule.log")
        fails(DENIED, source.url("f"), urls[1], says="none of the servers that this one may send to")
        equal([(e["path"], e["to"], e["status"]) for e in audit(f"{top}/rule.log") if e["event"] == "copy"][-1:],
              [("/f", f"127.0.0.1:{place.there.port}", "denied")], "the audit log")
        source.stop()
    source = Daemon(f"{top}/from", "ro", "--copies-to", f"127.0.0.1,::1 ports={place.there.port}")
    works(source.url("f"), urls[1])
    place.there.stop()
    for options, says in ((("--copies-from=no",), "takes no copies from other servers"),):
        there = Daemon(f"{top}/to", "rw", *options)
        fails(DENIED, Daemon(f"{top}/from", "ro", "--copies-to", ANYWHERE).url("f"), there.url("h"), says=says)
        there.stop()
    there = Daemon(f"{top}/to", "ro")
    other = Daemon(f"{top}/from", "ro", "--copies-to", ANYWHERE)
    fails(DENIED, other.url("f"), there.url("h"), says="at the destination: the export is read-only")
    fails(USAGE, "ssh://host/f", there.url("h"), says="takes no part in copies between servers")
    there.stop()
    source.stop()
    other.stop()


def granted(daemon, path=b"/x", flags=0):
    """A session and what it was granted."""
    session = Session(daemon.port, WAIT)
    session.hello()
    status, data = session.ask(iwarp.GRANT_COPY, iwarp.grant_copy(path, flags))
    equal(status, 0, "GRANT_COPY", data)
    expires, length = struct.unpack(">QH", data[:10])
    equal(length, len(data) - 10, "the grant")
    return session, expires, data[10:]


def shown(daemon, grant):
    """A session that shows it, and what it is told."""
    session = Session(daemon.port, WAIT)
    session.hello(then_login=False)
    status, data = session.ask(iwarp.LOGIN, iwarp.login(iwarp.BY_GRANT, b"", grant))
    return session, status, data


@case
def a_grant_is_for_one_login(top):
    place = Place(top)
    session, expires, grant = granted(place.there)
    check(time.time() + 3500 < expires < time.time() + 3700, "it is not for an hour:", expires - time.time())
    first, status, data = shown(place.there, grant)
    equal(status, 0, "the first time", data)
    second, status, data = shown(place.there, grant)
    equal(status, 201, "the second time", data)
    check(b"used already" in data, data)
    check(second.dropped_within(WAIT), "who shows a used one stays")
    # changed, or another daemon's: no more is said than of any other login
    for wrong in (grant[:-1] + bytes([grant[-1] ^ 1]), bytes([grant[0] ^ 1]) + grant[1:],
                  grant[:23] + bytes([grant[23] ^ 1]) + grant[24:], grant[:-1], b"x"):
        other, status, data = shown(place.there, wrong)
        equal((status, data[2:]), (110, b"the login is refused"), "a wrong one")
        other.close()
    other, status, data = shown(place.source, grant)
    equal(status, 110, "of another daemon", data)
    other.close()
    first.close()
    session.close()
    place.stop()


@case
def a_grant_expires(top):
    place = Place(top, "--grant-lifetime", "1")
    session, expires, grant = granted(place.there)
    wait_until(lambda: time.time() > expires + 0.1, "its time is over")
    other, status, data = shown(place.there, grant)
    equal(status, 201, "an old one", data)
    check(b"has expired" in data, data)
    session.close()
    other.close()
    place.stop()


@case
def a_grant_ends_with_its_session(top):
    place = Place(top)
    session, _, grant = granted(place.there)
    kept, _, second = granted(place.there)
    user, status, _ = shown(place.there, second)
    equal(status, 0, "a login")
    session.ask(iwarp.BYE)
    session.close()
    kept.ask(iwarp.BYE)
    kept.close()
    wait_until(lambda: len([e for e in audit(f"{top}/to.log") if e["event"] == "end"]) == 2, "both ends")
    other, status, data = shown(place.there, grant)
    equal(status, 201, "who gave it has gone", data)
    user.open_channels()
    status, data = user.ask(iwarp.STORE, iwarp.data_request(b"/x"))
    equal(status, 201, "who gave it has gone after the login", data)
    user.close()
    other.close()
    place.stop()


@case
def a_grant_is_for_one_path(top):
    place = Place(top)
    INTO, RECURSIVE, NO_REPLACE = 1, 2, 4
    make_file(f"{top}/to/x", 10)
    for path, flags, says in ((b"/y", 0, b"another path"), (b"/x/..", 0, b"another path"), (b"/x", INTO, b"another way"),
                              (b"/x", RECURSIVE, b"another way")):
        session, _, grant = granted(place.there, b"/x")
        user, status, data = shown(place.there, grant)
        equal(status, 0, "a login", data)
        user.open_channels()
        status, data = user.ask(iwarp.STORE, iwarp.data_request(path, flags=flags))
        equal(status, 201, path, flags, data)
        check(says in data, path, data)
        told = [e for e in audit(f"{top}/to.log") if e["event"] == "put"][-1]
        equal((told["path"].encode(), told["status"], says.decode() in told["text"]), (path, "denied", True), "the audit log")
        user.close()
        session.close()
    session, _, grant = granted(place.there, b"/x", NO_REPLACE)
    user, status, data = shown(place.there, grant)
    equal(struct.unpack(">IH", data[:6]), (4, 0), "rights: nothing but to write")
    for type_, asked in ((iwarp.STAT, iwarp.text(b"/x")), (iwarp.LIST, iwarp.text(b"/")), (iwarp.REMOVE, iwarp.text(b"/x")),
                         (iwarp.MKDIR, struct.pack(">II", 0o755, 0) + iwarp.text(b"/d")),
                         (iwarp.GRANT_COPY, iwarp.grant_copy(b"/x")), (iwarp.SEND_COPY, iwarp.send_copy()),
                         (iwarp.RETRIEVE, iwarp.data_request(b"/x"))):
        status, data = user.ask(type_, asked)
        equal((status, data[2:]), (201, b"who logged in with a grant may store what was granted, and do no more"), type_)
    channels = user.open_channels()
    status, data = user.ask(iwarp.STORE, iwarp.data_request(b"/x"))
    equal(status, 201, "it may not replace", data)
    status, data = user.ask(iwarp.STORE, iwarp.data_request(b"/x", flags=NO_REPLACE))
    equal(status, 0, "what it is for", data)
    channels[0].close()
    user.close()
    session.close()
    place.stop()


def replies(session, request, transfer=0):
    """What SEND_COPY is answered with: (side, status, text) of the last reply."""
    session.put(iwarp.SEND_COPY, request, transfer)
    while True:
        type_, status, data = session.get()
        equal(type_, iwarp.SEND_COPY | iwarp.REPLY, "a frame")
        if status:
            return None, status, data[2:]
        more, side, status, length = struct.unpack(">BBHH", data[:6])
        if not more:
            return side, status, data[6:6 + length]


@case
def another_host_key(top):
    place = Place(top)
    place.file()
    session, _, grant = granted(place.there, b"/f")
    source = Session(place.source.port, WAIT)
    source.hello()
    side, status, said = replies(source, iwarp.send_copy(
        port=place.there.port, key=b"SHA256:" + b"x" * 43, right=grant, to=b"/f", path=b"/f"))
    equal(side, BETWEEN, said)
    check(status and b"another host key" in said, status, said)
    check("grant" not in [e.get("method") for e in audit(f"{top}/to.log")], "the grant was shown")
    # nothing listens there: what is said is no more than that
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        side, status, said = replies(source, iwarp.send_copy(
            port=closed.getsockname()[1], right=grant, to=b"/f", path=b"/f"))
    equal(side, BETWEEN, said)
    check(b"connection refused" in said, said)
    # and the session goes on
    equal(source.ask(iwarp.STAT, iwarp.text(b"/f"))[0], 0, "STAT")
    source.close()
    session.close()
    place.stop()


# ---- what goes wrong ----

@case
def a_priority_that_the_source_refuses(top):
    """It is refused before any name is asked for: the message has a side, and no object."""
    place = Place(top)
    place.file()
    result = fails(REFUSED, "--priority", "urgent", place.source.url("f"), place.there.url("f"))
    check("at the source: " in message(result) and "this server has no classes" in message(result), result)
    check(not os.path.exists(f"{top}/to/f"), "it was copied all the same")
    place.stop()


def held(place, *options, at=3 << 20):
    """A copy that has begun and is held on its way.  -> the client, and the proxy before the destination"""
    make_file(f"{place.top}/from/f", 24 << 20)
    proxy = Proxy(place.there.port, hold=at)
    client = start_rftp("--json", *options, place.source.url("f"), proxy.url("f"))
    wait_until(proxy.held.is_set, "the copy is under way")
    return client, proxy


def no_part(top):
    wait_until(lambda: not leftovers(f"{top}/to"), lambda: f"left behind: {leftovers(f'{top}/to')}")


@case
def interrupted(top):
    place = Place(top)
    before = place.source.settled(), place.there.settled()
    client, proxy = held(place, "--resume=never")
    client.send_signal(signal.SIGINT)
    wait_until(lambda: b"given it up" in place.source.stderr(), "the source has given it up")
    proxy.release()
    result = finish(client)
    equal(result.code, INTERRUPTED, result)
    no_part(top)
    check(not os.path.exists(f"{top}/to/f"), "it was copied all the same")
    proxy.close()
    place.source.back_to(before[0], "the source")
    place.there.back_to(before[1], "the destination")
    place.stop()


@case
def the_client_dies(top):
    place = Place(top)
    before = place.source.settled(), place.there.settled()
    client, proxy = held(place, "--resume=never")
    rftptest.kill(client)
    client.wait()
    proxy.release()
    no_part(top)
    check(not os.path.exists(f"{top}/to/f"), "it was copied all the same")
    proxy.close()
    place.source.back_to(before[0], "the source")
    place.there.back_to(before[1], "the destination")
    place.stop()


@case
def the_source_dies(top):
    place = Place(top)
    client, proxy = held(place, "--resume=never")
    place.source.kill()
    result = finish(client)
    equal(result.code, LOST, result)
    check(b"(to the source)" in result.err, result)
    proxy.release()
    no_part(top)
    proxy.close()
    place.there.stop()


@case
def the_destination_dies(top):
    place = Place(top)
    client, proxy = held(place)
    place.there.kill()
    proxy.reset()
    result = finish(client)
    equal(result.code, LOST, result)
    check(b"between source and destination" in result.err, result)
    error = next(e for e in result.events() if e["event"] == "error")
    equal(error["status"], "disconnected", error)
    place.source.stop()


@case
def gone_on_with(top):
    place = Place(top)
    client, proxy = held(place, "--resume=1M", at=12 << 20)
    proxy.reset()  # between the two
    result = finish(client)
    equal(result.code, LOST, result)
    check(leftovers(f"{top}/to"), "nothing is left to go on with")
    done = works("--json", "--resume=1M", place.source.url("f"), place.there.url("f")).done()
    same_files(f"{top}/from/f", f"{top}/to/f")
    equal(done["bytes"], 24 << 20, done)
    check(0 < done["sent_bytes"] < 24 << 20, "it was sent anew", done)
    proxy.close()
    place.stop()


@case
def tried_again(top):
    place = Place(top)
    client, proxy = held(place, "--resume=1M", "--retries=3", at=6 << 20)
    for s in list(proxy.sockets):  # what there is breaks, what comes is carried
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)
    proxy.release()
    result = finish(client)
    equal(result.code, OK, result)
    same_files(f"{top}/from/f", f"{top}/to/f")
    check("retry" in [e["event"] for e in result.events()], result)
    proxy.close()
    place.stop()


def preload(flip):
    if rftptest.SANITIZED or not os.path.exists(DISK):
        rftptest.skip("tests/preload is not built, or not for sanitizers")
    return {"LD_PRELOAD": DISK, "RFTP_TEST_FLIP": flip}


@case
def a_disk_that_lies(top):
    for where, flip, verify, says in (("there_env", "write", "readback", "at the destination"),
                                      ("source_env", "read", "file", "at the source")):
        place = Place(top, **{where: preload(flip)})
        place.file(size=1 << 20)
        result = fails(INTEGRITY, "--block", "64K", "--verify", verify, place.source.url("f"), place.there.url(f"f-{flip}"),
                       says=says)
        check(not os.path.exists(f"{top}/to/f-{flip}"), "it has its name", result)
        no_part(top)
        place.stop()


rftptest.main()
