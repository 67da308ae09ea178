#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Admission: transfers wait for their turn of the daemon's bandwidth, and what can happen meanwhile.

Nothing here measures: bandwidths are so small that one long transfer holds all of it for as long as
a case takes, or so large that it does not matter.
"""

import json
import os
import signal
import struct
import subprocess
import time

import iwarp
import rftptest
from iwarp import Session
from rftptest import (USAGE, Daemon, Failure, Proxy, case, check, equal, fails, finish, leftovers, make_file,
                      rng, same_files, scaled, start_rftp, wait_until, works)
from rude import WAIT

M = 1 << 20
REFUSED_ANYHOW = list(range(1, 20))  # exit codes
CLASSES = ["--class", "urgent 0 path=/u", "--class", "asked 0 ask=yes", "--class", "bulk 5 path=/b",
           "--class", "last 9 ask=yes"]
ALL = ["--share", "1000G", "--turn", "1M"]  # one at a time


def endless(url):
    """A client that sends as fast as it may until it is killed."""
    with open("/dev/urandom", "rb") as source:
        return start_rftp("--json", "-", url, stdin=source)


class Held:
    """A daemon all of whose bandwidth is one client's, for as long as it likes."""

    def __init__(self, top, *arguments):
        os.mkdir(f"{top}/export")
        self.top = top
        make_file(f"{top}/local", 60000)
        self.daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "1M", "--share", "1M", "--turn", "none",
                             "--log-level", "debug", *arguments)
        self.port = self.daemon.port
        self.holder = endless(self.daemon.url("holds"))
        wait_until(lambda: leftovers(self.daemon.top), "the holder's file")

    def url(self, name):
        return self.daemon.url(name)

    def waits(self, count=1):
        wait_until(lambda: self.daemon.stderr().count(b" waits, ") >= count, "one more waits")

    def let_go(self):
        rftptest.kill(self.holder)
        self.holder.wait()


def request(session, name, type_=iwarp.STORE):
    session.put(type_, iwarp.data_request(path=name))


def opened(port, **hello):
    session = Session(port, WAIT)
    session.hello(**hello)
    return session, session.open_channels(1)


def next_frame(session):
    """The next that is not QUEUED."""
    while True:
        frame = session.get()
        if frame[0] != iwarp.QUEUED:
            return frame


def event(process, name):
    """Reads the client's events up to one of that name."""
    while True:
        line = process.stdout.readline()
        if not line:
            raise Failure(f"no {name} from {process.args}: {process.stderr.read()!r}")
        found = json.loads(line)
        if found["event"] == name:
            return found


# ---- transfers ----

@case
def all_engines_and_directions(top):
    """Whole files, through many turns, by every engine, in the clear and encrypted, of many small files and
    of a stream."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 5 * M + 123)
    os.mkdir(f"{top}/tree")
    for i in range(60):
        make_file(f"{top}/tree/{i}", i * 997)
    daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "1000M", "--turn", "1M")
    for engine in ("credit", "status", "window", "pull"):
        for more in ([], ["--protect", "private"]):
            one = works("--json", "--engine", engine, *more, f"{top}/f", daemon.url(engine)).done()
            equal(one["errors"], 0, one)
            check(one["block"] <= M // 16, "blocks of", one["block"])
            same_files(f"{top}/f", daemon.path(engine), engine)
            works("--engine", engine, *more, daemon.url(engine), f"{top}/back")
            same_files(f"{top}/f", f"{top}/back", engine)
            os.unlink(f"{top}/back")
            os.unlink(daemon.path(engine))
    works("-r", f"{top}/tree", daemon.url(""))
    os.mkdir(f"{top}/back")
    works("-r", daemon.url("tree"), f"{top}/back")
    for i in range(60):
        same_files(f"{top}/tree/{i}", f"{top}/back/tree/{i}")
    os.unlink(f"{top}/f")
    data = rng().randbytes(3 * M)
    works("-", daemon.url("stream"), input=data)
    # both sides limit it, and the blocks of both rates suit
    works("--limit-rate", "100G", daemon.url("stream"), f"{top}/f")
    with open(daemon.path("stream"), "rb") as f:
        check(f.read() == data, "what came from a stream")
    equal(works(daemon.url("stream"), "-").out, data, "what went to a stream")
    daemon.stop()


@case(seconds=120)
def a_turn_that_ends_with_the_oldest_slot(top):
    """`window` fills its slots in their order: where the turn ends before the oldest one is given back, the next turn
    is asked for, although others are free."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 5 * M + 123)
    daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "1000M", "--turn", "1M")
    for _ in range(4):
        clients = [rftptest.start_rftp("--engine", "window", "--protect", protect, f"{top}/f", daemon.url(f"f{i}"))
                   for i, protect in enumerate(("clear", "private") * 3)]
        for i, client in enumerate(clients):
            equal(rftptest.finish(client).code, 0, "a put")
            same_files(f"{top}/f", daemon.path(f"f{i}"))
    daemon.stop()


