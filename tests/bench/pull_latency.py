# SPDX-License-Identifier: Apache-2.0
"""What one request takes, of one client and of eight at once: the daemon that answers beside the one that is read from.
Part of pull.py, which says what is what.

A client gets, or puts, files one after the other in one session; the time is that between its first word and its last, of
the commands before the first file and behind the last one.  Both ends' files are on a disk here, so that fsync costs what it
costs there."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import peers
import rftptest
from tables import median, show, show_size

ENGINES = ("credit", "pull")


class Latency:
    def __init__(self, bench):
        self.bench, self.options = bench, bench.options
        self.rows = []
        self.top = self.daemon = None

    def run(self):
        with tempfile.TemporaryDirectory(prefix="rftp-bench-latency-", dir=self.options.disk) as self.top:
            os.chmod(self.top, 0o755)
            os.makedirs(f"{self.top}/export")
            self.daemon = rftptest.Daemon(f"{self.top}/export", "rw", "--fabric", "soft", "--log-level", "error")
            self.measure()
            self.daemon.stop()
        self.show()

    def measure(self):
        quick = self.options.quick
        sizes = (1 << 10, 64 << 10) if quick else (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
        for size in sizes:
            names = peers.make_files(f"{self.top}/export", size, 20 if quick else 60)
            for way in ("get", "put"):
                for fsync, verify in (("never", "wire"), ("never", "all"), ("file", "wire"), ("file", "all")):
                    self.point(size, way, fsync, verify, 1, names)
                self.point(size, way, "never", "wire", 8, names)
            for name in names:
                os.unlink(f"{self.top}/export/{name}")

    def commands(self, engine, way, names, clients, options):
        commands = []
        for number in range(clients):
            to, batch = f"{self.top}/to{number}", f"{self.top}/batch{number}"
            os.makedirs(to, exist_ok=True)
            with open(batch, "w", encoding="ascii") as f:
                f.write("pwd\n")
                f.writelines(f"get {n} {to}/{n}\n" if way == "get" else f"put {self.top}/export/{n} to{number}/{n}\n"
                             for n in names)
                f.write("pwd\n")
            commands.append([self.bench.rftp, "-q", "--engine", engine, *options, "-b", batch, self.daemon.url("")])
        return commands

    def one_by_one(self, engine, way, names, clients, options):
        """-> seconds a request of a client"""
        for number in range(clients):
            os.makedirs(f"{self.top}/export/to{number}")
        took = []
        threads = [threading.Thread(target=self.one, args=(command, took))
                   for command in self.commands(engine, way, names, clients, options)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(clients):
            shutil.rmtree(f"{self.top}/to{number}")
            shutil.rmtree(f"{self.top}/export/to{number}")
        if len(took) < clients:
            sys.exit(f"{engine}, {way}: a client failed")
        return sum(took) / clients / len(names)

    @staticmethod
    def one(command, took):
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              env=rftptest.clean_environment(None)) as process:
            said = [time.monotonic() for _ in process.stdout]
        if process.returncode == 0 and len(said) == 2:
            took.append(said[1] - said[0])

    def point(self, size, way, fsync, verify, clients, names):
        runs = {engine: [] for engine in ENGINES}
        for turn in range(self.options.rounds):
            for engine in ENGINES[turn % 2:] + ENGINES[:turn % 2]:
                runs[engine].append(self.one_by_one(engine, way, names, clients, ["--fsync", fsync, "--verify", verify]))
        row = {"size": size, "way": way, "fsync": fsync, "verify": verify, "clients": clients}
        for engine in ENGINES:
            row[f"{engine}_us"] = median(runs[engine]) * 1e6
        row["pull_less_us"] = median((a - b) * 1e6 for a, b in zip(runs["credit"], runs["pull"]))
        self.rows.append(row)

    def show(self):
        report = self.bench.report
        report.say("### One request of the shell (Fig. 14)",
                   "A file got or put, all of it: metadata, verification, the place where it goes.  Median, us; fsync `file` is "
                   "what rftp does unless told otherwise; verify `wire`: what crosses, `all`: also what both disks have.  "
                   "`credit`: the daemon answers; `pull`: it is read from.  The paper: 50 to 100 us less, at all sizes.")
        report.table(["size", "way", "fsync", "verify", "clients", "credit", "pull", "less by"],
                     [[show_size(r["size"]), r["way"], r["fsync"], r["verify"], r["clients"], show(r["credit_us"], 0),
                       show(r["pull_us"], 0), show(r["pull_less_us"], 0)] for r in self.rows])
        report.dicts("latency", self.rows)
        sizes = sorted({r["size"] for r in self.rows})
        for way in ("get", "put"):
            for clients in (1, 8):
                rows = {r["size"]: r for r in self.rows if (r["way"], r["clients"], r["fsync"], r["verify"]) == (
                    way, clients, "never", "wire")}
                name = f"latency-{way}-{clients}"
                report.csv(name, ["bytes", *ENGINES], [[s, rows[s]["credit_us"], rows[s]["pull_us"]] for s in sizes])
                report.plot(name, f"One {way}, clients: {clients}", "bytes", "us", (2, 3), "xy")
