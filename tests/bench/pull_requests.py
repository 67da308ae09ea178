#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests on a fabric itself: who starts them, who answers, and what it costs each end.

tests/bench/requests does each measurement, with two processes on this host.  Part of pull.py, which says what is
what; by itself, as in the rig:

    pull_requests.py --fabric verbs --host 10.0.0.1 [--quick] [--only threads|use|copies|sides]

What is compared runs in turn, round by round; a figure is the median of the rounds, a ratio the median of the
rounds' ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from tables import Report, median, ratio, show, show_size  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
# one-sided and started by the daemon; two-sided; one-sided and answered by it
STARTED, ANSWERED = ("write", "reply"), ("read", "place")
MANY = 8


def rate(run):
    return run["requests"] / run["ns"] * 1e9


def speed(run):
    return rate(run) * run["size"] / 1e6


def latency(run):
    return run["median_ns"] / 1e3


def daemon_cpu(run):
    """us a request, with the threads that play an adapter"""
    return run["daemon_cpu_ns"] / run["requests"] / 1e3


def daemon_own_cpu(run):
    """us a request, without them"""
    return max(0, run["daemon_cpu_ns"] - run["daemon_fabric_ns"]) / run["requests"] / 1e3


class Requests:
    def __init__(self, program, report, fabric="soft", host="127.0.0.1", rounds=3, quick=False, disk=None):
        self.program, self.report, self.fabric, self.host = program, report, fabric, host
        self.rounds, self.quick, self.disk = rounds, quick, disk
        self.failures = []

    def run(self, what, **options):
        """-> the result, or None"""
        command = [self.program, what, "--fabric", self.fabric, "--host", self.host]
        for name, value in options.items():
            if value is True:
                command.append(f"--{name}")
            elif value:
                command += [f"--{name}", str(value)]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=150,
                                  check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)
            why = "; ".join(done.stderr.strip().splitlines()) or f"exit code {done.returncode}"
        except (subprocess.TimeoutExpired, json.JSONDecodeError) as e:
            why = str(e)
        self.failures.append(f"{' '.join(command[1:])}: {why}")
        print(self.failures[-1], file=sys.stderr, flush=True)
        return None

    def turns(self, contestants, points):
        """contestants: {name: (what, options)}; points: {point: options} -> {(point, name): [result a round]}"""
        found = {(p, n): [] for p in points for n in contestants}
        names = list(contestants)
        for turn in range(self.rounds):
            for point, options in points.items():
                first = turn % len(names)
                for name in names[first:] + names[:first]:
                    what, more = contestants[name]
                    found[point, name].append(self.run(what, **{**options, **more}))
        return found

    def ms(self, most=300):
        return 120 if self.quick else most

    def sizes(self):
        return (KIB, 4 * KIB, 64 * KIB, MIB) if self.quick else (
            KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB)

    @staticmethod
    def of(runs, figure):
        return [figure(r) if r else None for r in runs]

    # ---- Fig. 2 ----

    def threads(self):
        counts = (1, 4) if self.quick else (1, 2, 4, 8, 16)
        names = STARTED + ANSWERED
        found = self.turns({n: (n, {}) for n in names},
                           {c: {"threads": c, "depth": 8, "size": 64, "ms": self.ms()} for c in counts})
        rows, raw = [], []
        for c in counts:
            rates = [median(self.of(found[c, n], rate)) for n in names]
            cpu = [median(self.of(found[c, n], daemon_cpu)) for n in names]
            own = [median(self.of(found[c, n], daemon_own_cpu)) for n in names]
            raw.append([c, *rates, *cpu, *own])
            more = ratio(self.of(found[c, "read"], rate), self.of(found[c, "write"], rate))
            rows.append([c, *(f"{show(r, 0)}; {show(u)}, {show(o)}" for r, u, o in zip(rates, cpu, own)), show(more, 2)])
        self.report.say(
            "### Requests that the daemon starts and that it answers (Fig. 2)",
            "64 bytes, eight outstanding a thread, a channel a thread: requests a second; the daemon's CPU for each in us, "
            "all of it and without the fabric's own threads (on `soft` these do an adapter's work; on rxe the kernel does "
            "it, for whoever posts).  `write`: the daemon's threads WRITE; `reply`: they answer a SEND by a SEND; `read`, "
            "`place`: the client's threads READ, WRITE, and no thread of the daemon takes part.  The paper: what the daemon "
            "starts saturates at 4 threads, what it answers does not at 16.")
        self.report.table(["threads", *names, "read to write"], rows)
        self.report.csv("threads", ["threads", *names, *(f"{n} daemon us" for n in names),
                                    *(f"{n} daemon us without the fabric" for n in names)], raw)
        self.report.plot("threads", "Requests started (write, reply) and answered (read, place)", "threads",
                         "requests a second", (2, 3, 4, 5), "x 2")

    # ---- Fig. 12 to 14 ----

    def limit(self, threads):
        """MB/s that this fabric carries between so many pairs of threads: the best of READs, WRITEs and SENDs, of 256 KiB and
        1 MiB, two outstanding a thread, unverified"""
        found = [median(self.of([self.run(what, size=size, depth=2, threads=threads, ms=self.ms(250))
                                 for _ in range(self.rounds)], speed))
                 for what in ("read", "place", "reply") for size in (256 * KIB, MIB)]
        return max((f for f in found if f is not None), default=None)

    def use(self):
        names = {"get, two-sided": ("reply", {}), "get, one-sided": ("read", {}),
                 "put, two-sided": ("store", {}), "put, one-sided": ("put", {})}
        limits = {c: self.limit(c) for c in (1, MANY)}
        for clients, figure, paper in (
                (1, 12, "4 KiB: +27 %; from 256 KB on the same; latency (Fig. 14): 50 to 100 us less, at all sizes"),
                (MANY, 13, "4 KiB: 46 % of the link, then 80 %")):
            found = self.turns(names, {s: {"size": s, "threads": clients, "verify": True, "ms": self.ms()}
                                       for s in self.sizes()})
            self.one_use(found, list(names), limits[clients], clients, figure, paper)

    def one_use(self, found, names, limit, clients, figure, paper):
        rows, raw = [], []
        for s in self.sizes():
            used = [(m := median(self.of(found[s, n], speed))) and limit and 100 * m / limit for n in names]
            took = [median(self.of(found[s, n], latency)) for n in names]
            more = [ratio(self.of(found[s, names[i + 1]], speed), self.of(found[s, names[i]], speed)) for i in (0, 2)]
            less = [(a is not None and b is not None and b - a) or None for a, b in ((took[1], took[0]), (took[3], took[2]))]
            raw.append([s, *used, *took])
            rows.append([show_size(s), *(f"{show(u, 0)} %; {show(t, 0)}" for u, t in zip(used, took)),
                         *(f"{show(m, 2)}; {show(d, 0)}" for m, d in zip(more, less))])
        self.report.say(
            f"### Use of the link with {'one client' if clients == 1 else f'{clients} clients'} (Fig. {figure}"
            f"{', 14' if clients == 1 else ''})",
            f"A client has one request outstanding, and what crosses is verified.  Per cent of {show(limit, 0)} MB/s (the "
            "most that unverified READs, WRITEs or SENDs of up to 1 MiB by as many threads reach in the same run); then the median of what a request "
            "takes, us.  One-sided, the daemon posts nothing: data, and the results of puts, are READ.  Last: one-sided "
            f"to two-sided, and us less.  The paper: {paper}.")
        self.report.table(["request", *names, "get: ratio; less", "put: ratio; less"], rows)
        name = f"use-{clients}"
        self.report.csv(name, ["bytes", *(f"{n} %" for n in names), *(f"{n} us" for n in names)], raw)
        self.report.plot(name, f"Use of the link, clients: {clients}", "bytes", "% of the limit", (2, 3, 4, 5), "x 2")
        if clients == 1:
            self.report.csv("latency-fabric", ["bytes", *names], [[r[0], *r[5:]] for r in raw])
            self.report.plot("latency-fabric", "One request, one client", "bytes", "us", (2, 3, 4, 5), "xy")

    # ---- Fig. 15 ----

    def copies(self):
        sizes = (64 * KIB, MIB) if self.quick else (16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
        names = {f"{way}, {n} more": (what, {"copies": n})
                 for way, what in (("get", "read"), ("put", "place")) for n in (0, 1, 2)}
        found = self.turns(names, {s: {"size": s, "depth": 4, "ms": self.ms()} for s in sizes})
        rows, raw = [], []
        for s in sizes:
            figures = [median(self.of(found[s, n], speed)) for n in names]
            kept = [ratio(self.of(found[s, f"{way}, {n} more"], speed), self.of(found[s, f"{way}, 0 more"], speed))
                    for way in ("get", "put") for n in (1, 2)]
            raw.append([s, *figures])
            rows.append([show_size(s), *(show(f, 0) for f in figures), " ".join(show(k, 2) for k in kept)])
        self.report.say(
            "### One copy more (Fig. 15)",
            "READs and WRITEs by one thread, four outstanding: MB/s as it is, with the data copied once more at the client "
            "(as between a program's buffer and registered memory), and twice; then what is left with one and two "
            "copies, get and put.  The paper shows the copy's bandwidth below the other's at all sizes, without figures.")
        self.report.table(["request", *names, "kept"], rows)
        self.report.csv("copies", ["bytes", *names], raw)
        self.report.plot("copies", "Copies more", "bytes", "MB/s", (2, 3, 4, 5, 6, 7), "x 2")

    # ---- Fig. 16, 17 ----

    def sides(self):
        with tempfile.TemporaryDirectory(prefix="rftp-bench-fsync-", dir=self.disk) as directory:
            for figure, way, two in ((16, "READ", "reply"), (17, "WRITE", "store")):
                rows, raw, names = [], [], []
                for verify in (False, True):
                    for fsync in (False, True):
                        # with nothing to do for the daemon a WRITE is all
                        one = "read" if way == "READ" else "put" if verify or fsync else "place"
                        self.one_side(rows, raw, names, two, one, verify, fsync, directory)
                self.say_sides(figure, way, rows, raw, names)

    def one_side(self, rows, raw, names, two, one, verify, fsync, directory):
        options = {"verify": verify, "fsync": directory if fsync else None}
        found = self.turns({"two": (two, options), "one": (one, {**options, "flush": one == "place"})},
                           {s: {"size": s, "ms": self.ms(250)} for s in self.sizes()})
        name = f"{'' if verify else 'not '}verified, {'' if fsync else 'no '}fsync"
        names += [f"two-sided, {name}", f"one-sided, {name}"]
        for i, s in enumerate(self.sizes()):
            both = [found[s, "two"], found[s, "one"]]
            figures = [median(self.of(runs, speed)) for runs in both]
            cpu = [median(self.of(runs, daemon_cpu)) for runs in both]
            more = ratio(self.of(both[1], speed), self.of(both[0], speed))
            if i == len(rows):
                rows.append([show_size(s)])
                raw.append([s])
            rows[i].append(f"{show(figures[0])}, {show(figures[1])}: {show(more, 2)} (CPU {show(cpu[0], 0)}, "
                           f"{show(cpu[1], 0)})")
            raw[i] += figures

    def say_sides(self, figure, way, rows, raw, names):
        paper = "1 KB: +97 %" if way == "READ" else (
            "1 KB: +203 %, where the two-sided one also checked integrity and the other did not: not like for like")
        how = ("two-sided: a SEND asks, a SEND with the data answers; one-sided: a READ" if way == "READ" else
               "two-sided: the data by SEND, acknowledged by SEND; one-sided: WRITE, and where the daemon has something "
               "to do a SEND behind it, whose result the client READs; where it has not, a READ of 64 bytes behind the "
               "WRITE tells that it is there, unless the WRITE's completion does")
        self.report.say(
            f"### One-sided against two-sided {way} (Fig. {figure})",
            f"One request outstanding; {how}.  MB/s two-sided, one-sided: their ratio (the daemon's CPU, us a request).  "
            "Verified: who gets the data computes its checksum and compares (and who sends a put computes it).  fsync: who gets "
            "it writes it to a file on a disk, and flushes it.  What is not verified is so in this program only.  "
            f"The paper: {paper}.")
        heads = [n.removeprefix("two-sided, ") for n in names[::2]]
        self.report.table(["request", *heads], rows)
        name = f"sides-{way.lower()}"
        self.report.csv(name, ["bytes", *names], raw)
        self.report.plot(name, f"{way}: one-sided and two-sided", "bytes", "MB/s", range(2, 2 + len(names)), "xy")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabric", default="soft")
    parser.add_argument("--host", default="127.0.0.1", help="address of this host on that fabric")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", action="append", metavar="PART", help="threads, use, copies, sides; may be repeated")
    parser.add_argument("--disk", help="a directory on a disk, for files that are flushed")
    options = parser.parse_args()
    build = os.environ.get("RFTP_BUILD") or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
    report = Report(os.path.join(build, "bench"), "requests", f"fabric {options.fabric}")
    requests = Requests(os.path.join(build, "tests", "bench", "requests"), report, options.fabric, options.host,
                        options.rounds or (1 if options.quick else 3), options.quick,
                        options.disk or os.path.join(build, "bench"))
    parts = {"threads": requests.threads, "use": requests.use, "copies": requests.copies, "sides": requests.sides}
    for part in options.only or parts:
        if part not in parts:
            sys.exit(f"pull_requests: no part {part!r}; there are {', '.join(parts)}")
        parts[part]()
    report.write()
    return 1 if requests.failures else 0


if __name__ == "__main__":
    sys.exit(main())