@case
def many_share_and_all_are_served(top):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 2 * M)
    daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "60M", *ALL, *CLASSES)
    clients = [start_rftp("--json", f"{top}/f", daemon.url(f"{'ub'[i % 2]}{i}")) for i in range(scaled(10))]
    for client in clients:
        equal(finish(client).code, 0, "exit code")
    for i in range(len(clients)):
        same_files(f"{top}/f", daemon.path(f"{'ub'[i % 2]}{i}"))
    equal(leftovers(daemon.top), [], "left over")
    daemon.stop()


@case
def what_is_urgent_goes_between_the_turns_of_the_rest(top):
    """A long transfer that runs already does not keep an urgent one waiting until it ends."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 300000)
    daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "4M", *ALL, *CLASSES)
    bulk = endless(daemon.url("bulk"))
    equal(event(bulk, "admitted")["class"], "default", "its class")
    for name, wanted in (("u/x", "urgent"), ("b", "bulk")):
        os.makedirs(daemon.path("u"), exist_ok=True)
        said = works("--json", f"{top}/f", daemon.url(name)).events()
        admitted = [e for e in said if e["event"] == "admitted"]
        equal(admitted[0]["class"], wanted, "the class of", name)
        equal(admitted[0]["share"], 4 * M, "the share: all there is")
        check(said[-1]["waited_s"] > 0, "it did not wait:", said)
    check(bulk.poll() is None, "the long one has ended")
    rftptest.kill(bulk)
    daemon.stop()


@case
def who_waits_is_told_and_what_done_says(top):
    held = Held(top, *CLASSES)
    client = start_rftp("--json", "--deadline", "1h", f"{top}/local", held.url("b"))
    queued = event(client, "queued")
    equal((queued["class"], queued["position"]), ("bulk", 1), "its place")
    second = start_rftp("--json", "--deadline", "1ms", f"{top}/local", held.url("second"))
    third = start_rftp("-v", "--priority", "last", f"{top}/local", held.url("third"))
    held.waits(3)
    held.let_go()
    done = finish(client).done()
    check(done["waited_s"] > 0 and done["deadline_met"] is True, done)
    equal(finish(second).done()["deadline_met"], False, "of 1 ms")
    result = finish(third)
    equal(result.code, 0, result)
    check(b"waiting: 1st in last" in result.err, result)
    late = works("--json", "--deadline", "0", f"{top}/local", held.url("late")).done()
    equal(late["deadline_met"], False, late)
    none = works("--json", f"{top}/local", held.url("none")).done()
    equal(none["deadline_met"], None, none)
    held.daemon.stop()


@case
def priorities(top):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 100)
    os.makedirs(f"{top}/export/u")
    daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "100M", *CLASSES)

    def given(*arguments):
        said = works("--json", *arguments)
        return [e["class"] for e in said.events() if e["event"] == "admitted"][0], said.err

    equal(given(f"{top}/f", daemon.url("u/f"))[0], "urgent", "by path")
    equal(given("--priority", "bulk", f"{top}/f", daemon.url("u/f"))[0], "bulk", "lower is allowed")
    equal(given("--priority", "asked", f"{top}/f", daemon.url("b"))[0], "asked", "who may ask")
    got, said = given("--priority", "urgent", f"{top}/f", daemon.url("b"))
    equal(got, "bulk", "higher is not")
    check(b"priority urgent is not given: the class is bulk" in said, said)
    equal(given(daemon.url("u/f"), f"{top}/back")[0], "urgent", "of a get")
    fails(REFUSED_ANYHOW, "--priority", "nosuch", f"{top}/f", daemon.url("x"),
          says="there are urgent, asked, bulk, last, default")
    fails(USAGE, "--priority", "a b", f"{top}/f", daemon.url("x"))
    fails(USAGE, "--deadline", "soon", f"{top}/f", daemon.url("x"))
    fails(USAGE, "--deadline", "367d", f"{top}/f", daemon.url("x"))
    fails(USAGE, "--limit-rate", "1", f"{top}/f", daemon.url("x"))
    said = works("-c", f"set priority bulk; set deadline 1.5s,fail; set deadline; put {top}/f /b; set priority auto; "
                 f"put {top}/f /x", "-v", daemon.url("")).err
    check(said.count(b"admitted in bulk") == 1 and b"admitted in default" in said, said)
    check(not os.path.exists(daemon.path("x")) or os.path.getsize(daemon.path("x")) == 100, "x")
    daemon.stop()
    plain = Daemon(f"{top}/export", "rw")
    fails(REFUSED_ANYHOW, "--priority", "bulk", f"{top}/f", plain.url("x"), says="no classes of transfers")
    equal(works("--json", "--deadline", "1h", f"{top}/f", plain.url("x2")).done()["deadline_met"], True, "without")
    plain.stop()


@case
def classes_of_users_and_exports(top):
    for name in ("one", "two"):
        os.mkdir(f"{top}/{name}")
    make_file(f"{top}/f", 100)
    done = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "passwd", "alice", "--users", f"{top}/users"],
                          input=b"sesame\n", env=rftptest.clean_environment(), timeout=30 * rftptest.PATIENCE)
    equal(done.returncode, 0, "rftpd passwd")
    make_file(f"{top}/password", 0, 0o600)
    with open(f"{top}/password", "w") as f:
        f.write("sesame\n")
    daemon = Daemon(top, command=["--listen", "127.0.0.1:0", "--export", f"one {top}/one users=@users,@anonymous rights=read,list,write",
                                  "--export", f"two {top}/two users=@users,@anonymous rights=read,list,write",
                                  "--users", f"{top}/users", "--anonymous", "yes", "--bandwidth", "100M",
                                  "--class", "first 0 export=two user=alice", "--class", "second 1 export=two",
                                  "--class", "third 2 user=alice"])
    as_alice = ["--user", "alice", "--password-file", f"{top}/password"]
    for who, where, wanted in ((as_alice, "two", "first"), ([], "two", "second"), (as_alice, "one", "third"),
                               ([], "one", "default")):
        said = works("--json", *who, f"{top}/f", daemon.url(f"{where}/f")).events()
        equal([e["class"] for e in said if e["event"] == "admitted"], [wanted], "the class in", where, "of", who[1:2])
    daemon.stop()


@case
def a_rate_above_the_bandwidth_is_cut_and_said(top):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 1000)
    daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "1M", "--share", "5M", "--class", "big 1 share=7M path=/b")
    log = daemon.stderr()
    check(b"share 5242880 is above the bandwidth" in log, log)
    check(b"class big: share 7340032 is above the bandwidth" in log, log)
    for name in "ab":
        said = works("--json", f"{top}/f", daemon.url(name)).events()
        equal([e["share"] for e in said if e["event"] == "admitted"], [M], "the share of", name)
    daemon.stop()


@case
def wrong_settings_are_refused(top):
    os.mkdir(f"{top}/export")
    for wrong, says in ((["--bandwidth", "1K"], b"bandwidth"), (["--bandwidth", "x"], b"no rate"),
                        (["--turn", "1K"], b"neither none nor a size"), (["--class", "a"], b"rank"),
                        (["--class", "a 1", "--class", "a 2"], b"two ranks"), (["--queue", "0"], b"queue"),
                        (["--class", "a 1 address=1.2.3.4/40"], b"no address or network")):
        command = [os.path.join(rftptest.BUILD, "rftpd"), "--export", f"{top}/export", "--test-config", *wrong]
        done = subprocess.run(command, capture_output=True, timeout=30 * rftptest.PATIENCE)
        check(done.returncode != 0 and says in done.stderr, wrong, done)


# ---- deadlines ----

@case
def deadlines_that_fail(top):
    held = Held(top)
    for deadline, waits in (("0,fail", False), ("300ms,fail", True)):
        result = fails(REFUSED_ANYHOW, "--json", "--deadline", deadline, f"{top}/local", held.url("never"))
        errors = [e["status"] for e in result.events() if e["event"] == "error"]
        equal(errors, ["timeout"], "status")
        check((b'"queued"' in result.out) == waits, "it waited:", result)
        check(not os.path.exists(held.daemon.path("never")), "a byte has moved")
    # the session goes on
    said = rftptest.rftp("-c", f"set deadline 0,fail; put {top}/local /never; set deadline none; stat /", held.url(""))
    check(b"deadline has passed" in said.err and b"again" not in said.err, said)
    # as it crosses: past, and so far away that the clock would overflow
    session, _ = opened(held.port)
    equal(session.ask(iwarp.ADMIT, iwarp.admit(deadline=0, flags=1))[0], 0, "ADMIT")
    equal(session.ask(iwarp.STORE, iwarp.data_request(path=b"never"))[0], 106, "STORE")
    equal(session.ask(iwarp.ADMIT, iwarp.admit(deadline=(1 << 63) - 1, flags=1))[0], 0, "ADMIT of the largest")
    request(session, b"never")
    equal(session.get()[0], iwarp.QUEUED, "it waits")
    session.close()
    for wrong in (iwarp.admit(deadline=1 << 63), iwarp.admit(flags=2), iwarp.admit(class_=b"a b")):
        session, _ = opened(held.port)
        equal(session.ask(iwarp.ADMIT, wrong)[0], 100, "ADMIT that is malformed")
        session.close()
    held.let_go()
    held.daemon.stop()


# ---- leaving the line ----

@case
def a_full_queue_refuses(top):
    held = Held(top, "--queue", "1")
    first = start_rftp("--json", f"{top}/local", held.url("first"))
    event(first, "queued")
    result = fails(REFUSED_ANYHOW, "--json", f"{top}/local", held.url("second"))
    equal([e["status"] for e in result.events() if e["event"] == "error"], ["limit"], "status")
    held.let_go()
    equal(finish(first).code, 0, "who was in line")
    works(f"{top}/local", held.url("second"))
    held.daemon.stop()


@case
def who_dies_in_line_is_forgotten(top):
    """The client, or only its network."""
    held = Held(top)
    proxy = Proxy(held.port)
    killed = start_rftp("--json", f"{top}/local", held.url("killed"))
    event(killed, "queued")
    cut = start_rftp("--json", f"{top}/local", proxy.url("cut"))
    equal(event(cut, "queued")["position"], 2, "its place")
    last = start_rftp("--json", f"{top}/local", held.url("last"))
    equal(event(last, "queued")["position"], 3, "its place")
    rftptest.kill(killed)
    killed.wait()
    proxy.reset()
    check(finish(cut).code != 0, "the one whose network died")
    held.let_go()
    equal(finish(last).code, 0, "the one that is left")
    same_files(f"{top}/local", held.daemon.path("last"))
    check(not os.path.exists(held.daemon.path("killed")) and not os.path.exists(held.daemon.path("cut")), "files")
    proxy.close()
    wait_until(lambda: not leftovers(held.daemon.top), "temporary files are gone")
    held.daemon.stop()


@case
def the_daemon_ends_while_some_wait(top):
    held = Held(top, "--drain-timeout", "0")
    session, channels = opened(held.port)
    request(session, b"never")
    equal(session.get()[0], iwarp.QUEUED, "it waits")
    held.daemon.process.send_signal(signal.SIGTERM)
    type_, status, _ = next_frame(session)
    equal((type_, status), (iwarp.STORE | iwarp.REPLY, 107), "the refusal")
    finish(held.holder)
    held.daemon.process.wait(60)
    equal(held.daemon.process.returncode, 0, "rftpd ended with")
    held.daemon.stopped = True


@case
def a_cancel_crosses_the_grant(top):
    """ABORT right behind a request, or a moment later: it finds the transfer in line, granted or begun, and in
    each case the session goes on."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/export/f", 300000)
    make_file(f"{top}/local", 300000)
    daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "30M", *ALL)
    others = [start_rftp(f"{top}/local", daemon.url(f"other{i}")) for i in range(4)]
    session = Session(daemon.port, WAIT)
    session.hello()
    for turn in range(scaled(40)):
        channels = session.open_channels(1)
        request(session, b"f" if turn % 2 else b"never", iwarp.RETRIEVE if turn % 2 else iwarp.STORE)
        time.sleep(rng().choice([0, 0, 0.001, 0.005]))
        session.put(iwarp.ABORT, iwarp.abort())
        while session.get()[0] != iwarp.ABORT:
            pass
        for channel in channels:
            channel.close()
        equal(session.ask(iwarp.STAT, iwarp.text(b"/"))[0], 0, "STAT afterwards")
    session.close()
    for other in others:
        equal(finish(other).code, 0, "another client")
    works(f"{top}/local", daemon.url("after"))
    wait_until(lambda: not leftovers(daemon.top), "temporary files are gone")
    daemon.stop()


