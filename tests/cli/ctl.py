#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rftpctl: what an administrator sees of a daemon that runs, and does to it; and what Prometheus sees."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import urllib.error
import urllib.request

import iwarp
import rftptest
from rftptest import LOST, Daemon, Proxy, case, check, equal, leftovers, make_file, same_files, skip, wait_until, \
    works


class Controlled(Daemon):
    def __init__(self, top, *lines, **options):
        os.makedirs(f"{top}/export", exist_ok=True)
        self.socket = f"{top}/control"
        self.config = f"{top}/conf"
        self.write(top, *lines)
        super().__init__(f"{top}/export", command=["--config", self.config, "--listen", "127.0.0.1:0"], **options)

    def write(self, top, *lines):
        with open(self.config, "w") as f:
            f.write("\n".join([f"export = {top}/export:rw", f"control = {self.socket}", *lines, ""]))

    def ask(self, *words, code=0, user=None):
        process = rftptest.spawn([os.path.join(rftptest.BUILD, "rftpctl"), "-s", self.socket, *words],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 **({"user": user} if user is not None else {}))
        result = rftptest.finish(process)
        equal(result.code, code, "rftpctl", words, result)
        check(code == 0 or result.err.startswith(b"rftpctl: "), result)
        return (result.err if code else result.out).decode()

    def ask_bytes(self, *words):
        process = rftptest.spawn([os.path.join(rftptest.BUILD, "rftpctl"), "-s", self.socket, *words],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        result = rftptest.finish(process)
        equal(result.code, 0, "rftpctl", words, result)
        return result.out

    def objects(self, *words):
        return [json.loads(line) for line in self.ask("--json", *words).splitlines()]

    def stats(self):
        return self.objects("stats")[0]


def held_put(daemon, top, size=32 << 20):
    make_file(f"{top}/f", size)
    proxy = Proxy(daemon.port, hold=4 << 20)
    client = rftptest.start_rftp("--no-resume", f"{top}/f", proxy.url("f"))
    wait_until(proxy.held.is_set, "the transfer begins")
    return proxy, client


@case
def who_is_there(top):
    daemon = Controlled(top)
    equal(daemon.objects("who"), [], "nobody")
    idle = iwarp.Session(daemon.port)
    idle.hello()
    proxy, client = held_put(daemon, top)
    wait_until(lambda: any(s["state"] == "running" and s["bytes"] for s in daemon.objects("who")), "a transfer runs")
    sessions = {s["state"]: s for s in daemon.objects("who")}
    equal(sorted(sessions), ["idle", "running"], "states")
    for words in (("who", "-j"), ("who", "--json"), ("-j", "who")):
        equal({json.loads(line)["session"] for line in daemon.ask(*words).splitlines()},
              {s["session"] for s in sessions.values()}, *words)
    running = sessions["running"]
    check(running["transfer"] == "STORE" and running["fabric"] == "soft" and 0 < running["bytes"] <= 32 << 20, running)
    check(running["peer"].startswith("127.0.0.1:"), running)
    lines = daemon.ask("who").splitlines()
    check(len(lines) == 3 and lines[0].split()[:3] == ["session", "peer", "fabric"], lines)
    check(any(str(running["session"]) == line.split()[0] and "STORE" in line for line in lines[1:]), lines)
    proxy.release()
    equal(rftptest.finish(client).code, 0, "the transfer")
    idle.close()
    proxy.close()
    wait_until(lambda: daemon.objects("who") == [], "they have gone")


@case
def kill_ends_one_session(top):
    daemon = Controlled(top)
    idle, other = iwarp.Session(daemon.port), iwarp.Session(daemon.port)
    idle.hello()
    other.hello()
    proxy, client = held_put(daemon, top)
    wait_until(lambda: len(daemon.objects("who")) == 3, "three sessions")
    running = next(s["session"] for s in daemon.objects("who") if s["state"] == "running")
    check("no session 99999" in daemon.ask("kill", "1", "99999", code=1), "one that is not there")
    equal(len(daemon.objects("who")), 3, "sessions after an error")
    for words in (["kill"], ["kill", "x"], ["kill", "0"], ["kill", "-1"]):
        daemon.ask(*words, code=1 if words[1:] else 2)
    daemon.ask("kill", str(running), str(running))
    proxy.release()
    result = rftptest.finish(client)
    check(result.code != 0 and b"administrator" in result.err, "the client:", result)
    wait_until(lambda: len(daemon.objects("who")) == 2, "two sessions")
    equal(leftovers(daemon.top), [], "temporary files")
    equal(other.ask(iwarp.PING, b"cookie 8")[0], 0, "PING of another session")
    daemon.ask("kill", str(min(s["session"] for s in daemon.objects("who"))))
    idle.close()
    wait_until(lambda: len(daemon.objects("who")) == 1, "one session")
    equal(daemon.stats()["killed_total"], 2, "killed")
    check(b"is ended by an administrator" in daemon.stderr(), "the log")
    other.close()
    proxy.close()


@case
def limits_are_shown_and_changed(top):
    daemon = Controlled(top, "max-sessions = 7", "max-window = 256M")
    limits = {o["name"]: o["value"] for o in daemon.objects("limit")}
    check(limits["max-sessions"] == "7" and limits["max-window"] == "256M" and limits["log-level"] == "info" and
          limits["memory"] == "default", limits)
    check("export" not in limits and "listen" not in limits, limits)
    daemon.ask("limit", "max-sessions", "1")
    session = iwarp.Session(daemon.port)
    session.hello()
    rftptest.fails(rftptest.REFUSED, "-c", "ls", daemon.url(""))
    check(re.search("max-sessions +1 ", daemon.ask("limit")), "it is shown")
    daemon.ask("limit", "memory", "16M")
    daemon.ask("limit", "bandwidth", "5M")
    for name, standard in (("memory", "default"), ("bandwidth", "default"), ("max-sessions", "4096"), ("log-level", "info")):
        daemon.ask("limit", name, "default")
        equal({o["name"]: o["value"] for o in daemon.objects("limit")}[name], standard, "its default", name)
    for words, why in ((["max-sessions", "0"], "outside"), (["export", "/"], "no limit"), (["nothing", "1"], "no limit"),
                       (["memory", "lots"], "not a size"), (["log-level", "loud"], "loud")):
        check(why in daemon.ask("limit", *words, code=1), words, why)
    check("a value" in daemon.ask("limit", "memory", code=2), "a limit without a value")
    for words, why in ((["frobnicate"], "no such command"), (["who", "extra"], "usage: who"), (["kill"], "SESSION")):
        check(why in daemon.ask(*words, code=2), words, why)
    daemon.ask("reload")
    works("-c", "ls", daemon.url(""))
    equal({o["name"]: o["value"] for o in daemon.objects("limit")}, limits, "after a reload")
    session.close()


@case
def reload_says_what_is_wrong(top):
    daemon = Controlled(top)
    daemon.write(top, "max-sessions = 3")
    equal(daemon.ask("reload"), "", "reload")
    daemon.write(top, "max-sessions = 3", "host-key = /nowhere", "crc = yes")
    said = daemon.ask("reload")
    check("new start" in said and "host-key" in said and "crc" in said and "listen" not in said, said)
    equal(daemon.ask("reload"), said, "what still needs a new start")
    daemon.write(top, "max-sessions = 3")
    equal(daemon.ask("reload"), "", "what is as it was at the start")
    daemon.write(top, "nonsense = 3")
    check("nonsense" in daemon.ask("reload", code=1), "an error in the file")
    equal([o["value"] for o in daemon.objects("limit") if o["name"] == "max-sessions"], ["3"], "afterwards")


@case
def drain_ends_it_when_transfers_are_done(top):
    daemon = Controlled(top, "drain-timeout = 600")
    proxy, client = held_put(daemon, top)
    check("1 sessions are left" in daemon.ask("drain"), "drain")
    check(daemon.stats()["draining"], "it says so")
    daemon.ask("reload", code=1)
    rftptest.fails(rftptest.CONNECT, "-c", "ls", daemon.url(""))
    proxy.release()
    equal(rftptest.finish(client).code, 0, "the transfer")
    daemon.process.wait(30 * rftptest.PATIENCE)
    daemon.stopped = True
    equal(daemon.process.returncode, 0, "exit code", daemon.stderr()[-2000:])
    same_files(f"{top}/f", daemon.path("f"))
    check(not os.path.exists(daemon.socket), "the socket is still there")
    check("does rftpd run" in daemon.ask("who", code=3), "nobody is there")
    proxy.close()


def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20 * rftptest.PATIENCE) as answer:
        equal(answer.headers["Content-Type"].split(";")[0], "text/plain", "its type")
        text = answer.read().decode()
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            check(re.fullmatch(r"# (HELP \w+ \S.*|TYPE \w+ (counter|gauge))", line), line)
            continue
        match = re.fullmatch(r'(\w+)(?:\{export="((?:[^"\\]|\\.)*)",fabric="(\w+)"\})? (\d+)', line)
        check(match, "a line that is none of Prometheus:", line)
        check(f"# TYPE {match[1]} " in text, "no type of", match[1])
        found[match[1]] = found.get(match[1], 0) + int(match[4])
    return found


