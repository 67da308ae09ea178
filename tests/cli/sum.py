#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sum and cmp: sums of files, computed where they lie, and compared."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import zlib

import rftptest
from rftptest import (KIND, NO_FILE, OK, USAGE, Daemon, case, check, equal, fails, make_file, rftp, start_rftp, wait_until,
                      works)

INTEGRITY = 9
NAMES = ["plain", "with space", "new\nline", "back\\slash", "percent%41", "star*", "\udcff"]


def places(top, mode="rw"):
    for where in ("export", "local"):
        os.makedirs(f"{top}/{where}")
        for i, name in enumerate(NAMES):
            make_file(f"{top}/{where}/{name}", i * 30000)
    return Daemon(f"{top}/export", mode)


def sum_of(path, algorithm):
    with open(path, "rb") as f:
        data = f.read()
    return "%08x" % zlib.crc32(data) if algorithm == "crc32" else hashlib.new(algorithm, data).hexdigest()


def lines(*arguments, **options):
    return os.fsdecode(works("sum", *arguments, **options).out).splitlines()


@case
def each_algorithm(top):
    daemon = places(top)
    for algorithm in ("sha256", "md5", "crc32"):
        for name in ("plain", "with space", "percent%41"):
            url = daemon.url(name.replace("%", "%25"))
            wanted = sum_of(daemon.path(name), algorithm)
            equal(lines("-a", algorithm, url), [f"{wanted}  {url}"], algorithm, name)
            path = f"{top}/local/{name}"
            equal(lines("--algorithm", algorithm, path), [f"{sum_of(path, algorithm)}  {path}"], algorithm, name)
    for path in (f"{top}/local/plain", f"{top}/local/percent%41"):  # none, and 120000 bytes
        (ours,), (there,) = lines(path), lines(daemon.url(os.path.basename(path).replace("%", "%25")))
        equal(ours[:32] == there[:32], os.path.getsize(path) == 0, "xxh128 of", path)
        if shutil.which("xxhsum"):
            equal(ours, subprocess.check_output(["xxhsum", "-H2", path]).decode().rstrip("\n"), "xxhsum")
    equal(lines(f"{top}/local/plain")[0][:32], "99aa06d3014798d86001c324468d497f", "xxh128 of nothing")


@case
def output_as_of_sha256sum(top):
    """Any name, and its list is checked by either program."""
    daemon = places(top)
    paths = [f"{top}/local/{name}" for name in NAMES]
    ours = works("sum", "-a", "sha256", *paths).out
    equal(ours, subprocess.check_output(["sha256sum", *paths]), "output")
    with open(f"{top}/list", "wb") as f:
        f.write(ours)
    equal(subprocess.run(["sha256sum", "--status", "-c", f"{top}/list"]).returncode, 0, "sha256sum -c")
    result = works("sum", "-c", f"{top}/list")
    equal(result.out.count(b": OK\n"), len(NAMES), "rftp sum -c")
    # of the server's files, and the list of one host checked at the other
    for where in (f"{top}/export", f"{top}/local"):
        with open(f"{top}/list", "wb") as f:
            f.write(subprocess.check_output(["sha256sum", *NAMES], cwd=where))
        base = daemon.url("") if where.endswith("export") else where
        equal(works("sum", "-c", f"{top}/list", base).out.count(b": OK\n"), len(NAMES), "beneath", base)
        equal(works("sum", "-c", "-", base, input=open(f"{top}/list", "rb").read()).out.count(b": OK\n"), len(NAMES),
              "from standard input")
    result = works("sum", "-a", "sha256", daemon.url("*"))
    with open(f"{top}/list", "wb") as f:
        f.write(result.out)
    equal(len(result.out.splitlines()), len(NAMES), "a pattern")
    equal(works("sum", "-c", f"{top}/list").out.count(b": OK\n"), len(NAMES), "its list")


