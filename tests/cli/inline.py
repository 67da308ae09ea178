#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files as single requests: PUT and GET.  What becomes of them is what becomes of a transfer's files, byte by
byte and word by word, so most cases do the same both ways."""

import json
import os
import re
import struct
import subprocess

import iwarp
import rftptest
from iwarp import Dropped, Session
from rftptest import (INTEGRITY, NO_FILE, NO_SPACE, OK, PROTOCOL, Daemon, Proxy, case, check, equal, fails, leftovers,
                      make_file, rng, same_files, scaled, skip, tree, works)
from rogue import Rogue, ServerSession, attributes
from rude import WAIT

MOST = 60 << 10
OFF = "--inline-max=0"


def engine(*arguments):
    """That a copy with these arguments used."""
    return works("--json", *arguments).done()["engine"]


def bare(events):
    """What does not tell one way from the other."""
    left_out = ("seconds", "bytes_per_second", "engine", "protect", "channels", "block", "requests", "sent_bytes",
                "crossed_bytes", "waited_s", "fabric", "early_bytes", "early_why")
    # how far it is, is told of what takes a second, as anything may where the CPUs are busy
    events = [{k: v for k, v in e.items() if k not in left_out} for e in events if e["event"] != "progress"]
    return sorted(events, key=lambda e: (e["event"] == "file", e.get("path") or ""))  # files end in any order


def both_ways(top, prepare, *arguments):
    """The same command as single requests and as a transfer, each on what `prepare(local, export)` makes: exit
    status, events, messages and what is there afterwards are alike.  `{here}` and `{there}` in the arguments.  -> code"""
    seen = []
    for way, options in (("inline", []), ("transfer", [OFF])):
        for name in ("local", "export"):
            subprocess.run(["rm", "-rf", f"{top}/{name}"], check=True)
            os.mkdir(f"{top}/{name}")
        prepare(f"{top}/local", f"{top}/export")
        daemon = Daemon(f"{top}/export", "rw")
        words = [a.format(here=f"{top}/local", there=daemon.url("").rstrip("/")) for a in arguments]
        port = str(daemon.port)
        quiet = rftptest.rftp("--json", *options, *words)
        events = [{k: v for k, v in e.items() if k != "server"} for e in bare(quiet.events())]
        there = tree(f"{top}/local"), tree(f"{top}/export")
        times = sorted((n, min(st.st_mtime_ns, 10 ** 16), st.st_mode)  # later ones are those of the copy
                       for w in (f"{top}/local", f"{top}/export") for d, dirs, files in os.walk(w)
                       for n in dirs + files for st in [os.lstat(os.path.join(d, n))])
        talk = rftptest.rftp(*options, *words)
        equal(leftovers(top), [], way, "left over")
        seen.append((quiet.code, events, there, times, talk.code, sorted(talk.err.replace(port.encode(), b"PORT").split(b"\n"))))
        daemon.stop()
    for part in zip(*seen):
        equal(part[0], part[1], arguments)
    return seen[0][0]


@case(seconds=120)
def sizes(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw")
    for size in (0, 1, 4096, MOST - 1, MOST, MOST + 1):
        make_file(f"{top}/f{size}", size, 0o640)
        os.utime(f"{top}/f{size}", ns=(1, 1234567890123456789))
        want = "inline" if size <= MOST else "credit"
        equal(engine(f"{top}/f{size}", daemon.url("")), want, "put of", size)
        equal(engine(daemon.url(f"f{size}"), f"{top}/back{size}"), want, "get of", size)
        for name in (daemon.path(f"f{size}"), f"{top}/back{size}"):
            same_files(f"{top}/f{size}", name)
            equal(os.stat(name).st_mtime_ns, 1234567890123456789, "time of", name)
            equal(os.stat(name).st_mode & 0o777, 0o640, "mode of", name)
    for most, size, want in ((4096, 4096, "inline"), (4096, 4097, "credit"), (0, 0, "credit")):
        make_file(f"{top}/f", size)
        equal(engine("--inline-max", str(most), f"{top}/f", daemon.url("")), want, "put", most, size)
        equal(engine("--inline-max", str(most), daemon.url("f"), f"{top}/back"), want, "get", most, size)
    said = works("-v", f"{top}/f1", daemon.url("")).err
    check(b"1 file of at most 60 KiB (inline-max) in single requests" in said, said)
    equal(leftovers(top), [], "left over")


@case
def many_at_once(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw")
    names = [f"f{i}" for i in range(100)]
    for name in names:
        make_file(f"{top}/{name}", rng().choice((0, 1, 100, 4096)))
    equal(engine(*(f"{top}/{n}" for n in names), daemon.url("into/")), "credit", "a directory that is made first")
    equal(engine(*(f"{top}/{n}" for n in names), daemon.url("into")), "inline", "put")
    os.mkdir(f"{top}/back")
    equal(engine(*(daemon.url(f"into/{n}") for n in names), f"{top}/back"), "inline", "get")
    for name in names:
        same_files(f"{top}/{name}", daemon.path(f"into/{name}"))
        same_files(f"{top}/{name}", f"{top}/back/{name}")
    # one of them is too large: it alone is a transfer's, in the same command
    make_file(daemon.path("into/f7"), MOST + 1)
    equal(engine(*(daemon.url(f"into/{n}") for n in names), f"{top}/back"), "credit", "get")
    same_files(daemon.path("into/f7"), f"{top}/back/f7")
    # also where another one is not there
    os.unlink(daemon.path("into/f3"))
    os.unlink(f"{top}/back/f7")
    fails(NO_FILE, *(daemon.url(f"into/{n}") for n in names), f"{top}/back", says="into/f3")
    same_files(daemon.path("into/f7"), f"{top}/back/f7")
    equal(leftovers(top), [], "left over")


@case(seconds=120)
def as_transfers_do_it(top):
    def write(path, size, mode=0o644):
        with open(path, "wb") as f:  # the same both times
            f.write((path[len(top):].encode() * size)[:size])
        os.chmod(path, mode)
        os.utime(path, (3000, 3000))

    def one(local, export):
        for where, seconds in ((local, 1000), (export, 2000)):
            for name in ("keep", "keep2"):
                write(f"{where}/{name}", 100)
                os.utime(f"{where}/{name}", (seconds, seconds))
        write(f"{local}/keepme", 5000, 0o600)
        write(f"{export}/theirs", 5000, 0o604)
        os.mkdir(f"{export}/dir")
        os.mkdir(f"{local}/dir")
        write(f"{local}/dir/keep", 10)
        os.symlink("dir", f"{export}/link")

    for arguments, code in (
            (("{here}/keepme", "{there}/"), OK), (("{here}/keepme", "{there}/new"), OK),
            (("{here}/keepme", "{there}/dir"), OK), (("{here}/keepme", "{there}/dir/"), OK),
            (("{here}/keepme", "{there}/link"), OK),
            (("{here}/keepme", "{there}/a/b/c"), OK), (("{here}/keepme", "{there}/a/b/c/"), OK),
            (("{here}/keepme", "{here}/keep", "{there}/dir"), OK),
            (("{here}/keepme", "{here}/keep", "{there}/a/b"), OK),
            (("{here}/keepme", "{here}/keep", "{there}/theirs"), None),
            (("{here}/keepme", "{there}/theirs/x"), None), (("{here}/keepme", "{there}/theirs/"), None),
            (("{here}/nothing", "{there}/"), NO_FILE),
            (("{here}/nothing", "{here}/keep", "{there}/"), NO_FILE),
            (("--no-replace", "{here}/keep", "{here}/keepme", "{there}/"), None),
            (("--no-replace", "{here}/keep", "{there}/keep"), None),
            (("--update", "{here}/keep", "{here}/keep2", "{there}/"), OK),
            (("--ignore-existing", "{here}/keep", "{here}/keepme", "{there}/"), OK),
            (("{here}/keep", "{here}/dir/keep", "{there}/dir"), None),
            (("{there}/theirs", "{here}/"), OK), (("{there}/theirs", "{here}/new"), OK),
            (("{there}/theirs", "{here}/a/b/c"), OK), (("{there}/theirs", "{here}/keep/x"), None),
            (("{there}/theirs", "{there}/keep", "{here}/dir"), OK),
            (("{there}/nothing", "{here}/"), NO_FILE), (("{there}/nothing", "{there}/keep", "{here}/"), NO_FILE),
            (("{there}/dir", "{here}/"), None), (("{there}/dir", "{there}/keep", "{here}/"), None),
            (("{there}/*e*", "{here}/dir"), None),
            (("--no-replace", "{there}/keep", "{there}/theirs", "{here}/"), None),
            (("--no-replace", "{there}/keep", "{here}/keep"), None),
            (("--update", "{there}/keep", "{there}/theirs", "{here}/"), OK),
            (("--ignore-existing", "{there}/keep", "{there}/theirs", "{here}/"), OK)):
        seen = both_ways(top, one, *arguments)
        check(code is None or seen == code, arguments, seen, code)


@case(seconds=180)
def trees_as_transfers_put_them(top):
    """Few small files: also with directories, whose modes and times come after what is in them, and links."""
    def make(local, export):
        os.makedirs(f"{local}/t/d/e")
        os.mkdir(f"{local}/t/empty")
        for i, name in enumerate(("t/f", "t/d/g", "t/d/e/h", "t/z", "keepme")):
            with open(f"{local}/{name}", "wb") as f:
                f.write(name.encode() * 10 * i)
            os.utime(f"{local}/{name}", (1000 + i, 1000 + i))
        os.symlink("f", f"{local}/t/link")
        os.makedirs(f"{export}/keepsake/d")
        with open(f"{export}/keepsake/d/g", "wb") as f:
            f.write(b"old")
        for name, mode in (("t/d/e", 0o750), ("t/d", 0o700), ("t/empty", 0o500), ("t", 0o755)):
            os.chmod(f"{local}/{name}", mode)
            os.utime(f"{local}/{name}", (2000, 2000))

    def odd(local, export):
        """One that has holes is a transfer's, and so is what comes behind it."""
        make(local, export)
        with open(f"{local}/t/d/e/holes", "wb") as f:
            f.truncate(40000)
        os.utime(f"{local}/t/d/e", (2000, 2000))

    for prepare in (make, odd):
        for arguments, code in ((("-r", "{here}/t", "{there}/"), OK), (("-r", "{here}/t/", "{there}/keepsake"), OK),
                                (("-r", "{here}/t", "{here}/keepme", "{there}/a/b"), OK),
                                (("-r", "--update", "{here}/t/", "{there}/keepsake"), OK),
                                (("-r", "--no-replace", "{here}/t/", "{there}/keepsake"), None),
                                (("-r", "{here}/t/", "{there}/keepsake/d/g"), None),
                                (("-r", "--exclude=d", "{here}/t", "{there}/"), OK),
                                (("sync", "{here}/t", "{there}/keepsake"), OK),
                                (("sync", "--delete", "{here}/t", "{there}/keepsake"), OK),
                                (("sync", "{here}/t", "{there}/new"), OK)):
            seen = both_ways(top, prepare, *arguments)
            check(code is None or seen == code, arguments, seen, code)
    os.mkdir(f"{top}/to")
    daemon = Daemon(f"{top}/to", "rw")
    subprocess.run(["rm", "-rf", f"{top}/local", f"{top}/export"], check=True)
    make(f"{top}/local", f"{top}/export")
    equal(engine("-r", f"{top}/local/t", daemon.url("")), "inline", "put -r")
    with open(f"{top}/local/t/d/g", "ab") as f:
        f.write(b"more")
    equal(engine("sync", f"{top}/local/t", daemon.url("t")), "inline", "sync")
    equal(tree(f"{top}/to/t"), tree(f"{top}/local/t"), "what is there")
    with open(f"{top}/local/t/large", "wb") as f:
        f.write(bytes(MOST + 1))
    equal(engine("-r", f"{top}/local/t", daemon.url("")), "credit", "put -r with a large one")