# ---- peers that are not as others ----

@case
def a_client_that_knows_no_queued(top):
    held = Held(top)
    session, channels = opened(held.port, flags=0)
    request(session, b"quiet")
    held.waits()
    session.put(iwarp.PING, b"cookie 8")
    equal(session.get(), (iwarp.PING | iwarp.REPLY, 0, b"cookie 8"), "the next frame")
    held.let_go()
    equal(session.get(), (iwarp.STORE | iwarp.REPLY, 0, b""), "the next frame")
    session.close()
    held.daemon.stop()


@case
def frames_while_in_line(top):
    """PING, ABORT and BYE are heard; ADMIT, STORE and OFFER break the protocol."""
    held = Held(top)
    for type_, data in ((iwarp.ADMIT, iwarp.admit(b"default")), (iwarp.STORE, iwarp.data_request(path=b"x")),
                        (iwarp.OFFER, iwarp.offer()), (iwarp.QUEUED, iwarp.queued())):
        session, channels = opened(held.port)
        request(session, b"never")
        type_got, status, data_got = session.get()
        equal(type_got, iwarp.QUEUED, "it waits")
        position, wait, share = struct.unpack(">IQQ", data_got[:20])
        equal((position, share, data_got[20:]), (1, 0, iwarp.text(b"default")), "QUEUED")
        session.put(type_, data)
        got, status, _ = next_frame(session)
        equal(status, 100, "status of the answer to", type_)
        session.close()
    session, channels = opened(held.port)
    request(session, b"never")
    session.put(iwarp.ABORT, iwarp.abort())
    equal(next_frame(session)[0], iwarp.ABORT, "the answer to ABORT")
    equal(session.ask(iwarp.ADMIT, iwarp.admit(b"default"))[0], 0, "ADMIT, out of line")
    session.put(iwarp.BYE)
    equal(session.get()[0], iwarp.BYE | iwarp.REPLY, "the answer to BYE")
    session.close()
    held.let_go()
    held.daemon.stop()


