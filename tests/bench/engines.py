#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The experiments of the status-byte paper (Xiao et al., section 4) on rftp's own engines.

    make bench-engines                           all of it on the fabric soft: about ten minutes
    make bench-engines BENCH_ARGS=--quick        fewer points, shorter runs: one minute
    make bench-engines BENCH_ARGS='--fabric verbs --host 10.0.0.1'

tests/bench/engine_bench does each measurement, with two processes on this host.  What is compared runs
in turn, round by round, so that a change of the machine's mood meets all of them; a figure is the median
of the rounds, a ratio the median of the rounds' ratios.  The tables go to stdout and build/bench/; there,
too, go one CSV a figure and, where gnuplot is installed, one SVG each.
"""

import argparse
import csv
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

from tables import median, show, show_size

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINES = ("credit", "window", "status")
BLOCKS = 3                  # a side, as in the paper
MORE_BLOCKS = 16            # as the tool has at least
MORE_SIZES = (256, 4 << 10, 64 << 10)
RETAIN_SIZES = (256 << 10, 4 << 20)  # waiting limits the rate, and moving the data does; the first is plotted
BIN_MS = 5
DEVICES = 12


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def variation(values):
    return statistics.pstdev(values) / statistics.mean(values) if len(values) > 1 else None


class Bench:
    def __init__(self, options, build):
        self.options = options
        self.program = os.path.join(build, "tests", "bench", "engine_bench")
        self.out = os.path.join(build, "bench")
        self.text = []
        self.runs = []
        self.lost = {}
        self.failures = 0
        width, height = map(int, options.frame.split("x"))
        self.frame = 3 * width * height
        self.load = os.getloadavg()[0]
        os.makedirs(self.out, exist_ok=True)

    # ---- running ----

    def run(self, what, engine, **options):
        command = [self.program, what, "--engine", engine, "--fabric", self.options.fabric,
                   "--host", self.options.host]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=150, check=False)
            result = json.loads(done.stdout) if done.returncode == 0 else None
            why = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        except (subprocess.TimeoutExpired, json.JSONDecodeError) as e:
            result, why = None, [str(e)]
        if result is None:
            self.failures += 1
            self.lost.setdefault(f"{what} with {engine}: {why[0]}", []).append(options)
            print(f"  {' '.join(command[1:])}: {why[0]}", file=sys.stderr)
            return None
        self.runs.append({**result, "samples": None, "cost": None, "landed": None, "posted": None})
        return result

    def rounds(self, title, points, rounds, action):
        """{(point, engine): [result a round]}"""
        results = {(p, e): [] for p in points for e in ENGINES}
        for number in range(rounds):
            print(f"{title}, round {number + 1} of {rounds}", file=sys.stderr)
            for point in points:
                for k in range(len(ENGINES)):
                    engine = ENGINES[(k + number) % len(ENGINES)]
                    results[point, engine].append(action(point, engine))
        return results

    # ---- showing ----

    def say(self, *lines):
        self.text += list(lines) + [""]

    def table(self, head, rows):
        lines = ["| " + " | ".join(str(c) for c in row) + " |" for row in [head, ["---"] * len(head), *rows]]
        self.say(*lines)

    def csv(self, name, head, rows):
        with open(os.path.join(self.out, f"engines-{name}.csv"), "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(head)
            writer.writerows([["" if c is None else c for c in row] for row in rows])

    def plot(self, name, title, xlabel, ylabel, columns, log="", style="linespoints", extra=""):
        if not shutil.which("gnuplot"):
            return
        base = os.path.join(self.out, f"engines-{name}")
        curves = ", ".join(f"'{base}.csv' using 1:{i} with {style} title columnheader({i})"
                           for i in columns)
        script = (f"set terminal svg size 720,420 background 'white'\nset output '{base}.svg'\n"
                  f"set datafile separator ','\nset title '{title}'\nset xlabel '{xlabel}'\n"
                  f"set ylabel '{ylabel}'\nset grid\nset key outside bottom horizontal\n"
                  + (f"set logscale {log}\n" if log else "") + extra + f"plot {curves}\n")
        done = subprocess.run(["gnuplot"], input=script, text=True, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            print(f"gnuplot: {name}: {done.stderr.strip()}", file=sys.stderr)

    def ratio(self, results, point, above, below, figure):
        """Median of the rounds' ratios of two engines."""
        ratios = []
        for a, b in zip(results[point, above], results[point, below]):
            fa, fb = a and figure(a), b and figure(b)
            if fa is not None and fb:
                ratios.append(fa / fb)
        return median(ratios)

    def figures(self, results, point, figure):
        return [median(figure(r) for r in results[point, e] if r) for e in ENGINES]

    # ---- the experiments ----

    def synchronization(self):
        points = (3, 16, 512) if self.options.quick else (3, 8, 16, 64, 256, 512)
        count = 60 if self.options.quick else 200
        results = self.rounds("synchronization", points, self.options.rounds, lambda n, e: self.run(
            "sync", e, size=64, source_blocks=n, sink_blocks=n, count=count))

        def middle(r):
            return median(r["samples"][5:]) / 1e3

        def tail(r):
            return quantile(r["samples"][5:], 0.95) / 1e3

        def cost(r):
            return median(r["cost"][5:]) / r["sink_blocks"]

        rows, raw = [], []
        for n in points:
            mid = self.figures(results, n, middle)
            high = self.figures(results, n, tail)
            work = self.figures(results, n, cost)
            raw.append([n, *mid, *high, *work])
            rows.append([n, *(f"{show(m)} ({show(h)})" for m, h in zip(mid, high)),
                         show(self.ratio(results, n, "window", "status", middle), 2),
                         *(show(w, 0) for w in work)])
        self.say("### Delay of synchronization (Fig. 10, 11)",
                 "From the sink's emptying n full blocks (`status`: from the source's question) until the "
                 "source knows of n free ones: µs, median and (95th percentile); and what giving one block "
                 "back costs the sink's thread: ns.  The paper, n = 3: status 5.1 µs, window 70 µs.")
        self.table(["blocks", *ENGINES, "window / status", *(f"{e}, sink ns a block" for e in ENGINES)], rows)
        self.csv("sync", ["blocks", *ENGINES, *(f"{e} p95" for e in ENGINES),
                          *(f"{e} sink ns" for e in ENGINES)], raw)
        self.plot("sync", "Delay of synchronization", "blocks", "us", (2, 3, 4), "xy")
        series = {e: next((r["samples"] for r in reversed(results[3, e]) if r), []) for e in ENGINES}
        self.csv("sync-series", ["transmission", *ENGINES],
                 [[i, *(series[e][i] / 1e3 if i < len(series[e]) else None for e in ENGINES)]
                  for i in range(count)])
        self.plot("sync-series", "Delay of synchronization, three blocks", "transmission", "us", (2, 3, 4),
                  "y", "points")

    def sizes(self):
        if self.options.sizes:
            return [int(size) for size in self.options.sizes.split(",")]
        if self.options.quick:
            return [64, 256, 4 << 10, 64 << 10, 1 << 20, 8 << 20]
        return [64 << k for k in range(0, 18)]

    def latency(self):
        count = 100
        results = self.rounds("latency", self.sizes(), self.options.rounds, lambda n, e: self.run(
            "latency", e, size=n, source_blocks=BLOCKS, sink_blocks=BLOCKS, count=count))

        def middle(r):
            return median(r["samples"][10:]) / 1e3

        rows, raw = [], []
        for n in self.sizes():
            mid = self.figures(results, n, middle)
            raw.append([n, *mid])
            less = median(middle(w) - middle(s) for w, s in
                          zip(results[n, "window"], results[n, "status"]) if w and s)
            rows.append([show_size(n), *(show(m) for m in mid), show(less)])
        self.say("### Delay of one block (Fig. 12)",
                 f"From before the posting until the sink's loop has the block, one at a time, {count} a "
                 "round: median, µs.  The paper: status 2 ns to 3.4 µs below window.")
        self.table(["block", *ENGINES, "window - status"], rows)
        self.csv("latency", ["bytes", *ENGINES], raw)
        self.plot("latency", "Delay of one block", "bytes", "us", (2, 3, 4), "xy")

    def speed(self, r):
        return r["blocks"] * r["size"] / r["ns"] * 1e3 if r["ns"] else None

    def per_block(self, side, what):
        # with both sides in one process its CPU cannot be told apart
        if self.options.fabric == "loop" and what == "cpu_ns":
            what = "thread_ns"
        return lambda r: r[side][what] / 1e3 / max(1, r["blocks"])

    def share(self, side, what):
        if self.options.fabric == "loop" and what == "cpu_ns":
            what = "thread_ns"
        return lambda r: 100 * r[side][what] / r["ns"]

    def throughput(self, name, heading, blocks, sizes, paper):
        ms = 250 if self.options.quick else 600
        results = self.rounds(f"throughput, {blocks} blocks", sizes, self.options.rounds + 2,
                              lambda n, e: self.run("flow", e, size=n, source_blocks=blocks,
                                                    sink_blocks=blocks, ms=ms))
        rows, raw = [], []
        for n in sizes:
            mid = self.figures(results, n, self.speed)
            ratios = [self.ratio(results, n, "status", e, self.speed) for e in ("window", "credit")]
            raw.append([n, *mid, *ratios])
            rows.append([show_size(n), *(show(m) for m in mid), *(show(r, 2) for r in ratios)])
        self.say(heading, f"{blocks} blocks a side, one channel, {ms} ms a run: MB/s.  {paper}")
        self.table(["block", *ENGINES, "status / window", "status / credit"], rows)
        self.csv(name, ["bytes", *ENGINES, "status / window", "status / credit"], raw)
        return results

    def flow(self):
        results = self.throughput("throughput", "### Throughput (Fig. 13, 14)", BLOCKS, self.sizes(),
                                  "The paper: status 4.6 times window at 256 B, about the same from 512 KiB "
                                  "on, never below.")
        self.plot("throughput", "Throughput, three blocks a side", "bytes", "MB/s", (2, 3, 4), "xy")
        self.processor(results)
        if (64 << 10) in self.sizes():
            self.resources(results)

    def more(self):
        self.throughput("throughput-more", "### Throughput with more blocks", MORE_BLOCKS, MORE_SIZES,
                        "Not in the paper: with three blocks, waiting for each other limits all engines.")

    def processor(self, results):
        rows, raw = [], []
        means = {(side, what): [] for side in ("source", "sink") for what in ("cpu_ns", "thread_ns")}
        shares = {"source": [], "sink": []}
        for n in self.sizes():
            row, line = [show_size(n)], [n]
            for side in ("source", "sink"):
                share = self.figures(results, n, self.share(side, "cpu_ns"))
                ratio = {w: self.ratio(results, n, "status", "window", self.per_block(side, w))
                         for w in ("cpu_ns", "thread_ns")}
                for what, r in ratio.items():
                    means[side, what].append(r)
                shares[side].append(self.ratio(results, n, "status", "window", self.share(side, "cpu_ns")))
                row += [" / ".join(show(u, 0) for u in share), *(show(r, 2) for r in ratio.values())]
                line += [*share, *self.figures(results, n, self.per_block(side, "cpu_ns")),
                         *self.figures(results, n, self.per_block(side, "thread_ns"))]
            rows.append(row)
            raw.append(line)
        names = " / ".join(ENGINES)
        self.say("### CPU (Fig. 15)",
                 "Of the same runs.  Share: of one CPU, in per cent, with the fabric's own threads (on `soft` "
                 "they do an adapter's work).  Then status to window, CPU time a block: with those threads, and "
                 "that of the engine's thread alone.  The paper: status's share 20 % below window's at the "
                 "source, on average.")
        self.table(["block", f"source: {names}", "status / window", "engine's thread",
                    f"sink: {names}", "status / window", "engine's thread"], rows)

        def mean(values):
            return show(statistics.mean([v for v in values if v is not None] or [0]), 2)

        self.say("Status to window, averaged over the sizes: " + "; ".join(
            f"{side}: share {mean(shares[side])}, CPU a block {mean(means[side, 'cpu_ns'])}, engine's thread "
            f"{mean(means[side, 'thread_ns'])}" for side in ("source", "sink")) + ".")
        head = ["bytes"]
        for side in ("source", "sink"):
            for what in ("%", "us a block", "us a block of its thread"):
                head += [f"{side} {e} {what}" for e in ENGINES]
        self.csv("cpu", head, raw)
        self.plot("cpu", "CPU", "bytes", "% of one CPU", (2, 3, 4, 11, 12, 13), "x")

    def resources(self, results):
        size = 64 << 10
        rows = []
        for side in ("source", "sink"):
            for engine in ENGINES:
                runs = [r for r in results[size, engine] if r]
                if not runs:
                    continue

                def per_block(r, *what, side=side):
                    return sum(r[side][w] for w in what) / max(1, r["blocks"])

                def most(what, side=side, runs=runs):
                    return max(r[side][what] for r in runs)

                rows.append([side, engine, most("send_queue"), most("receive_queue"),
                             *(show(median(per_block(r, w) for r in runs), 2)
                               for w in ("writes", "sends", "reads", "receives")),
                             show(median(per_block(r, "signalled", "receives") for r in runs), 2),
                             show(median(per_block(r, "frames") for r in runs), 2),
                             show(median(per_block(r, "sleeps") for r in runs), 2)])
        head = ["side", "engine", "send queue", "receive queue", "WRITEs", "SENDs", "READs", "receives",
                "completions", "control frames", "sleeps"]
        self.say("### Queues and requests (Fig. 16, 17)",
                 f"{BLOCKS} blocks a side, {show_size(size)}: the most that was outstanding on the data "
                 "channel, and requests a block, as counted where they are posted.  (Control frames are "
                 "SENDs on the control channel; each side keeps 8 receives there, whatever the engine.)  Sleeps: "
                 "how often a thread of that side waited, a block.")
        self.table(head, rows)
        self.csv("resources", head, rows)

    def retain(self):
        sizes = [n for n in RETAIN_SIZES if n <= max(RETAIN_SIZES[0], *self.sizes())]
        results = self.rounds("a retained block", sizes, self.options.rounds + 2,
                              lambda n, e: self.run("retain", e, size=n, source_blocks=BLOCKS,
                                                    sink_blocks=BLOCKS))

        def part(first, last):
            # bins at the borders belong to both
            def rate(r):
                bins = r["bins"][first // BIN_MS + 1:last // BIN_MS - 1]
                return sum(bins) / len(bins) / BIN_MS / 1e3
            return rate

        parts = [part(20, 100), part(100, 200), part(200, 300)]
        rows = []
        for size in sizes:
            for engine in ENGINES:
                runs = [r for r in results[size, engine] if r]
                loss = median(100 * (1 - parts[1](r) / ((parts[0](r) + parts[2](r)) / 2)) for r in runs
                              if parts[0](r) + parts[2](r))
                rows.append([show_size(size), engine, *(show(median(p(r) for r in runs), 0) for p in parts),
                             show(loss, 0, " %")])
        self.say("### A block that the sink retains from 100 ms to 200 ms (Fig. 18)",
                 f"{BLOCKS} blocks a side: MB/s.  The paper: status loses 12 %, window stops.")
        self.table(["block", "engine", "before", "while retained", "after", "loss"], rows)
        for size in sizes:
            bins = {e: [r["bins"] for r in results[size, e] if r] for e in ENGINES}
            name = "retain" if size == RETAIN_SIZES[0] else f"retain-{show_size(size).replace(' ', '')}"
            self.csv(name, ["ms", *ENGINES],
                     [[i * BIN_MS, *(median(b[i] / BIN_MS / 1e3 for b in bins[e]) for e in ENGINES)]
                      for i in range(300 // BIN_MS)])
            self.plot(name, f"A block of {show_size(size)} is retained from 100 ms to 200 ms", "ms", "MB/s",
                      (2, 3, 4))

    # how each engine carries many devices: sessions, blocks a side of each
    CARRIES = {"credit": (1, DEVICES), "status": (1, DEVICES), "window": (DEVICES, BLOCKS)}

    def devices(self):
        ms = 2000 if self.options.quick else 5000
        results = self.rounds("devices", (DEVICES,), self.options.rounds, lambda n, e: self.run(
            "devices", e, devices=n, size=self.frame, sessions=self.CARRIES[e][0], source_blocks=self.CARRIES[e][1],
            sink_blocks=self.CARRIES[e][1], ms=ms))

        def bursts(r):
            """MB/s of each 25th of a second's frames, from when they are due to the last one's landing."""
            rates = []
            for k in range(5, len(r["landed"]) // DEVICES):
                last = max(r["landed"][k * DEVICES:(k + 1) * DEVICES])
                rates.append(DEVICES * self.frame / (last - k * 40e6) * 1e3)
            return rates

        def frames(r):
            pairs = list(zip(r["posted"], r["landed"]))[5 * DEVICES:]
            return [self.frame / (b - a) * 1e3 for a, b in pairs if b > a]

        figures = [
            ("one frame MB/s", lambda r: median(frames(r)), 0),
            ("its variation", lambda r: variation(frames(r)), 2),
            ("burst of 12 MB/s", lambda r: median(bursts(r)), 0),
            ("variation", lambda r: variation(bursts(r)), 2),
            ("CPU source %", lambda r: 100 * r["source"]["cpu_ns"] / r["ns"], 1),
            ("CPU sink %", lambda r: 100 * r["sink"]["cpu_ns"] / r["ns"], 1),
            ("blocks MB a side", lambda r: r["source"]["pool"] / 1e6, 1),
            ("resident MB, source + sink", lambda r: (r["source"]["rss"] + r["sink"]["rss"]) / 1e6, 1),
        ]
        rows = []
        for engine in ENGINES:
            runs = [r for r in results[DEVICES, engine] if r]
            rows.append([engine, self.CARRIES[engine][0],
                         *(show(median(f(r) for r in runs), digits) for _, f, digits in figures)])
        self.say(f"### {DEVICES} devices, 25 frames of {self.options.frame}x3 bytes a second each (Fig. 19)",
                 f"One data channel for all, with {DEVICES} blocks a side, but for `window`: a channel "
                 f"and {BLOCKS} blocks a side for each.  Variation: standard deviation by mean.  The paper: "
                 "CPU 106 % against 168 %, memory 1.3 % against 2.4 %, status steadier.")
        self.table(["engine", "channels", *(name for name, _, _ in figures)], rows)
        runs = {e: next((bursts(r) for r in results[DEVICES, e] if r), []) for e in ENGINES}
        self.csv("devices", ["frame", *ENGINES],
                 [[k, *(runs[e][k] if k < len(runs[e]) else None for e in ENGINES)]
                  for k in range(max(map(len, runs.values())))])
        self.plot("devices", "Twelve devices: throughput of each burst", "frame", "MB/s", (2, 3, 4))

    # ---- the end ----

    def head(self):
        with open("/proc/cpuinfo") as f:
            names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
        cpu = names[0] if names else platform.machine()
        lines = [f"{time.strftime('%Y-%m-%d')}, fabric {self.options.fabric}, {os.cpu_count()} x {cpu}, "
                 f"Linux {platform.release()}, both sides on one host; medians of {self.options.rounds} "
                 "rounds or more."]
        if self.load > 0.5:
            lines.append(f"The load average was {self.load:.1f} at the start: something else was running; "
                         "ratios say more than figures.")
        for why, points in self.lost.items():
            lines.append(f"{len(points)} runs gave nothing: {why}.")
        return "\n".join(lines) + "\n\n"


def main():
    parser = argparse.ArgumentParser(description="the engines against each other")
    parser.add_argument("--quick", action="store_true", help="fewer points, shorter runs")
    parser.add_argument("--fabric", default="soft", help="soft, loop, or verbs (soft)")
    parser.add_argument("--host", default="127.0.0.1", help="address of this host on that fabric")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--sizes", metavar="BYTES,...", help="of blocks, where they vary")
    parser.add_argument("--frame", default="640x480", metavar="WIDTHxHEIGHT", help="of a device's pictures")
    parser.add_argument("--parts", default="sync,latency,flow,more,retain,devices",
                        help="comma-separated: sync,latency,flow,more,retain,devices")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 5)
    build = os.environ.get("RFTP_BUILD") or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")

    bench = Bench(options, build)
    parts = {"sync": bench.synchronization, "latency": bench.latency, "flow": bench.flow,
             "more": bench.more, "retain": bench.retain, "devices": bench.devices}
    for part in options.parts.split(","):
        if part not in parts:
            sys.exit(f"engines: no part {part!r}; there are {', '.join(parts)}")
        parts[part]()
    text = bench.head() + "\n".join(bench.text)
    with open(os.path.join(bench.out, "engines.md"), "w") as f:
        f.write(text)
    with open(os.path.join(bench.out, "engines.json"), "w") as f:
        json.dump(bench.runs, f, indent=1)
    print(text)
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