@case(seconds=300)
def a_sync_from_a_server(top):
    """What it copies, makes and removes here, and what it says, are as of a transfer."""
    def write(path, size, seconds, mode=0o644):
        with open(path, "wb") as f:
            f.write((path[len(top):].encode() * size)[:size])
        os.chmod(path, mode)
        os.utime(path, (seconds, seconds))

    def make(local, export):
        os.makedirs(f"{export}/t/d/e")
        os.mkdir(f"{export}/t/empty")
        os.mkdir(f"{export}/t/whole")
        for i, name in enumerate(("f", "same", "d/g", "d/e/h", "whole/z", "none")):
            write(f"{export}/t/{name}", 100 * i if name != "none" else 0, 1000 + i, 0o640)
        os.symlink("f", f"{export}/t/link")
        os.symlink("../f", f"{export}/t/d/up")
        os.makedirs(f"{local}/old/d/e")
        write(f"{local}/old/d/g", 10, 500)
        write(f"{local}/old/d/e/extra", 10, 500)
        os.mkdir(f"{local}/old/f")  # in the way
        subprocess.run(["cp", "-p", f"{export}/t/same", f"{local}/old/same"], check=True)
        os.chmod(f"{local}/old/d", 0o500)
        for name, mode in (("d/e", 0o750), ("d", 0o700), ("empty", 0o500), ("whole", 0o711), ("", 0o755)):
            os.chmod(f"{export}/t/{name}", mode)
            os.utime(f"{export}/t/{name}", (2000, 2000))

    def holes(local, export):
        make(local, export)
        with open(f"{export}/t/d/e/holes", "wb") as f:
            f.truncate(40000)

    def large(local, export):
        make(local, export)
        write(f"{export}/t/d/e/large", MOST + 1, 3000)

    def linked(local, export):
        make(local, export)
        os.link(f"{export}/t/f", f"{export}/t/d/e/other")

    for prepare, one_way in ((make, "inline"), (holes, "credit"), (large, "credit"), (linked, "inline")):
        for words in (("sync", "{there}/t", "{here}/new"), ("sync", "{there}/t", "{here}/old"),
                      ("sync", "--delete", "{there}/t", "{here}/old"), ("-n", "sync", "{there}/t", "{here}/old"),
                      ("sync", "--exclude=d", "{there}/t", "{here}/new"), ("sync", "--links=follow", "{there}/t", "{here}/new"),
                      ("sync", "--fsync=end", "{there}/t", "{here}/new"), ("sync", "--fsync=never", "{there}/t", "{here}/new"),
                      ("sync", "-H", "{there}/t", "{here}/new"), ("sync", "-o", "-g", "{there}/t", "{here}/new"),
                      ("sync", "--compare=digest", "{there}/t", "{here}/old")):
            both_ways(top, prepare, *words)
        subprocess.run(["rm", "-rf", f"{top}/local", f"{top}/export"], check=True)
        os.mkdir(f"{top}/local")
        prepare(f"{top}/local", f"{top}/export")
        daemon = Daemon(f"{top}/export", "rw")
        equal(engine("sync", daemon.url("t"), f"{top}/local/new"), one_way, prepare.__name__)
        daemon.stop()
    # of more files than that a transfer is faster
    os.mkdir(f"{top}/many")
    for i in range(150):
        make_file(f"{top}/many/f{i}", 10)
    daemon = Daemon(f"{top}/many", "ro")
    equal(engine("sync", daemon.url(""), f"{top}/local/many"), "credit", "150 files")
    for i in range(20, 150):
        os.unlink(f"{top}/many/f{i}")
    equal(engine("sync", daemon.url(""), f"{top}/local/fewer"), "inline", "20 files")
    equal(tree(f"{top}/local/fewer"), tree(f"{top}/many"), "what is there")
    for option in ("-z", "--verify=readback", "-X", "-A", "-H", "-o", "-g", "--channels=1", "--inline-max=9"):
        subprocess.run(["rm", "-rf", f"{top}/local/fewer"], check=True)
        equal(engine("sync", option, daemon.url(""), f"{top}/local/fewer"), "credit", option)
    subprocess.run(["rm", "-rf", f"{top}/local/fewer"], check=True)
    result = works("-v", "--json", "--engine=pull", "sync", daemon.url(""), f"{top}/local/fewer")
    done = result.done()
    round_trip = float(re.search(rb"rtt ([0-9.]+) ms", result.err).group(1))
    if round_trip < 1:  # of a busy machine it may be more, and then a transfer is faster
        equal((done["engine"], done["channels"]), ("inline", 0), done)
        check(done["replies"]["pieces"] >= 20, done)
    else:
        equal(done["engine"], "pull", done)
    replies = done["replies"]  # the daemon sends none that it was not asked for
    check(replies["sent"] <= replies["asked_for"], replies)


