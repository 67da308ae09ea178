#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Early data over long lines: how long one transfer takes, waiting for each answer and not, as tables.

    make bench-early                                 a quarter of an hour
    make bench-early BENCH_ARGS=--quick              few sizes and ways: to see that it works
    make bench-early BENCH_ARGS='--rtt 50 --size 128K --rounds 9 --no-failures'

The modes of --early take turns: never waits for each answer, auto does not, timeout sends blocks after two
time-outs without one, as the paper on Dynamic RDMA has it.  `first` is a command of its own, from its start
to its end, with a new connection; `next` is one more file in an open session, from the end of the last.
The line delays what crosses and limits no rate; the way of 0 ms has none.  Large files cross at 0 and 50 ms
only, few times.  Beside the first put of a small file stand other programs that are installed.  Times are
medians, in milliseconds.

Then, as the paper has it, memory that cannot be registered (its Fig. 4): a daemon of its own fails to
register what its peers may write to, with some probability each time.  Who is refused for it asks again.
These are means of first puts of 128 KiB at 10 ms.  Frame loss, and small frames with pings beside (Fig. 5 to 7),
need a device: make bench-rdma.

Tables go as CSV and, where gnuplot is installed, as plots to build/bench.  Exit code 1 when a bar is missed:
see BARS.
"""

import argparse
import contextlib
import csv
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

import peers  # noqa: E402
import rftptest  # noqa: E402
from bench import parse_size, show_size  # noqa: E402

MODES = "never", "auto", "timeout"
BARS = """128K, next, from 10 ms on: auto takes at most 0.6 of never (the paper: 0.884)
at 0 ms, next, and 1G: auto takes at most 1.03 of never
4K, first put, at 50 ms: faster than each other program"""
IN_A_SESSION = 7  # files, of which the first is not looked at
LARGE = 256 << 20
LARGE_RTT, LARGE_ROUNDS, LARGE_IN_A_SESSION = (0, 50), 3, 3
FAILS = 0, 10, 50, 100, 300  # registrations in a thousand


@contextlib.contextmanager
def line(port, rtt_ms):
    """A port that is so far away from `port`."""
    if not rtt_ms:
        yield port
        return
    process = subprocess.Popen([f"{rftptest.BUILD}/tests/bench/delay", str(port), str(rtt_ms)], stdout=subprocess.PIPE)
    try:
        yield int(process.stdout.readline().split()[-1])
    finally:
        process.kill()
        process.wait()


def command(mode, *arguments):
    return rftptest.client_command(["--early", mode, "--retries", "0", *arguments])


def ran(arguments, **options):
    began = time.monotonic()
    subprocess.run(arguments, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                   **options)
    return time.monotonic() - began


def once(mode, port, put, far, near):
    ends = (near, f"rftp://127.0.0.1:{port}/{far}") if put else (f"rftp://127.0.0.1:{port}/{far}", near)
    return ran(command(mode, "-q", *ends), env=rftptest.clean_environment())


def one_more(mode, port, put, far, near):
    """In one session, one behind the other: the mean of those that find all set up."""
    verb = f"put {near} {far}" if put else f"get {far} {near}"
    count = IN_A_SESSION if os.path.getsize(near) < LARGE else LARGE_IN_A_SESSION
    process = subprocess.Popen(command(mode, "--json", "-c", "; ".join([verb] * count),
                                       f"rftp://127.0.0.1:{port}/"),
                               env=rftptest.clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    ends = [time.monotonic() for text in process.stdout if b'"event":"done"' in text]
    if process.wait() or len(ends) != count:
        raise RuntimeError(f"{verb}: exit code {process.returncode}")
    return (ends[-1] - ends[0]) / (count - 1)


def until_it_works(mode, port, near):
    """-> (seconds of a put, how often it was refused before)"""
    began, refused = time.monotonic(), 0
    while True:
        try:
            once(mode, port, True, "far", near)
            return time.monotonic() - began, refused
        except subprocess.CalledProcessError as e:
            refused += 1
            if refused == 20:
                raise RuntimeError(f"refused again and again: {e.stderr!r}") from e


def others(top, source, rtt_ms, rounds):
    """-> {name: seconds} of one small file put by other programs, whose servers are as far away."""
    times = {}
    rsync = peers.Rsync()
    if not rsync.missing():
        rsync.start(top)
        with line(rsync.port, rtt_ms) as port:
            times["rsync daemon"] = statistics.median(
                ran(["rsync", "--whole-file", source, f"rsync://127.0.0.1:{port}/top/rsynced"]) for _ in range(rounds))
        rsync.stop()
    ftp = peers.Vsftpd()
    if not ftp.missing():
        ftp.start(top)
        os.chmod(top, 0o755)
        # its data connections know no line: they are as if they cost nothing
        with line(ftp.port, rtt_ms) as port:
            script = f"set ftp:ssl-allow no; set net:max-retries 1; put {source} -o lftped; bye"
            with contextlib.suppress(subprocess.CalledProcessError):
                times["lftp, vsftpd (control alone delayed)"] = statistics.median(
                    ran(["lftp", "--norc", "-e", script, f"ftp://127.0.0.1:{port}"]) for _ in range(rounds))
        ftp.stop()
    gridftp = peers.GridFTP(1)
    if not gridftp.missing():
        with contextlib.suppress(RuntimeError, subprocess.CalledProcessError):
            gridftp.start(top)
            os.makedirs(f"{top}/grid", exist_ok=True)
            os.chmod(f"{top}/grid", 0o777)
            with line(gridftp.port, rtt_ms) as port:  # the same
                times["GridFTP (control alone delayed)"] = statistics.median(
                    ran(["globus-url-copy", f"file://{source}", f"ftp://127.0.0.1:{port}{top}/grid/put"])
                    for _ in range(rounds))
        gridftp.stop()
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if os.path.exists(sshd) and shutil.which("scp"):
        with contextlib.suppress(RuntimeError, subprocess.CalledProcessError):
            times["scp"] = scp(top, source, rtt_ms, rounds, sshd)
    return times


def scp(top, source, rtt_ms, rounds, sshd):
    with tempfile.TemporaryDirectory() as keys:
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{keys}/{name}"], check=True)
        shutil.copy(f"{keys}/user.pub", f"{keys}/authorized")
        port = peers.free_port()
        os.makedirs("/run/sshd", exist_ok=True)
        server = subprocess.Popen([sshd, "-D", "-e", "-f", "/dev/null", "-p", str(port), "-h", f"{keys}/host",
                                   "-o", "ListenAddress=127.0.0.1", "-o", f"AuthorizedKeysFile={keys}/authorized",
                                   "-o", "StrictModes=no", "-o", "PermitRootLogin=yes", "-o", "UsePAM=no",
                                   "-o", "Subsystem=sftp internal-sftp"], stderr=subprocess.DEVNULL)
        try:
            peers.wait_port(port, server)
            with line(port, rtt_ms) as far:
                options = ["-q", "-P", str(far), "-i", f"{keys}/user", "-o", "StrictHostKeyChecking=no",
                           "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-F", "/dev/null"]
                return statistics.median(ran(["scp", *options, source, f"127.0.0.1:{top}/scped"])
                                         for _ in range(rounds))
        finally:
            server.kill()
            server.wait()


class Bench:
    def __init__(self, arguments, top):
        self.arguments, self.top = arguments, top
        self.missed, self.rows, self.failures = [], [], []
        os.mkdir(f"{top}/export")
        self.daemon = rftptest.Daemon(f"{top}/export", "rw", "--log-level", "warning")

    def bar(self, what, value, most):
        print(f"{'   held' if value <= most else '  MISSED'}: {what}: {value:.3f}, at most {most}")
        if value > most:
            self.missed.append(what)

    def measure(self, port, size, put, what):
        """-> {mode: median}; the modes take turns."""
        near, far = f"{self.top}/near", "far"
        rftptest.make_file(near, size)
        rftptest.make_file(f"{self.top}/export/{far}", size)
        times = {mode: [] for mode in MODES}
        for _ in range(min(self.arguments.rounds, LARGE_ROUNDS) if size >= LARGE else self.arguments.rounds):
            for mode in MODES:
                times[mode].append(what(mode, port, put, far, near))
        rftptest.same_files(near, f"{self.top}/export/{far}")
        return {mode: statistics.median(times[mode]) for mode in MODES}

    def row(self, rtt, port, size, put, what):
        times = self.measure(port, size, put, what)
        name = "next" if what is one_more else "first"
        ratio = times["auto"] / times["never"]
        print(f"{rtt:>6} {show_size(size):>8} {'put' if put else 'get'} {name:<6}"
              + "".join(f"{times[mode] * 1000:>10.1f}" for mode in MODES)
              + f"{ratio:>9.3f}{times['auto'] / times['timeout']:>9.3f}", flush=True)
        self.rows.append({"rtt_ms": rtt, "bytes": size, "way": "put" if put else "get", "transfer": name}
                         | {f"{mode}_ms": f"{times[mode] * 1000:.2f}" for mode in MODES}
                         | {"auto_of_never": f"{ratio:.3f}"})
        return ratio

    def run(self):
        print(f"{'rtt':>6} {'size':>8} {'':<10}" + "".join(f"{mode:>10}" for mode in MODES)
              + f"{'a/never':>9}{'a/t-out':>9}")
        bars = []
        for rtt in self.arguments.rtt:
            with line(self.daemon.port, rtt) as port:
                for size in self.arguments.size:
                    if size >= LARGE and rtt not in LARGE_RTT and set(self.arguments.rtt) & set(LARGE_RTT):
                        continue
                    for put in (True, False):
                        for what in (once, one_more):
                            ratio = self.row(rtt, port, size, put, what)
                            where = f"{show_size(size)}, {'put' if put else 'get'}, next, {rtt} ms"
                            if what is one_more and size == 128 << 10 and rtt >= 10:
                                bars.append((where, ratio, 0.6))
                            if what is one_more and (not rtt or size == 1 << 30):
                                bars.append((where, ratio, 1.03))
        print("\n" + BARS)
        for bar in bars:
            self.bar(*bar)
        if self.arguments.others:
            self.beside()
        if self.arguments.failures:
            self.failing()
        self.write()

    def failing(self):
        print(f"\nfirst put of 128K at 10 ms, registrations that fail: means of {self.arguments.puts} in ms, "
              f"and how many were asked again\n{'':>6}" + "".join(f"{mode:>16}" for mode in MODES)
              + f"{'a/never':>9}{'a/t-out':>9}")
        near = f"{self.top}/near"
        rftptest.make_file(near, 128 << 10)
        for fails in FAILS if not self.arguments.quick else (0, 300):
            daemon = rftptest.Daemon(f"{self.top}/export", "rw", "--log-level", "error", build=f"{rftptest.BUILD}/tests/bench",
                                     env={"RFTP_TEST_FAILS": str(fails), "RFTP_TEST_SEED": str(self.arguments.seed)})
            times, again = {mode: [] for mode in MODES}, dict.fromkeys(MODES, 0)
            with line(daemon.port, 10) as port:
                for _ in range(self.arguments.puts):
                    for mode in MODES:
                        seconds, refused = until_it_works(mode, port, near)
                        times[mode].append(seconds)
                        again[mode] += refused
            rftptest.same_files(near, f"{self.top}/export/far")
            daemon.stop()
            means = {mode: statistics.mean(times[mode]) for mode in MODES}
            print(f"{fails / 10:>4}% " + "".join(f"{means[mode] * 1000:>12.1f}{again[mode]:>4}" for mode in MODES)
                  + f"{means['auto'] / means['never']:>9.3f}{means['auto'] / means['timeout']:>9.3f}", flush=True)
            self.failures.append({"percent": fails / 10} | {f"{mode}_ms": f"{means[mode] * 1000:.2f}" for mode in MODES}
                                 | {f"{mode}_again": again[mode] for mode in MODES})

    def write(self):
        """CSV, and plots of what a size takes by round trip, and of what fails."""
        out = os.path.join(rftptest.BUILD, "bench")
        os.makedirs(out, exist_ok=True)
        for name, rows in (("early", self.rows), ("early-failures", self.failures)):
            if not rows:
                continue
            with open(f"{out}/{name}.csv", "w", newline="", encoding="ascii") as f:
                writer = csv.DictWriter(f, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        for way, turn in (("put", "first"), ("put", "next"), ("get", "first"), ("get", "next")):
            self.plot(out, f"early-{way}-{turn}", f"{turn} {way}: early data / waiting for each answer", "round trip, ms",
                      {show_size(size): [(r["rtt_ms"], r["auto_of_never"]) for r in self.rows
                                         if (r["bytes"], r["way"], r["transfer"]) == (size, way, turn)]
                       for size in self.arguments.size})
        if self.failures:
            self.plot(out, "early-failures", "first put of 128K at 10 ms, ms", "registrations that fail, %",
                      {mode: [(r["percent"], r[f"{mode}_ms"]) for r in self.failures] for mode in MODES})
        print(f"in {out}: early*.csv" + (", early*.svg" if shutil.which("gnuplot") else ""))

    @staticmethod
    def plot(out, name, title, xlabel, curves):
        if not shutil.which("gnuplot"):
            return
        curves = {label: points for label, points in curves.items() if points}
        script = (f"set terminal svg size 720,420 background 'white'\nset output '{out}/{name}.svg'\nset title '{title}'\n"
                  f"set xlabel '{xlabel}'\nset yrange [0:]\nset grid\nset key outside bottom horizontal\n")
        for i, points in enumerate(curves.values()):
            script += f"$d{i} << EOD\n" + "".join(f"{x} {y}\n" for x, y in points) + "EOD\n"
        script += "plot " + ", ".join(f"$d{i} with linespoints title '{label}'" for i, label in enumerate(curves)) + "\n"
        done = subprocess.run(["gnuplot"], input=script, text=True, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            print(f"gnuplot: {name}: {done.stderr.strip()}", file=sys.stderr)

    def beside(self):
        source = f"{self.top}/small"
        rftptest.make_file(source, 4 << 10)
        with line(self.daemon.port, 50) as port:
            ours = statistics.median(once("auto", port, True, "small", source) for _ in range(self.arguments.rounds))
        found = others(f"{self.top}", source, 50, self.arguments.rounds)
        print(f"\n4K, first put, 50 ms: rftp {ours * 1000:.1f} ms"
              + "".join(f", {name} {seconds * 1000:.1f}" for name, seconds in found.items()))
        for name, seconds in found.items():
            self.bar(f"rftp to {name}", ours / seconds, 1.0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rtt", type=lambda s: [float(x) if "." in x else int(x) for x in s.split(",")],
                        default=[0, 1, 10, 50, 100])
    parser.add_argument("--size", type=lambda s: [parse_size(x) for x in s.split(",")],
                        default=[parse_size(x) for x in ("4K", "64K", "128K", "1M", "16M", "1G")])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-others", dest="others", action="store_false")
    parser.add_argument("--no-failures", dest="failures", action="store_false")
    parser.add_argument("--puts", type=int, default=40, help="of each mode, with registrations that fail")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rtt, arguments.size, arguments.rounds, arguments.puts = [0, 10], [4 << 10, 128 << 10], 1, 5
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as top:
        os.chmod(top, 0o755)
        bench = Bench(arguments, top)
        bench.run()
        bench.daemon.stop()
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
