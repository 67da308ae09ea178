#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies that work: sizes, options, trees, streams, several sources, what is reported."""

import os
import re
import subprocess

import rftptest
from rftptest import Daemon, case, check, equal, leftovers, make_file, rftp, same_files, skip, tree, \
    works

K, M = 1 << 10, 1 << 20
BLOCK = 64 * K


def places(top):
    """A daemon's export and a local directory, both empty."""
    for name in ("export", "local"):
        os.mkdir(os.path.join(top, name))
    return Daemon(os.path.join(top, "export")), os.path.join(top, "local")


def there_and_back(daemon, local, name, *options):
    """Puts local/name, gets it back as local/name.back, and compares all three."""
    source = os.path.join(local, name)
    works(*options, source, daemon.url(name))
    same_files(source, daemon.path(name), f"put {options}")
    works(*options, daemon.url(name), source + ".back")
    same_files(source, source + ".back", f"get {options}")
    os.unlink(source + ".back")


@case
def sizes_around_a_block(top):
    daemon, local = places(top)
    for size in (0, 1, 511, 4095, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, 7 * BLOCK,
                 11 * BLOCK + 12345):
        make_file(f"{local}/{size}", size)
        there_and_back(daemon, local, str(size), "--block", "64K")
    equal(leftovers(daemon.top), [], "temporary files")


@case
def sizes_with_defaults(top):
    daemon, local = places(top)
    for size in (0, 1, M - 1, M, M + 1, 20 * M + 4097):
        make_file(f"{local}/{size}", size)
        there_and_back(daemon, local, str(size))


