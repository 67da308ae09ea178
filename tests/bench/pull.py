#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The passive server: what the engine pull costs the daemon and brings its clients, beside the engines whose daemon
answers, as He et al. have it (Fig. 2 and 9 to 19 of "Design and Optimization of a Distributed File System Based on
RDMA"), their figures beside ours.

    make bench-pull                                 all of it: about a quarter of an hour
    make bench-pull BENCH_ARGS=--quick              fewer points and one round: to see that it works
    make bench-pull BENCH_ARGS='--only threads'     one part; may be given several times

    threads    Fig. 2: requests started by the daemon and answered by it, on the fabric itself
    use        Fig. 12 to 14: use of the link and latency, on the fabric itself
    copies     Fig. 15: one copy more
    sides      Fig. 16, 17: one-sided against two-sided, with and without verification and fsync
    engines    blocks and trees of files by size, one client and eight: rates, the daemon's CPU, requests it starts
    sessions   Fig. 9 to 11: 10 to 500 sessions, beside rsync's daemon, vsftpd and nginx
    latency    Fig. 14: what one request of the shell takes, with and without fsync and verification of the disks
    long       Fig. 18, 19: 10 GiB, and where the time goes
    small      20,000 files of 4 KiB, digests on, beside rsync's daemon

tests/bench/README.md says what is measured how.  What is compared takes turns, round by round; a figure is the median
of the rounds, a ratio that of the rounds' ratios.  Tables, a CSV a figure and plots go to build/bench.  The exit code
is 1 if a run failed, if the daemon started a request or sent a reply that it was not asked for with pull, or if small
files miss their bar.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

import rftptest  # noqa: E402
from bench import parse_size  # noqa: E402
from pull_engines import Engines  # noqa: E402
from pull_latency import Latency  # noqa: E402
from pull_long import Long  # noqa: E402
from pull_requests import Requests  # noqa: E402
from pull_sessions import Sessions  # noqa: E402
from tables import Report  # noqa: E402


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
    """A daemon on `export`, clients against it, and what both cost."""

    def __init__(self, options, top, report):
        self.options, self.top, self.report = options, top, report
        self.export = f"{top}/export"
        self.rftp = os.path.join(rftptest.BUILD, "rftp")
        self.failures = []
        os.makedirs(self.export)
        self.daemon = rftptest.Daemon(self.export, "rw", "--fabric", "soft", "--log-level", "error", "--control",
                                      f"{top}/control")

    def stats(self):
        said = subprocess.run([os.path.join(rftptest.BUILD, "rftpctl"), "-s", f"{self.top}/control", "-j", "stats"],
                              capture_output=True, check=True).stdout
        return json.loads(said)

    def requests(self):
        """That the daemon has started on data channels, for clients that it knows to have gone."""
        found = rftptest.wait_until(lambda: (s := self.stats())["sessions"] == 0 and s, "all sessions have ended", 60)
        return sum(row["data_requests"] for row in found["by"])

    def cpu(self):
        return cpu_of(self.daemon.process.pid)

    def run(self, commands):
        """All at once -> seconds, the daemon's CPU, of it the fabric's, requests that it started"""
        cpu, before, begin = self.cpu(), self.requests(), time.monotonic()
        failed = []

        def one(command):
            done = subprocess.run([self.rftp, "-q", *command], capture_output=True, check=False,
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
        seconds, after = time.monotonic() - begin, self.cpu()
        return seconds, after[0] - cpu[0], after[1] - cpu[1], self.requests() - before

    def check_replies(self):
        """To clients that read them"""
        found = self.stats()
        laid, asked, sent = (found[f"replies_{name}"] for name in ("laid_out", "asked_for", "sent"))
        self.report.say(f"Replies by READ: {laid:,} laid out, {asked:,} times a client asked for a SEND, {sent:,} sent.")
        if sent > asked:
            self.failures.append("the daemon sent replies that nobody asked for")


PARTS = ("threads", "use", "copies", "sides", "engines", "sessions", "latency", "long", "small")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="PART", choices=PARTS)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--bytes", type=parse_size, help="that a run moves at most")
    parser.add_argument("--files", type=int, help="that a run moves at most")
    parser.add_argument("--long-bytes", type=parse_size, help="of the part long")
    parser.add_argument("--disk", help="a directory on a disk, for files that are flushed (build/bench)")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.bytes = options.bytes or (64 << 20 if options.quick else 512 << 20)
    options.files = options.files or (200 if options.quick else 5000)
    options.long_bytes = options.long_bytes or (256 << 20 if options.quick else 10 << 30)
    return options


def main():
    options = parse()
    wanted = options.only or PARTS
    out = os.path.join(rftptest.BUILD, "bench")
    report = Report(out, "pull", "fabric soft")
    options.disk = options.disk or out
    requests = Requests(os.path.join(rftptest.BUILD, "tests", "bench", "requests"), report, rounds=options.rounds,
                        quick=options.quick, disk=options.disk)
    top = tempfile.mkdtemp(prefix="rftp-bench-pull-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    os.chmod(top, 0o755)
    began = time.monotonic()
    try:
        bench = Bench(options, top, report)
        long = Long(bench, requests)
        parts = {"threads": requests.threads, "use": requests.use, "copies": requests.copies, "sides": requests.sides,
                 "engines": Engines(bench, requests).run, "sessions": Sessions(bench).run,
                 "latency": Latency(bench).run, "long": long.run, "small": long.small}
        for part in PARTS:
            if part in wanted:
                started = time.monotonic()
                parts[part]()
                print(f"({part}: {time.monotonic() - started:.0f} s)\n", flush=True)
        bench.check_replies()
        bench.daemon.stop()
    finally:
        rftptest.kill_all()
        shutil.rmtree(top, ignore_errors=True)
    failures = bench.failures + requests.failures
    for failure in failures:
        report.say(f"failed: {failure}")
    report.write([f"Parts: {', '.join(p for p in PARTS if p in wanted)}; {options.rounds} rounds, "
                  f"{time.monotonic() - began:.0f} s."])
    return 1 if failures else 0


sys.exit(main())