@case
def what_a_server_refuses(top):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 100)
    make_file(f"{top}/export/g", 100)
    os.mkfifo(f"{top}/export/fifo")
    for mode, words in (("ro", ("{f}", "{url}")), ("ro", ("{f}", "{g}", "{url}")), ("rw", ("{f}", "{url}fifo")),
                        ("rw", ("{url}fifo", "{top}/x")), ("rw", ("{url}fifo", "{url}nothing", "{top}"))):
        daemon = Daemon(f"{top}/export", mode)
        words = [w.format(f=f"{top}/f", g=f"{top}/export/g", top=top, url=daemon.url("")) for w in words]
        results = [rftptest.rftp(*options, *words) for options in ([], [OFF])]
        equal(results[0].code, results[1].code, mode, words)
        equal(results[0].err, results[1].err, mode, words)
        check(results[0].code != OK, results)
        equal(engine(daemon.url("g"), f"{top}/g"), "inline", "get of what may be read")
        daemon.stop()
    for options, why in ((["--inline-max", "0"], "none"), (["--inline-max", "50"], "too small"),
                         (["--bandwidth", "100M"], "for transfers"), (["--limit-rate", "10M"], "likewise"),
                         (["--limit", "user=* rate=10M"], "of a user's")):
        daemon = Daemon(f"{top}/export", "rw", *options)
        equal(engine(f"{top}/f", daemon.url("")), "credit", why)
        equal(engine(daemon.url("g"), f"{top}/g"), "credit", why)
        daemon.stop()


