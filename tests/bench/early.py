#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Early data over long lines: how long one transfer takes, waiting for each answer and not, as a table.

    make bench-early                                 some minutes
    make bench-early BENCH_ARGS=--quick              few sizes and ways: to see that it works
    make bench-early BENCH_ARGS='--rtt 50 --size 128K --rounds 9'

The modes of --early take turns: never waits for each answer, auto does not, timeout sends blocks after two
time-outs without one, as the paper on Dynamic RDMA has it.  `first` is a command of its own, from its start
to its end, with a new connection; `next` is one more file in an open session, from the end of the last.
The line delays what crosses and limits no rate; the way of 0 ms has none.  Beside the first put of a small
file stand other programs that are installed.  Times are medians, in milliseconds.

Exit code 1 when a bar is missed: see BARS.
"""

import argparse
import contextlib
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
    process = subprocess.Popen(command(mode, "--json", "-c", "; ".join([verb] * IN_A_SESSION),
                                       f"rftp://127.0.0.1:{port}/"),
                               env=rftptest.clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    ends = [time.monotonic() for text in process.stdout if b'"event":"done"' in text]
    if process.wait() or len(ends) != IN_A_SESSION:
        raise RuntimeError(f"{verb}: exit code {process.returncode}")
    return (ends[-1] - ends[0]) / (IN_A_SESSION - 1)


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
        self.missed = []
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
        for _ in range(self.arguments.rounds):
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
        return times, ratio

    def run(self):
        print(f"{'rtt':>6} {'size':>8} {'':<10}" + "".join(f"{mode:>10}" for mode in MODES)
              + f"{'a/never':>9}{'a/t-out':>9}")
        bars = []
        for rtt in self.arguments.rtt:
            with line(self.daemon.port, rtt) as port:
                for size in self.arguments.size:
                    for put in (True, False):
                        for what in (once, one_more):
                            times, ratio = self.row(rtt, port, size, put, what)
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
                        default=[parse_size(x) for x in ("4K", "64K", "128K", "1M", "16M")])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-others", dest="others", action="store_false")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rtt, arguments.size, arguments.rounds = [0, 10], [4 << 10, 128 << 10], 1
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        bench = Bench(arguments, top)
        bench.run()
        bench.daemon.stop()
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
