# SPDX-License-Identifier: Apache-2.0
"""Many sessions at once, each a client that gets files one after the other: the daemon that answers beside the one that
is read from, and other servers beside both.  Part of pull.py, which says what is what.

A session of rsync is one list of files.  What sessions cost by themselves, to begin and to end, is measured with clients
that ask for nothing, and taken off in the columns that say so."""

import os
import shutil
import subprocess
import sys
import time

import peers
import rftptest
from tables import median, ratio, show, show_size

ENGINES = ("credit", "pull")
CLIENTS = {"rsync daemon": lambda url, names, to: ["rsync", "--whole-file", *(f"{url}{n}" for n in names), to],
           "vsftpd": lambda url, names, to: lftp(url, names, to),
           "nginx": lambda url, names, to: curl(url, names, to)}


def curl(url, names, to):
    """One connection, request after request"""
    return ["curl", "-s", "-S", "--fail", *(word for n in names for word in (f"{url}{n}", "-o", f"{to}/{n}"))]


def lftp(url, names, to):
    """The same (two of curl stand still for 40 ms a file, here)"""
    gets = "".join(f"get {n} -o {to}/{n}; " for n in names)
    return ["lftp", "--norc", "-e", f"set ftp:ssl-allow no; set net:max-retries 1; {gets}bye", url]


class Nginx(peers.Peer):
    """As a server of WebDAV: files are got by GET"""
    name = "nginx"
    programs = ("nginx", "curl")
    package = "nginx curl"

    def launch(self):
        user = "user root;\n" if peers.ROOT else ""
        return self.spawn(["nginx", "-p", self.dir, "-c", self.write("nginx.conf", f"""{user}daemon off;
pid {self.dir}/pid;
error_log {self.dir}/errors;
worker_processes 1;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000;
    client_body_temp_path {self.dir}/body;
    server {{
        listen 127.0.0.1:{self.port};
        location / {{ root {self.top}; dav_methods PUT DELETE MKCOL; }}
    }}
}}
""")])


class Ftp(peers.Vsftpd):
    name = "vsftpd"
    programs = ("vsftpd", "lftp")
    package = "vsftpd lftp"


OTHERS = ((peers.Rsync, "rsync://127.0.0.1:{}/top/"), (Ftp, "ftp://127.0.0.1:{}/"), (Nginx, "http://127.0.0.1:{}/"))


def run_all(commands, what):
    """All at once -> seconds"""
    began = time.monotonic()
    environment = rftptest.clean_environment(None)
    processes = [subprocess.Popen(c, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  env=environment) for c in commands]
    for process in processes:
        error = process.communicate()[1]
        if process.returncode:
            sys.exit(f"{what}: a client failed: {error.decode()}")
    return time.monotonic() - began


