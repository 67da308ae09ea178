#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of rftp and of other programs on this host, in one run, as a table.

    make bench                         all of it, 4 GiB files
    make bench BENCH_ARGS=--quick      small files, two rounds: to see that it works
    BENCH_SIZE=1G make bench           other file size

What is compared runs in turn, round by round, so that a change of the machine's mood meets all of
them; a figure is the median of the rounds, a ratio the median of the rounds' ratios.  The table goes
to stdout and, with every single run, to build/bench/.
"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

import image  # noqa: E402
import peers  # noqa: E402
import unchanged  # noqa: E402
from small import SmallFiles, per_second  # noqa: E402
from tables import median, show_size  # noqa: E402

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text):
    text = text.strip().upper().removesuffix("IB").removesuffix("B")
    unit = text[-1:] if text[-1:] in "KMGT" else ""
    return int(float(text[:len(text) - len(unit)]) * UNITS[unit])


def gb(rate):
    return f"{rate / 1e9:.2f} GB/s"


class Rftp:
    """rftpd on a free port, and rftp against it."""

    def __init__(self, build, top):
        import rftptest
        self.rftp = os.path.join(build, "rftp")
        self.top = top
        self.daemon = rftptest.Daemon(top, "rw", "--log-level", "warning", build=build)
        self.url = f"rftp://127.0.0.1:{self.daemon.port}"

    def run(self, arguments, bytes_):
        run, text = peers.timed([self.rftp, "--json", *arguments], self.daemon.process, bytes_)
        done = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        run.done = [d for d in done if d.get("event") == "done"][-1]
        return run

    def put(self, source, target):
        return self.run([source, f"{self.url}/{os.path.relpath(target, self.top)}"],
                        os.path.getsize(source))

    def get(self, source, target):
        return self.run([f"{self.url}/{os.path.relpath(source, self.top)}", target],
                        os.path.getsize(source))

    def put_tree(self, source, target, files, port=None, options=()):
        return self.run_tree([source, self.tree_url(target, port)], files, *options)

    def get_tree(self, source, target, files, port=None):
        return self.run_tree([self.tree_url(source, port), target], files)

    def tree_url(self, path, port):
        return f"rftp://127.0.0.1:{port or self.daemon.port}/{os.path.relpath(path, self.top)}"

    def run_tree(self, names, files, *options):
        run, _ = peers.timed([self.rftp, "-q", "--accept-new", "-r", *options, *names], self.daemon.process, files)
        run.client_peak = run.peak
        run.server_peak = self.daemon.peak_bytes()
        return run

    def bench(self, what, bytes_, *options):
        run = self.run([*options, "-c", f"bench {what} put", self.url], bytes_)
        run.wall = run.seconds
        run.seconds = run.done["seconds"]
        return run

    def stop(self):
        self.daemon.stop()