@case
def statistics_count_what_was_done(top):
    daemon = Controlled(top, "metrics = 127.0.0.1:0")
    port = int(re.search(rb"metrics are at http://127\.0\.0\.1:(\d+)/metrics", daemon.stderr())[1])
    make_file(f"{top}/f", 1000000)
    for i in range(3):
        works(f"{top}/f", daemon.url(f"f{i}"))
    works(daemon.url("f0"), f"{top}/back")
    works("feed", "d=|echo hello", daemon.url(""))
    rftptest.rftp("--parents=no", f"{top}/f", daemon.url("missing/f"))
    proxy = Proxy(daemon.port, cut=300000)
    rftptest.rftp(f"{top}/f", proxy.url("cut"))
    proxy.close()
    wait_until(lambda: not daemon.objects("who"), "all have gone")
    stats = daemon.stats()
    by = stats["by"][0]
    check(stats["sessions"] == 0 and stats["sessions_total"] >= 6 and len(stats["by"]) == 1, stats)
    equal((by["export"], by["fabric"]), (f"{top}/export", "soft"), "of what")
    check(by["transfers_stored"] in (3, 4) and by["transfers_retrieved"] == 1 and by["transfers_fed"] == 1, by)
    check(3000000 <= by["received_bytes"] < 4000000 + 7 and by["sent_bytes"] == 1000000 and by["files"] == 5, by)
    shown = metrics(port)
    for name in ("transfers_stored", "received_bytes", "sent_bytes", "files", "credits_starved", "data_requests",
                 "verify_errors"):
        equal(shown[f"rftpd_{name}_total"], by[name], name)
    check(shown["rftpd_sessions"] == 0 and shown["rftpd_sessions_total"] >= 6, shown)
    check(f"{top}/export over soft:" in daemon.ask("stats") and "bytes in" in daemon.ask("stats"), "for people")
    check("rftpd_sessions_total" in daemon.ask("metrics"), "rftpctl metrics")
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20)
        check(False, "another page was found")
    except urllib.error.HTTPError as e:
        equal(e.code, 404, "another page")
    # the bytes of one that runs are counted, too
    proxy, client = held_put(daemon, top)
    wait_until(lambda: metrics(port)["rftpd_received_bytes_total"] > by["received_bytes"], "bytes under way")
    equal(metrics(port)["rftpd_transfers_running"], 1, "running")
    proxy.release()
    equal(rftptest.finish(client).code, 0, "the transfer")
    proxy.close()