class Sessions:
    """`bench` has the daemon, its export, the options and cpu()"""

    def __init__(self, bench):
        self.bench, self.top, self.export = bench, bench.top, bench.export
        self.rows, self.others = [], []
        self.alone = {}  # (engine, sessions): [(seconds, CPU) a round] of sessions that ask for nothing

    def start_others(self):
        for kind, url in OTHERS:
            peer = kind()
            missing = peer.missing()
            if missing:
                self.bench.report.say(f"{peer.name}: not compared: {', '.join(missing)} missing (package {peer.package})")
                continue
            peer.start(self.export)
            self.others.append((peer, url.format(peer.port)))

    def stop_others(self):
        for peer, _ in self.others:
            peer.stop()

    def run(self):
        self.start_others()
        try:
            self.many()
        finally:
            self.stop_others()
        self.show()

    def many(self):
        options = self.bench.options
        sizes = (5 << 10, 1 << 20) if options.quick else (5 << 10, 50 << 10, 200 << 10, 1 << 20, 10 << 20)
        counts = (2, 8) if options.quick else (10, 100, 500)
        for sessions in counts:
            for engine in ENGINES * min(2, options.rounds):
                self.alone.setdefault((engine, sessions), []).append(self.one(engine, None, None, [], sessions))
            for size in sizes:
                names = peers.make_files(self.export, size, max(1, min(options.files, options.bytes // size) // sessions))
                # these take the most of all parts; the longest are measured once
                self.point(size, sessions, names, 1 if sessions * len(names) * size > 1 << 30 else min(2, options.rounds))
                for name in names:
                    os.unlink(f"{self.export}/{name}")

    def rftp(self, engine, names, to, number):
        """Gets, each a request of its own"""
        batch = f"{self.top}/batch{number}"
        with open(batch, "w", encoding="ascii") as f:
            f.write("pwd\n")
            f.writelines(f"get {name} {to}/{name}\n" for name in names)
        return [self.bench.rftp, "-q", "--engine", engine, "--fsync", "never", "-b", batch, self.bench.daemon.url("")]

    def one(self, server, url, peer, names, count):
        """-> seconds, CPU of the server, of it the fabric's"""
        commands = []
        for number in range(count):
            to = f"{self.top}/to/{number}"
            os.makedirs(to)
            commands.append(CLIENTS[server](url, names, to) if url else self.rftp(server, names, to, number))
        before = self.cpu(peer)
        seconds = run_all(commands, server)
        after = self.cpu(peer)
        shutil.rmtree(f"{self.top}/to")
        return seconds, after[0] - before[0], after[1] - before[1]

    def point(self, size, sessions, names, rounds):
        """One size and number of sessions: the server's CPU a request, and requests a second"""
        rivals = [(engine, None, None) for engine in ENGINES] + [(p.name, u, p) for p, u in self.others]
        found = {name: [] for name, _, _ in rivals}
        for turn in range(rounds):
            first = turn % len(rivals)
            for name, url, peer in rivals[first:] + rivals[:first]:
                found[name].append(self.one(name, url, peer, names, sessions))
        count = sessions * len(names)
        net = {e: self.without(found[e], e, sessions, lambda run: run[1]) for e in ENGINES}
        own = {e: self.without(found[e], e, sessions, lambda run: run[1] - run[2]) for e in ENGINES}
        for name, _, _ in rivals:
            seconds, cpu, fabric = (median(run[i] for run in found[name]) for i in range(3))
            self.rows.append({
                "size": size, "sessions": sessions, "server": name, "requests_s": count / seconds,
                "cpu_us_a_request": cpu / count * 1e6, "of_it_fabric": fabric / cpu if cpu else 0,
                "cpu_to_credit": ratio([run[1] for run in found[name]], [run[1] for run in found["credit"]]),
                "cpu_us_without_sessions": name in net and median(net[name]) / count * 1e6 or None,
                "cpu_us_without_fabric": name in own and median(own[name]) / count * 1e6 or None,
                "to_credit_without_sessions": name in net and ratio(net[name], net["credit"]) or None,
                "to_credit_without_fabric": name in own and ratio(own[name], own["credit"]) or None})

    def without(self, runs, engine, sessions, figure):
        """Each round's, without what so many sessions cost that ask for nothing; no more than nothing is left"""
        alone = median(figure(run) for run in self.alone[engine, sessions])
        return [max(0, figure(run) - alone) for run in runs]

    def cpu(self, peer):
        return (peers.tree_cpu_seconds(peer.server.pid), 0) if peer else self.bench.cpu()

    def show(self):
        report = self.bench.report
        servers = list(dict.fromkeys(row["server"] for row in self.rows))
        points = list(dict.fromkeys((row["size"], row["sessions"]) for row in self.rows))
        by = {(row["size"], row["sessions"], row["server"]): row for row in self.rows}
        lines = []
        for size, sessions in sorted(points):
            cells = []
            for server in servers:
                row = by[size, sessions, server]
                more = f", {show(row['cpu_us_without_sessions'], 0)}, {show(row['cpu_us_without_fabric'], 0)}"
                cells.append(f"{show(row['requests_s'], 0)}/s; {show(row['cpu_us_a_request'], 0)}"
                             + (more if server in ENGINES else ""))
            pull = by[size, sessions, "pull"]
            lines.append([show_size(size), sessions, *cells, ", ".join(
                show(pull[f"{c}to_credit{w}"], 2) for c, w in (("cpu_", ""), ("", "_without_sessions"), ("", "_without_fabric")))])
        report.say("### Many sessions (Fig. 9 to 11)",
                   "Each session a client that gets files one after the other: requests a second; the server's CPU for each, us; "
                   "of ours also without what the sessions themselves cost, and then without the fabric's threads, which do an "
                   "adapter's work here.  `credit`: the daemon answers; `pull`: replies and data are read from it.  Last: the "
                   "three figures of CPU, pull to credit.  The paper: the passive server's CPU is below the active one's from 200 "
                   "connections on, most at 500, and its requests a second above.")
        report.table(["file", "sessions", *servers, "CPU, pull to credit"], lines)
        report.dicts("sessions", self.rows)
        for size in sorted({size for size, _ in points}):
            counts = sorted(n for s, n in points if s == size)
            for figure, label in (("cpu_us_a_request", "CPU of the server, us a request"),
                                  ("requests_s", "requests a second")):
                name = f"{figure.replace('_', '-')}-{show_size(size).replace(' ', '')}"
                report.csv(name, ["sessions", *servers], [[n, *(by[size, n, s][figure] or None for s in servers)]
                                                          for n in counts])
                report.plot(name, show_size(size), "sessions", label, range(2, 2 + len(servers)), "xy")
