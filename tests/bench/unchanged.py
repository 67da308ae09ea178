# SPDX-License-Identifier: Apache-2.0
"""The parts of bench.py that go through long lines, and `sync`: 20,000 files that are the same already, beside
rsync, on one host and 50 ms away."""

import contextlib
import os
import shutil
import subprocess

import peers

FAR_MS = 50


@contextlib.contextmanager
def long_lines(build, ports):
    """{name: port} -> {name: port of a line to it that holds up nothing but time}"""
    lines = {}
    try:
        for name, port in ports.items():
            process = subprocess.Popen([os.path.join(build, "tests/bench/delay"), str(port), str(FAR_MS)],
                                       stdout=subprocess.PIPE, text=True)
            lines[name] = process, int(process.stdout.readline())
        yield {name: port for name, (_, port) in lines.items()}
    finally:
        for process, _ in lines.values():
            process.kill()
            process.wait()
            process.stdout.close()


class Unchanged:
    """`bench` of bench.py; the rows are seconds, and a ratio is of our time to theirs."""

    def __init__(self, bench, rsync):
        self.bench, self.rsync, self.rftp = bench, rsync, bench.rftp
        self.source, self.away, self.out = (f"{bench.top}/{name}" for name in ("small", "away", "out/copy"))
        self.files = bench.options.small

    def sync(self, letters, names):
        run, text = peers.timed([self.rftp.rftp, "--json", "--accept-new", *letters, "sync", *names],
                                self.rftp.daemon.process, self.files)
        if '"sent_bytes":0' not in text.replace(" ", ""):
            raise RuntimeError(f"something was sent: {text.strip()[-300:]}")
        return run

    def rsync_run(self, letters, names):
        run, text = peers.timed(["rsync", "-i", *letters, *names], self.rsync.server if self.rsync else None, self.files)
        if text:
            raise RuntimeError(f"something was different: {text.strip()[:300]}")
        return run

    def contestants(self, port, rsync_port, local):
        """In pairs, with -a and without; without it rftp looks at modes and times, as rsync with -rlpt."""
        there = self.rftp.tree_url(self.out, port)
        found = {}
        for letters, ours, theirs in (("", [], ["-rlpt"]), (" -a", ["-a"], ["-a"])):
            found[f"rftp sync{letters}, to the server"] = lambda o=ours: self.sync(o, [self.source, there])
            found[f"rftp sync{letters}, from the server"] = lambda o=ours: self.sync(o, [there, self.away])
            if self.rsync:
                url = f"rsync://127.0.0.1:{rsync_port}/top/{os.path.relpath(self.out, self.bench.top)}/"
                found[f"rsync daemon{letters}, to the server"] = lambda t=theirs, u=url: self.rsync_run(
                    t, [f"{self.source}/", u])
                found[f"rsync daemon{letters}, from the server"] = lambda t=theirs, u=url: self.rsync_run(
                    t, [u, f"{self.away}/"])
            if self.rsync and local:
                found[f"rsync{letters}"] = lambda t=theirs: self.rsync_run(t, [f"{self.source}/", f"{self.out}/"])
        return found

    def rows(self, part, contestants):
        results = self.bench.rounds(part, contestants)
        seconds = {name: self.bench.rate(runs) and self.files / self.bench.rate(runs) for name, runs in results.items()}
        for name, runs in results.items():
            if not seconds[name] or not name.startswith("rftp"):
                continue
            letters, _, way = name.removeprefix("rftp sync").partition(", ")
            rivals = [n for n in (f"rsync daemon{letters}, {way}", f"rsync{letters}") if seconds.get(n)]
            for rival in rivals or [""]:
                self.bench.row(f"{part}, {name}", f"{seconds[name]:.3f} s",
                               rival and f"{rival}: {seconds[rival]:.3f} s",
                               f"{1 / self.bench.ratio(runs, results[rival]):.2f} of the time" if rival else "", "1")

    def run(self):
        for target in (self.away, self.out):
            shutil.rmtree(target, ignore_errors=True)
            peers.timed(["cp", "-a", self.source, target], None, self.files)
        ports = {"rftp": self.rftp.daemon.port} | ({"rsync": self.rsync.port} if self.rsync else {})
        what = f"{self.files:,} files that are the same"
        try:
            self.rows(what, self.contestants(ports["rftp"], ports.get("rsync"), True))
            with long_lines(self.bench.build, ports) as far:
                self.rows(f"{what}, {FAR_MS} ms away", self.contestants(far["rftp"], far.get("rsync"), False))
        finally:
            for target in (self.away, self.out):
                shutil.rmtree(target, ignore_errors=True)