@case
def a_page_of_any_export(top):
    """Whatever the bytes of its path: one that is no UTF-8 would make Prometheus refuse the whole page."""
    name = os.fsdecode(f"{top}/a\"b\\\u00e9".encode() + b"\xff\xe9")
    os.mkdir(name)
    make_file(f"{top}/f", 100)
    daemon = Daemon(name, "rw", "--metrics", "127.0.0.1:0")
    port = int(re.search(rb"metrics are at http://127\.0\.0\.1:(\d+)/metrics", daemon.stderr())[1])
    works(f"{top}/f", daemon.url("f"))
    wait_until(lambda: metrics(port).get("rftpd_files_total") == 1, "it is counted")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20 * rftptest.PATIENCE) as answer:
        label = re.search(r'rftpd_files_total\{export="((?:[^"\\]|\\.)*)"', answer.read().decode())[1]
    equal(re.sub(r"\\(.)", r"\1", label), f"{top}/a\"b\\\u00e9\\xff\\xe9", "the export")


@case
def a_passive_server_starts_no_requests(top):
    """With the engine pull, in neither direction; with the others it does, in one or both."""
    daemon = Controlled(top)
    make_file(f"{top}/f", 3000000)
    os.mkdir(f"{top}/tree")
    for i in range(50):
        make_file(f"{top}/tree/{i}", 4000)
    def started(*arguments):
        before = daemon.stats()["by"][0]["data_requests"] if daemon.stats()["by"] else 0
        works("--block", "64K", "-r", *arguments)
        wait_until(lambda: not daemon.objects("who"), "the client has gone")
        return daemon.stats()["by"][0]["data_requests"] - before
    for channels in ("1", "3"):
        os.mkdir(f"{top}/export/{channels}")
        os.mkdir(f"{top}/{channels}")
        for name in ("f", "tree"):
            pull = ("--engine", "pull", "--channels", channels)
            equal(started(*pull, f"{top}/{name}", daemon.url(f"{channels}/")), 0, "of a put")
            equal(started(*pull, daemon.url(f"{channels}/{name}"), f"{top}/{channels}/"), 0, "of a get")
        rftptest.same_files(f"{top}/f", f"{top}/{channels}/f")
        equal(rftptest.tree(f"{top}/tree"), rftptest.tree(f"{top}/{channels}/tree"), "the tree")
    check(started("--engine", "credit", daemon.url("1/f"), f"{top}/credit") >= 46, "of a get by credits")
    check(started("--engine", "status", daemon.url("1/f"), f"{top}/status") >= 92, "of a get by status bytes")