@case(seconds=120)
def with_every_engine(top):
    """By itself, of trees that are put, of what mget and mput name, and of sync to a server and from one."""
    os.makedirs(f"{top}/export")
    os.makedirs(f"{top}/t")
    daemon = Daemon(f"{top}/export", "rw")
    for i in range(20):
        make_file(f"{top}/t/f{i}", i * 100)
    for name in ("auto", "credit", "status", "window", "pull"):
        option = f"--engine={name}"
        os.makedirs(f"{top}/{name}")
        for what, arguments in (
                ("put -r", ("-r", f"{top}/t", daemon.url(name))),
                ("mput", ("-c", f"lcd {top}/t; mkdir {name}/more; cd {name}/more; mput f*", daemon.url(""))),
                ("mget", ("-c", f"lcd {top}/{name}; mget {name}/more/f*", daemon.url(""))),
                ("sync", ("sync", f"{top}/t", daemon.url(f"{name}-sync"))),
                ("sync back", ("sync", daemon.url(f"{name}-sync"), f"{top}/{name}-back"))):
            equal(engine(option, *arguments), "inline", what, name)
        for there in (f"{top}/export/{name}/more", f"{top}/export/{name}-sync", f"{top}/{name}", f"{top}/{name}-back"):
            equal(tree(there), tree(f"{top}/t"), there)


