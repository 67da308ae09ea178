#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which fabric is chosen and why, and rftp doctor: on whatever host this is, with a device or without."""

import json
import os
import resource
import subprocess

import rftptest
from rftptest import CONNECT, FAILED, OK, USAGE, Daemon, case, check, client_command, equal, fails, \
    make_file, rftp, skip, works

DEVICES = os.path.isdir("/sys/class/infiniband") and bool(os.listdir("/sys/class/infiniband"))
HOST_CHECKS = ("kernel", "open files", "rdma modules", "rdma device", "locked memory", "huge pages",
               "libaio", "O_DIRECT", "tcp buffers", "tcp congestion")


def export(top):
    os.mkdir(f"{top}/export")
    return Daemon(f"{top}/export")


def has_verbs():
    """Whether this build knows the fabric."""
    return b"this build has" not in rftp("-c", "set fabric verbs").err


def diagnose(*arguments, codes=(OK, FAILED), **options):
    """-> rows, done, result"""
    result = rftp("--json", *arguments, **options)
    check(result.code in codes, "exit code", result)
    events = result.events()
    equal(events[-1]["event"], "done", "last event")
    rows, done = events[:-1], events[-1]
    for row in rows:
        equal(row["event"], "check", "event", row)
        check(row["result"] in ("ok", "info", "warn", "fail", "skip"), row)
        check(row["cause"], "no cause:", row)
        check(row["mend"] or row["result"] not in ("warn",), "nothing says how to mend it:", row)
    for word in ("ok", "info", "warn", "fail", "skip"):
        equal(sum(r["result"] == word for r in rows), done[word], word, "rows")
    equal(done["healthy"], done["warn"] + done["fail"] == 0, "healthy")
    equal(result.code == OK, done["healthy"], "exit code", result)
    return rows, done, result


def of(rows, name, about=None):
    found = [r for r in rows if r["check"] == name and (about is None or r["object"] == about)]
    check(found, "no row", name, about or "", rows)
    return found[0]


# ---- which fabric, and why ----

@case
def auto_says_what_it_chose_and_what_it_passed_over(top):
    daemon = export(top)
    text = works("-v", "-c", "ls", daemon.url("")).err
    check(b"fabric soft (the best that connected)" in text, text)
    if has_verbs():
        why = b"loopback" if DEVICES else b"no RDMA device on this host"
        check(b"fabric verbs passed over: " in text and why in text, text)
    equal(works("-c", "ls", daemon.url("")).err, b"", "without -v")
    text = works("-v", "--fabric=soft", "-c", "ls", daemon.url("")).err
    check(b"fabric soft (asked for)" in text and b"passed over" not in text, text)


@case
def verbs_never_falls_back(top):
    if not has_verbs():
        skip("this build has no verbs")
    daemon = export(top)
    make_file(f"{top}/f", 10)
    result = fails(CONNECT, "-v", "--fabric=verbs", f"{top}/f", daemon.url("f"),
                   says=("no RDMA device", "loopback"))
    check(b"passed over" not in result.err and b"soft" not in result.err, result)
    check(not os.path.exists(daemon.path("f")), "the file arrived")


@case
def an_error_is_that_of_the_last_fabric_tried(_top):
    result = fails(CONNECT, "-v", "-c", "ls", "rftp://127.0.0.1:1", says="connection refused")
    check(b"RDMA" not in result.err.splitlines()[-1], result)
    fails(CONNECT, "-c", "ls", "rftp://no-such-host.invalid", says=("no such host", "name service"))


@case
def the_daemon_serves_what_is_there(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw", "--log-level", "debug")
    check("soft" in daemon.fabrics[0].split(","), daemon.fabrics)
    if not DEVICES:
        equal(daemon.fabrics, ["soft"], "fabrics")
        log = daemon.stderr()
        for line in log.splitlines():
            check(b": debug:" in line or b"host key" in line or b"sandbox: " in line, "not quiet without a device:", log)
        if has_verbs():
            check(b"fabric verbs is not served: no RDMA device on this host" in log, log)


@case
def a_daemon_for_verbs_alone(top):
    if not has_verbs():
        skip("this build has no verbs")
    os.mkdir(f"{top}/export")
    result = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "--listen", "127.0.0.1:0", "--export",
                             f"{top}/export:rw", "--fabric", "verbs"],
                            capture_output=True, timeout=30 * rftptest.PATIENCE, check=False)
    equal(result.returncode, 1, "exit code", result)
    equal(result.stdout, b"", "ready line")
    check(b"device" in result.stderr, result)


# ---- doctor ----

@case
def this_host(top):
    rows, done, result = diagnose("doctor", top)
    for name in HOST_CHECKS:
        of(rows, name)
    equal(of(rows, "O_DIRECT")["object"], top, "directory")
    equal(os.listdir(top), [], "what the trial left")
    equal([r for r in rows if r["check"] in ("server", "rtt", "rate")], [], "rows of a server")
    if not DEVICES:
        equal(of(rows, "rdma device")["result"], "info", "no device")
        for name in ("rdma rights", "port", "mtu", "gid", "numa"):
            equal(of(rows, name)["result"], "skip", name)
        check(not [r for r in rows if r["check"].startswith("rdma") and r["result"] == "fail"], rows)
    text = rftp("doctor", top)
    equal(text.code, result.code, "the table's exit code", text)
    lines = text.out.decode().splitlines()
    check(lines[-1] == ("nothing to mend" if done["healthy"] else
                        f"{done['warn'] + done['fail']} to mend: {done['fail']} fail, {done['warn']} warn"),
          lines)
    for line in lines[:-1]:  # columns: check, result, cause; a command below its row
        check(line[:17].strip() and line[16] == " " and line[17:21] in ("ok  ", "info", "warn", "fail", "skip")
              or line.startswith(" " * 23 + "> "), "not aligned:", line)