@case
def standard_input(top):
    places(top)
    path = f"{top}/local/plain"
    content = open(f"{top}/export/plain", "rb").read()
    for algorithm in ("sha256", "md5"):
        wanted = subprocess.run([f"{algorithm}sum", "-"], input=content, stdout=subprocess.PIPE).stdout
        equal(works("sum", "-a", algorithm, "-", input=content).out, wanted, algorithm)
        with open(f"{top}/export/plain", "rb") as f:  # a file, from where it stands
            f.seek(7)
            rest = subprocess.run([f"{algorithm}sum", "-"], input=content[7:], stdout=subprocess.PIPE).stdout
            equal(works("sum", "-a", algorithm, "-", stdin=f).out, rest, algorithm, "of a file")
    equal(works("sum", "-a", "md5", "-", path, input=b"").out.count(b"d41d8cd98f00b204e9800998ecf8427e"), 2, "beside a file")
    fails(USAGE, "sum", "-", "-", input=b"", says="once")
    os.rename(path, f"{top}/local/-")
    equal(works("sum", "./-", cwd=f"{top}/local").out[32:], b"  ./-\n", "a file of that name")
    # one that never says a word is left by Ctrl-C
    read, write = os.pipe()
    client = rftptest.start_rftp("sum", "-", stdin=read)
    rftptest.wait_until(lambda: len(os.listdir(f"/proc/{client.pid}/task")) > 1, "it waits")
    client.send_signal(2)
    equal(rftptest.finish(client).code, rftptest.INTERRUPTED, "interrupted")
    os.close(read)
    os.close(write)


@case
def tagged_lines(top):
    """--tag, as sha256sum has it; either form is read."""
    daemon = places(top)
    paths = [f"{top}/local/{name}" for name in NAMES] + [f"{top}/local/a) = b("]
    make_file(paths[-1], 100)
    for algorithm in ("sha256", "md5"):
        ours = works("sum", "--tag", "-a", algorithm, *paths).out
        equal(ours, subprocess.check_output([f"{algorithm}sum", "--tag", *paths]), algorithm)
        with open(f"{top}/list", "wb") as f:
            f.write(ours)
        equal(works("sum", "-c", f"{top}/list").out.count(b": OK\n"), len(paths), algorithm, "its list")
    for algorithm, tag in (("xxh128", b"XXH128"), ("crc32", b"CRC32")):
        ours = works("sum", "--tag", "-a", algorithm, *paths).out
        check(ours.startswith(tag + b" ("), ours)
        equal(works("sum", "-c", "-", input=ours).out.count(b": OK\n"), len(paths), algorithm)
    there = works("-c", "sum --tag -a sha256 /*", daemon.url("")).out
    check(all(line.lstrip(b"\\").startswith(b"SHA256 (/") for line in there.splitlines()), there)
    equal(len(there.splitlines()), len(os.listdir(f"{top}/export")), "lines of the server's", there)
    with open(f"{top}/there", "wb") as f:
        f.write(there)
    equal(works("-c", f"sum -c {top}/there", daemon.url("")).out.count(b": OK\n"), len(there.splitlines()), "the server's")
    # as openssl(1) writes it, with other blanks; a line of another sum, one cut short, one that is none
    digest = rftptest.digest(f"{top}/local/plain")
    good = f"SHA2-256({top}/local/plain)= {digest}\n"
    equal(works("sum", "-c", "-", input=good.encode()).out.count(b": OK\n"), 1, "openssl's")
    for bad in (f"MD5 ({top}/local/plain) = {'0' * 32}", f"SHA256 ({top}/local/plain) = {digest[:-2]}",
                f"SHA256 ({top}/local/plain = {digest}", f"SHA256 () = {digest}", f"SHA256 (x) {digest}"):
        result = works("sum", "-c", "-", input=(good + bad + "\n").encode())
        check(result.out.count(b"OK") == 1 and b"1 line is no sum" in result.err, bad, result)
    fails(USAGE, "sum", "--tag", "-c", f"{top}/list", says="--tag")