@case
def what_only_transfers_do(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw")
    make_file(f"{top}/f", 100)
    for options in (["-z"], ["--verify=file"], ["--verify=readback"], ["-H"], ["-X"], ["-A"], ["--channels=1"],
                    ["--block=64K"], ["--depth=4"], ["--preallocate"], ["--limit-rate=10M"], ["--deadline=10s"],
                    ["--stop-on-error"], ["--early=always"], ["--exclude=x"], ["--resume=50"]):
        equal(engine(*options, f"{top}/f", daemon.url("")), "credit", options)
        equal(engine(*options, daemon.url("f"), f"{top}/g"), "credit", options)
    for options in (["-o", "-g"], ["--fsync=never"], ["--fsync=end"], ["--engine=status"], ["--protect=private"]):
        equal(engine(*options, f"{top}/f", daemon.url("")), "inline", options)
        equal(engine(*options, daemon.url("f"), f"{top}/g"), "inline", options)
    equal(works(daemon.url("f"), "-").out, open(f"{top}/f", "rb").read(), "standard output")


@case
def a_disk_that_is_full(top):
    if not rftptest.ROOT:
        skip("a small tmpfs needs root")
    where = f"{top}/small"
    os.mkdir(where)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", where], capture_output=True, check=False)
    if done.returncode:
        skip(f"no tmpfs can be mounted here: {done.stderr.decode().strip()}")
    try:
        make_file(f"{top}/f", MOST)
        make_file(f"{where}/old", 40000)
        before = tree(where)
        daemon = Daemon(where, "rw", "--sandbox=no")
        said = []
        for options in ([], [OFF]):
            result = rftptest.rftp(*options, f"{top}/f", daemon.url("old"))
            equal(result.code, NO_SPACE, result)
            said.append(result.err.split(b": ", 2)[2])  # of one request or file it is the file's, else the target's
            equal(tree(where), before, "the old file")
        equal(said[0], said[1], "what is said")
        check(b"of /old has room for 24.0 KiB, and 60.0 KiB are needed" in said[0], said)
        daemon.stop()
    finally:
        rftptest.kill_all()
        subprocess.run(["umount", "-l", where], check=True)


def dialogue_bytes(daemon, *arguments):
    proxy = Proxy(daemon.port)
    works(*[a.replace("PROXY", proxy.url("").rstrip("/")) for a in arguments])
    carried = proxy.carried
    proxy.close()
    return carried


@case(seconds=300)
def cut_anywhere(top):
    """A file is the old one or the new one, and nothing is left over."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw")
    make_file(f"{top}/new", 700)
    for way, target in ((("{top}/new", "PROXY/f"), daemon.path("f")), (("PROXY/source", "{top}/f"), f"{top}/f")):
        make_file(daemon.path("source"), 700)
        new = open(f"{top}/new" if target == daemon.path("f") else daemon.path("source"), "rb").read()
        words = [w.format(top=top) for w in way]
        total = dialogue_bytes(daemon, *words)
        seen = set()
        cuts = [rng().randrange(1, total) for _ in range(scaled(40))] + list(range(total - 40, total, 4))
        for cut in cuts:
            with open(target, "wb") as f:
                f.write(b"old")
            proxy = Proxy(daemon.port, cut=cut)
            result = rftptest.rftp(*[w.replace("PROXY", proxy.url("").rstrip("/")) for w in words])
            proxy.close()
            daemon_idle = Session(daemon.port, WAIT)  # the daemon has seen the end of what came before
            daemon_idle.hello()
            daemon_idle.close()
            got = open(target, "rb").read()
            check(got in (b"old", new), "cut at", cut, "of", total, got[:20])
            check(got == new or result.code != OK, "cut at", cut, "not told:", result)
            seen.add(got == new)
        check(False in seen, "no cut came before the file")
        rftptest.wait_until(lambda: not leftovers(top), "leftovers to go")


# ---- the server, and clients that are not ours ----

def ready(daemon):
    session = Session(daemon.port, WAIT)
    session.hello()
    return session


def put_reply(data):
    into, status, digest, size = struct.unpack(">BHQH", data[:13])
    equal(len(data), 13 + size, "its text")
    return into, status, digest, data[13:]


@case
def what_a_put_means(top):
    os.makedirs(f"{top}/export/dir")
    daemon = Daemon(f"{top}/export", "rw")
    session = ready(daemon)
    content = bytes(range(64))
    for path, flags, name, into, there in ((b"/a", 0, b"", 0, "a"), (b"/b", 1, b"n", 0, "b"), (b"/dir", 1, b"n", 1, "dir/n"),
                                           (b"/dir/", 1, b"m", 1, "dir/m"), (b"/", 1, b"o", 1, "o")):
        status, data = session.ask(iwarp.PUT, iwarp.put(path, content, flags, name=name))
        equal((status, put_reply(data)[:2]), (0, (into, 0)), path)
        equal(open(daemon.path(there), "rb").read(), content, path)
    # what cannot be is refused, or told of the file; the session goes on
    for path, flags, name, code in ((b"/dir", 0, b"", (0, 204)), (b"/no/x", 0, b"", 200), (b"/no/", 1, b"n", 200),
                                    (b"/a/", 1, b"n", 205), (b"/a/b", 0, b"", 205), (b"/../x", 0, b"", 208)):
        status, data = session.ask(iwarp.PUT, iwarp.put(path, content, flags, name=name))
        equal((status, put_reply(data)[1]) if not status else status, code, path)
    # another digest than the bytes have
    for field in ({"digest": 1}, {"data": iwarp.file(size=64, mode=0o600), "digest": 12345}):
        status, data = session.ask(iwarp.PUT, iwarp.put(b"/new", content, **field))
        equal((status, put_reply(data)[1]), (0, 305), field)
        check(not os.path.exists(daemon.path("new")), "it is there")
    status, data = session.ask(iwarp.PUT, iwarp.put(b"/a", content, 4))
    equal((status, put_reply(data)[1]), (0, 203), "it is not replaced")
    status, data = session.ask(iwarp.GET, iwarp.get(b"/a"))
    equal((status, data[:1], data[-64:]), (0, b"\1", content), "GET")
    equal(session.ask(iwarp.GET, iwarp.get(b"/a", most=63)), (0, b"\0"), "GET of a larger one")
    equal([session.ask(iwarp.GET, iwarp.get(p))[0] for p in (b"/dir", b"/no", b"/../x")], [204, 200, 208], "GET")
    session.close()
    daemon.stop()
    small = Daemon(f"{top}/export", "rw", "--inline-max", "63")
    session = ready(small)
    equal(session.ask(iwarp.PUT, iwarp.put(b"/new", content))[0], 104, "over the limit")
    check(not os.path.exists(small.path("new")), "it is there")


def full():
    raise Dropped("no credits")


@case(seconds=120)
def a_thousand_outstanding(top):
    """They are answered in order, in bounded memory, while others are served."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw")
    count, content = scaled(1000, 300), bytes(64)
    session = ready(daemon)
    for i in range(count):
        session.put(iwarp.PUT, iwarp.put(f"/f{i % 7}".encode(), content, 4 if i >= 7 else 0))
    for i in range(count):
        type_, response, data = session.get()
        equal((type_, response, put_reply(data)[1]), (iwarp.PUT | iwarp.REPLY, 0, 203 if i >= 7 else 0), i)
    make_file(daemon.path("large"), MOST)
    before = daemon.peak_bytes()
    rude = [ready(daemon) for _ in range(4)]
    head = struct.pack(">HHI", iwarp.GET, 0, len(iwarp.get(b"/large")))
    for other in rude:  # 1,000 are sent as far as there are credits, and no reply is read
        other.control.pump = full
        try:
            other.put_stream((head + iwarp.get(b"/large")) * 1000)
        except Dropped:
            pass
    works("-c", "ls", daemon.url(""))
    check(daemon.peak_bytes() - before < 64 << 20, "memory:", before, daemon.peak_bytes())
    for other in rude:
        other.close()
    # and in between other requests keep their place
    session.put(iwarp.PUT, iwarp.put(b"/x", content))
    session.put(iwarp.STAT, iwarp.text(b"/x"))
    session.put(iwarp.GET, iwarp.get(b"/x"))
    session.put(iwarp.REMOVE, iwarp.text(b"/x"))
    session.put(iwarp.GET, iwarp.get(b"/x"))
    equal([session.get()[:2] for _ in range(5)],
          [(t | iwarp.REPLY, s) for t, s in ((iwarp.PUT, 0), (iwarp.STAT, 0), (iwarp.GET, 0), (iwarp.REMOVE, 0),
                                             (iwarp.GET, 200))], "in order")


