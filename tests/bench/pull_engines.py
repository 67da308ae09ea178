# SPDX-License-Identifier: Apache-2.0
"""The engines by size of blocks and of files, with one client and eight.  Part of pull.py, which says what is what.

Blocks come from memory and go there (the shell's bench), so that disks do not count; files lie in a directory of
memory.  A request is a block, or a file where files are what is counted."""

import os
import shutil

from tables import median, ratio, show, show_size

ENGINES = ("credit", "status", "pull")
COLUMNS = ("kind", "size", "way", "clients", "engine", "mb_s", "of_the_limit", "requests_s", "cpu_us_a_request",
           "cpu_us_without_fabric", "cpu_s_a_gb", "daemon_started", "speed_to_credit", "cpu_to_credit")


class Engines:
    def __init__(self, bench, requests):
        self.bench, self.requests, self.options = bench, requests, bench.options
        self.rows, self.limits = [], {}

    def run(self):
        quick, report = self.options.quick, self.bench.report
        blocks = (64 << 10, 1 << 20) if quick else (64 << 10, 256 << 10, 1 << 20)
        sizes = (4 << 10, 256 << 10) if quick else (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
        for clients in (1, 8):
            self.limits[clients] = self.requests.limit(clients)
        for way in ("get", "put"):
            for clients in (1, 8):
                for size in blocks:
                    self.blocks(size, way, clients)
                for size in sizes:
                    self.files(size, way, clients)
        report.say("### The engines (Fig. 12, 13 of whole transfers)",
                   "Blocks from memory to memory, and trees of files on tmpfs, verified: MB/s and, of what the fabric "
                   f"alone carries in the same run ({show(self.limits[1], 0)} MB/s by one thread, {show(self.limits[8], 0)} by "
                   "eight), per cent; the daemon's CPU for each block or file in us, and without the fabric's threads, "
                   "which play the adapter; requests that the daemon started.  To credit: speed, CPU.")
        report.table(["what", "clients", *ENGINES, "pull to credit: speed; CPU"], self.lines())
        report.csv("engines", COLUMNS, [[row[c] for c in COLUMNS] for row in self.rows])
        self.plots(sizes)
        if any(row["daemon_started"] for row in self.rows if row["engine"] == "pull"):
            self.bench.failures.append("with pull the daemon started requests on data channels")

    def lines(self):
        lines = []
        for i in range(0, len(self.rows), len(ENGINES)):
            rows = self.rows[i:i + len(ENGINES)]
            cells = [f"{show(r['mb_s'], 0)} ({show(r['of_the_limit'], 0)} %); {show(r['cpu_us_a_request'], 0)}, "
                     f"{show(r['cpu_us_without_fabric'], 0)}; {show(r['daemon_started'], 0)}" for r in rows]
            pull = rows[-1]
            lines.append([f"{pull['way']}, {pull['kind']} of {show_size(pull['size'])}", pull["clients"], *cells,
                          f"{show(pull['speed_to_credit'], 2)}; {show(pull['cpu_to_credit'], 2)}"])
        return lines

    def plots(self, sizes):
        report = self.bench.report
        for clients in (1, 8):
            for way in ("get", "put"):
                table = [[s, *(next(r["of_the_limit"] for r in self.rows if (
                    r["kind"], r["size"], r["way"], r["clients"], r["engine"]) == ("file", s, way, clients, e))
                    for e in ENGINES)] for s in sizes]
                name = f"files-{way}-{clients}"
                report.csv(name, ["bytes", *ENGINES], table)
                report.plot(name, f"Files, {way}, clients: {clients}", "bytes", "% of the link", (2, 3, 4), "x 2")

    def point(self, kind, size, way, clients, commands, count, volume):
        """commands: of an engine, the clients' -> the rows of all engines"""
        found = {engine: [] for engine in ENGINES}
        for turn in range(self.options.rounds):
            for engine in ENGINES[turn % 3:] + ENGINES[:turn % 3]:
                found[engine].append(self.bench.run(commands(engine)))
        for engine in ENGINES:
            seconds, cpu, fabric, started = ([run[i] for run in found[engine]] for i in range(4))
            slower = ratio(seconds, [run[0] for run in found["credit"]])
            mb_s = volume / median(seconds) / 1e6
            self.rows.append({
                "kind": kind, "size": size, "way": way, "clients": clients, "engine": engine, "mb_s": mb_s,
                "of_the_limit": self.limits[clients] and 100 * mb_s / self.limits[clients],
                "requests_s": count / median(seconds), "cpu_us_a_request": median(cpu) / count * 1e6,
                "cpu_us_without_fabric": median(a - b for a, b in zip(cpu, fabric)) / count * 1e6,
                "cpu_s_a_gb": median(cpu) / volume * 1e9, "daemon_started": median(started),
                "speed_to_credit": slower and 1 / slower,
                "cpu_to_credit": ratio(cpu, [run[1] for run in found["credit"]])})

    def blocks(self, size, way, clients):
        each = self.options.bytes // clients
        url = self.bench.daemon.url("")
        self.point("block", size, way, clients,
                   lambda engine: [["--engine", engine, "--block", str(size), "-c", f"bench {each} {way}", url]] * clients,
                   each * clients / size, each * clients)

    def files(self, size, way, clients):
        """Each client its own tree."""
        top, export, url = self.bench.top, self.bench.export, self.bench.daemon.url
        count = max(8, min(self.options.files, self.options.bytes // size) // clients)
        names = [f"tree{i}" for i in range(clients)]
        for name in names:
            tree = f"{export if way == 'get' else top}/{name}"
            os.makedirs(tree)
            for number in range(count):
                with open(f"{tree}/{number}", "wb") as f:
                    f.write(os.urandom(size))

        def commands(engine):
            shutil.rmtree(f"{top}/to", ignore_errors=True)
            os.makedirs(f"{top}/to")
            for name in names if way == "put" else ():
                shutil.rmtree(f"{export}/{name}", ignore_errors=True)
            return [["--engine", engine, "-r", "--fsync", "never",
                     *((f"{top}/{name}", url("")) if way == "put" else (url(name), f"{top}/to/"))] for name in names]
        self.point("file", size, way, clients, commands, count * clients, count * clients * size)
        for where in (export, top):
            for name in names:
                shutil.rmtree(f"{where}/{name}", ignore_errors=True)
        shutil.rmtree(f"{top}/to", ignore_errors=True)
