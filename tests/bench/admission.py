#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What admission by priority does to latency: simulated, and measured on a daemon.

    make bench-admission                            the simulation, and the daemon at loads 0.09 and 0.66
    make bench-admission BENCH_ARGS=--quick         short: to see that it works
    make bench-admission BENCH_ARGS='--output DIR --seconds 300 --loads 0.5,0.66,0.8'

The workload is that of the paper on priority-based RDMA transmission control (P-RDMA-TCM): twelve
sources before a bottleneck, one with critical events of one frame, eleven with tolerant ones of 15
frames, as Poisson processes; a tenth of the events, or of the bytes, is critical.  A latency counts
from the moment that an event is generated to the server's word that it is stored.

The simulation (tests/bench/admission_sim) is on the daemon's own module, at the paper's rates.  The
measurement is on a real daemon over soft, with rftp clients, scaled by 20: 1 Gb/s, shares of 500 Mb/s,
frames and turns of 1.244 MB, so that a frame takes the same 20 ms.  Both use the same seeded traces
for every way of deciding: fifo (one class), priority, and, for its CPU, none (no bandwidth is set).

Writes CSV and, where gnuplot is installed, plots, with what the paper states as text: P95 of critical
data at load 0.9 of about 45 ms, and 20 ms less for strict priorities in a switch (SPQ).  Exit code 1
when a transfer failed.  Figures depend on the host and are only shown.
"""

import argparse
import csv
import json
import math
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

import rftptest  # noqa: E402

SOURCES, FRAMES = 12, 15
SCALE = 20
FRAME = 3840 * 2160 * 3 // SCALE
BANDWIDTH, SHARE = 125_000_000, 62_500_000
CLASSES = ["--class", "critical 0 path=/critical", "--class", "tolerant 1 path=/tolerant"]
WAYS = {  # name: (arguments of the daemon)
    "fifo": ["--turn", str(FRAME)],
    "priority": ["--turn", str(FRAME), *CLASSES],
    "fifo none": ["--turn", "none"],
    "priority none": ["--turn", "none", *CLASSES],
    "no control": None,
}
LIMITS_S = {"critical": 0.1, "tolerant": 1.0}


def trace(seed, load, seconds, of_bytes):
    """-> for each source, when its events are generated"""
    total = load * BANDWIDTH
    if of_bytes:
        critical, tolerant = 0.1 * total / FRAME, 0.9 * total / (FRAMES * FRAME)
    else:
        events = total / (0.1 * FRAME + 0.9 * FRAMES * FRAME)
        critical, tolerant = 0.1 * events, 0.9 * events
    found = []
    for source in range(SOURCES):
        generator = random.Random(seed * 1000003 + source)
        rate = tolerant / (SOURCES - 1) if source else critical
        at, times = 0, []
        while (at := at + generator.expovariate(rate)) < seconds:
            times.append(at)
        found.append(times)
    return found


class Client:
    """One rftp, which puts one event at a time."""

    def __init__(self, command, daemon):
        self.command = command
        self.process = rftptest.start_rftp("--json", daemon.url(""), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.put()  # connected, its data channels open

    def put(self):
        """-> whether it was stored"""
        self.process.stdin.write(self.command)
        self.process.stdin.flush()
        for line in self.process.stdout:
            found = json.loads(line)
            if found["event"] == "done":
                return not found["errors"]
        return False

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class Source(threading.Thread):
    """Puts its events when they are generated, each by a client that has nothing else to do."""

    def __init__(self, number, daemon, file, times):
        super().__init__()
        kind = "tolerant" if number else "critical"
        # as many as a source has under way at once, but for the highest loads
        self.clients = [Client(f"put {file} /{kind}/{number}\n".encode(), daemon) for _ in range(3 if number else 6)]
        self.idle = queue.SimpleQueue()
        for client in self.clients:
            self.idle.put(client)
        self.times, self.latencies, self.failed = times, [], 0

    def one(self, at):
        client = self.idle.get()
        if client.put():
            self.latencies.append(time.monotonic() - self.begins - at)
        else:
            self.failed += 1
        self.idle.put(client)

    def run(self):
        busy = []
        for at in self.times:
            time.sleep(max(0, self.begins + at - time.monotonic()))
            busy.append(threading.Thread(target=self.one, args=(at,)))
            busy[-1].start()
        for thread in busy:
            thread.join()

    def end(self):
        for client in self.clients:
            client.end()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else math.nan


class Run:
    """What all rounds of one way together came to."""

    def __init__(self, way, load):
        self.way, self.load = way, load
        self.latencies = {kind: [] for kind in LIMITS_S}
        self.events = {kind: 0 for kind in LIMITS_S}
        self.failed = {kind: 0 for kind in LIMITS_S}
        self.cpu = self.seconds = 0

    def round(self, top, times):
        export = f"{top}/export"
        shutil.rmtree(export, ignore_errors=True)
        os.makedirs(f"{export}/critical")
        os.makedirs(f"{export}/tolerant")
        limits = WAYS[self.way]
        arguments = [] if limits is None else ["--bandwidth", str(BANDWIDTH), "--share", str(SHARE), "--age", "0", *limits]
        daemon = rftptest.Daemon(export, "rw", "--log-level", "error", *arguments)
        sources = [Source(i, daemon, f"{top}/{'tolerant' if i else 'critical'}", times[i]) for i in range(SOURCES)]
        cpu, began = cpu_seconds(daemon.process.pid), time.monotonic()
        for s in sources:
            s.begins = began
            s.start()
        for s in sources:
            s.join()
        self.seconds += time.monotonic() - began
        self.cpu += cpu_seconds(daemon.process.pid) - cpu
        for s in sources:
            kind = "tolerant" if s is not sources[0] else "critical"
            self.latencies[kind] += s.latencies
            self.events[kind] += len(s.times)
            self.failed[kind] += s.failed
            s.end()
        daemon.stop()
        rftptest.kill_all()

    def rows(self):
        found = []
        for kind, limit in LIMITS_S.items():
            some, events = self.latencies[kind], self.events[kind]
            found.append({"way": self.way, "load": self.load, "class": kind, "events": events,
                          "failed": self.failed[kind], "p50_ms": percentile(some, 0.5) * 1e3,
                          "p95_ms": percentile(some, 0.95) * 1e3,
                          "accepted": sum(x <= limit for x in some) / events if events else 1,
                          "cpu": self.cpu / self.seconds})
        return found


def show(rows):
    print(f"{'way':14} {'load':>5} {'class':9} {'events':>6} {'failed':>6} {'P50 ms':>9} {'P95 ms':>9} "
          f"{'in time':>7} {'CPU':>6}")
    for r in rows:
        print(f"{r['way']:14} {r['load']:5.2f} {r['class']:9} {r['events']:6} {r['failed']:6} "
              f"{r['p50_ms']:9.1f} {r['p95_ms']:9.1f} {r['accepted']:7.2f} {r['cpu']:6.3f}", flush=True)


def judge(rows):
    """The ratios that matter, where their runs are there."""
    p95 = {(r["way"], r["load"], r["class"]): r["p95_ms"] for r in rows}
    for load in sorted({r["load"] for r in rows}):
        for one, other, kind, most in (("priority", "fifo", "critical", 0.5), ("priority", "fifo none", "critical", 0.3),
                                       ("priority", "fifo", "tolerant", 1.05)):
            a, b = p95.get((one, load, kind)), p95.get((other, load, kind))
            if a and b:
                print(f"load {load:.2f}: P95 of {kind}, {one} / {other}: {a / b:.3f}"
                      + (f" (at most {most}: {'yes' if a / b <= most else 'no'})" if load == 0.66 else ""))


def write_csv(path, rows):
    with open(path, "w", newline="") as f:
        writer = csv.DictWriter(f, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


# ---- the simulation ----

def simulate(output, seconds, seed):
    path = os.path.join(rftptest.BUILD, "tests", "bench", "admission_sim")
    with open(f"{output}/simulation.csv", "w") as f:
        subprocess.run([path, str(seconds), str(seed)], stdout=f, check=True)
    with open(f"{output}/simulation.csv") as f:
        return list(csv.DictReader(f))


def show_simulation(rows):
    print(f"{'10 % of':7} {'way':8} {'turn':>8} {'load':>5} {'class':9} {'events':>6} {'P50 ms':>9} {'P95 ms':>9} "
          f"{'in time':>7} {'packets dropped':>15}")
    for r in rows:
        print(f"{r['ten_percent_of']:7} {r['way']:8} {r['turn_bytes'] or '-':>8} {r['load']:>5} {r['class']:9} "
              f"{r['events']:>6} {float(r['p50_ms']):9.1f} {float(r['p95_ms']):9.1f} {float(r['accepted']):7.2f} "
              f"{r['dropped_packets']:>15}")


FIGURES = [("fig6", "critical", "p95_ms", "P95 of critical data, ms"), ("fig6-median", "critical", "p50_ms", "median of critical data, ms"),
           ("fig7", "tolerant", "p95_ms", "P95 of tolerant data, ms"), ("fig7-median", "tolerant", "p50_ms", "median of tolerant data, ms"),
           ("fig8-critical", "critical", "accepted", "critical bytes within 100 ms"),
           ("fig8-tolerant", "tolerant", "accepted", "tolerant bytes within 1 s")]
PAPER = {"fig6": [("paper, P-RDMA-TCM (text)", 0.9, 45), ("paper, SPQ (text)", 0.9, 25)]}


def plot(output, simulated, measured):
    """One file a figure and reading: every way as a line, what was measured and what the paper says as points."""
    if not shutil.which("gnuplot"):
        print("gnuplot is not installed: no plots")
        return
    for figure, kind, column, title in FIGURES:
        for reading in ("events", "bytes"):
            blocks, plots = [], []

            def add(name, points, style):
                points = [(x, y) for x, y in points if math.isfinite(y) and y > 0]
                if points:
                    blocks.append(f"$d{len(blocks)} << E\n" + "".join(f"{x} {y}\n" for x, y in points) + "E\n")
                    plots.append(f"$d{len(blocks) - 1} using 1:2 with {style} title '{name}'")
            for way, turn in (("fifo", "25000000"), ("priority", "25000000"), ("fifo", "none"), ("priority", "none"), ("spq", "")):
                add(f"{way}, {'turns of 25 MB' if turn.isdigit() else 'no turns' if turn else 'no control'}, simulated",
                    [(float(r["load"]), float(r[column])) for r in simulated if r["way"] == way and
                     r["turn_bytes"] == turn and r["ten_percent_of"] == reading and r["class"] == kind], "linespoints")
            for way in WAYS:
                add(f"{way}, measured", [(r["load"], r[column]) for r in measured if r["way"] == way and
                                         r["class"] == kind and r["reading"] == reading], "points pointsize 2")
            for name, x, y in PAPER.get(figure, []):
                add(name, [(x, y)], "points pointtype 7")
            if not any(simulated) and not any(r["reading"] == reading for r in measured):
                continue
            scale = "" if column == "accepted" else "set logscale y\n"
            script = "".join(blocks) + (f"set terminal svg size 900,600\nset output '{output}/{figure}-{reading}.svg'\n"
                                        f"set title '{title}; a tenth of the {reading} is critical'\n"
                                        f"set xlabel 'offered load'\nset key outside bottom center\n{scale}"
                                        f"plot {', '.join(plots)}\n")
            subprocess.run(["gnuplot"], input=script.encode(), check=True)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=os.path.join(rftptest.BUILD, "admission"), help="where CSV and plots go")
    parser.add_argument("--seconds", type=float, default=60, help="of each way on the daemon")
    parser.add_argument("--rounds", type=int, default=6, help="into which these are cut")
    parser.add_argument("--loads", default="0.09,0.66", help="of the daemon")
    parser.add_argument("--ways", default=",".join(WAYS), help="of these, with commas between")
    parser.add_argument("--reading", default="bytes", choices=["bytes", "events"], help="a tenth of them is critical")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--simulated-seconds", type=float, default=600)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["simulation", "daemon"])
    a = parser.parse_args()
    if a.quick:
        a.seconds, a.rounds, a.simulated_seconds = 4, 1, 10
    os.makedirs(a.output, exist_ok=True)
    simulated, measured = [], []
    print(f"seed {a.seed}")
    if a.only != "daemon":
        simulated = simulate(a.output, a.simulated_seconds, a.seed)
        show_simulation(simulated)
    if a.only != "simulation":
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="rftp-admission-", dir=shm) as top:
            for kind, frames in (("critical", 1), ("tolerant", FRAMES)):
                with open(f"{top}/{kind}", "wb") as f:
                    f.write(os.urandom(FRAME) * frames)
            for load in map(float, a.loads.split(",")):
                # the ways take turns, so that what else the host does concerns them alike
                runs = [Run(way, load) for way in a.ways.split(",")]
                for number in range(a.rounds):
                    times = trace(a.seed * 1000 + number, load, a.seconds / a.rounds, a.reading == "bytes")
                    for run in runs:
                        run.round(top, times)
                rows = [r for run in runs for r in run.rows()]
                show(rows)
                measured += [r | {"reading": a.reading} for r in rows]
        write_csv(f"{a.output}/measured.csv", measured)
        judge(measured)
    plot(a.output, simulated, measured)
    print(f"in {a.output}: {', '.join(sorted(os.listdir(a.output)))}")
    rftptest.kill_all()
    return 1 if any(r["failed"] for r in measured) else 0


if __name__ == "__main__":
    sys.exit(main())
