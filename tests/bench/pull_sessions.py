# SPDX-License-Identifier: Apache-2.0
"""Many sessions at once and single requests one after the other: the daemon that answers beside the one that is
read from, and other servers beside both.  Part of pull.py, which says what is what."""

import csv
import os
import shutil
import statistics
import subprocess
import sys
import time

import peers
import rftptest
from bench import show_size

ENGINES = ("credit", "pull")
CLIENTS = {"rsync daemon": lambda url, names, to: ["rsync", "--whole-file", *(f"{url}{n}" for n in names), to],
           "vsftpd": lambda url, names, to: curl(url, names, to),
           "nginx": lambda url, names, to: curl(url, names, to)}


def curl(url, names, to):
    """One connection, request after request"""
    return ["curl", "-s", "-S", "--fail", *(word for n in names for word in (f"{url}{n}", "-o", f"{to}/{n}"))]


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
    programs = ("vsftpd", "curl")
    package = "vsftpd curl"


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
        self.rows, self.latencies = [], []
        self.others = []

    def start_others(self):
        for kind, url in OTHERS:
            peer = kind()
            missing = peer.missing()
            if missing:
                print(f"{peer.name}: not compared: {', '.join(missing)} missing (package {peer.package})")
                continue
            peer.start(self.export)
            self.others.append((peer, url.format(peer.port)))

    def stop_others(self):
        for peer, _ in self.others:
            peer.stop()

    # ---- many sessions ----

    def rftp(self, engine, names, to, number, *options):
        """Gets, each a request of its own"""
        batch = f"{self.top}/batch{number}"
        with open(batch, "w", encoding="ascii") as f:
            f.writelines(f"get {name} {to}/{name}\n" for name in names)
        return [os.path.join(rftptest.BUILD, "rftp"), "-q", "--engine", engine, "--fsync", "never", *options, "-b", batch,
                self.bench.daemon.url("")]

    def clients(self, server, url, names, count):
        commands = []
        for number in range(count):
            to = f"{self.top}/to/{number}"
            os.makedirs(to)
            commands.append(CLIENTS[server](url, names, to) if url else self.rftp(server, names, to, number))
        return commands

    def point(self, size, sessions, names):
        """One size and number of sessions: the daemon's CPU a request, and requests a second"""
        rivals = [(engine, None, None) for engine in ENGINES] + [(p.name, u, p) for p, u in self.others]
        found = {name: [] for name, _, _ in rivals}
        for turn in range(self.bench.options.rounds):
            for name, url, peer in rivals[turn % len(rivals):] + rivals[:turn % len(rivals)]:
                commands = self.clients(name, url, names, sessions)
                before = self.cpu(peer)
                seconds = run_all(commands, name)
                after = self.cpu(peer)
                shutil.rmtree(f"{self.top}/to")
                found[name].append((seconds, after[0] - before[0], after[1] - before[1]))
        count = sessions * len(names)
        for name, _, _ in rivals:
            seconds, cpu, fabric = (statistics.median(run[i] for run in found[name]) for i in range(3))
            base = [run[1] for run in found["credit"]]
            row = {"size": size, "sessions": sessions, "server": name, "requests_s": count / seconds,
                   "cpu_us_a_request": cpu / count * 1e6, "of_it_fabric": fabric / cpu if cpu else 0,
                   "cpu_to_credit": statistics.median(run[1] / b for run, b in zip(found[name], base) if b) if any(base) else None}
            self.rows.append(row)
            print(f"{show_size(size):>8} {sessions:4} sessions  {name:12} {row['requests_s']:9.0f}/s  CPU "
                  f"{row['cpu_us_a_request']:9.1f} us each ({100 * row['of_it_fabric']:3.0f} % fabric)  "
                  f"to credit {row['cpu_to_credit'] or 0:5.2f}", flush=True)

    def cpu(self, peer):
        return (peers.tree_cpu_seconds(peer.server.pid), 0) if peer else self.bench.cpu()

    def many(self):
        options = self.bench.options
        sizes = (5 << 10, 1 << 20) if options.quick else (5 << 10, 50 << 10, 200 << 10, 1 << 20, 10 << 20)
        counts = (2, 8) if options.quick else (10, 50, 100, 250, 500)
        for size in sizes:
            for sessions in counts:
                each = max(1, min(options.files, options.bytes // size) // sessions)
                names = self.files(size, each)
                self.point(size, sessions, names)
                self.drop(names)

    def files(self, size, count):
        names = [f"s{i}" for i in range(count)]
        for name in names:
            with open(f"{self.export}/{name}", "wb") as f:
                f.write(os.urandom(size))
            os.chmod(f"{self.export}/{name}", 0o644)
        return names

    def drop(self, names):
        for name in names:
            os.unlink(f"{self.export}/{name}")

    # ---- one request after the other ----

    def one_by_one(self, engine, way, names, options):
        """-> seconds a request, without what the session itself takes"""
        batch, to = f"{self.top}/batch", f"{self.top}/to"
        os.makedirs(to, exist_ok=True)
        took = []
        for lines in ([], names):
            with open(batch, "w", encoding="ascii") as f:
                f.write("pwd\n")
                f.writelines(f"get {n} {to}/{n}\n" if way == "get" else f"put {self.export}/{n} to{n}\n" for n in lines)
            took.append(run_all([[os.path.join(rftptest.BUILD, "rftp"), "-q", "--engine", engine, *options, "-b", batch,
                                  self.bench.daemon.url("")]], engine))
        shutil.rmtree(to)
        for name in names:
            if way == "put":
                os.unlink(f"{self.export}/to{name}")
        return (took[1] - took[0]) / len(names)

    def latency(self):
        options = self.bench.options
        sizes = (1 << 10, 64 << 10) if options.quick else (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
        for size in sizes:
            names = self.files(size, 20 if options.quick else 200)
            for way in ("get", "put"):
                for fsync in ("never", "file"):
                    for verify in ("wire", "all"):
                        self.latency_of(size, way, fsync, verify, names)
            self.drop(names)

    def latency_of(self, size, way, fsync, verify, names):
        runs = {engine: [] for engine in ENGINES}
        for turn in range(self.bench.options.rounds):
            for engine in ENGINES[turn % 2:] + ENGINES[:turn % 2]:
                runs[engine].append(self.one_by_one(engine, way, names, ["--fsync", fsync, "--verify", verify]))
        row = {"size": size, "way": way, "fsync": fsync, "verify": verify}
        for engine in ENGINES:
            row[f"{engine}_us"] = statistics.median(runs[engine]) * 1e6
        row["pull_less_us"] = statistics.median((a - b) * 1e6 for a, b in zip(runs["credit"], runs["pull"]))
        self.latencies.append(row)
        print(f"{show_size(size):>8} {way} fsync {fsync:5} verify {verify:4}  answered {row['credit_us']:8.0f} us  read "
              f"{row['pull_us']:8.0f} us  less by {row['pull_less_us']:8.0f} us", flush=True)

    # ---- what stays ----

    def write(self, out):
        for name, rows in (("sessions", self.rows), ("latency", self.latencies)):
            with open(f"{out}/pull-{name}.csv", "w", newline="", encoding="ascii") as f:
                writer = csv.DictWriter(f, rows[0].keys())
                writer.writeheader()
                writer.writerows(rows)
            print(f"{out}/pull-{name}.csv")
        if shutil.which("gnuplot"):
            for size in sorted({row["size"] for row in self.rows}):
                for figure, label in (("cpu_us_a_request", "CPU of the server, us a request"), ("requests_s", "requests a second")):
                    self.plot(out, size, figure, label)

    def plot(self, out, size, figure, label):
        """One size: a curve a server, over the number of sessions"""
        servers = list(dict.fromkeys(row["server"] for row in self.rows))
        base = f"{out}/pull-{figure}-{show_size(size).replace(' ', '')}"
        script = [f"set terminal svg size 720,420 background 'white'\nset output '{base}.svg'\nset title '{show_size(size)}'\n"
                  f"set xlabel 'sessions'\nset ylabel '{label}'\nset grid\nset key outside bottom horizontal\nset logscale xy\n"]
        for number, server in enumerate(servers):
            points = "\n".join(f"{row['sessions']} {row[figure]}" for row in self.rows
                               if row["server"] == server and row["size"] == size and row[figure] > 0)
            script.append(f"$d{number} << EOD\n{points}\nEOD\n")
        script.append("plot " + ", ".join(f"$d{n} using 1:2 with linespoints title '{s}'" for n, s in enumerate(servers)) + "\n")
        done = subprocess.run(["gnuplot"], input="".join(script), text=True, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            print(f"gnuplot: {base}: {done.stderr.strip()}", file=sys.stderr)
        else:
            print(f"{base}.svg")