@case
def a_server_that_sends_something_else(top):
    """Nothing of it is believed, and nothing is left over."""
    content = bytes(64)
    right = b"\1" + iwarp.whole(content)
    answers = (("more than was asked for", b"\1" + iwarp.whole(bytes(100), data=iwarp.file(size=MOST + 1)), PROTOCOL),
               ("another size", b"\1" + iwarp.whole(content, data=iwarp.file(size=63)), PROTOCOL),
               ("a name of its own", b"\1" + iwarp.whole(content, name=b"other"), PROTOCOL),
               ("a directory", b"\1" + iwarp.whole(b"", kind=2), PROTOCOL),
               ("bytes behind", right + b"x", PROTOCOL), ("half of it", right[:-1], PROTOCOL),
               ("neither", b"\2", PROTOCOL), ("a wrong digest", b"\1" + iwarp.whole(content, digest=1), INTEGRITY))
    os.mkdir(f"{top}/in")
    for what, answer, code in answers:
        rogue = Rogue({iwarp.LOGIN: lambda s, d: s.login(d, max_inline=MOST), iwarp.CHANNELS: ServerSession.grant_channels,
                       iwarp.GET: lambda s, d, a=answer: s.reply(iwarp.GET, a)})
        for target in (f"{top}/in/f", f"{top}/in/"):
            result = rftptest.rftp(rogue.url("report"), target)
            equal(result.code, code, what, result)
            equal(os.listdir(f"{top}/in"), [], what)
        rogue.close()
    rogue = Rogue({iwarp.LOGIN: lambda s, d: s.login(d, max_inline=MOST), iwarp.CHANNELS: ServerSession.grant_channels,
                   iwarp.GET: lambda s, d: s.reply(iwarp.GET, right)})
    works(rogue.url("report"), f"{top}/in/f")
    equal(open(f"{top}/in/f", "rb").read(), content, "the right answer")
    rogue.close()
    make_file(f"{top}/f", 100)
    for what, answer, code in (("another digest", struct.pack(">BHQ", 0, 0, 1) + iwarp.text(b""), PROTOCOL),
                               ("neither", struct.pack(">BHQ", 2, 0, 1) + iwarp.text(b""), PROTOCOL),
                               ("no space", struct.pack(">BHQ", 0, 300, 0) + iwarp.text(b"\x1b[2J"), NO_SPACE)):
        rogue = Rogue({iwarp.LOGIN: lambda s, d: s.login(d, max_inline=MOST), iwarp.CHANNELS: ServerSession.grant_channels,
                       iwarp.PUT: lambda s, d, a=answer: s.reply(iwarp.PUT, a)})
        result = rftptest.rftp(f"{top}/f", rogue.url("x"))
        equal(result.code, code, what, result)
        check(b"\x1b" not in result.err, what, result)
        rogue.close()


