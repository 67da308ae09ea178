#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The passive server: what the engine pull costs the daemon, beside the others, as tables and a CSV.

    make bench-pull                          the engines by block and by size of files, 1 and 8 clients
    make bench-pull BENCH_ARGS=--quick       fewer points and one round: to see that it works

Blocks come from memory and go there (the shell's bench), so that disks do not count; files lie in a
directory of memory.  The engines take turns, round by round; a figure is the median of the rounds, and a
ratio that of the rounds' ratios to credit.  CPU is the daemon's, and of the fabric soft it includes the
threads that play the adapter, which the column says: with a real adapter their work is not the CPU's.
A request is a block, or a file where files are what is counted.  He et al. have their server's CPU fall to
a half, and throughput rise by 27 % with one client and 46 to 80 % with many, with requests of 4 KB, on
InfiniBand; from 256 KB on both are the same.

Then many sessions, each a client that gets files one after the other: requests a second and the CPU of the server for
each, of the daemon that answers (credit) and the one that is read from (pull, replies too), and of rsync's daemon,
vsftpd and nginx where they are installed; a session of rsync is one list of files.  And what a request takes by
itself, read and answered, with and without fsync, and with what crossed alone verified or both disks, too: without any
verification nothing crosses here.  He et al. have 10 to 500 connections, 5 KB to 100 MB, and 50 to 100 us less a request.
"""

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

import rftptest  # noqa: E402
from bench import parse_size, show_size  # noqa: E402
from pull_sessions import Sessions  # noqa: E402

ENGINES = ("credit", "status", "pull")


def cpu_of(pid):
    """Seconds of a process, also of threads that have ended, and of them those of the fabric's threads."""
    fabric = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm", "rb") as f:
                name = f.read()
            with open(f"/proc/{pid}/task/{task}/schedstat", "rb") as f:
                fabric += int(f.read().split()[0]) if name == b"rftp-soft\n" else 0
        except OSError:
            continue  # it has ended: it is none of the fabric's
    return time.clock_gettime(~pid << 3 | 2), fabric / 1e9  # clock_getcpuclockid(3)


class Bench:
    def __init__(self, options, top):
        self.options, self.top = options, top
        self.export = f"{top}/export"
        os.makedirs(self.export)
        self.daemon = rftptest.Daemon(self.export, "rw", "--fabric", "soft", "--log-level", "error", "--control",
                                      f"{top}/control")
        self.rows = []

    def stats(self):
        said = subprocess.run([os.path.join(rftptest.BUILD, "rftpctl"), "-s", f"{self.top}/control", "-j", "stats"],
                              capture_output=True, check=True).stdout
        return json.loads(said)

    def requests(self):
        """That the daemon has started on data channels, for clients that it knows to have gone."""
        found = rftptest.wait_until(lambda: (s := self.stats())["sessions"] == 0 and s, "all sessions have ended")
        return sum(row["data_requests"] for row in found["by"])

    def cpu(self):
        return cpu_of(self.daemon.process.pid)

    def replies(self):
        """To clients that read them: laid out, asked for, sent"""
        found = self.stats()
        return [found[f"replies_{name}"] for name in ("laid_out", "asked_for", "sent")]

    def run(self, commands):
        """All at once -> seconds, the daemon's CPU, of it the fabric's, requests that it started"""
        cpu, before, begin = cpu_of(self.daemon.process.pid), self.requests(), time.monotonic()
        failed = []

        def one(command):
            done = subprocess.run([os.path.join(rftptest.BUILD, "rftp"), "-q", *command], capture_output=True,
                                  env=rftptest.clean_environment(None))
            if done.returncode:
                failed.append(done.stderr.decode())
        threads = [threading.Thread(target=one, args=(command,)) for command in commands]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            sys.exit(f"a client failed: {failed[0]}")
        seconds, after = time.monotonic() - begin, cpu_of(self.daemon.process.pid)
        return seconds, after[0] - cpu[0], after[1] - cpu[1], self.requests() - before

    def point(self, kind, size, way, clients, commands, count, volume):
        """commands: of an engine, the clients' -> the rows of all engines"""
        found = {engine: [] for engine in ENGINES}
        for turn in range(self.options.rounds):
            for engine in ENGINES[turn % 3:] + ENGINES[:turn % 3]:
                found[engine].append(self.run(commands(engine)))
        for engine in ENGINES:
            runs, base = found[engine], found["credit"]
            median = [statistics.median(run[i] for run in runs) for i in range(4)]

            def ratio(i):
                pairs = [run[i] / other[i] for run, other in zip(runs, base) if other[i]]
                return statistics.median(pairs) if pairs else None
            speed, cpu = ratio(0), ratio(1)
            row = {"kind": kind, "size": size, "way": way, "clients": clients, "engine": engine,
                   "mb_s": volume / median[0] / 1e6, "requests_s": count / median[0],
                   "cpu_us_a_request": median[1] / count * 1e6, "cpu_s_a_gb": median[1] / volume * 1e9,
                   "of_it_fabric": median[2] / median[1] if median[1] else 0,
                   "daemon_started": median[3], "speed_to_credit": 1 / speed if speed else None,
                   "cpu_to_credit": cpu}
            self.rows.append(row)
            print(f"{kind:5} {show_size(size):>8} {way} {clients:2} x  {engine:6} {row['mb_s']:8.1f} MB/s "
                  f"{row['requests_s']:9.0f}/s  CPU {row['cpu_us_a_request']:8.1f} us each "
                  f"({100 * row['of_it_fabric']:3.0f} % fabric)  started {row['daemon_started']:8.0f}  "
                  f"speed {row['speed_to_credit'] or 0:5.2f}  CPU {row['cpu_to_credit'] or 0:5.2f}", flush=True)

    def blocks(self, size, way, clients):
        each = self.options.bytes // clients
        url = self.daemon.url("")
        self.point("block", size, way, clients,
                   lambda engine: [["--engine", engine, "--block", str(size), "-c", f"bench {each} {way}", url]] * clients,
                   each * clients / size, each * clients)

    def files(self, size, way, clients):
        """Each client its own tree."""
        count = max(8, min(self.options.files, self.options.bytes // size) // clients)
        trees = [f"{self.top}/tree{i}" for i in range(clients)]
        for tree in trees:
            os.makedirs(tree)
            for number in range(count):
                with open(f"{tree}/{number}", "wb") as f:
                    f.write(os.urandom(size))
        if way == "get":
            for tree in trees:
                shutil.move(tree, self.export)
        names = [os.path.basename(tree) for tree in trees]

        def commands(engine):
            shutil.rmtree(f"{self.top}/to", ignore_errors=True)
            os.makedirs(f"{self.top}/to")
            for name in names if way == "put" else ():
                shutil.rmtree(f"{self.export}/{name}", ignore_errors=True)
            return [["--engine", engine, "-r", "--fsync", "never",
                     *((tree, self.daemon.url("")) if way == "put" else (self.daemon.url(name), f"{self.top}/to/"))]
                    for tree, name in zip(trees, names)]
        self.point("file", size, way, clients, commands, count * clients, count * clients * size)
        for where in (self.export, self.top):
            for name in names:
                shutil.rmtree(f"{where}/{name}", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--bytes", type=parse_size, help="that a run moves at most")
    parser.add_argument("--files", type=int, help="that a run moves at most")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.bytes = options.bytes or (64 << 20 if options.quick else 1 << 30)
    options.files = options.files or (200 if options.quick else 5000)
    blocks = (64 << 10, 1 << 20) if options.quick else (64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20)
    sizes = (4 << 10, 256 << 10) if options.quick else (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
    top = tempfile.mkdtemp(prefix="rftp-bench-pull-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        bench = Bench(options, top)
        for way in ("get", "put"):
            for clients in (1, 8):
                for size in blocks:
                    bench.blocks(size, way, clients)
                for size in sizes:
                    bench.files(size, way, clients)
        sessions = Sessions(bench)
        sessions.start_others()
        try:
            sessions.many()
        finally:
            sessions.stop_others()
        sessions.latency()
        laid, asked, sent = bench.replies()
        print(f"replies by READ: {laid} laid out, {asked} times asked for a SEND, {sent} sent")
        bench.daemon.stop()
    finally:
        shutil.rmtree(top, ignore_errors=True)
    out = os.path.join(rftptest.BUILD, "bench")
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/pull.csv", "w", newline="", encoding="ascii") as f:
        writer = csv.DictWriter(f, bench.rows[0].keys())
        writer.writeheader()
        writer.writerows(bench.rows)
    print(f"{out}/pull.csv")
    sessions.write(out)
    if sent > asked:
        sys.exit("the daemon sent replies that nobody asked for")
    if any(row["daemon_started"] for row in bench.rows if row["engine"] == "pull"):
        sys.exit("with pull the daemon started requests")


main()
