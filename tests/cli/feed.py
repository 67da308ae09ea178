#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rftp feed: many live streams at once, kept as segments: nothing lost, nothing held up, in order."""

import fcntl
import glob
import os
import re
import signal
import struct
import sys
import termios
import threading
import time

import rftptest
from rftptest import DENIED, LOST, NO_FILE, REFUSED, USAGE, Daemon, Proxy, case, check, equal, fails, \
    finish, leftovers, make_file, scaled, start_rftp, wait_until, works

K, M = 1 << 10, 1 << 20


def places(top, mode="rw"):
    os.mkdir(f"{top}/export")
    os.mkdir(f"{top}/local")
    return Daemon(f"{top}/export", mode), f"{top}/local"


def segments(directory):
    """The segments' names in order; each must be named as they are."""
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    for name in names:
        check(re.fullmatch(r"\d{8,}\.seg", name) or name.startswith(".rftp-"), "a strange name", name)
    return [n for n in names if n.endswith(".seg")]


def kept(directory):
    """What the segments hold, one behind the other."""
    data = b""
    for name in segments(directory):
        with open(os.path.join(directory, name), "rb") as f:
            data += f.read()
    return data


def content(path):
    with open(path, "rb") as f:
        return f.read()


def fifo(path):
    os.mkfifo(path)
    return path


def writer(path):
    """The writing side of a FIFO, once the feed reads it."""
    def opened():
        try:
            return os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0)
        except OSError:
            return None
    f = wait_until(opened, f"a reader of {path}")
    os.set_blocking(f.fileno(), True)
    return f


def devices(result):
    return {e["name"]: e for e in result.events() if e["event"] == "device"}


@case
def files_fifos_and_commands(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 3 * M + 5)
    data = content(f"{local}/f")
    fifo(f"{local}/p")
    process = start_rftp("--json", "feed", f"file={local}/f", f"fifo={local}/p",
                         f"command=|cat {local}/f; printf end", "empty=/dev/null",
                         daemon.url("not/there"))
    with writer(f"{local}/p") as w:
        w.write(b"one ")
        time.sleep(0.3)
        w.write(data)
    result = finish(process)
    equal(result.code, 0, "exit code", result)
    where = daemon.path("not/there")
    check(kept(f"{where}/file") == data, "file")
    check(kept(f"{where}/fifo") == b"one " + data, "fifo")
    check(kept(f"{where}/command") == data + b"end", "command")
    equal(segments(f"{where}/empty"), [], "segments of nothing")
    told = devices(result)
    equal({n: d["bytes"] for n, d in told.items()},
          {"file": len(data), "fifo": len(data) + 4, "command": len(data) + 3, "empty": 0}, "bytes")
    check(all(d["dropped"] == 0 and d["status"] == "ok" for d in told.values()), told)
    equal(told["empty"]["packets"], 0, "packets of nothing")
    done = result.done()
    equal((done["files"], done["errors"], done["channels"]), (4, 0, 1), "done")
    equal(leftovers(daemon.top), [], "temporary files")


@case
def segments_by_size_and_counting_on(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 5 * 256 * K + 1)
    data = content(f"{local}/f")
    for turn in (1, 2):
        works("feed", "--segment", "256K", "--block", "64K", f"a={local}/f", daemon.url("in"))
        names = segments(daemon.path("in/a"))
        equal(names, [f"{i:08}.seg" for i in range(1, 6 * turn + 1)], "names")
        for name in names[-6:-1]:
            equal(os.path.getsize(daemon.path(f"in/a/{name}")), 256 * K, "size of", name)
        check(kept(daemon.path("in/a")) == data * turn, "bytes of turn", str(turn))
    os.rename(daemon.path("in/a/00000012.seg"), daemon.path("in/a/00000099.seg"))
    works("feed", f"a={local}/f", daemon.url("in"))
    equal(segments(daemon.path("in/a"))[-1], "00000100.seg", "the number after a gap")
    works("feed", "--segment", "none", f"b={local}/f", daemon.url("in"))
    equal(segments(daemon.path("in/b")), ["00000001.seg"], "without a limit")