def silent(top, begin, *arguments):
    """A client that is granted all there is, and moves nothing: it loses its turn to another."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/export/f", 3 * M)
    make_file(f"{top}/local", 300000)
    daemon = Daemon(f"{top}/export", "rw", "--bandwidth", "100M", *ALL, "--turn", "none", *arguments)
    keep = begin(daemon)
    works("--json", f"{top}/local", daemon.url("other"))
    same_files(f"{top}/local", daemon.path("other"))
    return daemon, keep


@case
def a_client_silent_after_its_grant_loses_it(top):
    def begin(daemon):
        session, channels = opened(daemon.port)
        request(session, b"never")
        equal(next_frame(session)[:2], (iwarp.STORE | iwarp.REPLY, 0), "STORE")
        return session, channels
    daemon, (session, channels) = silent(top, begin)
    # it may still go on: its next turn comes when it has something
    session.put(iwarp.OFFER, iwarp.offer())
    equal(next_frame(session)[0], iwarp.ACCEPT, "the answer to OFFER")
    session.close()
    daemon.stop()


@case
def a_sink_that_never_drains_loses_its_turn(top):
    def begin(daemon):
        session, channels = opened(daemon.port)
        request(session, b"f", iwarp.RETRIEVE)
        equal(next_frame(session)[:2], (iwarp.RETRIEVE | iwarp.REPLY, 0), "RETRIEVE")
        type_, _, data = next_frame(session)
        equal(type_, iwarp.OFFER, "OFFER")
        block, = struct.unpack(">I", data[4:8])
        session.put(iwarp.ACCEPT, iwarp.accept(depth=2, stride=block + 4096, key=7))
        equal(next_frame(session)[0], iwarp.FILE, "FILE")
        session.put(iwarp.READY, struct.pack(">IQ", 1, 0))
        return session, channels
    daemon, (session, channels) = silent(top, begin)
    session.close()
    daemon.stop()


@case
def an_idle_feed_lends_what_it_has(top):
    os.mkfifo(f"{top}/p")

    def begin(daemon):
        feed = start_rftp("--json", "feed", f"p={top}/p", daemon.url(""))
        event(feed, "admitted")
        pipe = open(f"{top}/p", "wb", buffering=0)
        pipe.write(b"first ")
        wait_until(lambda: leftovers(daemon.top), "the feed's segment")
        return feed, pipe
    daemon, (feed, pipe) = silent(top, begin)
    pipe.write(b"second")
    pipe.close()
    result = finish(feed)
    equal(result.code, 0, result)
    stored = [os.path.join(daemon.path("p"), n) for n in sorted(os.listdir(daemon.path("p")))]
    equal(b"".join(open(n, "rb").read() for n in stored), b"first second", "what was fed")
    daemon.stop()


# ---- the configuration ----

@case
def a_reload_touches_nothing_that_runs(top):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 3 * M)

    def write(*lines):
        with open(f"{top}/conf", "w") as f:
            f.writelines(line + "\n" for line in [f"export = {top}/export:rw", "sandbox = no", *lines])
    write("bandwidth = 3M", "share = 3M", "turn = 1M", "class = one 1")
    daemon = Daemon(f"{top}/export", command=["--config", f"{top}/conf", "--listen", "127.0.0.1:0"])
    running = start_rftp("--json", f"{top}/f", daemon.url("running"))
    equal(event(running, "admitted")["class"], "one", "the class")
    waiting = start_rftp("--json", f"{top}/f", daemon.url("waiting"))
    equal(event(waiting, "queued")["class"], "one", "the class")

    def reload(*lines, says=b"is in use"):
        write(*lines)
        before = daemon.stderr().count(says)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: daemon.stderr().count(says) > before, "the reload")
    reload("bandwidth = 3M", "class = nonsense", says=b"stays as it was")
    reload("bandwidth = 400M", "share = 200M", "turn = 8M", "class = two 2", "queue = 3")
    equal(event(waiting, "admitted")["class"], "one", "the class of who waited")
    said = works("--json", f"{top}/f", daemon.url("new")).events()
    equal([(e["class"], e["share"]) for e in said if e["event"] == "admitted"], [("two", 200 * M)], "of a new one")
    for client in (running, waiting):
        equal(finish(client).code, 0, "exit code")
    reload()  # and none at all
    said = works("--json", f"{top}/f", daemon.url("free")).events()
    equal([e for e in said if e["event"] == "admitted"], [], "without bandwidth")
    daemon.stop()


@case
def limit_rate(top):
    """Of either side, in both directions: it takes as long as it should, at least."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 1 * M)
    plain = Daemon(f"{top}/export", "rw")
    limited = Daemon(f"{top}/export", "rw", "--limit-rate", "4M")
    for daemon, more in ((plain, ["--limit-rate", "4M"]), (limited, [])):
        for one, other in ((f"{top}/f", daemon.url("g")), (daemon.url("g"), f"{top}/back")):
            done = works("--json", *more, one, other).done()
            # but for the last block
            check(done["seconds"] >= 1 / 4 - done["block"] / (4 * M) - 0.01, "too fast:", done)
        same_files(f"{top}/f", f"{top}/back")
        os.unlink(f"{top}/back")
        daemon.stop()


rftptest.main()