def listed(*names, size=64):
    """A reply to TREE: small files that were made long ago."""
    return struct.pack(">BH", 0, len(names)) + b"".join(
        attributes(size=size) + bytes(4) + iwarp.text(name) + iwarp.text(b"") for name in names)


@case(seconds=120)
def a_server_that_lists_something_else(top):
    """Of a sync: what comes is what was listed, at the name it was listed under, or nothing is."""
    content = bytes(64)

    def said(names, answer, size=64):
        rogue = Rogue({iwarp.LOGIN: lambda s, d: s.login(d, max_inline=MOST), iwarp.CHANNELS: ServerSession.grant_channels,
                       iwarp.TREE: lambda s, d: s.reply(iwarp.TREE, listed(*names, size=size)),
                       iwarp.GET: lambda s, d: s.reply(iwarp.GET, answer)})
        subprocess.run(["rm", "-rf", f"{top}/in"], check=True)
        os.makedirs(f"{top}/in/to")
        result = rftptest.rftp("--retries=0", "sync", rogue.url("t"), f"{top}/in/to")
        rogue.close()
        equal(os.listdir(f"{top}/in"), ["to"], "beside the destination")
        return result, sorted(os.listdir(f"{top}/in/to"))

    right = b"\1" + iwarp.whole(content)
    result, there = said((b"a", b"b"), right)
    equal((result.code, there), (OK, ["a", "b"]), "the right answer", result)
    for what, answer, code in (
            ("more than was asked for", b"\1" + iwarp.whole(bytes(100), data=iwarp.file(size=MOST + 1)), PROTOCOL),
            ("another size", b"\1" + iwarp.whole(content, data=iwarp.file(size=63)), PROTOCOL),
            ("a name of its own", b"\1" + iwarp.whole(content, name=b"../other"), PROTOCOL),
            ("a directory", b"\1" + iwarp.whole(b"", kind=2), PROTOCOL),
            ("bytes behind", right + b"x", PROTOCOL), ("half of it", right[:-1], PROTOCOL),
            ("neither", b"\2", PROTOCOL), ("a wrong digest", b"\1" + iwarp.whole(content, digest=1), INTEGRITY)):
        result, there = said((b"a", b"b"), answer)
        equal(there, [], what)
        check(result.code != OK and (code == INTEGRITY or result.code == code), what, result)
    for name in (b"../x", b"/x", b"a/../../x", b".", b"a//b", b""):
        result, there = said((name,), right)
        equal((result.code, there), (PROTOCOL, []), name, result)


@case
def it_is_written_down(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw", "--audit-log", f"{top}/audit", "--xferlog", f"{top}/xferlog")
    make_file(f"{top}/f", 100)
    works(f"{top}/f", daemon.url(""))
    works(daemon.url("f"), f"{top}/g")
    with open(f"{top}/audit", encoding="utf-8") as f:
        events = [json.loads(line) for line in f]
    moved = [(e["event"], e["path"], e["files"], e["bytes"], e["status"]) for e in events if e["event"] in ("put", "get")]
    equal(moved, [("put", "/f", 1, 100, "ok"), ("get", "/f", 1, 100, "ok")], "audit log")
    with open(f"{top}/xferlog", encoding="utf-8") as f:
        equal([line.split()[7:9] for line in f], [["100", "/f"], ["100", "/f"]], "xferlog")


if __name__ == "__main__":
    rftptest.main()