@case
def several_transfers_are_one_set_up(top):
    """Data channels and memory outlive a transfer: the next one finds them."""
    os.mkdir(f"{top}/export")
    os.mkdir(f"{top}/got")
    names = [f"f{i}" for i in range(5)]
    for name in names:
        make_file(f"{top}/export/{name}", 3 << 20)
    daemon = Daemon(f"{top}/export", "rw", "--log-level", "debug")
    proxy = rftptest.Proxy(daemon.port)
    try:
        said = works("-vv", "--channels", "2", *[proxy.url(name) for name in names], f"{top}/got").err
        for name in names:
            same_files(f"{top}/export/{name}", f"{top}/got/{name}")
        for who, text in (("the client", said), ("the daemon", daemon.stderr())):
            equal(text.count(b" bytes registered"), 1, who, "registered memory for", len(names), "gets")
        rftptest.wait_until(lambda: b" ended after " in daemon.stderr(), "the end of the session")
        equal(daemon.stderr().count(b" RETRIEVE: "), 1, "transfers for", len(names), "gets")
        equal(len(proxy.sockets) // 2, 1 + 2, "connections")
        works("--channels", "2", "-c", "; ".join(f"put {top}/got/{name} p{name}" for name in names), proxy.url())
        for name in names:
            same_files(f"{top}/got/{name}", f"{top}/export/p{name}")
        equal(daemon.stderr().count(b" bytes registered"), 2, "registrations with", len(names), "puts behind")
        equal(len(proxy.sockets) // 2, 2 * (1 + 2), "connections")
    finally:
        proxy.close()
    daemon.stop()


@case
def one_of_several_that_cannot_be_had(top):
    """One transfer brings the others, and each failure is told as that path's own."""
    daemon, local = places(top)
    for name in ("a", "b", "d/x", "e/y"):
        os.makedirs(os.path.dirname(f"{daemon.top}/{name}"), exist_ok=True)
        make_file(f"{daemon.top}/{name}", 70000)
    os.symlink("nowhere", f"{daemon.top}/dangling")
    names = ["a", "missing", "d", "e/y", "dangling", "b"]
    run = rftptest.fails(1, *[daemon.url(name) for name in names], f"{local}/")
    for name, why in (("/missing", b"no such file"), ("/d", b"use -r"), ("/dangling", b"no such file")):
        lines = [line for line in run.err.splitlines() if f"{name}:".encode() in line]
        check(len(lines) == 1 and why in lines[0].lower(), name, "is told as:", run.err)
    equal(sorted(tree(local)), [b"a", b"b", b"y"], "what came")
    same_files(f"{daemon.top}/e/y", f"{local}/y")
    events = rftptest.fails(1, "--json", *[daemon.url(name) for name in names], f"{local}/").out
    check(b'"/e/y"' in events and b'"/missing"' in events, "the server's paths:", events)
    rftptest.fails(6, "-r", *[daemon.url(name) for name in names], f"{local}/")
    equal(sorted(tree(local)), [b"a", b"b", b"d", b"d/x", b"y"], "what came with -r")
    equal(leftovers(local), [], "temporary files")


@case
def more_paths_than_a_request_holds(top):
    """A pattern of 5,000 names, and some that are so long that few fit."""
    daemon, local = places(top)
    deep = "/".join(["d" * 250] * 15)
    os.makedirs(f"{daemon.top}/{deep}")
    os.mkdir(f"{daemon.top}/many")
    for number in range(5000):
        with open(f"{daemon.top}/many/{number}", "w", encoding="ascii") as file:
            file.write(str(number))
    for number in range(40):
        make_file(f"{daemon.top}/{deep}/long{number}", 1)
    works(daemon.url("many/*"), f"{local}/")
    equal(len(os.listdir(local)), 5000, "names")
    for number in rftptest.rng().sample(range(5000), 50):
        with open(f"{local}/{number}", encoding="ascii") as file:
            equal(file.read(), str(number), number)
    works(daemon.url(f"{deep}/*"), f"{local}/")
    equal(len(os.listdir(local)), 5040, "names")


@case
def blocks_channels_and_depths(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 9 * M + 77)
    for options in (["--block", "64K", "--channels", "1", "--depth", "1"],
                    ["--block", "64K", "--channels", "3", "--depth", "2"],
                    ["--block", "1M", "--channels", "2", "--depth", "5"],
                    ["--block", "4M", "--channels", "4"],
                    ["--block", "16M", "--channels", "64", "--depth", "2"],
                    ["--fabric", "soft", "--engine", "credit"],
                    ["--engine", "status"], ["--engine", "window"], ["--engine", "pull"],
                    ["--engine", "pull", "--block", "64K", "--channels", "3", "--depth", "3"],
                    ["--engine", "pull", "--block", "64K", "--channels", "1", "--depth", "200"],
                    ["--engine", "status", "--block", "64K", "--channels", "3", "--depth", "3"],
                    ["--engine", "window", "--block", "64K", "--channels", "3", "--depth", "3"],
                    ["--fabric", "auto", "--engine", "auto", "--channels", "auto", "--block", "auto",
                     "--depth", "auto", "--direct", "auto"]):
        there_and_back(daemon, local, "f", *options)


@case
def a_long_way_gets_a_large_window(top):
    """Both ways: 4 ms at 40 Gb/s are 20 MB, twice.  8 MiB would be what a short way gets."""
    daemon, local = places(top)
    os.mkdir(f"{local}/tree")
    make_file(f"{local}/tree/f", 32 * M)
    make_file(f"{local}/tree/g", 9)
    proxy = rftptest.Proxy(daemon.port, delay=0.002)
    for names in ([f"{local}/tree", proxy.url("tree")], [proxy.url("tree"), f"{local}/back"]):
        said = works("-v", "-r", *names).err
        window = re.search(rb"window \d+ blocks = ([0-9.]+) MiB", said)
        check(window and float(window.group(1)) > 30, "the window:", said)
    proxy.close()


@case
def crc_on_every_segment(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 3 * M + 1)
    there_and_back(daemon, local, "f", "--crc")


@case
def direct_on_and_off(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 3 * M + 1)
    there_and_back(daemon, local, "f", "--direct", "off")
    try:
        os.close(os.open(f"{local}/f", os.O_RDONLY | os.O_DIRECT))
    except OSError:
        skip(f"no O_DIRECT on the file system of {local}")
    for size in (0, 1, 4096, M, 3 * M + 1):
        make_file(f"{local}/d{size}", size)
        there_and_back(daemon, local, f"d{size}", "--direct", "on")


@case
def several_sources_into_a_directory(top):
    daemon, local = places(top)
    names = [f"file-{i}" for i in range(40)]
    for i, name in enumerate(names):
        make_file(f"{local}/{name}", i * 1777)
    os.mkdir(daemon.path("into"))
    os.mkdir(f"{local}/back")
    works(*[f"{local}/{n}" for n in names], daemon.url("into/"))
    works(*[daemon.url("into/" + n) for n in names], f"{local}/back")
    for name in names:
        same_files(f"{local}/{name}", daemon.path("into/" + name), name)
        same_files(f"{local}/{name}", f"{local}/back/{name}", name)


@case
def a_tree_both_ways(top):
    daemon, local = places(top)
    os.makedirs(f"{local}/tree/a/b/c")
    os.makedirs(f"{local}/tree/empty")
    for i in range(60):
        make_file(f"{local}/tree/{'/'.join(['a', 'b', 'c'][:i % 4])}/f{i}", i * i * 53)
    works("-r", f"{local}/tree", daemon.url(""))
    equal(tree(daemon.path("tree")), tree(f"{local}/tree"), "the tree at the daemon")
    works("-r", f"{local}/tree/", daemon.url("other"))
    equal(tree(daemon.path("other")), tree(f"{local}/tree"), "the tree under another name")
    works("-r", daemon.url("tree/"), f"{local}/back")
    equal(tree(f"{local}/back"), tree(f"{local}/tree"), "the tree that came back")
    # once more over what is there: replaced, and nothing is left behind
    works("-r", daemon.url("tree/"), f"{local}/back")
    equal(tree(f"{local}/back"), tree(f"{local}/tree"), "the tree that came back twice")
    equal(leftovers(top), [], "temporary files")


@case
def a_directory_without_r_is_refused(top):
    daemon, local = places(top)
    os.mkdir(f"{local}/d")
    os.mkdir(daemon.path("e"))
    rftptest.fails((rftptest.KIND, rftptest.FAILED), f"{local}/d", daemon.url("x"),
                   says="directory")
    rftptest.fails((rftptest.KIND, rftptest.FAILED), daemon.url("e"), f"{local}/x",
                   says="directory")
    equal(tree(daemon.top), {b"e": None}, "the export")


@case
def stdin_and_stdout(top):
    daemon, local = places(top)
    for size in (0, 1, 65536, 2 * M + 3):
        make_file(f"{local}/f", size)
        with open(f"{local}/f", "rb") as f:
            data = f.read()
        works("-", daemon.url("piped"), input=data)
        same_files(f"{local}/f", daemon.path("piped"), f"{size} bytes from stdin")
        got = works(daemon.url("piped"), "-")
        check(got.out == data, f"{size} bytes on stdout: got {len(got.out)}")
        with open(f"{local}/f", "rb") as f:  # stdin that is a file
            works("-", daemon.url("file"), stdin=f)
        same_files(f"{local}/f", daemon.path("file"), f"{size} bytes from a file as stdin")


@case
def a_slow_pipe_arrives_whole(top):
    daemon, local = places(top)
    process = rftptest.start_rftp("-", daemon.url("slow"), stdin=subprocess.PIPE)
    data = b""
    for i in range(20):
        piece = rftptest.rng().randbytes(1 + i * 977)
        process.stdin.write(piece)
        process.stdin.flush()
        data += piece
    equal(rftptest.finish(process).code, 0, "exit code")
    with open(daemon.path("slow"), "rb") as f:
        check(f.read() == data, "what arrived differs from what was written")


@case
def mode_and_time_come_along(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 1000, 0o751)
    os.utime(f"{local}/f", ns=(1, 1234567890123456789))
    works(f"{local}/f", daemon.url("f"))
    works(daemon.url("f"), f"{local}/g")
    for path in (daemon.path("f"), f"{local}/g"):
        got = os.stat(path)
        equal(got.st_mtime_ns, 1234567890123456789, "mtime of", path)
        equal(got.st_mode & 0o7777, 0o751, "mode of", path)


def look(path):
    got = os.lstat(path)
    return oct(got.st_mode & 0o7777), got.st_mtime_ns


@case
def modes_of_existing_files_and_whatever_umask_says(top):
    os.umask(0o077)
    daemon, local = places(top)
    for mode in (0o666, 0o444, 0o1640):
        make_file(f"{local}/f", 1000)
        os.chmod(f"{local}/f", mode)
        make_file(daemon.path("old"), 9, 0o600)
        make_file(f"{local}/old", 9, 0o600)
        for to in ("old", f"new-{mode:o}"):
            works(f"{local}/f", daemon.url(to))
            works(daemon.url(to), f"{local}/{to}")
            equal(look(daemon.path(to)), look(f"{local}/f"), "put", to)
            equal(look(f"{local}/{to}"), look(f"{local}/f"), "get", to)
    # what has no mode of its own gets what umask leaves, or keeps what was there
    works("-", daemon.url("piped"), input=b"x")
    equal(look(daemon.path("piped"))[0], oct(0o600), "from stdin")
    os.chmod(daemon.path("piped"), 0o640)
    works("-", daemon.url("piped"), input=b"xy")
    equal(look(daemon.path("piped"))[0], oct(0o640), "from stdin, once more")


@case
def set_id_is_kept_or_told(top):
    """One's own files get it; a daemon's do not, and that is said once of each."""
    daemon, local = places(top)
    os.mkdir(f"{local}/t")
    for name, mode in (("u", 0o4755), ("g", 0o2755), ("s", 0o1755), ("plain", 0o755)):
        make_file(f"{local}/t/{name}", 10)
        os.chmod(f"{local}/t/{name}", mode)
    said = works("-r", f"{local}/t/", daemon.url("t")).err.decode()
    equal(sorted(line.split("/")[-1] for line in said.splitlines()),
          ["g: set-group-ID is not kept", "u: set-user-ID is not kept"], "what is said")
    events = works("--json", f"{local}/t/u", daemon.url("u")).events()
    equal([(e["status"], e["text"]) for e in events if e["event"] == "file"],
          [("ok", "set-user-ID is not kept")], "the event")
    for name, mode in (("u", 0o755), ("g", 0o755), ("s", 0o1755)):
        equal(look(daemon.path(f"t/{name}"))[0], oct(mode), name)
        os.chmod(daemon.path(f"t/{name}"), 0o6755)
    equal(works("-r", daemon.url("t/"), f"{local}/back").err, b"", "a get says")
    for name in ("u", "g", "s"):
        equal(look(f"{local}/back/{name}")[0], oct(0o6755), "back", name)


@case
def directories_keep_mode_and_time(top):
    """Set last, so that neither the files in them nor a mode without write permission matters."""
    os.umask(0o027)
    daemon, local = places(top)
    dirs = {"t": 0o755, "t/a": 0o555, "t/a/b": 0o700, "t/c": 0o2777, "t/empty": 0o500, "t/z": 0o1777}
    for name in dirs:
        os.mkdir(f"{local}/{name}")
        for i in range(8):
            make_file(f"{local}/{name}/{i}", 0 if name == "t/empty" else i * 100000, 0o604)
    for i, name in enumerate(reversed(dirs)):
        os.chmod(f"{local}/{name}", dirs[name])
        os.utime(f"{local}/{name}", ns=(1, 1234567890123456789 + i))
    os.mkdir(daemon.path("into"))
    os.makedirs(daemon.path("into/t/a"), mode=0o700)
    try:
        for _ in range(2):  # and once more over what is there
            works("-r", f"{local}/t/", daemon.url("new"))
            works("-r", f"{local}/t", daemon.url("into/"))
            works("-r", daemon.url("into/t/"), f"{local}/back")
            os.path.exists(f"{local}/backs") or os.mkdir(f"{local}/backs")
            works("-r", daemon.url("into/t"), f"{local}/backs")
            for name in dirs:
                for copy in (daemon.path("into/" + name), f"{local}/backs/{name}",
                             f"{local}/back{name[1:]}", daemon.path("new" + name[1:])):
                    equal(look(copy), look(f"{local}/{name}"), copy)
    finally:
        for where, names, _ in os.walk(top):
            for name in names:
                os.chmod(f"{where}/{name}", 0o700)


@case
def a_tree_into_the_export_leaves_its_top_alone(top):
    daemon, local = places(top)
    os.mkdir(f"{local}/t")
    os.chmod(f"{local}/t", 0o700)
    os.chmod(daemon.top, 0o751)
    works("-r", f"{local}/t/.", daemon.url(""))
    equal(look(daemon.top)[0], oct(0o751), "the export's top")
    os.mkdir(daemon.path("d"))
    works("-r", f"{local}/t/.", daemon.url("d"))
    equal(look(daemon.path("d")), look(f"{local}/t"), "a directory in it")


@case
def an_existing_file_is_replaced_or_kept(top):
    daemon, local = places(top)
    make_file(f"{local}/new", 100000)
    make_file(daemon.path("f"), 50)
    old = rftptest.digest(daemon.path("f"))
    rftptest.fails(rftptest.KIND, "--no-replace", f"{local}/new", daemon.url("f"), says="exist")
    equal(rftptest.digest(daemon.path("f")), old, "the old file")
    works(f"{local}/new", daemon.url("f"))
    same_files(f"{local}/new", daemon.path("f"))
    make_file(f"{local}/mine", 60)
    mine = rftptest.digest(f"{local}/mine")
    rftptest.fails(rftptest.KIND, "--no-replace", daemon.url("f"), f"{local}/mine", says="exist")
    equal(rftptest.digest(f"{local}/mine"), mine, "the old local file")
    equal(leftovers(top), [], "temporary files")


@case
def onto_a_link_and_through_one(top):
    """A link is replaced by what arrives, and what it led to stays; one to a directory is followed.
    Of links at the server relative ones that stay inside are followed, absolute ones are not."""
    daemon, local = places(top)
    make_file(f"{local}/new", 1000)
    for where in (daemon.top, local):
        os.mkdir(f"{where}/d")
        make_file(f"{where}/to", 10)
        os.symlink("to", f"{where}/link")
        os.symlink("nowhere", f"{where}/dangling")
        os.symlink("d", f"{where}/dirlink")
    make_file(daemon.path("got"), 1000)
    for name in ("link", "dangling"):
        works(f"{local}/new", daemon.url(name))
        works(daemon.url("got"), f"{local}/{name}")
        for where in (daemon.top, local):
            check(not os.path.islink(f"{where}/{name}"), name, "of", where, "is a link still")
            equal(os.path.getsize(f"{where}/{name}"), 1000, name)
            equal(os.path.getsize(f"{where}/to"), 10, "what the link led to")
            check(not os.path.exists(f"{where}/nowhere"), "made through a dangling link")
    works(f"{local}/new", daemon.url("dirlink"))
    works(daemon.url("got"), f"{local}/dirlink")
    same_files(f"{local}/new", daemon.path("d/new"))
    same_files(daemon.path("got"), f"{local}/d/got")
    os.symlink("d/new", daemon.path("inside"))
    os.symlink(daemon.path("d/new"), daemon.path("absolute"))
    works(daemon.url("inside"), f"{local}/inside")
    same_files(f"{local}/new", f"{local}/inside")
    rftptest.fails(rftptest.DENIED, daemon.url("absolute"), f"{local}/absolute", says="outside")


@case
def what_is_no_file_stays(top):
    """Devices and the like, also where a link leads to one: /dev/stdout is such a link."""
    daemon, local = places(top)
    make_file(daemon.path("f"), 1000)
    os.mkfifo(f"{local}/fifo")
    os.symlink("/proc/self/fd/1", f"{local}/stdout")
    os.symlink("/dev/null", f"{local}/device")
    os.symlink("fifo", f"{local}/pipe")
    for name in ("fifo", "stdout", "device", "pipe"):
        before = os.lstat(f"{local}/{name}")
        rftptest.fails(rftptest.KIND, daemon.url("f"), f"{local}/{name}", says="not a regular file")
        equal(os.lstat(f"{local}/{name}").st_ino, before.st_ino, name)


@case
def files_that_do_not_know_their_size(top):
    """They say that they are empty: to take them at their word would be to lose what is in them."""
    if not os.path.exists("/proc/version"):
        rftptest.skip("no /proc")
    daemon, _ = places(top)
    rftptest.fails(rftptest.KIND, "/proc/version", daemon.url("f"), says="not a regular file")
    equal(os.listdir(daemon.top), [], "at the server")
    with open("/proc/version", "rb") as f:
        wanted = f.read()
    works("-", daemon.url("f"), input=wanted)
    equal(works(daemon.url("f"), "-").out, wanted, "by way of a pipe")
    serving = Daemon("/proc/self/", "ro")
    rftptest.fails(rftptest.KIND, serving.url("mounts"), "-", says="not a regular file")


@case
def links_in_trees(top):
    daemon, local = places(top)
    t = f"{local}/t"
    os.makedirs(f"{t}/d/e")
    make_file(f"{t}/d/f", 1000)
    targets = {"file": "d/f", "dir": "d", "up": "../t/d", "dangling": "nowhere", "out": "../..",
               "absolute": "/etc", "d/e/deep": "../../dir/f", "bytes": "\udcff\n 'x"}
    for i, (name, target) in enumerate(targets.items()):
        os.symlink(target, f"{t}/{name}")
        os.utime(f"{t}/{name}", ns=(1, 1234567890123456789 + i), follow_symlinks=False)

    def same(copy):
        for name, target in targets.items():
            equal(os.readlink(f"{copy}/{name}"), target, copy, name)
            equal(os.lstat(f"{copy}/{name}").st_mtime_ns, os.lstat(f"{t}/{name}").st_mtime_ns, name)
        same_files(f"{t}/d/f", f"{copy}/d/f")
    # as they are, and once more over what is there, of which something else has become
    for _ in range(2):
        os.path.exists(daemon.path("t")) or os.mkdir(daemon.path("t"))
        works("-r", f"{t}/.", daemon.url("t"))
        same(daemon.path("t"))
        os.path.exists(f"{local}/back") or os.mkdir(f"{local}/back")
        works("-r", daemon.url("t/."), f"{local}/back")
        same(f"{local}/back")
        for where in (daemon.path("t"), f"{local}/back"):
            os.unlink(f"{where}/dir")
            os.symlink("d/e", f"{where}/dir")
            os.unlink(f"{where}/file")
            make_file(f"{where}/file", 5)
    equal(leftovers(top), [], "temporary files")
    # what they lead to
    for name in ("dangling", "out", "absolute", "bytes"):
        os.unlink(f"{t}/{name}")
        os.unlink(daemon.path("t/" + name))
    os.unlink(f"{t}/up")
    os.unlink(daemon.path("t/up"))
    works("-r", "--links", "follow", t + "/", daemon.url("followed"))
    works("-r", f"{t}/.", daemon.url("t"))
    works("-r", "--links", "follow", daemon.url("t/"), f"{local}/followed")
    for copy in (daemon.path("followed"), f"{local}/followed"):
        for name in ("file", "dir/f", "d/e/deep", "dir/e/deep"):
            same_files(f"{t}/d/f", f"{copy}/{name}", copy, name)
            check(not os.path.islink(f"{copy}/{name}"), name, "is a link")
    # left out
    works("-r", "--links", "skip", t + "/", daemon.url("skipped"))
    works("-r", "--links", "skip", daemon.url("t/"), f"{local}/skipped")
    for copy in (daemon.path("skipped"), f"{local}/skipped"):
        equal(sorted(tree(copy)), [b"d", b"d/e", b"d/f"], copy)
    # a circle, and a link out, are errors of that name
    os.symlink("..", f"{t}/d/circle")
    os.symlink("../..", f"{t}/d/out")
    said = rftptest.fails((rftptest.FAILED, rftptest.KIND), "-r", "--links=follow", t + "/",
                          daemon.url("circle"))
    check(b"circle" in said.err and b"d/out" in said.err, said)
    same_files(f"{t}/d/f", daemon.path("circle/dir/f"))


@case
def json_has_the_fields(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 5 * M)
    for way in ("put", "get"):
        args = [f"{local}/f", daemon.url("f")] if way == "put" else [daemon.url("f"), f"{local}/g"]
        done = works("--json", "--channels", "2", "--block", "128K", *args).done()
        equal(done["bytes"], 5 * M, way)
        equal(done["files"], 1, way)
        equal(done["errors"], 0, way)
        equal(done["fabric"], "soft", way)
        equal(done["engine"], "credit", way)
        equal(done["channels"], 2, way)
        equal(done["block"], 128 * K, way)
        check(isinstance(done["direct"], bool), "direct is", done["direct"])
        check(done["seconds"] > 0 and done["bytes_per_second"] > 0, "no rate:", done)
    result = rftp("--json", f"{local}/f", f"{local}/missing", daemon.url(""))
    equal(result.done()["files"], 1, "files that arrived")
    equal(result.done()["errors"], 1, "files that did not")


@case
def quiet_and_verbose(top):
    daemon, local = places(top)
    make_file(f"{local}/f", M)
    quiet = works("-q", f"{local}/f", daemon.url("f"))
    equal((quiet.out, quiet.err), (b"", b""), "-q says nothing")
    verbose = works("-v", f"{local}/f", daemon.url("f"))
    for word in (b"soft", b"credit", b"block", b"channel"):
        check(word in verbose.err.lower(), "-v does not mention", word, ":", verbose.err)
    plain = works(f"{local}/f", daemon.url("f"))
    check(b"\r" not in plain.err + plain.out, "progress without a terminal:", plain.err)


@case
def two_copies_at_once(top):
    daemon, local = places(top)
    clients = []
    for i in range(rftptest.scaled(8)):
        make_file(f"{local}/f{i}", 3 * M + i)
        clients.append(rftptest.start_rftp(f"{local}/f{i}", daemon.url(f"f{i}")))
    for i, client in enumerate(clients):
        result = rftptest.finish(client)
        equal(result.code, 0, f"client {i}", result.err)
        same_files(f"{local}/f{i}", daemon.path(f"f{i}"))


@case
def memory_to_memory(top):
    daemon, local = places(top)
    for command in ("bench 64M put", "bench 64M get", "bench 64M"):
        done = works("--json", "-c", command, daemon.url("")).done()
        equal(done["bytes"], 64 * M, command)
    make_file(f"{local}/f", 5 * M + 1)
    equal(works("--json", "-c", f"bench {local}/f put", daemon.url("")).done()["bytes"], 5 * M + 1,
          "bench of a file")
    equal(tree(daemon.top), {}, "bench leaves nothing")


rftptest.main()