class Bench(SmallFiles):
    def __init__(self, options):
        self.options = options
        self.rows = []
        self.raw = []
        self.notes = []
        self.failures = 0
        self.top = tempfile.mkdtemp(prefix="rftp-bench-", dir=options.dir)
        os.chmod(self.top, 0o755)
        os.mkdir(f"{self.top}/out")
        os.chmod(f"{self.top}/out", 0o777)
        self.source = f"{self.top}/source"
        self.rftp = None
        self.load = os.getloadavg()[0]
        if self.load > 0.5:
            self.notes.append(f"the load average was {self.load:.1f} at the start: something else was "
                              "running, and the figures say less")

    def close(self):
        if self.rftp:
            self.rftp.stop()
        shutil.rmtree(self.top, ignore_errors=True)

    def make_source(self):
        piece = bytearray(os.urandom(1 << 24))
        with open(self.source, "wb") as f:
            left = self.options.size
            while left:
                piece[:8] = left.to_bytes(8, "big")
                f.write(piece[:min(left, len(piece))])
                left -= min(left, len(piece))
        os.chmod(self.source, 0o644)

    def row(self, what, figure, against="", ratio="", target=""):
        self.rows.append((what, figure, against, ratio, target))

    def log(self, text):
        print(text, file=sys.stderr, flush=True)

    def one(self, part, name, action):
        """One timed run; a failure is noted and gives None."""
        try:
            run = action()
        except (RuntimeError, OSError, ValueError, KeyError, IndexError) as e:
            self.notes.append(f"{part}: {name}: {e}")
            self.log(f"  {name:24} failed: {e}")
            if name.startswith("rftp"):
                self.failures += 1
            return None
        self.raw.append({"part": part, "name": name, "bytes": run.bytes, "seconds": run.seconds,
                         "cpu": run.cpu, "done": getattr(run, "done", None)})
        self.log(f"  {name:24} {gb(run.rate):>11}   {run.cpu_per_gb:.2f} CPU s/GB"
                 if run.bytes > 1 << 24 else
                 f"  {name:24} {per_second(run.rate):>16}   {run.cpu:.2f} CPU s")
        return run

    def rounds(self, part, contestants):
        """{name: [Run or None a round]}; contestants: {name: function}"""
        results = {name: [] for name in contestants}
        for number in range(self.options.rounds):
            self.log(f"{part}, round {number + 1} of {self.options.rounds}")
            for name, action in contestants.items():
                results[name].append(self.one(part, name, action))
        return results

    @staticmethod
    def rate(runs):
        return median(r.rate for r in runs if r)

    @staticmethod
    def cpu(runs):
        return median(r.cpu_per_gb for r in runs if r)

    @staticmethod
    def ratio(ours, theirs):
        return median(a.rate / b.rate for a, b in zip(ours, theirs) if a and b)

    def best(self, results, names):
        """The fastest of `names`, or None."""
        rated = [(self.rate(results[n]), n) for n in names if self.rate(results[n])]
        return max(rated)[1] if rated else None

    def started(self, candidates):
        ready = []
        for peer in candidates:
            missing = peer.missing()
            if missing:
                self.notes.append(f"{peer.name}: not run, {', '.join(missing)} not installed "
                                  f"(package {peer.package})")
                continue
            try:
                peer.start(self.top)
                ready.append(peer)
            except (RuntimeError, OSError) as e:
                self.notes.append(f"{peer.name}: not run: {e}")
                peer.stop()
        return ready

    def to_new_file(self, peer_put, check_once):
        """Puts to a file that does not exist yet, and compares it the first time."""
        checked = []

        def action():
            target = f"{self.top}/out/copy"
            try:
                run = peer_put(self.source, target)
                if not checked and check_once:
                    with open(self.source, "rb") as a, open(target, "rb") as b:
                        while True:
                            x, y = a.read(1 << 24), b.read(1 << 24)
                            if x != y:
                                raise RuntimeError("the copy differs from the source")
                            if not x:
                                break
                    checked.append(True)
                return run
            finally:
                if os.path.exists(target):
                    os.unlink(target)
        return action

    # ---- the parts ----

    def memory_to_memory(self):
        found = self.started([peers.Iperf()])
        size = self.options.memory
        contestants = {}
        if found:
            contestants[found[0].name] = lambda: found[0].stream(self.options.seconds)
        if self.rftp:
            for channels in ("1", "2", "4"):
                contestants[f"rftp {channels} channel"] = lambda c=channels: self.rftp.bench(
                    size, size, "--channels", c)
            contestants["rftp auto"] = lambda: self.rftp.bench(size, size)
        results = self.rounds("memory to memory", contestants)
        for peer in found:
            self.row("memory to memory, " + peer.name, gb(self.rate(results[peer.name]) or 0))
            peer.stop()
        for name, runs in results.items():
            if not name.startswith("rftp") or not self.rate(runs):
                continue
            ratio = found and self.ratio(runs, results[found[0].name])
            self.row(f"memory to memory, checksums on, {name}", gb(self.rate(runs)),
                     found[0].name if found else "", f"{ratio:.2f}" if ratio else "",
                     "0.85" if name == "rftp auto" else "")

    def protected(self):
        """What it costs that nobody on the way can change, or read, what files contain."""
        size = self.options.memory // 4
        contestants = {}
        if self.rftp:
            for protect in ("clear", "safe", "private"):
                contestants[f"rftp {protect}"] = lambda p=protect: self.rftp.bench(size, size, "--protect", p)
        results = self.rounds("memory to memory, protected", contestants)
        for name, target in (("rftp safe", ""), ("rftp private", "0.5")):
            ratio = self.rftp and self.ratio(results[name], results["rftp clear"])
            if ratio:
                self.row(f"memory to memory, --protect={name.split()[1]}", gb(self.rate(results[name])), "rftp clear",
                         f"{ratio:.2f}", target)

    def file_to_file(self):
        grid = [peers.GridFTP(n) for n in (1, 4, 8)]
        ready = self.started([peers.Copy(), *grid, peers.Rsync(), peers.Vsftpd(), peers.XRootD()])
        contestants = {p.name: self.to_new_file(p.put, True) for p in ready}
        if self.rftp:
            contestants["rftp put"] = self.to_new_file(self.rftp.put, True)
            contestants["rftp get"] = self.to_new_file(self.rftp.get, True)
        part = f"{show_size(self.options.size)} file to file"
        results = self.rounds(part, contestants)
        for peer in ready:
            peer.stop()
            rate = self.rate(results[peer.name])
            if rate:
                self.row(f"{part}, {peer.name}", f"{gb(rate)}, {self.cpu(results[peer.name]):.2f} "
                         "CPU s/GB")
        best = self.best(results, [p.name for p in ready if p.name != "cp"])
        best_grid = self.best(results, [p.name for p in ready if p.name.startswith("GridFTP")])
        for name in ("rftp put", "rftp get"):
            if name not in results or not self.rate(results[name]):
                continue
            runs = results[name]
            figure = f"{gb(self.rate(runs))}, {self.cpu(runs):.2f} CPU s/GB"
            target = "1.3" if name == "rftp put" else ""
            if best:
                self.row(f"{part}, verified and synced, {name}", figure, best,
                         f"{self.ratio(runs, results[best]):.2f}", target)
            if "cp" in results and self.rate(results["cp"]):
                self.row(f"{part}, verified and synced, {name}", figure, "cp",
                         f"{self.ratio(runs, results['cp']):.2f}")
            if best_grid:
                self.cpu_row(part, name, runs, best_grid, results[best_grid])

    def cpu_row(self, part, name, ours, peer, theirs):
        a, b = self.cpu(ours), self.cpu(theirs)
        self.row(f"CPU of both sides, {part}, {name}", f"{a:.2f} CPU s/GB",
                 f"{peer}: {b:.2f}", f"{a / b:.2f}", "at most 1")

    def file_to_nothing(self):
        ready = self.started([peers.GridFTP(n) for n in (1, 4, 8)])
        contestants = {p.name: lambda p=p: p.put(self.source, "/dev/null") for p in ready}
        if self.rftp:
            contestants["rftp bench FILE put"] = lambda: self.rftp.bench(
                self.source, self.options.size)
        part = f"{show_size(self.options.size)} file to nothing"
        results = self.rounds(part, contestants)
        for peer in ready:
            peer.stop()
            if self.rate(results[peer.name]):
                self.row(f"{part}, {peer.name} to /dev/null",
                         f"{gb(self.rate(results[peer.name]))}, "
                         f"{self.cpu(results[peer.name]):.2f} CPU s/GB")
        best = self.best(results, [p.name for p in ready])
        name = "rftp bench FILE put"
        if name in results and self.rate(results[name]):
            runs = results[name]
            # GridFTP is timed from start to end of its client: so is rftp here
            for r in runs:
                if r:
                    r.seconds = r.wall
            self.row(f"{part}, checksums on, {name}",
                     f"{gb(self.rate(runs))}, {self.cpu(runs):.2f} CPU s/GB", best or "",
                     f"{self.ratio(runs, results[best]):.2f}" if best else "", "1.5")
            if best:
                self.cpu_row(part, name, runs, best, results[best])

    def sync(self):
        rsync = self.started([peers.Rsync()])
        self.make_small()
        unchanged.Unchanged(self, rsync[0] if rsync else None).run()
        for peer in rsync:
            peer.stop()

    def idle_memory(self):
        if not self.rftp:
            return
        import iwarp
        sessions = []
        count = 1000
        threads = self.rftp.daemon.threads()
        try:
            for _ in range(count):
                sessions.append(iwarp.Session(self.rftp.daemon.port))
                sessions[-1].hello()  # at once: of many that are half open the daemon refuses some
            resident = self.rftp.daemon.resident_bytes()
            more = self.rftp.daemon.threads() - threads
        finally:
            for s in sessions:
                s.close()
        self.row(f"daemon with {count} idle sessions", f"{resident / 1e6:.0f} MB resident, "
                 f"{more} more threads", "", "", "100 MiB")

    # ---- the table ----

    def table(self):
        lines = []
        cells = [("what", "figure", "against", "ratio", "target")]
        cells += [("---",) * 5] + self.rows
        for row in cells:
            lines.append("| " + " | ".join(row) + " |")
        with open("/proc/cpuinfo") as f:
            names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
        cpu = names[0] if names else platform.machine()
        lines.append("")
        lines.append(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} x {cpu}, Linux "
                     f"{platform.release()}, all on one host over 127.0.0.1; files in "
                     f"{self.options.where}; medians of {self.options.rounds} rounds.")
        for note in dict.fromkeys(self.notes):
            lines.append(f"- {note}")
        return "\n".join(lines) + "\n"


