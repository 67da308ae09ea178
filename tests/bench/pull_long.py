# SPDX-License-Identifier: Apache-2.0
"""Long transfers and many small files, and where their time goes.  Part of pull.py, which says what is what.

Network against software: the network's part of a transfer's time is what its bytes take on the fabric alone, at the rate that
it reaches with as many channels in the same run (Requests.limit in pull_requests.py), the software's is the rest.  And by CPU: of each process, that of
the fabric's threads (an adapter's work on `soft`, with all of TCP) and that of all others, from /proc/PID/task/*/schedstat
while it runs, and from wait4."""

import json
import os
import shutil
import subprocess
import sys
import time

import peers
import rftptest
from tables import median, ratio, show, show_size

ENGINES = ("credit", "status", "pull")
PASSES = 10  # of the tree, together the bytes of the long file
# He et al.'s generator makes files of these sizes, most of them small
TREE = ((100 << 20, 0.4), (10 << 20, 0.3), (1 << 20, 0.2), (200 << 10, 0.05), (50 << 10, 0.03), (5 << 10, 0.02))


class Cost:
    """Of a transfer: seconds; CPU of the client and of the daemon, in all and of the fabric's threads."""

    def __init__(self, seconds, client, daemon, channels=0):
        self.seconds, self.client, self.daemon, self.channels = seconds, client, daemon, channels

    def __add__(self, other):
        def both(a, b):
            return a[0] + b[0], a[1] + b[1]
        return Cost(self.seconds + other.seconds, both(self.client, other.client), both(self.daemon, other.daemon),
                    max(self.channels, other.channels))


