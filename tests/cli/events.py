#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--json: the events of a copy, as rftp(1) describes them, and sums that add up."""

import json
import os
import subprocess
import time

import rftptest
from rftptest import NO_FILE, Daemon, case, check, equal, finish, make_file, rftp, start_rftp, wait_until, works

FIELDS = {
    "start": {"event", "version", "command", "server"},
    "progress": {"event", "bytes", "total_bytes", "files", "total_files", "errors"},
    "file": {"event", "path", "remote", "bytes", "status", "text"},
    "directory": {"event", "path", "remote", "status", "text"},
    "error": {"event", "object", "status", "code", "text"},
    "done": {"event", "protect", "bytes", "sent_bytes", "seconds", "bytes_per_second", "fabric", "engine", "channels", "block",
             "direct", "early_bytes", "early_why", "files", "directories", "skipped", "special", "hole_bytes", "crossed_bytes", "compression", "errors", "requests",
             "waited_s", "deadline_met"},
}


def events(result):
    """Those of one copy, which are whole: start first, done last, the sums as the single ones say."""
    text = result.out if result.out.startswith(b"{") else result.err
    found = [json.loads(line) for line in text.splitlines() if line.startswith(b"{")]
    for e in found:
        equal(set(e), FIELDS[e["event"]], "fields of", e["event"])
    equal([found[0]["event"], found[-1]["event"]], ["start", "done"], "first and last")
    equal(found[0]["version"], 1, "version")
    done, arrived = found[-1], [e for e in found if e["event"] == "file" and e["status"] == "ok"]
    equal(done["files"], len(arrived), "files")
    equal(done["bytes"], sum(e["bytes"] for e in arrived), "bytes")
    equal(done["directories"], sum(e["event"] == "directory" and e["status"] == "ok" for e in found), "directories")
    equal(done["errors"], sum(e["event"] == "error" for e in found), "errors")
    check(done["sent_bytes"] + done["hole_bytes"] >= done["bytes"], done)
    return found


def rows(found, kind="file"):
    return sorted((e["path"], e["remote"], e.get("bytes", 0)) for e in found if e["event"] == kind)


@case
def paths_and_sums(top):
    os.makedirs(f"{top}/export/t/d")
    os.makedirs(f"{top}/local/t/d")
    for where in ("export", "local"):
        for size, name in enumerate(("x", "t/f", "t/d/g"), 1000):
            make_file(f"{top}/{where}/{name}", size)
    daemon = Daemon(f"{top}/export")
    local = f"{top}/local"
    found = events(works("--json", f"{local}/x", daemon.url("new")))
    equal(rows(found), [(f"{local}/x", "/new", 1000)], "a new name")
    equal((found[0]["command"], found[0]["server"]), ("put", f"127.0.0.1:{daemon.port}"), "start")
    equal(rows(events(works("--json", f"{local}/x", daemon.url("t")))), [(f"{local}/x", "/t/x", 1000)], "into")
    os.unlink(daemon.path("t/x"))
    for source, beneath in ((f"{local}/t", "/q/t"), (f"{local}/t/.", "/q")):
        found = events(works("--json", "-r", source, daemon.url("q")))
        equal(rows(found), [(f"{source}/d/g", f"{beneath}/d/g", 1002), (f"{source}/f", f"{beneath}/f", 1001)], source)
        equal(len(rows(found, "directory")), 2, "directories", found)
    found = events(works("--json", daemon.url("x"), f"{local}/y"))
    equal(rows(found), [(f"{local}/y", "/x", 1000)], "get")
    equal(found[0]["command"], "get", "start")
    for source, beneath in (("t", "/t"), ("t/", "/t")):
        name = "back/t" if source == "t" else "back"
        found = events(works("--json", "-r", daemon.url(source), f"{local}/back"))
        equal(rows(found), [(f"{local}/{name}/d/g", f"{beneath}/d/g", 1002), (f"{local}/{name}/f", f"{beneath}/f", 1001)],
              source)
    found = events(works("--json", daemon.url("x"), daemon.url("t/f"), f"{local}/several/"))
    equal(rows(found), [(f"{local}/several/f", "/t/f", 1001), (f"{local}/several/x", "/x", 1000)], "several")


@case
def streams_and_memory(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    for data in (b"", b"abc", b"0123456789" * 300000):
        found = events(works("--json", "-", daemon.url("piped"), input=data))
        equal(rows(found), [("-", "/piped", len(data))], "from standard input")
        result = works("--json", daemon.url("piped"), "-")
        equal(result.out, data, "to standard output")
        equal(rows(events(rftptest.Result(result.code, result.err, b""))), [("-", "/piped", len(data))],
              "to standard output")
    for way in ("put", "get"):
        found = events(works("--json", "-c", f"bench 3M {way}", daemon.url("")))
        equal([(e["path"], e["remote"], e["bytes"]) for e in found if e["event"] == "file"], [(None, None, 3 << 20)], way)
        equal(found[0]["command"], "bench", "start")


@case
def errors_count(top):
    os.makedirs(f"{top}/export")
    os.makedirs(f"{top}/t")
    make_file(f"{top}/t/a", 5000)
    os.mkfifo(f"{top}/t/fifo")
    daemon = Daemon(f"{top}/export")
    found = events(rftp("--json", "-r", f"{top}/t", f"{top}/absent", daemon.url("new")))
    equal((found[-1]["files"], found[-1]["bytes"], found[-1]["errors"], found[-1]["special"]), (1, 5000, 1, 1), "put")
    result = rftp("--json", daemon.url("absent"), f"{top}/t/")
    found = events(result)
    equal((result.code, found[-1]["files"], found[-1]["errors"], found[-1]["fabric"]), (NO_FILE, 0, 1, None), "get")
    # cut off: what did not arrive does not count
    make_file(f"{top}/big", 8 << 20)
    proxy = rftptest.Proxy(daemon.port, cut=2 << 20)
    found = events(rftp("--json", "--block", "64K", f"{top}/big", proxy.url("big")))
    equal((found[-1]["files"], found[-1]["bytes"]), (0, 0), "cut")


@case
def progress(top):
    """Events while it runs, at most one a second, whose numbers only grow."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    client = start_rftp("--json", "-", daemon.url("piped"), stdin=subprocess.PIPE)
    lines = []
    rftptest.threading.Thread(target=lambda: lines.extend(iter(client.stdout.readline, b"")), daemon=True).start()
    begun, sent = time.monotonic(), 0

    def count():
        nonlocal sent
        client.stdin.write(bytes(100000))
        client.stdin.flush()
        sent += 100000
        time.sleep(0.05)
        return sum(b'"progress"' in line for line in lines) >= 2

    wait_until(count, "two progress events", 30)
    client.stdin.close()
    client.stdin = None
    client.wait(30)
    wait_until(lambda: lines and b'"done"' in lines[-1], "done")
    found = [json.loads(line) for line in lines]
    seen = [e for e in found if e["event"] == "progress"]
    for e in seen:
        equal(set(e), FIELDS["progress"], "fields")
        equal((e["total_bytes"], e["total_files"]), (None, 1), "what is not known")
    equal([e["bytes"] for e in seen], sorted(e["bytes"] for e in seen), "bytes")
    check(len(seen) <= time.monotonic() - begun + 1, len(seen), "events in", time.monotonic() - begun, "s")
    equal(found[-1]["bytes"], sent, "bytes in all")


rftptest.main()