def run(options):
    build = os.environ.get("RFTP_BUILD") or os.path.join(os.path.dirname(os.path.dirname(HERE)),
                                                          "build")
    space = os.statvfs(options.dir)
    room = space.f_bavail * space.f_frsize
    if room < options.size * 5 // 2:
        sys.exit(f"bench: {options.dir} has {room >> 20} MiB free, two and a half times "
                 f"{show_size(options.size)} are needed; see BENCH_SIZE and --dir")

    bench = Bench(options)
    bench.build = build
    try:
        if any(p in options.parts for p in ("file", "nothing")):
            bench.make_source()
        if not options.peers_only:
            bench.rftp = Rftp(build, bench.top)
        parts = {"memory": bench.memory_to_memory, "protect": bench.protected, "file": bench.file_to_file,
                 "nothing": bench.file_to_nothing, "small": bench.small_files, "sync": bench.sync,
                 "many": bench.many_files,
                 "idle": bench.idle_memory}
        for part in options.parts.split(","):
            if part not in parts:
                sys.exit(f"bench: no part {part!r}; there are {', '.join(parts)}")
            parts[part]()
        table = bench.table()
    finally:
        bench.close()
    results = os.path.join(build, "bench")
    os.makedirs(results, exist_ok=True)
    with open(os.path.join(results, "table.md"), "w") as f:
        f.write(table)
    with open(os.path.join(results, "runs.json"), "w") as f:
        json.dump(bench.raw, f, indent=1)
    print(table, end="")
    return 1 if bench.failures else 0