def fabric_seconds(pid, seen):
    """Of the fabric's threads of a process that runs; seen: {thread: ns}, also of those that have ended."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/comm", "rb") as f:
                if f.read() != b"rftp-soft\n":
                    continue
            with open(f"/proc/{pid}/task/{task}/schedstat", "rb") as f:
                seen[task] = int(f.read().split()[0])
    except (OSError, IndexError):
        pass  # it ends just now
    return sum(seen.values()) / 1e9


class Long:
    def __init__(self, bench, requests):
        self.bench, self.requests, self.options = bench, requests, bench.options
        self.limits = {}

    # ---- running ----

    def watched(self, command, peer=None):
        """Runs a client -> Cost, what it said"""
        before = (peers.tree_cpu_seconds(peer.server.pid), 0) if peer else self.bench.cpu()
        began, seen = time.monotonic(), {}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=rftptest.clean_environment(None))
        fabric, pid = 0, 0
        while not pid:
            fabric = fabric_seconds(process.pid, seen)
            time.sleep(0.01)
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out, error = process.communicate()
        if process.returncode:
            sys.exit(f"{command}: {error.decode()[-500:]}")
        after = (peers.tree_cpu_seconds(peer.server.pid), 0) if peer else self.bench.cpu()
        return Cost(seconds, (usage.ru_utime + usage.ru_stime, fabric),
                    (after[0] - before[0], after[1] - before[1])), out

    def limit(self, channels):
        """Bytes a second"""
        channels = max(1, min(channels, 4))
        if channels not in self.limits:
            self.limits[channels] = (self.requests.limit(channels) or 0) * 1e6
        return self.limits[channels]

    # ---- Fig. 18, 19 ----

    def run(self):
        total = self.options.long_bytes
        free = os.statvfs(self.bench.top)
        room = min(free.f_bavail * free.f_frsize, available_bytes()) - (1 << 30)
        if total > room:
            self.bench.report.say(f"Of {show_size(total)}, memory holds {room >> 20} MiB: that much is moved.")
            total = room >> 28 << 28
        rows = self.whole_file(total) + self.tree(total)
        report = self.bench.report
        report.say(f"### {show_size(total)} (Fig. 18), and where the time goes (Fig. 19)",
                   "A file on tmpfs to the other side's memory, and a tree of files of 5 KiB to 100 MiB on tmpfs, a tenth of "
                   "that, put ten times (as many bytes in all; what is there is removed in between, untimed); verified.  "
                   "Network: what as many bytes take on the fabric alone, in the same run; software: the rest.  CPU in seconds, "
                   "client; daemon: of the fabric's threads + of all others.  The paper: network to software 22:77 with the "
                   "server that answers, 47:53 with the passive one.")
        report.table(["what", "how", "s", "MB/s", "network : software, %", "CPU client", "CPU daemon", "s to credit"],
                     [self.line(*row) for row in rows])
        columns = ["what", "how", "bytes", "seconds", "network_seconds", "client_cpu", "client_fabric", "daemon_cpu",
                   "daemon_fabric"]
        report.csv("long", columns, [[what, how, bytes_, cost.seconds, self.network(how, bytes_, cost), *cost.client,
                                      *cost.daemon] for what, how, bytes_, cost, _ in rows])
        self.plot(rows)

    def network(self, how, bytes_, cost):
        """Seconds; None: it is not ours"""
        limit = how in ENGINES and self.limit(cost.channels)
        return bytes_ / limit if limit else None

    def line(self, what, how, bytes_, cost, to_credit):
        network = self.network(how, bytes_, cost)
        share = network and min(100, 100 * network / cost.seconds)

        def cpu(of):
            return f"{show(of[1], 2)} + {show(of[0] - of[1], 2)}" if how in ENGINES else show(of[0], 2)
        return [what, how, show(cost.seconds, 2), show(bytes_ / cost.seconds / 1e6, 0),
                "-" if share is None else f"{share:.0f} : {100 - share:.0f}", cpu(cost.client), cpu(cost.daemon),
                show(to_credit, 2)]

    def rounds(self, contestants):
        """{name: function -> Cost} -> [(name, Cost of the middle round, ratio of the seconds to credit)]"""
        found = {name: [] for name in contestants}
        for _ in range(max(1, self.options.rounds - 1)):
            for name, action in contestants.items():
                found[name].append(action())
        base = [c.seconds for c in found["credit"]]
        return [(name, sorted(costs, key=lambda c: c.seconds)[len(costs) // 2], ratio([c.seconds for c in costs], base))
                for name, costs in found.items()]

    def whole_file(self, total):
        path = f"{self.bench.export}/long"
        with open(path, "wb") as f:
            piece = os.urandom(1 << 24)
            for at in range(0, total, len(piece)):
                f.write((at.to_bytes(8, "big") + piece[8:])[:total - at])
        os.chmod(path, 0o644)

        def one(engine, way):
            cost, out = self.watched([self.bench.rftp, "--json", "--engine", engine, "-c",
                                      f"bench {path if way == 'put' else 'long'} {way}", self.bench.daemon.url("")])
            done = [e for e in map(json.loads, out.splitlines()) if e.get("event") == "done"][-1]
            cost.channels = done["channels"]
            if done["bytes"] != total:
                sys.exit(f"{done['bytes']} bytes crossed, of {total}")
            return cost
        rows = []
        for way in ("put", "get"):
            for name, cost, to_credit in self.rounds({e: lambda e=e: one(e, way) for e in ENGINES}):
                rows.append((f"a file, {way}", name, total, cost, to_credit))
        os.unlink(path)
        return rows

    def tree(self, total):
        source, target = f"{self.bench.top}/mixed", f"{self.bench.export}/mixed"
        os.makedirs(source)
        piece, count, bytes_ = os.urandom(1 << 24), 0, 0
        for size, share in TREE:
            for _ in range(int(total / PASSES * share) // size):
                with open(f"{source}/{count}", "wb") as f:
                    for at in range(0, size, len(piece)):
                        f.write((count.to_bytes(8, "big") + piece[8:])[:size - at])
                count, bytes_ = count + 1, bytes_ + size

        def passes(command, peer=None):
            sum_ = Cost(0, (0, 0), (0, 0), 1)
            for _ in range(PASSES):
                sum_ += self.watched(command, peer)[0]
                shutil.rmtree(target)
            return sum_
        contestants = {e: lambda e=e: passes([self.bench.rftp, "-q", "--fsync", "never", "--engine", e, "-r", source,
                                              self.bench.daemon.url("")]) for e in ENGINES}
        rsync = peers.Rsync()
        if rsync.missing():
            self.bench.report.say(f"rsync is not compared: it is missing (package {rsync.package}).")
        else:
            rsync.start(self.bench.export)
            contestants["rsync daemon (TCP)"] = lambda: passes(
                ["rsync", "-r", "--whole-file", source, f"rsync://127.0.0.1:{rsync.port}/top/"], rsync)
        rows = [(f"{count} files, {PASSES} times", name, bytes_ * PASSES, cost, to_credit)
                for name, cost, to_credit in self.rounds(contestants)]
        rsync.stop()
        shutil.rmtree(source)
        return rows

    def plot(self, rows):
        report = self.bench.report
        parts = [(f"{what}, {how}", self.network(how, bytes_, cost), cost.seconds)
                 for what, how, bytes_, cost, _ in rows if how in ENGINES]
        report.csv("where", ["number", "network s", "software s"],
                   [[i, n, max(0, s - (n or 0))] for i, (_, n, s) in enumerate(parts)])
        report.bars("where", "Where the time goes", "s", (2, 3), [name for name, _, _ in parts])

    # ---- 20,000 files of 4 KiB ----

    def small(self):
        count = self.options.files * 4
        source, target, away = f"{self.bench.export}/small", f"{self.bench.export}/copy", f"{self.bench.top}/away"
        for d in range(20):
            os.makedirs(f"{source}/{d}")
            for i in range(count // 20):
                with open(f"{source}/{d}/{i}", "wb") as f:
                    f.write(os.urandom(4096))
        rsync, url = peers.Rsync(), self.bench.daemon.url
        contestants = {e: {"put": [self.bench.rftp, "-q", "--engine", e, "-r", source, url("copy")],
                           "get": [self.bench.rftp, "-q", "--engine", e, "-r", url("small"), away]}
                       for e in ("credit", "pull")}
        if not rsync.missing():
            rsync.start(self.bench.export)
            top = f"rsync://127.0.0.1:{rsync.port}/top"
            contestants["rsync daemon"] = {"put": ["rsync", "-a", f"{source}/", f"{top}/copy/"],
                                           "get": ["rsync", "-a", f"{top}/small/", f"{away}/"]}
        found = {(name, way): [] for name in contestants for way in ("put", "get")}
        for _ in range(self.options.rounds):
            for name, way in found:
                cost, _ = self.watched(contestants[name][way], rsync if name == "rsync daemon" else None)
                there = target if way == "put" else away
                if sum(len(files) for _, _, files in os.walk(there)) != count:
                    sys.exit(f"{name}, {way}: not all of {count} files arrived")
                shutil.rmtree(there)
                found[name, way].append(count / cost.seconds)
        rsync.stop()
        shutil.rmtree(source)
        self.show_small(count, found)

    def show_small(self, count, found):
        report, lines = self.bench.report, []
        for name, way in found:
            to_rsync = ratio(found[name, way], found.get(("rsync daemon", way), []))
            lines.append([name, way, show(median(found[name, way]), 0), show(to_rsync, 2)])
            if name == "pull" and to_rsync is not None and to_rsync < 1.5 and not self.options.quick:
                self.bench.failures.append(f"{count:,} files, {way}: {to_rsync:.2f} of rsync's daemon, which is below 1.5")
        report.say(f"### {count:,} files of 4 KiB, digests on", "On tmpfs, flushed as rftp does unless told otherwise "
                   "(rsync flushes nothing and verifies nothing that it has written).  The bar: 1.5 times rsync's daemon.")
        report.table(["how", "way", "files a second", "to rsync daemon"], lines)
        report.csv("small", ["how", "way", "files_s", "to_rsync"], lines)


def available_bytes():
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0