@case
def a_server(top):
    daemon = export(top)
    before = daemon.settled()
    rows, _, _ = diagnose("doctor", daemon.url(""), top)
    soft = of(rows, "server", "fabric soft")
    equal(soft["result"], "ok", soft)
    check("rftpd/" in soft["cause"] and f":{daemon.port}" in soft["cause"], soft)
    check(of(rows, "rtt", "fabric soft")["cause"].endswith(" ms"), rows)
    rate = of(rows, "rate", "fabric soft")
    check("put " in rate["cause"] and "get " in rate["cause"] and "B/s" in rate["cause"], rate)
    if has_verbs():  # passed over on loopback, with a device or without
        check(of(rows, "server", "fabric verbs")["result"] in ("skip", "info"), rows)
    equal(os.listdir(daemon.top), [], "what it left in the export")
    daemon.back_to(before, "after doctor")
    rows, _, _ = diagnose("--fabric=soft", "--channels=3", "doctor", daemon.url(""), top)
    equal([r["object"] for r in rows if r["check"] == "server"], ["fabric soft"], "fabrics tried")
    check("3 channels" in of(rows, "rate")["cause"], rows)


@case
def a_server_that_does_not_answer(top):
    rows, done, _ = diagnose("doctor", "rftp://127.0.0.1:1", top, codes=(FAILED,))
    row = of(rows, "server", "fabric soft")
    equal(row["result"], "fail", row)
    check("connection refused" in row["cause"] and "rftpd" in row["mend"], row)
    check(not done["healthy"], done)
    result = rftp("-q", "doctor", "rftp://127.0.0.1:1", top)
    equal(result.code, FAILED, "exit code", result)
    check(b"ok" not in result.out.split(b"to mend")[0].replace(b"look", b""), "quiet:", result)
    rows, _, _ = diagnose("doctor", "rftp://no-such-host.invalid", top, codes=(FAILED,))
    check("host" in of(rows, "server", "fabric soft")["cause"] or "name" in
          of(rows, "server", "fabric soft")["cause"], rows)


@case
def verbs_asked_for(top):
    if not has_verbs():
        skip("this build has no verbs")
    daemon = export(top)
    rows, _, _ = diagnose("--fabric=verbs", "doctor", daemon.url(""), top, codes=(FAILED,))
    equal(of(rows, "server")["result"], "fail", rows)
    equal([r["object"] for r in rows if r["check"] == "server"], ["fabric verbs"], "fabrics tried")
    if not DEVICES:
        equal(of(rows, "rdma modules")["result"], "fail", rows)
        equal(of(rows, "rdma device")["result"], "fail", rows)


@case
def few_files_are_to_mend(top):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    result = subprocess.run(client_command(["--json", "doctor", top]), preexec_fn=limit,
                            capture_output=True, timeout=60 * rftptest.PATIENCE, check=False)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    row = of(rows[:-1], "open files")
    equal(row["result"], "warn", row)
    check("ulimit" in row["mend"], row)
    equal(result.returncode, FAILED, "exit code")


@case
def the_directory(top):
    rows, _, _ = diagnose("doctor", f"{top}/missing", codes=(FAILED,))
    equal(of(rows, "O_DIRECT")["result"], "fail", rows)
    make_file(f"{top}/file", 10)
    rows, _, _ = diagnose("doctor", f"{top}/file", codes=(FAILED,))
    equal(of(rows, "O_DIRECT")["result"], "fail", rows)
    result = rftp("--json", "doctor", cwd=top)
    equal(of(result.events()[:-1], "O_DIRECT")["object"], ".", "without a directory")
    equal(os.listdir(top), ["file"], "what the trials left")


@case
def in_the_shell(top):
    daemon = export(top)
    make_file(daemon.path("f"), 10)
    result = rftp("--json", "-c", f"-doctor {top}; ls", daemon.url(""))
    equal(result.code, OK, "exit code", result)
    events = result.events()
    check([e for e in events if e["event"] == "check" and e["check"] == "rate"],
          "the server that is open was not tried:", result)
    equal([e["name"] for e in events if e["event"] == "entry"], ["f"], "ls behind it")
    fails(USAGE, "-c", "doctor a b", says="usage: doctor")
    fails(USAGE, "-c", "doctor rftp://a rftp://b", says="usage: doctor")


@case
def wrong_use_and_a_file_of_that_name(top):
    fails(USAGE, "doctor", "a", "b", says="./doctor")
    fails(USAGE, "doctor", "rftp://a", "rftp://b", says="./doctor")
    fails(USAGE, "doctor", "rftp://h:port/", says="port")
    daemon = export(top)
    make_file(f"{top}/doctor", 10)
    works("./doctor", daemon.url("x"), cwd=top)
    rftptest.same_files(f"{top}/doctor", daemon.path("x"))


rftptest.main()