@case
def trees(top):
    """-r: all files of a directory, sorted, as sha256sum says them; the list is read by -c."""
    daemon = places(top)
    for where in (f"{top}/export", f"{top}/local"):
        for name in ("a/b/x", "a-b", "a/c", "a.d/y", "new\nline d/z"):
            os.makedirs(os.path.dirname(f"{where}/{name}"), exist_ok=True)
            make_file(f"{where}/{name}", 1000)
        os.symlink("plain", f"{where}/link")
        os.mkfifo(f"{where}/a/fifo")
        os.makedirs(f"{where}/empty")
        names = sorted((os.fsencode(os.path.join(d, n)) for d, _, files in os.walk(where) for n in files
                        if os.path.isfile(os.path.join(d, n)) and not os.path.islink(os.path.join(d, n))))
        wanted = subprocess.check_output([b"sha256sum", *names])
        ours = works("sum", "-r", "-a", "sha256", where).out
        equal(ours, wanted, "of", where)
    relative = subprocess.check_output([b"sha256sum", *(os.path.relpath(n, os.fsencode(where)) for n in names)], cwd=where)
    equal(works("sum", "-r", "-a", "sha256", where + "/").out, wanted, "with a slash")
    there = works("sum", "-r", "-a", "sha256", daemon.url(""))
    equal(len(there.out.splitlines()), len(names), "at the server")
    for name, text in (("there", there.out), ("relative", relative), ("here", wanted)):
        with open(f"{top}/{name}", "wb") as f:
            f.write(text)
    equal(works("sum", "-c", f"{top}/there").out.count(b": OK\n"), len(names), "their list")
    equal(works("sum", "-c", f"{top}/here").out.count(b": OK\n"), len(names), "our list")
    fails(INTEGRITY, "sum", "-c", f"{top}/relative", daemon.url(""), says="did not match")  # others are there
    # the same in the shell; a file among the names; rules; two directories
    shell = works("-c", "sum -r -a sha256 /", daemon.url("")).out
    equal([sorted(line.split(b"  ")[0].lstrip(b"\\") for line in text.splitlines()) for text in (shell, there.out)],
          2 * [sorted(line.split(b"  ")[0].lstrip(b"\\") for line in there.out.splitlines())], "in the shell")
    equal(len(lines("-r", f"{where}/a", f"{where}/plain", daemon.url("a.d"))), 4, "several")
    equal(len(lines("-r", "--exclude=a/*", "--exclude=new*", where)), len(NAMES) + 1, "rules")
    equal(len(lines("-r", "--exclude=a/*", "--exclude=new*", daemon.url(""))), len(NAMES) + 1, "rules there")
    equal(lines("-r", f"{where}/empty"), [], "an empty one")
    fails(KIND, "sum", where, says="-r")
    fails(KIND, "sum", daemon.url("a"), says="-r")
    fails(USAGE, "sum", "-r", "-c", f"{top}/here", says="-r")
    fails(NO_FILE, "sum", "-r", f"{top}/none", says="none")
    fails(NO_FILE, "sum", "-r", daemon.url("none"), says="none")
    if os.getuid() == 0:
        os.chmod(f"{top}/local/a/b", 0)
        os.chmod(top, 0o755)
        result = rftp("sum", "-r", f"{top}/local", user=4711)
        check(result.code != OK and b"/a/b" in result.err, result)
        equal(len(result.out.splitlines()), len(names) - 1, "the others")


@case
def what_does_not_match(top):
    daemon = places(top)
    with open(f"{top}/list", "wb") as f:
        f.write(works("sum", "-a", "crc32", daemon.url("plain"), daemon.url("star%2A"), f"{top}/local/star*").out)
        f.write(b"# a comment\n\nno sum at all\n1234  x\n")
    with open(daemon.path("star*"), "r+b") as f:
        f.write(b"changed")
    result = fails(INTEGRITY, "sum", "-c", f"{top}/list", says="1 of 3 sums did not match")
    equal(result.out.splitlines(), [f"{daemon.url('plain')}: OK".encode(), f"{daemon.url('star%2A')}: FAILED".encode(),
                                    f"{top}/local/star*: OK".encode()], "lines")
    check(b"2 lines are no sum and name" in result.err, result)
    os.unlink(daemon.path("plain"))
    result = rftp("--json", "sum", "-c", f"{top}/list")
    found = [json.loads(line) for line in result.out.splitlines()]
    equal([(e["result"], e["status"]) for e in found if e["event"] == "sum"],
          [("unreadable", "not-found"), ("failed", "ok"), ("ok", "ok")], "as events")
    equal(result.code, 1, "errors of two classes")


@case
def what_has_no_sum(top):
    daemon = places(top)
    os.mkdir(daemon.path("d"))
    os.mkfifo(daemon.path("fifo"))
    os.symlink("/etc/passwd", daemon.path("out"))
    for name, code in (("absent", NO_FILE), ("d", KIND), ("fifo", (KIND, rftptest.FAILED))):
        fails(code, "sum", daemon.url(name), says=name)
    fails((rftptest.DENIED, KIND), "sum", daemon.url("out"), says="out")
    # the others have theirs
    result = fails(NO_FILE, "sum", daemon.url("absent"), daemon.url("plain"), f"{top}/local/plain", says="absent")
    equal(len(result.out.splitlines()), 2, "sums")
    fails(USAGE, "sum", "-a", "sha1", f"{top}/local/plain", says="sha256")
    for arguments in (("sum",), ("sum", "-c", f"{top}/local/plain", "a", "b"), ("cmp", "a")):
        fails(USAGE, *arguments)
    fails(USAGE, "sum", "-c", f"{top}/local/with space", says="no line of it")
    # files of these names are copied all the same
    make_file(f"{top}/sum", 10)
    works("./sum", daemon.url("sum"), cwd=top)
    rftptest.same_files(f"{top}/sum", daemon.path("sum"))