@case
def paths_of_any_bytes(top):
    """Of a client's path neither what reads JSON nor a terminal takes anything for what it is not."""
    daemon = Controlled(top)
    session = iwarp.Session(daemon.port)
    session.hello()
    channels = session.open_channels()
    path = b"a\xff\xc2\x9b2Jb\x1b\"\\\xe4\xb8\xad"
    equal(session.ask(iwarp.STORE, iwarp.data_request(path=path))[0], 0, "STORE")
    shown = daemon.ask_bytes("--json", "who")
    equal(json.loads(shown.decode("utf-8"))["path"].encode("utf-8", "surrogateescape").lstrip(b"/"), path, "the path")
    for said in (shown, daemon.ask_bytes("who")):
        check(not any(b < 32 and b != 10 or b == 127 for b in said) and b"\xc2\x9b" not in said, "what is shown", said)
    for c in channels:
        c.close()
    session.close()


@case
def who_may_ask(top):
    daemon = Controlled(top)
    equal(stat.S_IMODE(os.stat(daemon.socket).st_mode), 0o600, "rights of the socket")
    result = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "--listen", "0", "--export", top, "--control",
                             daemon.socket], capture_output=True, timeout=20 * rftptest.PATIENCE)
    check(result.returncode == 1 and b"another rftpd is there" in result.stderr, result)
    equal(daemon.objects("who"), [], "the first one still has it")
    for address in ("0.0.0.0:0", "nowhere.invalid:1", "x:y"):
        result = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "-t", "--listen", "0", "--export", top,
                                 "--metrics", address], capture_output=True, timeout=60 * rftptest.PATIENCE)
        check(result.returncode == 2 and b"metrics" in result.stderr, address, result)
    # what a daemon that was killed has left is no obstacle
    daemon.kill()
    check(os.path.exists(daemon.socket), "the socket of one that was killed")
    daemon = Controlled(top)
    equal(daemon.objects("who"), [], "another one")
    # a service manager says where it may be
    os.mkdir(f"{top}/run")
    service = Daemon(daemon.top, env={"RUNTIME_DIRECTORY": f"{top}/run"})
    service.socket = f"{top}/run/control"
    check("session" in Controlled.ask(service, "who"), "in the runtime directory")
    if not rftptest.ROOT:
        skip("only root can be somebody else")
    os.chmod(daemon.socket, 0o666)
    os.chmod(top, 0o755)
    check("only root" in daemon.ask("who", code=1, user=rftptest.NOBODY), "somebody else")