def main():
    parser = argparse.ArgumentParser(description="speed of rftp against its peers")
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds")
    parser.add_argument("--size", default=os.environ.get("BENCH_SIZE"), help="of the file (4G)")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--dir", default="/dev/shm", help="where the files lie (/dev/shm)")
    parser.add_argument("--ext4", action="store_true",
                        help="--dir is on an ext4 of its own, which is a file in it while this runs")
    parser.add_argument("--parts", default="memory,protect,file,nothing,small,sync,idle",
                        help="comma-separated, as they stand here: %(default)s; and many: a million files")
    parser.add_argument("--peers-only", action="store_true", help="without rftp")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.size = parse_size(options.size or ("256M" if options.quick else "4G"))
    options.seconds = 1 if options.quick else 4
    options.small = 2000 if options.quick else 20000
    options.many = 10000 if options.quick else 1000000
    options.memory = (2 << 30) if options.quick else (16 << 30)
    options.where = options.dir + (", ext4" if options.ext4 else "")
    if not options.ext4:
        return run(options)
    why = image.cannot("ext4")
    if why:
        print(f"bench: skipped, --ext4: {why}")
        return 0
    with image.mounted("ext4", options.dir) as options.dir:
        return run(options)


if __name__ == "__main__":
    sys.exit(main())
