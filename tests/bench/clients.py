#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many clients at once against one daemon, as a table.

    make bench-clients                              500 files of 16 MiB, by 8, 100 and 500 clients at once
    make bench-clients BENCH_ARGS=--quick           small files, one round: to see that it works
    make bench-clients BENCH_ARGS='--fabric soft --size 50M --rounds 1'

Each row puts the same number of files of the same size, each by a client (a process) of its own; what
differs is how many clients there are at a time.  So what a client costs by itself, to start and to
connect, is in every row, and the ratio of the rates says what the crowd costs.  The rows take turns,
round by round.

CPU is of the daemon and the clients together.  Threads and memory are the daemon's, at their peak, beyond what it has when it is idle; the budget is
what it says that transfers may have all together.  Exit code 1 when a client failed, or when the
daemon went over its budget.  Rates depend on the host and are only shown.
"""

import argparse
import collections
import os
import re
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

import rftptest  # noqa: E402
from bench import parse_size, show_size  # noqa: E402

# What a session costs beside its transfer's lease: buffers of its control channel and receives of its
# data channels.
SESSION_BYTES = 1 << 20

Budget = collections.namedtuple("Budget", "memory threads")


def budget_of(export, arguments):
    """What the daemon says that transfers may have."""
    daemon = rftptest.Daemon(export, "rw", "--log-level", "debug", *arguments)
    text = daemon.stderr().decode("utf-8", "replace")
    daemon.stop()
    found = re.search(r"transfers may have (\d+) MiB of memory, \d+ open files, (\d+) threads", text)
    return Budget(int(found[1]) << 20, int(found[2]))


def cpu_seconds(pid):
    """Of the daemon, and of the clients that have ended."""
    with open(f"/proc/{pid}/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") + usage.ru_utime + usage.ru_stime


def status(pid, name):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


class Row:
    """`files` puts, at most `clients` of them at a time, against a daemon of its own."""

    def __init__(self, clients, options, top):
        self.clients, self.options, self.top = clients, options, top
        self.rates, self.cpu, self.failures = [], [], []
        self.threads = self.resident = self.waited = 0
        self.running = {}

    def start(self, daemon, number, where):
        target = os.path.join(where, f"f{number}")
        log = open(os.path.join(self.top, f"log{number}"), "w+b")
        process = subprocess.Popen(
            [os.path.join(rftptest.BUILD, "rftp"), "-v", "--fabric", self.options.fabric,
             os.path.join(self.top, "source"), daemon.url(target)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        return process, log, target

    def end(self, daemon, process, log, target):
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
        log.close()
        os.unlink(log.name)
        self.waited += "waiting: " in text
        stored = daemon.path(target)
        if process.returncode or os.path.getsize(stored) != self.options.size:
            said = [line for line in text.splitlines() if line.strip()]
            self.failures.append(f"{process.returncode}: {said[-1] if said else ''}")
        if os.path.exists(stored):
            os.unlink(stored)  # the host's memory is for the next ones

    def run(self, export):
        daemon = rftptest.Daemon(export, "rw", *self.options.daemon)
        pid = daemon.process.pid
        where = tempfile.mkdtemp(dir=export)
        os.chmod(where, 0o755)
        idle_threads, idle_kb = daemon.threads(), status(pid, "VmHWM")
        running, started, poll = self.running, 0, select.poll()
        cpu = cpu_seconds(pid)
        begin = look = time.monotonic()
        while started < self.options.files or running:
            if started < self.options.files and len(running) < self.clients:
                one = self.start(daemon, started, os.path.basename(where))
                fd = os.pidfd_open(one[0].pid)
                poll.register(fd, select.POLLIN)
                running[fd] = one
                started += 1
            full = started == self.options.files or len(running) == self.clients
            for fd, _ in poll.poll(20 if full else 0):
                poll.unregister(fd)
                os.close(fd)
                one = running.pop(fd)
                one[0].wait()
                self.end(daemon, *one)
            if time.monotonic() > look:
                self.threads = max(self.threads, daemon.threads() - idle_threads)
                look = time.monotonic() + 0.02
                if look - begin > self.options.patience:
                    for process, *_ in running.values():
                        process.kill()
        seconds = time.monotonic() - begin
        bytes_ = self.options.files * self.options.size
        self.resident = max(self.resident, (status(pid, "VmHWM") - idle_kb) << 10)
        self.cpu.append((cpu_seconds(pid) - cpu) / (bytes_ / 1e9))
        self.rates.append(bytes_ / seconds)
        daemon.stop()
        os.rmdir(where)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--clients", default="8,100,500", help="how many at a time, a row each")
    p.add_argument("--files", type=int, default=500, help="how many are put in each row")
    p.add_argument("--size", default="16M", help="of a file")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--fabric", default="soft")
    p.add_argument("--dir", default="/dev/shm", help="where the files are, if it is there")
    p.add_argument("--patience", type=float, default=600, help="seconds for a row")
    p.add_argument("--daemon", default="", help="more arguments of the daemon")
    p.add_argument("--quick", action="store_true")
    options = p.parse_args()
    options.size = parse_size(options.size)
    options.daemon = options.daemon.split()
    if options.quick:
        options.size, options.rounds = 1 << 20, 1
    return options


def raise_descriptors():
    """A log for each client, and the daemon's sockets, whose limit is inherited."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def show(rows, budget):
    first = statistics.median(rows[0].rates)
    print("| clients at once | failed | had to wait | threads | resident | CPU s/GB | rate | ratio |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        ratios = [a / b for a, b in zip(row.rates, rows[0].rates)]
        print(f"| {row.clients} | {len(row.failures)} | {row.waited} | {row.threads} "
              f"| {row.resident / 2**20:.0f} MiB | {statistics.median(row.cpu):.2f} | {statistics.median(row.rates) / 1e9:.2f} GB/s "
              f"| {statistics.median(ratios):.2f} |")
    print(f"\nBudget: {budget.threads} threads, {budget.memory >> 20} MiB; rate of {rows[0].clients}: "
          f"{first / 1e9:.2f} GB/s")


def main():
    options = arguments()
    raise_descriptors()
    top = tempfile.mkdtemp(prefix="rftp-clients-", dir=options.dir if os.path.isdir(options.dir) else None)
    rows, bad = [], []
    try:
        export = os.path.join(top, "export")
        os.mkdir(export)
        os.chmod(top, 0o755)
        rftptest.make_file(os.path.join(top, "source"), options.size)
        budget = budget_of(export, options.daemon)
        rows = [Row(int(n), options, top) for n in options.clients.split(",")]
        print(f"{options.files} files of {show_size(options.size)} each, {options.fabric}, "
              f"{os.cpu_count()} CPUs, {options.rounds} rounds\n", flush=True)
        for _ in range(options.rounds):
            for row in rows:
                row.run(export)
        show(rows, budget)
        for row in rows:
            for text, count in collections.Counter(row.failures).most_common(8):
                bad.append(f"{row.clients} clients: {count} ended with {text}")
            if row.threads > budget.threads:
                bad.append(f"{row.clients} clients: {row.threads} threads, over {budget.threads}")
            most = budget.memory + row.clients * SESSION_BYTES
            if row.resident > most:
                bad.append(f"{row.clients} clients: {row.resident >> 20} MiB, over {most >> 20}")
    finally:
        for row in rows:
            for process, *_ in row.running.values():
                process.kill()
        rftptest.kill_all()
        shutil.rmtree(top, ignore_errors=True)
    for line in bad:
        print(line)
    sys.exit(1 if bad else 0)


main()