@case
def questions_that_are_none(top):
    daemon = Controlled(top, "metrics = 127.0.0.1:0")
    port = int(re.search(rb"http://127\.0\.0\.1:(\d+)/", daemon.stderr())[1])
    before = daemon.settled()

    def raw(data, tcp=False):
        with socket.socket(socket.AF_INET if tcp else socket.AF_UNIX) as s:
            s.settimeout(20 * rftptest.PATIENCE)
            s.connect(("127.0.0.1", port) if tcp else daemon.socket)
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                answer = b""
                while piece := s.recv(65536):
                    answer += piece
                return answer
            except OSError:  # it hung up before all was said
                return b""
    for data in (b"\n", b"json\n", b"nonsense\n", b"who now\n", b"\0\n", b"\xff\xfe\n", b"who" * 1000 + b"\n",
                 b"limit a b c\n", b" ".join([b"kill"] * 200) + b"\n"):
        check(raw(data).startswith((b"error: ", b"usage: ")) or b"\0" in data, data, raw(data))
    for data in (b"", b"who", b"x" * 100000):
        equal(raw(data), b"", data[:20])
    for data in (b"", b"GET", b"\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"GET /" + b"x" * 100000):
        check(b"rftpd_" not in raw(data, True), data[:20])
    # connections that say nothing keep nobody out
    silent = []
    for _ in range(40):
        s = socket.socket(socket.AF_UNIX)
        s.connect(daemon.socket)
        silent.append(s)
    for said in [b""] * 20 + [b"GET /metrics HTTP/1.1\r\n"] * 20 + [b"GET /metrics HTTP/1.1\r\n\r\n"] * 5:
        s = socket.create_connection(("127.0.0.1", port))  # the last ones read nothing of the answer
        s.sendall(said)
        silent.append(s)
    equal(daemon.objects("who"), [], "in spite of silent ones")
    equal(metrics(port)["rftpd_sessions"], 0, "the metrics in spite of silent ones")
    works("-c", "ls", daemon.url(""))
    for s in silent:
        s.close()
    generator, rounds = rftptest.rng(), rftptest.scaled(200)
    words = [b"who", b"kill", b"limit", b"stats", b"json", b"1", b"-1", b"memory", b"\x00", b"9" * 30, b"\t", b"max-block"]
    for _ in range(rounds):
        raw(b" ".join(generator.choices(words, k=generator.randrange(6))) + b"\n")
    daemon.back_to(before, "after all questions")
    check(daemon.alive(), "it died")


@case
def words_of_rftpctl(top):
    program = os.path.join(rftptest.BUILD, "rftpctl")

    def run(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, timeout=20 * rftptest.PATIENCE)
    for option in ("-h", "--help"):
        check(run(option).returncode == 0 and b"drain" in run(option).stdout, option)
    check(b"rftpctl" in run("-V").stdout, "-V")
    for arguments in ([], ["--nonsense"], ["-s"], ["who", "a b"], ["who", "x" * 5000]):
        equal(run(*arguments).returncode, 2, arguments)
    equal(run("-s", f"{top}/none", "who").returncode, 3, "no socket")
    with open(os.path.join(rftptest.REPOSITORY, "man", "rftpctl.8")) as f:
        page = f.read()
    for command in re.findall(r"(?m)^  ([a-z]+) ", run("-h").stdout.decode()):
        check(re.search(rf"(?m)^\.It Ic {command}\b", page), "rftpctl(8) does not know", command)


rftptest.main()