@case
def a_stalled_device_holds_nobody_up_and_its_segment_is_closed_in_time(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 30 * M)
    for name in ("stalled", "silent"):
        fifo(f"{local}/{name}")
    process = start_rftp("feed", "--segment", "64M,1s", f"stalled={local}/stalled", f"silent={local}/silent",
                         f"a={local}/f", f"b=|cat {local}/f", daemon.url(""))
    stalled, silent = writer(f"{local}/stalled"), writer(f"{local}/silent")
    stalled.write(b"a few bytes")
    wait_until(lambda: kept(daemon.path("stalled")) == b"a few bytes", "the stalled device's segment")
    for name in "ab":
        wait_until(lambda name=name: len(kept(daemon.path(name))) == 30 * M, f"device {name}", 30)
    equal(segments(daemon.path("silent")), [], "segments of a device that said nothing")
    equal(process.poll(), None, "exit code while devices are open")
    stalled.write(b" and more")
    stalled.close()
    silent.close()
    equal(finish(process).code, 0, "exit code")
    check(kept(daemon.path("stalled")) == b"a few bytes and more", "the stalled device")
    check(kept(daemon.path("a")) == content(f"{local}/f"), "device a")


@case
def segments_by_time_of_a_busy_device(top):
    daemon, local = places(top)
    process = start_rftp("feed", "--segment", "1s", "a=|while printf 0123456789; do sleep 0.05; done",
                         daemon.url(""))
    wait_until(lambda: len(segments(daemon.path("a"))) >= 3, "three segments by time", 20)
    process.send_signal(signal.SIGTERM)
    equal(finish(process).code, 0, "exit code")
    data = kept(daemon.path("a"))
    check(data == b"0123456789" * (len(data) // 10), "what came", data[-40:])
    check(len(data) > 100, "little came", data)


@case
def sigterm_and_sigint_end_it_in_order(top):
    daemon, local = places(top)
    for number in (signal.SIGTERM, signal.SIGINT):
        number, name = int(number), "pipe"
        if not os.path.exists(f"{local}/{name}"):
            fifo(f"{local}/{name}")
        proxy = Proxy(daemon.port, hold=32 * M)  # else there are as many zeros as the disk takes
        process = start_rftp("--json", "feed", f"{name}={local}/{name}", "zeros=/dev/zero", "quiet=|sleep 1000",
                             proxy.url(f"{number}"))
        w = writer(f"{local}/{name}")
        data = rftptest.rng().randbytes(60 * K)
        wait_until(proxy.held.is_set, "some zeros", 20)
        w.write(data)  # it lies in the pipe when the signal comes
        process.send_signal(number)
        proxy.release()
        result = finish(process)
        proxy.close()
        equal(result.code, 0, "exit code after signal", number, result)
        got = kept(daemon.path(f"{number}/{name}"))
        check(got == data, f"{len(got)} bytes of {len(data)}")
        told = devices(result)
        zeros = kept(daemon.path(f"{number}/zeros"))
        check(len(zeros) == told["zeros"]["bytes"] > 0 and not zeros.strip(b"\0"), told)
        equal(leftovers(daemon.top), [], "temporary files")
        w.close()


def processes(marker):
    """Those whose command line has this word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if marker.encode() in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


@case(seconds=120)
def a_signal_that_comes_twice_within_a_moment_is_one(top):
    # as timeout(1) does: to its child, and then to its process group
    daemon, _ = places(top)
    for i in range(scaled(16)):
        marker = f"{rftptest.rng().randrange(1 << 40)}.5"
        process = start_rftp("feed", f"t{i}=|echo hello; exec sleep {marker}", daemon.url(""))
        wait_until(lambda: [n for n in leftovers(daemon.path(f"t{i}")) if os.path.getsize(n) == 6], "its first bytes")
        for pause in (0, rftptest.rng().random() * 0.002):
            time.sleep(pause)
            process.send_signal(signal.SIGTERM)
        result = finish(process)
        equal(result.code, 0, "exit code in round", i, result)
        equal(kept(daemon.path(f"t{i}")), b"hello\n", "what was stored in round", i)
        equal(processes(marker), [], "commands that live on in round", i)


@case
def commands_always_end(top):
    daemon, _ = places(top)
    commands = {"plain": "sleep {0}", "pipeline": "sleep {0} | cat", "background": "sleep {0} & sleep {0}",
                "deaf": "trap '' TERM; sleep {0}; sleep {0}"}
    ends = {"SIGKILL": lambda p: rftptest.kill(p), "the hard way": lambda p: (
        p.send_signal(signal.SIGINT), time.sleep(0.6), p.send_signal(signal.SIGINT)),
        "SIGTERM": lambda p: p.send_signal(signal.SIGTERM)}
    for end, by in ends.items():
        marker = f"{rftptest.rng().randrange(1 << 40)}.5"
        process = start_rftp("feed", *[f"{name}=|" + text.format(marker) for name, text in commands.items()],
                             daemon.url(end.replace(" ", "-")))
        wait_until(lambda: len(processes(marker)) == 5, "the commands run")
        by(process)
        process.wait(20 * rftptest.PATIENCE)
        wait_until(lambda: not processes(marker), lambda: f"after {end}: {processes(marker)}", 20)
    works("feed", f"t=|echo; sleep {marker} >/dev/null &", daemon.url("by-itself"))
    equal(processes(marker), [], "what a command that ended by itself has left")


@case
def when_the_daemon_is_killed_what_is_named_is_whole(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 4 * M)
    data = content(f"{local}/f")
    process = start_rftp("feed", "--segment", "256K", f"a=|while cat {local}/f; do :; done",
                         daemon.url(""))
    wait_until(lambda: len(segments(daemon.path("a"))) > 8, "some segments")
    daemon.kill()
    result = finish(process)
    equal(result.code, LOST, "exit code", result)
    got = kept(daemon.path("a"))
    equal(len(got) % (256 * K), 0, "a segment that is not complete")
    check(got == (data * (len(got) // len(data) + 1))[:len(got)], "bytes")


@case
def when_the_daemon_ends_in_order_the_last_segment_is_kept(top):
    daemon, local = places(top)
    fifo(f"{local}/p")
    process = start_rftp("feed", f"a={local}/p", daemon.url(""))
    w = writer(f"{local}/p")
    w.write(b"x" * 100)
    wait_until(lambda: leftovers(daemon.path("a")) and
               os.path.getsize(glob.glob(daemon.path("a/.rftp-*"))[0]) == 100, "a segment")
    daemon.stop()
    check(kept(daemon.path("a")) == b"x" * 100, "what had come", kept(daemon.path("a")))
    equal(finish(process).code, LOST, "exit code")
    equal(leftovers(daemon.top), [], "temporary files")
    w.close()


@case
def when_the_client_is_killed_the_last_segment_is_kept(top):
    daemon, local = places(top)
    for name in "pq":
        fifo(f"{local}/{name}")
    before = daemon.settled()
    process = start_rftp("feed", f"p={local}/p", f"q={local}/q", daemon.url(""))
    p, q = writer(f"{local}/p"), writer(f"{local}/q")
    p.write(b"p" * 1000)
    q.write(b"q" * 100000)
    wait_until(lambda: len(leftovers(daemon.top)) == 2 and sum(
        os.path.getsize(f) for f in glob.glob(daemon.path("*/.rftp-*"))) == 101000, "both on their way")
    rftptest.kill(process)
    wait_until(lambda: kept(daemon.path("p")) == b"p" * 1000 and kept(daemon.path("q")) == b"q" * 100000,
               "the last segments")
    daemon.back_to(before, "after the client")
    equal(leftovers(daemon.top), [], "temporary files")
    p.close()
    q.close()


@case
def a_slow_sink_slows_all_alike_and_loses_nothing(top):
    daemon, local = places(top)
    data = rftptest.rng().randbytes(24 * M)
    proxy = Proxy(daemon.port, hold=4 * M)
    for i in range(4):
        fifo(f"{local}/{i}")
    process = start_rftp("--json", "feed", "--block", "64K", "--depth", "16",
                         *[f"d{i}={local}/{i}" for i in range(4)], proxy.url(""))
    pipes = [writer(f"{local}/{i}") for i in range(4)]
    for w in pipes:
        fcntl.fcntl(w.fileno(), fcntl.F_SETPIPE_SZ, M)

    def send(w):
        with w:
            w.write(data)

    def waiting(w):
        return struct.unpack("i", fcntl.ioctl(w.fileno(), termios.FIONREAD, bytes(4)))[0]

    def full():
        """All devices have more than the sink takes of one in a turn: nobody is late on their account."""
        return all(w.closed or waiting(w) >= M // 2 for w in pipes)

    def arrived():
        sizes = [0] * 4
        for i in range(4):
            for name in glob.glob(daemon.path(f"d{i}/*.seg")) + glob.glob(daemon.path(f"d{i}/.rftp-*")):
                sizes[i] += os.path.getsize(name)
        return sizes

    threads = [threading.Thread(target=send, args=(w,)) for w in pipes]
    for t in threads:
        t.start()
    wait_until(proxy.held.is_set, "the sink to stop", 20)
    for turn in range(20):
        wait_until(full, "the devices' pipes to be full")
        if turn == 4:  # what was taken before all had something is there
            before = arrived()
        proxy.release(hold=M)
        wait_until(proxy.held.is_set, "the sink to stop again", 20)
    time.sleep(0.3)
    equal(process.poll(), None, "exit code meanwhile")
    gained = [b - a for a, b in zip(before, arrived())]
    check(max(gained) - min(gained) <= M and min(gained) > 2 * M, "not alike:", gained)
    proxy.release()
    result = finish(process)
    for t in threads:
        t.join()
    equal(result.code, 0, "exit code", result)
    for i in range(4):
        check(kept(daemon.path(f"d{i}")) == data, f"device {i}")
    equal([d["dropped"] for d in devices(result).values()], [0] * 4, "dropped")
    proxy.close()


RECORDS = """
import os, struct, sys, time
end = time.monotonic() + float(sys.argv[1])
i = 0
while time.monotonic() < end:
    record = struct.pack(">Q", i) * 8192
    while record:
        record = record[os.write(1, record):]
    i += 1
"""


@case
def drop_oldest_drops_whole_packets_and_nobody_waits(top):
    daemon, local = places(top)
    with open(f"{local}/records.py", "w") as f:
        f.write(RECORDS)
    proxy = Proxy(daemon.port, hold=3 * M)
    fifo(f"{local}/p")
    process = start_rftp("--json", "feed", "--block", "64K", "--drop=oldest",
                         f"fast=|{sys.executable} {local}/records.py 3", f"slow={local}/p", proxy.url(""))
    w = writer(f"{local}/p")
    wait_until(proxy.held.is_set, "the sink to stop", 20)
    w.write(b"rarely")
    time.sleep(2.5)
    w.write(b", but it comes")
    w.close()
    proxy.release()
    result = finish(process)
    equal(result.code, 0, "exit code", result)
    told = devices(result)
    check(told["fast"]["dropped"] > 10, "little was dropped", told)
    equal(told["slow"]["dropped"], 0, "dropped of the device that sends little")
    check(kept(daemon.path("slow")) == b"rarely, but it comes", "the slow device", kept(daemon.path("slow")))
    data = kept(daemon.path("fast"))
    equal((len(data), len(data) % (64 * K)), (told["fast"]["bytes"], 0), "whole packets")
    last = -1
    for at in range(0, len(data), 64 * K):
        number = data[at:at + 8]
        check(data[at:at + 64 * K] == number * 8192, "a packet is not one record, at", at)
        number = int.from_bytes(number, "big")
        check(number > last, "not in order: record", number, "behind", last)
        last = number
    equal(last + 1, told["fast"]["packets"] + told["fast"]["dropped"], "records sent and dropped")
    proxy.close()


@case(seconds=120)
def twelve_devices_and_255(top):
    daemon, local = places(top)
    for count in (12, 255):
        data = [rftptest.rng().randbytes(rftptest.rng().randrange(1, 300 * K)) for _ in range(count)]
        for i in range(count):
            fifo(f"{local}/{count}-{i}")
        process = start_rftp("--json", "feed", "--segment", "64K",
                             *[f"d{i}={local}/{count}-{i}" for i in range(count)], daemon.url(f"{count}"))
        threads = []
        for i in range(count):
            def send(i=i):
                with writer(f"{local}/{count}-{i}") as w:
                    w.write(data[i])
            threads.append(threading.Thread(target=send))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        result = finish(process)
        equal(result.code, 0, "exit code", result)
        for i in range(count):
            check(kept(daemon.path(f"{count}/d{i}")) == data[i], f"device {i} of {count}")
        equal(result.done()["channels"], 1, "channels")
        equal(len(devices(result)), count, "devices told")
    check(daemon.threads() < 40, "threads", daemon.threads())


@case
def a_device_that_fails_is_told_and_the_others_go_on(top):
    daemon, local = places(top)
    make_file(f"{local}/f", M)
    result = rftptest.rftp("--json", "feed", f"good={local}/f", f"bad=|cat {local}/f; exit 3", daemon.url(""))
    check(result.code != 0 and b"bad" in result.err and b"status 3" in result.err, result)
    check(kept(daemon.path("good")) == kept(daemon.path("bad")) == content(f"{local}/f"), "bytes")
    told = [(e["name"], e["status"]) for e in result.events() if e["event"] == "device"]
    equal(sorted(told), [("bad", "other"), ("good", "ok")], "each device once", result)
    done = result.done()
    equal((done["files"], done["errors"], done["bytes"]), (1, 1, M), "the totals are the devices'", result)
    # one whose command goes on behind the end of its stream
    result = rftptest.rftp("--json", "feed", f"good={local}/f", "late=|exec 1>&-; sleep 0.3; exit 3",
                           "fine=|exec 1>&-; sleep 0.3", daemon.url("3"))
    told = [(e["name"], e["status"]) for e in result.events() if e["event"] == "device"]
    equal(sorted(told), [("fine", "ok"), ("good", "ok"), ("late", "other")], "each device once", result)
    equal((result.done()["files"], result.done()["errors"]), (2, 1), "the totals are the devices'", result)
    result = rftptest.rftp("feed", f"good={local}/f", "dir=/", daemon.url("2"))
    check(result.code != 0, result)
    with open(daemon.path("blocked"), "w"):  # a file where the device's directory should be
        pass
    result = rftptest.rftp("--json", "feed", f"blocked=|cat {local}/f; sleep 0.1; cat {local}/f", f"good={local}/f",
                           daemon.url(""))
    equal(result.code, rftptest.KIND, "exit code", result)
    equal(devices(result)["good"]["status"], "ok", "the other device")
    check(kept(daemon.path("good")) == content(f"{local}/f") * 2, "bytes of the other device")


@case
def one_feed_of_a_device_at_a_time(top):
    daemon, local = places(top)
    fifo(f"{local}/p")
    process = start_rftp("feed", f"a={local}/p", daemon.url(""))
    w = writer(f"{local}/p")
    w.write(b"first")
    wait_until(lambda: leftovers(daemon.top), "the first feed")
    fails(REFUSED, "feed", "a=|echo second", daemon.url(""), says="another feed")
    w.close()
    equal(finish(process).code, 0, "exit code")
    check(kept(daemon.path("a")) == b"first", "bytes")


@case
def wrong_use(top):
    daemon, local = places(top)
    with open(f"{local}/f", "w"):
        pass
    f = f"{local}/f"
    fails(USAGE, "feed", "noequals", daemon.url(""), says="NAME=SOURCE")
    fails(USAGE, "feed", f"={f}", daemon.url(""), says="NAME=SOURCE")
    fails(USAGE, "feed", "a=", daemon.url(""), says="NAME=SOURCE")
    fails(USAGE, "feed", "a=|", daemon.url(""), says="NAME=SOURCE")
    fails(USAGE, "feed", f"a={f}", f"a={f}", daemon.url(""), says="another device")
    fails(USAGE, "feed", f"..={f}", daemon.url(""), says="name")
    fails(USAGE, "feed", f"a/b={f}", daemon.url(""), says="name")
    fails(USAGE, "feed", f"a={f}", f"{local}/here", says="rftp://")
    fails(USAGE, "feed", *[f"d{i}={f}" for i in range(256)], daemon.url(""), says="255")
    fails(USAGE, "feed", "--segment", "1", f"a={f}", daemon.url(""), says="segment")
    fails(USAGE, "feed", "--segment", "10s,20s", f"a={f}", daemon.url(""), says="segment")
    fails(USAGE, "feed", "--drop", "newest", f"a={f}", daemon.url(""), says="oldest")
    fails(NO_FILE, "feed", f"a={local}/nowhere", daemon.url(""), says="nowhere")
    equal(os.listdir(daemon.top), [], "what was made")
    fails(DENIED, "feed", f"a={f}", daemon.url("../outside"))
    works("-c", f"set segment 4K; feed a={f} 'b=|echo \"two words\"' /shell", daemon.url(""))
    check(kept(daemon.path("shell/b")) == b"two words\n", "from the shell")


@case
def a_read_only_export_refuses(top):
    daemon, local = places(top, "ro")
    fails(DENIED, "feed", "a=|echo x", daemon.url(""), says="read-only")
    equal(os.listdir(daemon.top), [], "what was made")


@case
def engines_and_channels(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 2 * M + 77)
    data = content(f"{local}/f")
    for turn, options in enumerate((["--engine", "status"], ["--engine", "window"], ["--engine", "pull"], ["--channels", "3"],
                                    ["--depth", "2", "--block", "64K"], ["--block", "900K"])):
        works("feed", *options, f"a=|cat {local}/f", f"b={local}/f", f"c=|sleep 0.4; echo c",
              daemon.url(f"{turn}"))
        for name in "ab":
            check(kept(daemon.path(f"{turn}/{name}")) == data, *options, "device", name)


if __name__ == "__main__":
    rftptest.main()
