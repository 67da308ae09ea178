#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--json: the events of a copy, as rftp(1) describes them, and sums that add up."""

import json
import os
import pty
import signal
import subprocess
import termios
import time

import rftptest
from rftptest import NO_FILE, Daemon, case, check, equal, finish, make_file, rftp, start_rftp, wait_until, works

HANG = os.path.join(rftptest.BUILD, "tests", "preload", "hang.so")
FIELDS = {
    "start": {"event", "version", "command", "server"},
    "progress": {"event", "bytes", "total_bytes", "files", "total_files", "errors", "current"},
    "scan": {"event", "files", "bytes"},
    "file": {"event", "path", "remote", "bytes", "status", "text"},
    "directory": {"event", "path", "remote", "status", "text"},
    "removed": {"event", "path", "remote", "status"},
    "plan": {"event", "action", "name"},
    "error": {"event", "object", "status", "code", "text"},
    "done": {"event", "protect", "bytes", "sent_bytes", "seconds", "bytes_per_second", "fabric", "engine", "channels", "block",
             "direct", "early_bytes", "early_why", "files", "directories", "skipped", "removed", "special", "hole_bytes", "crossed_bytes", "compression", "errors", "requests", "replies",
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
def what_a_sync_removes(top):
    daemon_top, local = f"{top}/export", f"{top}/local"
    daemon = None
    for way in ("put", "get"):
        source, sink = f"{local}/{way}", f"{daemon_top}/{way}"
        if way == "get":
            source, sink = sink, source
        os.makedirs(source)
        os.makedirs(f"{sink}/gone/in")
        os.makedirs(f"{sink}/kind")
        make_file(f"{source}/kind", 10)  # a directory is in the way
        for name in ("old", "gone/in/f"):
            make_file(f"{sink}/{name}", 10)
        daemon = daemon or Daemon(daemon_top)
        words = ["sync", "--delete", source, daemon.url(way)] if way == "put" else \
            ["sync", "--delete", daemon.url(way), sink]
        found = events(works("-n", "--json", *words))
        equal(sorted(e["name"] for e in found if e["event"] == "plan" and e["action"] == "remove"), ["gone", "kind", "old"],
              way, "planned")
        equal((found[-1]["removed"], len(os.listdir(sink))), (3, 3), way, "planned, not done", found)
        found = events(works("--json", *words))
        of, other, where = ("remote", "path", f"/{way}") if way == "put" else ("path", "remote", sink)
        equal(sorted((e[of], e[other], e["status"]) for e in found if e["event"] == "removed"),
              [(f"{where}/{name}", None, "ok") for name in ("gone", "kind", "old")], way)
        equal((found[-1]["removed"], os.listdir(sink)), (3, ["kind"]), way, found)
        # what cannot go is none that is gone
        equal(events(works("--json", *words))[-1]["removed"], 0, way, "nothing is left to go")
    make_file(f"{local}/get/stays", 10)
    make_file(f"{local}/get/goes", 10)
    if subprocess.run(["sh", "-c", 'chattr +i "$0"', f"{local}/get/stays"], stderr=subprocess.DEVNULL).returncode:
        return  # neither root, nor on any file system
    try:
        found = events(rftp("--json", *words))
    finally:
        rftptest.run("chattr", "-i", f"{local}/get/stays")
    equal(sorted((os.path.basename(e["path"]), e["status"] == "ok") for e in found if e["event"] == "removed"),
          [("goes", True), ("stays", False)], found)
    equal((found[-1]["removed"], found[-1]["errors"]), (1, 1), found)


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


# ---- for people ----

ESCAPES = rftptest.re.compile(rb"\x1b(?!\[K)")


def slow_tree(top, files=4):
    os.makedirs(f"{top}/export", exist_ok=True)
    os.makedirs(f"{top}/tree/sub")
    for i in range(files):
        make_file(f"{top}/tree/sub/file number {i}", 300000)
    return Daemon(f"{top}/export")


def drawn(out):
    """The lines that a terminal showed, one after the other."""
    return [part.removesuffix(b"\x1b[K") for part in out.replace(b"\n", b"\r").split(b"\r") if part.strip()]


@case
def the_line_on_a_terminal(top):
    daemon = slow_tree(top)
    for columns in (40, 120):
        out, code = rftptest.on_terminal("-r", "--limit-rate", "1M", f"{top}/tree", daemon.url(f"at-{columns}"),
                                         columns=columns, env={"TERM": "xterm", "NO_COLOR": "1"})
        equal(code, 0, "exit code", out)
        lines = [line for line in drawn(out) if b"%" in line]
        check(lines, "nothing was drawn:", out)
        for line in lines:
            check(len(line.decode()) < columns, columns, "columns:", line)
            check(b"ETA" in line, line)
        check(not ESCAPES.search(out), "more than the line is erased:", out)
        if columns > 40:
            check(any(b"of 4 files  tree/sub/file number " in line for line in lines), "no name:", lines)
        check(out.rstrip().endswith(b"MB/s") or b"4 files," in lines[-1] or b"4 files, 1.20 MB" in out, "the sum:", out)
    # one without colours shows the same as one with them
    with_colours, _ = rftptest.on_terminal("-r", f"{top}/tree", daemon.url("colours"), env={"TERM": "xterm-256color"})
    check(not ESCAPES.search(with_colours), with_colours)


@case
def a_job_in_the_background(top):
    """It draws nothing over what is typed, and a terminal that lets nobody else write does not stop it for that."""
    daemon = slow_tree(top)
    command = rftptest.client_command(["--limit-rate", "1M", "-r", f"{top}/tree", daemon.url("job")])
    child, near = pty.fork()
    if not child:  # as a shell does
        modes = termios.tcgetattr(1)
        modes[3] |= termios.TOSTOP
        termios.tcsetattr(1, termios.TCSANOW, modes)
        job = os.posix_spawn(command[0], command, rftptest.clean_environment({"TERM": "xterm"}), setpgroup=0)
        time.sleep(0.8)
        _, status = os.waitpid(job, os.WUNTRACED | os.WNOHANG)
        os.write(1, b"stopped\n" if os.WIFSTOPPED(status) else b"goes on\n")
        os.kill(job, signal.SIGKILL)
        os._exit(0)
    out = b""
    try:
        while chunk := os.read(near, 65536):
            out += chunk
    except OSError:
        pass  # EIO: nobody has it open any more
    os.waitpid(child, 0)
    os.close(near)
    equal(out, b"goes on\r\n", "what the terminal shows")


@case
def a_terminal_that_knows_no_escapes(top):
    daemon = slow_tree(top)
    out, code = rftptest.on_terminal("-r", "--limit-rate", "2M", f"{top}/tree", daemon.url("dumb"), env={"TERM": "dumb"})
    equal(code, 0, "exit code", out)
    check(b"\x1b" not in out, out)
    equal(drawn(out)[0][:20], b"rftp: 4 files, 1.20 ", out)


@case(seconds=90)
def a_log_has_a_line_now_and_then(top):
    """Every ten seconds; and none that nobody asked for."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    clients = [start_rftp(*options, "-", daemon.url(f"piped{i}"), stdin=subprocess.PIPE)
               for i, options in enumerate(((), ("-q",), ("--json",)))]
    end = time.monotonic() + 12
    while time.monotonic() < end:
        for client in clients:
            client.stdin.write(bytes(10000))
            client.stdin.flush()
        time.sleep(0.05)
    results = []
    for client in clients:
        client.stdin.close()
        client.stdin = None
        results.append(finish(client))
    lines = results[0].err.decode().splitlines()
    check(1 <= len(lines) <= 1 + (time.monotonic() - end + 12) / 10, "lines:", results[0])
    check(rftptest.re.fullmatch(r"rftp: [\d.]+ [kM]B  [\d.]+ [kM]?B/s  0:1\d", lines[0]), lines)
    equal([r.err for r in results[1:]], [b"", b""], "with -q and --json")


@case
def a_scan_that_takes_its_time(top):
    """What is looked at before anything moves is told, too."""
    if rftptest.SANITIZED or not os.path.exists(HANG):
        rftptest.skip("tests/preload is not built, or not for sanitizers")
    os.makedirs(f"{top}/export")
    os.makedirs(f"{top}/tree/hangs/in")
    for i in range(50):
        make_file(f"{top}/tree/{i}", 1000)
    make_file(f"{top}/tree/hangs/in/f", 1000)
    daemon = Daemon(f"{top}/export")
    gate = f"{top}/gate"
    open(gate, "w").close()
    env = {"LD_PRELOAD": HANG, "RFTP_TEST_HANG": "in", "RFTP_TEST_GATE": gate}
    client = start_rftp("--json", "-r", f"{top}/tree", daemon.url("new"), env=env)
    wait_until(lambda: os.path.exists(f"{gate}.0"), "it looks at the directory that does not answer")
    time.sleep(1.1)  # an event a second
    os.unlink(gate)
    found = events(finish(client))
    scans = [e for e in found if e["event"] == "scan"]
    check(scans, "no scan was told of:", found)
    check(0 < scans[0]["files"] <= 51 and scans[0]["bytes"] <= 51000, scans)
    equal(found[-1]["files"], 51, "files")


@case
def what_is_not_verified_does_not_count(top):
    """What lies on the way is not there: the destination is held up, and progress with it."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 16 << 20)
    proxy = rftptest.Proxy(daemon.port, hold=4 << 20)
    client = start_rftp("--json", f"{top}/f", proxy.url("f"))
    lines = []
    rftptest.threading.Thread(target=lambda: lines.extend(iter(client.stdout.readline, b"")), daemon=True).start()
    wait_until(lambda: sum(b'"progress"' in line for line in lines) >= 2, "two progress events", 30)
    for e in [json.loads(line) for line in lines if b'"progress"' in line]:
        check(e["bytes"] <= 4 << 20, "more than has crossed:", e)
    proxy.release()
    client.wait(30 * rftptest.PATIENCE)
    wait_until(lambda: lines and b'"done"' in lines[-1], "done")
    equal(json.loads(lines[-1])["bytes"], 16 << 20, "bytes")
    proxy.close()


rftptest.main()