@case
def compare(top):
    daemon = places(top)
    shutil.copy(daemon.path("star*"), f"{top}/local/same")
    for a, b, same in ((daemon.url("star%2A"), f"{top}/local/same", True), (f"{top}/local/same", daemon.url("star%2A"), True),
                       (daemon.url("star%2A"), daemon.url("plain"), False), (f"{top}/local/same", f"{top}/local/plain", False),
                       (daemon.url("star%2A"), daemon.url("star%2A"), True)):
        result = rftp("cmp", a, b)
        equal(result.code, OK if same else INTEGRITY, a, b)
        equal(bool(result.err), not same, "a message")
    fails(NO_FILE, "cmp", daemon.url("absent"), f"{top}/local/same", says="absent")
    equal(works("--json", "cmp", daemon.url("star%2A"), f"{top}/local/same").events(),
          [{"event": "cmp", "a": daemon.url("star%2A"), "b": f"{top}/local/same", "same": True}], "as an event")


@case
def in_the_shell(top):
    daemon = places(top)
    wanted = sum_of(daemon.path("with space"), "sha256")
    equal(works("-c", "sum -a sha256 'with space'", daemon.url("")).out, f"{wanted}  /with space\n".encode(), "sum")
    equal(len(works("-c", "sum *", daemon.url("")).out.splitlines()), len(NAMES), "a pattern")
    with open(f"{top}/list", "wb") as f:
        f.write(subprocess.check_output(["sha256sum", *NAMES], cwd=f"{top}/export"))
    equal(works("-c", f"sum -c {top}/list", daemon.url("")).out.count(b": OK\n"), len(NAMES), "a list")
    shutil.copy(daemon.path("star*"), f"{top}/local/star*")
    works("-c", f"lcd {top}/local; cmp 'star*'", daemon.url(""))
    fails(INTEGRITY, "-c", f"lcd {top}/local; cmp 'with space' 'star*'", daemon.url(""), says="differs")
    fails(USAGE, "-c", "sum -x plain", daemon.url(""), says="usage")


@case(seconds=120)
def many_and_large(top):
    """More than a request names, several at a time, in their order; the daemon serves others meanwhile."""
    os.makedirs(f"{top}/export/" + "d" * 200)
    daemon = Daemon(f"{top}/export", "ro")
    names = ["d" * 200 + f"/{i:04}" for i in range(600)]
    for i, name in enumerate(names):
        make_file(daemon.path(name), i % 50)
    found = lines("-a", "md5", daemon.url("*/*"))
    equal(found, [f"{sum_of(daemon.path(n), 'md5')}  {daemon.url(n)}" for n in names], "all of them")
    with open(daemon.path("large"), "wb") as f:
        f.truncate(1 << 40)  # for hours
    process = start_rftp("sum", "-a", "sha256", *[daemon.url("large")] * 8)
    before = daemon.threads()
    wait_until(lambda: b"session" in daemon.stderr(), "the session")
    begun = time.monotonic()
    for _ in range(20):
        works("-c", "stat large", daemon.url(""))
    check(time.monotonic() - begun < 20 * rftptest.PATIENCE, "others wait for", time.monotonic() - begun)
    check(daemon.threads() <= before + 12, daemon.threads(), "threads, before", before)
    check(process.poll() is None, "it goes on")
    process.send_signal(signal.SIGINT)
    equal(rftptest.finish(process, None, 30).code, 130, "exit code of an interrupt")
    # it goes with its client: nobody reads the file any more
    wait_until(lambda: b"(the connection was closed)" in daemon.stderr() or daemon.stderr().count(b" ended after") == 22,
               "the end of its session", 20)


@case
def a_daemon_that_ends(top):
    os.makedirs(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    with open(daemon.path("large"), "wb") as f:
        f.truncate(1 << 40)
    process = start_rftp("sum", daemon.url("large"))
    wait_until(lambda: b"connected" in daemon.stderr(), "the session")
    time.sleep(0.1)
    daemon.stop()
    check(rftptest.finish(process, None, 30).code in (4, 12), "exit code:", process.returncode)


rftptest.main()
