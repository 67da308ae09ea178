#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--retries: copies that are begun again."""

import os
import shutil
import signal
import struct
import subprocess
import threading

import rftptest
from rftptest import CONNECT, INTERRUPTED, LOST, NO_FILE, OK, Daemon, Proxy, case, check, equal, fails, finish, make_file, \
    rftp, same_files, start_rftp, wait_until, works


def nobody():
    """A port on which nobody listens."""
    s = rftptest.socket.create_server(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


def cut_once(daemon, cut):
    """A proxy whose first connections are cut, and the next ones are not."""
    proxy = Proxy(daemon.port, cut=cut)

    def mend():
        proxy.broken.wait()
        wait_until(lambda: proxy.carried >= cut, "the cut")
        rftptest.time.sleep(0.3)  # the client's pause is longer
        with proxy.lock:
            proxy.cut = None
        proxy.broken.clear()

    threading.Thread(target=mend, daemon=True).start()
    return proxy


@case
def a_connection_that_is_lost_once(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 8 << 20)
    for words in (["{}", "@f"], ["@f", "{}.back"]):
        words = [w.format(f"{top}/f") for w in words]
        proxy = cut_once(daemon, 2 << 20)
        result = rftp("--retries", "30", "--json", "--block", "64K", *[w.replace("@", proxy.url()) for w in words])
        equal(result.code, OK, result)
        events = [e["event"] for e in result.events()]
        again = events.count("retry")
        check(again >= 1, "not tried again:", events)
        equal((events.count("start"), events.count("done")), (again + 1, again + 1), events)
        check(b"trying again in" in result.err and b"(1 of 30)" in result.err, "what people are told:", result)
        same_files(f"{top}/f", daemon.path("f"))
        proxy.close()
    same_files(f"{top}/f", f"{top}/f.back")
    proxy = Proxy(daemon.port, cut=2 << 20)
    equal(rftp("--block", "64K", f"{top}/f", proxy.url("g")).code, LOST, "without it")
    proxy.close()


@case
def a_server_that_ends_while_one_connects(top):
    """It closes the connection before it has answered: that is no other kind of server."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 1000)
    for how in ("fin", "rst"):
        with rftptest.socket.create_server(("127.0.0.1", 0)) as ending:
            def end():
                connected, _ = ending.accept()
                connected.recv(10)
                if how == "rst":
                    connected.setsockopt(rftptest.socket.SOL_SOCKET, rftptest.socket.SO_LINGER, struct.pack("ii", 1, 0))
                connected.close()
            thread = threading.Thread(target=end, daemon=True)
            thread.start()
            result = rftp("--fabric", "soft", f"{top}/f", f"rftp://127.0.0.1:{ending.getsockname()[1]}/f")
            thread.join()
        equal(result.code, CONNECT, how, result)
        check(b"closed before it was answered" in result.err, how, result)
    proxy = cut_once(daemon, 1)
    result = rftp("--retries", "30", "--fabric", "soft", f"{top}/f", proxy.url("f"))
    equal(result.code, OK, result)
    same_files(f"{top}/f", daemon.path("f"))
    proxy.close()


@case
def a_server_that_is_not_there(top):
    make_file(f"{top}/f", 10)
    result = rftp("--retries", "2", f"{top}/f", f"rftp://127.0.0.1:{nobody()}/f")
    equal(result.code, CONNECT, result)
    equal(result.err.count(b"trying again"), 2, result)


@case
def what_is_not_tried_again(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 10)
    url = f"rftp://127.0.0.1:{nobody()}/f"
    for code, words in ((NO_FILE, [daemon.url("absent"), f"{top}/g"]), (CONNECT, ["-", url]), (CONNECT, [url, "-"])):
        result = rftp("--retries", "5", *words)
        equal((result.code, result.err.count(b"trying again")), (code, 0), result)
    # a person who has had enough
    client = start_rftp("--retries", "50", f"{top}/f", url, stdin=subprocess.DEVNULL)
    said = b""
    while b"trying again" not in said:
        said += os.read(client.stderr.fileno(), 1000)
    client.send_signal(signal.SIGINT)
    equal(finish(client, timeout=20).code, INTERRUPTED, "Ctrl-C in a pause")


def tree_with_obstacles(top, daemon, way):
    """A tree of which some files cannot land, as there are directories of their names.  -> words, names, where"""
    source, to = (f"{top}/{way}", daemon.path(f"{way}.copy"))
    words = [source, daemon.url(f"{way}.copy")]
    if way == "get":
        source, to = daemon.path(way), f"{top}/{way}.copy"
        words = [daemon.url(way), to]
    os.makedirs(f"{source}/d/e")
    for name in ("a", "b*[x]", "c", "d/a", "d/e/b", "d/e/c", *(f"d/{i}" for i in range(20))):
        make_file(f"{source}/{name}", 1000)
    names = ["b*[x]", "d/e/c"]
    for name in names:
        os.makedirs(f"{to}/{way}/{name}")
    return words, [f"{way}/{name}" for name in names], source, f"{to}/{way}"


@case
def what_failed_is_told_and_can_be_had_alone(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw", "--copies-to", "127.0.0.0/8 ports=1-65535")
    for way in ("put", "get"):
        words, names, source, to = tree_with_obstacles(top, daemon, way)
        result = rftp("-r", "--failures", f"{top}/list", *words)
        equal(result.code, rftptest.KIND, result)
        said = result.err[result.err.index(b"2 failed:"):]
        check(b"b*[x]: " in said and b"d/e/c: " in said and b"d/a" not in said, way, "is told at the end:", result)
        with open(f"{top}/list", encoding="utf-8") as f:
            equal(sorted(f.read().split("\n")), ["", *names], way, "is written")
        for name in ("b*[x]", "d/e/c"):
            os.rmdir(f"{to}/{name}")
        os.unlink(f"{to}/a")  # others are no business of this one
        for name in ("b*[x]", "d/e/c"):
            check(not os.path.exists(f"{to}/{name}"), name)
        result = rftp("--retry-from", f"{top}/list", "--failures", f"{top}/list2", "--json", *words)
        equal((result.code, result.done()["files"], os.path.getsize(f"{top}/list2")), (OK, 2, 0), way, result)
        for name in ("b*[x]", "d/e/c"):
            same_files(f"{source}/{name}", f"{to}/{name}")
        check(not os.path.exists(f"{to}/a"), way, "nothing else is copied")
    # a source that is not there is among them, beside one that is, and alone
    make_file(f"{top}/un", 10)
    make_file(daemon.path("un"), 10)
    os.mkdir(f"{top}/into")
    for way, words, to in (("put", [f"{top}/un", f"{top}/late", daemon.url("")], daemon.path("late")),
                           ("get", [daemon.url("un"), daemon.url("late"), f"{top}/into"], f"{top}/into/late")):
        source = f"{top}/late" if way == "put" else daemon.path("late")
        for some in (words, words[1:]):
            for options in (["-r"], [])[:1 if way == "get" else 2]:
                if os.path.exists(source):
                    os.unlink(source)
                fails(rftptest.NO_FILE, *options, "--failures", f"{top}/list", *some)
                with open(f"{top}/list", encoding="utf-8") as f:
                    equal(f.read(), "late\n", way, some, options, "is written")
        make_file(source, 1000)
        result = works("--retry-from", f"{top}/list", "--failures", f"{top}/list2", "--json", *words)
        equal((result.done()["files"], os.path.getsize(f"{top}/list2")), (1, 0), way, result)
        same_files(source, to)
    # of another server's, too; where the directory that takes it would be made for it; and of several
    os.mkdir(f"{top}/there")
    there = Daemon(f"{top}/there", "rw")
    os.mkdir(there.path("dir"))
    for words, names in (([daemon.url("none"), there.url("dir/")], ["none"]),
                         (["-r", daemon.url("none"), there.url("dir/")], ["none"]),
                         (["-r", daemon.url("none"), there.url("made")], ["/none"]),
                         (["-r", daemon.url("none"), f"{top}/made"], ["/none"]),
                         (["-r", daemon.url("none"), daemon.url("nil"), f"{top}/made"], ["none", "nil"])):
        fails(rftptest.NO_FILE, "--failures", f"{top}/list", *words)
        with open(f"{top}/list", encoding="utf-8") as f:
            equal(f.read().split(), names, words, "is written")
    check(not os.path.exists(there.path("made")) and not os.path.exists(f"{top}/made"), "nothing is made for it")
    there.stop()
    make_file(f"{top}/empty", 0)
    for path, why in ((f"{top}/absent", b"No such file"), (f"{top}/empty", b"no names")):
        result = rftp("--retry-from", path, *words)
        equal(result.code, rftptest.USAGE, result)
        check(why in result.err, result)


def written(top, wanted, *what):
    with open(f"{top}/list", encoding="utf-8") as f:
        equal(sorted(f.read().splitlines()), sorted(wanted), *what, "is written")


def again(top, words, files, **options):
    """Exactly so many files are copied by the list, and nothing fails."""
    result = works("--retry-from", f"{top}/list", "--failures", f"{top}/list2", "--json", *words, **options)
    equal((result.done()["files"], os.path.getsize(f"{top}/list2")), (files, 0), words, result)


@case
def a_source_without_a_name_there_is_tried_again(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw", "--copies-to", "127.0.0.0/8 ports=1-65535")
    # one file, which gets the name of the destination
    for words, source, to, name, options in (
            ([daemon.url("one"), f"{top}/one"], daemon.path("one"), f"{top}/one", "/one", {}),
            (["-p", daemon.url("deep"), f"{top}/x/y/deep"], daemon.path("deep"), f"{top}/x/y/deep", "/deep", {}),
            (["-r", daemon.url("seven"), f"{top}/seven"], daemon.path("seven"), f"{top}/seven", "/seven", {}),
            (["-r", daemon.url("eight"), daemon.url("nine")], daemon.path("eight"), daemon.path("nine"), "/eight", {}),
            (["-r", daemon.url("ten"), f"{top}/ten"], daemon.path("ten/f"), f"{top}/ten/ten/f", "/ten", {}),
            ([f"{top}/two", daemon.url("new")], f"{top}/two", daemon.path("new"), f"{top}/two", {}),
            (["tri", daemon.url("tri")], f"{top}/tri", daemon.path("tri"), "./tri", {"cwd": top}),
            ([daemon.url("four"), daemon.url("five")], daemon.path("four"), daemon.path("five"), "/four", {})):
        fails(NO_FILE, "--failures", f"{top}/list", *words, **options)
        written(top, [name], words)
        os.makedirs(os.path.dirname(source), exist_ok=True)
        make_file(source, 1000)
        again(top, words, 1, **options)
        same_files(source, to)
    # a directory for a sync
    for words, source, name in ((["sync", f"{top}/later", daemon.url("later")], f"{top}/later", f"{top}/later"),
                                (["sync", daemon.url("soon"), f"{top}/soon"], daemon.path("soon"), "/soon")):
        fails(NO_FILE, "--failures", f"{top}/list", *words)
        written(top, [name], words)
        os.mkdir(source)
        make_file(f"{source}/f", 1000)
        again(top, words, 1)
    # a pattern that matches nothing, beside what is copied, and alone
    make_file(daemon.path("is"), 10)
    for to, there in ((f"{top}/into", f"{top}/into"), (daemon.url("into"), daemon.path("into"))):
        os.mkdir(there)
        for words in ([daemon.url("is"), daemon.url("no*"), to], [daemon.url("no*"), to]):
            fails(NO_FILE, "--failures", f"{top}/list", *words)
            written(top, ["/no*"], words)
            make_file(daemon.path("now"), 1000)
            if os.path.exists(f"{there}/is"):
                os.unlink(f"{there}/is")
            again(top, words, 1)
            equal(os.listdir(there), ["now"], words)
            os.unlink(daemon.path("now"))
            os.unlink(f"{there}/now")


@case
def sources_and_names_are_tried_again_together(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw", "--copies-to", "127.0.0.0/8 ports=1-65535")
    for way, here, url, there in (("put", top, daemon.url("put"), daemon.path("put")),
                                  ("get", f"{top}/export", f"{top}/get", f"{top}/get"),
                                  ("between", f"{top}/export", daemon.url("between"), daemon.path("between"))):
        os.makedirs(f"{here}/{way}-a")
        for name in ("x", "y"):
            make_file(f"{here}/{way}-a/{name}", 100)
        os.makedirs(f"{there}/x/in-the-way")
        sources = [f"{way}-a/", f"{way}-b/"]
        words = [f"{here}/{s}" if way == "put" else daemon.url(s) for s in sources] + [url]
        result = rftp("-r", "--failures", f"{top}/list", *words)
        check(result.code != OK, result)
        written(top, ["x", f"{here}/{way}-b/" if way == "put" else f"/{way}-b/"], way)
        shutil.rmtree(f"{there}/x")
        os.unlink(f"{there}/y")
        os.mkdir(f"{here}/{way}-b")
        make_file(f"{here}/{way}-b/z", 100)
        again(top, words, 2)
        equal(sorted(os.listdir(there)), ["x", "z"], way, "what failed, and nothing else")


@case
def the_first_failure_stops_it(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    for way in ("put", "get"):
        source = f"{top}/{way}" if way == "put" else daemon.path(way)
        to = daemon.path(f"{way}.copy/{way}") if way == "put" else f"{top}/{way}.copy/{way}"
        words = [source, daemon.url(f"{way}.copy")] if way == "put" else [daemon.url(way), os.path.dirname(to)]
        os.makedirs(source)
        for i in range(60):
            make_file(f"{source}/{i:02}", 1 << 20)
        os.makedirs(f"{to}/03")
        proxy = Proxy(daemon.port, delay=0.002)
        words = [w.replace(f":{daemon.port}/", f":{proxy.port}/") for w in words]
        result = rftp("-r", "--stop-on-error", "--json", "--block", "64K", "--depth", "4", *words)
        equal(result.code, rftptest.KIND, result)
        check(result.done()["files"] < 50, way, "files came all the same:", result.done())
        equal([e["object"].rsplit("/", 1)[-1] for e in result.events() if e["event"] == "error"], ["03"], way, "told")
        result = rftp("-r", "--json", *words)
        equal((result.code, result.done()["files"] + result.done()["skipped"]), (rftptest.KIND, 59), way, "without it")
        proxy.close()
    # a session goes on
    result = rftp("-c", f"set stop-on-error on; put -r {top}/put /put.copy; ls /", daemon.url())
    equal(result.code, rftptest.KIND, result)


@case
def not_for_ever(top):
    make_file(f"{top}/f", 10)
    started = rftptest.time.monotonic()
    result = rftp("--retries", "1000", "--retry-time", "3", f"{top}/f", f"rftp://127.0.0.1:{nobody()}/f", timeout=30)
    equal(result.code, CONNECT, result)
    check(1 <= result.err.count(b"trying again") <= 3 and b"the time for that is over" in result.err, result)
    check(rftptest.time.monotonic() - started < 20, "it took", rftptest.time.monotonic() - started)


@case
def a_transfer_that_stands_still(top):
    """Nothing moves any more, and that is noticed as soon as it was asked for."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 8 << 20)
    make_file(daemon.path("g"), 8 << 20)
    for words in ([f"{top}/f", "@f"], ["@g", f"{top}/g"]):
        hung = Proxy(daemon.port, hold=4 << 20)
        result = rftp("--stall-timeout", "1", "--block", "64K", *[w.replace("@", hung.url()) for w in words])
        hung.close()
        equal(result.code, LOST, result)
        check(b"nothing moved" in result.err, result)


rftptest.main()
