#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Early data: what a client sends before the daemon has answered."""

import os
import shutil

import rftptest
from rftptest import Daemon, Failure, Proxy, case, check, equal, fails, leftovers, make_file, same_files, scaled, \
    start_rftp, tree, wait_until, works, DENIED, KIND, NO_FILE

K, M = 1 << 10, 1 << 20
AREA = M


def places(top, *options):
    """A daemon's export and a local directory, both empty."""
    for name in ("export", "local"):
        os.mkdir(f"{top}/{name}")
    return Daemon(f"{top}/export", *options), f"{top}/local"


def done(result):
    return [e for e in result.events() if e["event"] == "done"][-1]


def put(daemon, source, name, *options):
    """-> what the client says of it at the end"""
    said = done(works("--json", *options, source, daemon.url(name)))
    same_files(source, daemon.path(name), f"put {options}")
    equal(leftovers(daemon.top), [], "temporary files")
    return said


def early(daemon, source, name, least, *options):
    """Over a way so long that all goes early that may: how long that is the load of the host says."""
    for delay in (0.02, 0.1, 0.5, 2):
        proxy = Proxy(daemon.port, delay=delay)
        said = done(works("--json", "--early=always", *options, source, proxy.url(name)))
        proxy.close()
        same_files(source, daemon.path(name), f"put {options}")
        equal(leftovers(daemon.top), [], "temporary files")
        equal(said["early_why"], "asked for")
        check(said["early_bytes"] <= AREA, said)
        if said["early_bytes"] >= least:
            return said
    raise Failure(f"{said['early_bytes']} bytes went early, {least} could, {options}")


@case
def blocks_go_early_as_far_as_there_is_room(top):
    daemon, local = places(top)
    for size in (0, 1, 128 * K, M, 5 * M + 4097):
        make_file(f"{local}/f", size)
        early(daemon, f"{local}/f", "f", min(size, 900 * K))
    early(daemon, f"{local}/f", "f", 900 * K, "--block", "64K")
    for options in ("--protect", "safe"), ("--protect", "private"), ("--engine", "status"), ("--engine", "window"), \
            ("--engine", "pull"):
        early(daemon, f"{local}/f", "f", 900 * K, *options)
    equal(put(daemon, f"{local}/f", "f", "--early=never")["early_bytes"], 0)


@case
def without_room_nothing_is_early(top):
    daemon, local = places(top, "rw", "--early-memory", "0")
    make_file(f"{local}/f", 128 * K)
    said = put(daemon, f"{local}/f", "f", "--early=always")
    equal((said["early_bytes"], said["early_why"]), (0, "the server has no room for early data"))


@case
def what_goes_early_is_chosen(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 128 * K)
    for options, why in ((("--early=never",), "asked for"),
                         (("--early=always", "--resume", "64K"), "the server may have a part of it")):
        said = put(daemon, f"{local}/f", "f", *options)
        equal((said["early_bytes"], said["early_why"]), (0, why), options)
    os.mkdir(f"{local}/tree")
    make_file(f"{local}/tree/a", 10)
    make_file(f"{local}/tree/b", 3 * M)
    said = done(works("--json", "-r", "--early=always", f"{local}/tree", daemon.url("tree")))
    equal((said["early_bytes"], said["early_why"], said["files"]), (0, "several files", 2))
    said = done(works("--json", "--early=always", "-", daemon.url("piped"), input=b"x" * 100000))
    equal((said["early_bytes"], said["early_why"]), (0, "a stream, which can be read once"))
    equal(os.path.getsize(daemon.path("piped")), 100000)
    # two time-outs are longer than the way to a daemon that answers
    said = put(daemon, f"{local}/f", "f", "--early=timeout")
    equal(said["early_why"], "after two time-outs")
    check("early data: " in works("-v", "--early=always", f"{local}/f", daemon.url("f")).err.decode())


@case
def a_refused_put_leaves_nothing(top):
    """And the session goes on: the next put of the same session works."""
    daemon, local = places(top)
    make_file(f"{local}/f", 128 * K)
    make_file(f"{local}/g", 100)
    os.mkdir(daemon.path("d"))
    os.mkdir(f"{top}/outside")
    os.symlink(f"{top}/outside", daemon.path("out"))
    before = tree(daemon.top)
    for name, code in (("out/x", DENIED), ("q/x/y", NO_FILE)):
        fails(code, "--early=always", "-c", f"set parents off; put {local}/f {name}", daemon.url())
        equal(tree(daemon.top), before, "after", name)
        equal(os.listdir(f"{top}/outside"), [])
    # a directory that has to be made first is made, and the session goes on
    works("--early=always", "-c", f"put {local}/f new/deep/f; put {local}/g fine; put {local}/f new/f", daemon.url())
    same_files(f"{local}/f", daemon.path("new/deep/f"))
    same_files(f"{local}/f", daemon.path("new/f"))
    same_files(f"{local}/g", daemon.path("fine"))
    equal(leftovers(daemon.top), [])


@case
def a_refused_file_leaves_the_old_one(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 200 * K)
    make_file(daemon.path("f"), 77)
    with open(daemon.path("f"), "rb") as file:
        old = file.read()
    for delay in (0, 0.05):
        proxy = Proxy(daemon.port, delay=delay)
        fails(KIND, "--early=always", "--no-replace", f"{local}/f", proxy.url("f"), says="exist")
        works("--early=always", "-c", f"set ignore-existing on; put {local}/f f; put {local}/f g", proxy.url())
        proxy.close()
        with open(daemon.path("f"), "rb") as file:
            equal(file.read(), old)
        same_files(f"{local}/f", daemon.path("g"))
        equal(leftovers(daemon.top), [])


@case
def a_read_only_export_takes_nothing(top):
    daemon, local = places(top, "ro")
    make_file(f"{local}/f", 128 * K)
    fails(DENIED, "--early=always", f"{local}/f", daemon.url("f"), says="read-only")
    equal(tree(daemon.top), {})


def get(daemon, name, local, *options):
    said = done(works("--json", *options, daemon.url(name), local))
    same_files(daemon.path(name), local, f"get {options}")
    return said


@case
def a_get_names_its_memory_with_the_request(top):
    daemon, local = places(top)
    for size in (0, 1, 128 * K, M, 4 * M, 5 * M):
        make_file(daemon.path("f"), size)
        for delay in (0, 0.02):
            proxy = Proxy(daemon.port, delay=delay)
            said = done(works("--json", "--early=always", proxy.url("f"), f"{local}/f"))
            proxy.close()
            same_files(daemon.path("f"), f"{local}/f")
            # a larger one gets the window that suits it
            equal((said["early_bytes"], said["early_why"]), (size if size <= 4 * M else 0, "asked for"), size)
    make_file(daemon.path("f"), 3 * M)
    for options in (("--protect", "safe"), ("--protect", "private"), ("--engine", "status"), ("--engine", "window"),
                    ("--channels", "1"), ("--resume", "1M"), ("--resume", "never")):
        equal(get(daemon, "f", f"{local}/f", "--early=always", *options)["early_bytes"], 3 * M, options)
    equal(get(daemon, "f", f"{local}/f", "--early=never")["early_bytes"], 0)
    # there the server names memory
    equal(get(daemon, "f", f"{local}/f", "--early=always", "--engine", "pull")["early_bytes"], 0)
    equal(get(daemon, "f", f"{local}/f", "--early=always", "--block", "1M")["early_bytes"], 0)
    equal(os.listdir(local), ["f"])


@case
def a_get_that_is_refused(top):
    """Leaves nothing, and the session goes on."""
    daemon, local = places(top)
    make_file(daemon.path("f"), 128 * K)
    os.mkdir(daemon.path("d"))
    for delay in (0, 0.02):
        proxy = Proxy(daemon.port, delay=delay)
        fails(NO_FILE, "--early=always", proxy.url("none"), f"{local}/x", says="no such file")
        fails(KIND, "--early=always", proxy.url("d"), f"{local}/x", says="use -r")
        equal(os.listdir(local), [])
        make_file(f"{local}/old", 10)
        fails(KIND, "--early=always", "--no-replace", proxy.url("f"), f"{local}/old", says="exist")
        equal(os.path.getsize(f"{local}/old"), 10)
        works("--early=always", "-c", f"set ignore-existing on; get f {local}/old; get f {local}/f; set replace on; "
              f"set ignore-existing off; get f {local}/old; put {local}/f g; get g {local}/g", proxy.url())
        for name in ("old", "f", "g"):
            same_files(daemon.path("f"), f"{local}/{name}")
            os.unlink(f"{local}/{name}")
        proxy.close()
        os.unlink(daemon.path("g"))


@case(seconds=120)
def killed_or_cut_at_any_byte(top):
    """The old file, or the whole new one, and nothing else; on either side."""
    daemon, local = places(top)
    for path, size in ((f"{local}/new", 100 * K), (f"{local}/old", 5 * K)):
        make_file(path, size)
    wanted = [open(f"{local}/{name}", "rb").read() for name in ("old", "new")]
    for put in (True, False):
        here, there = (f"{local}/new", "f") if put else (f"{top}/got/f", "new")
        os.makedirs(f"{top}/got", exist_ok=True)
        if not put:
            shutil.copy(f"{local}/new", daemon.path("new"))
        target = daemon.path("f") if put else here

        def ends(proxy):
            return (here, proxy.url(there)) if put else (proxy.url(there), here)
        shutil.copy(f"{local}/old", target)
        proxy = Proxy(daemon.port)
        works("--early=always", *ends(proxy))
        proxy.close()
        whole = proxy.carried
        for part in range(1, scaled(12, 4)):
            shutil.copy(f"{local}/old", target)
            proxy = Proxy(daemon.port, hold=whole * part // scaled(12, 4))
            client = start_rftp("--early=always", "--retries", "0", *ends(proxy))
            check(proxy.held.wait(60), "it was never held")
            if part % 2:
                rftptest.kill(client)
            proxy.reset()
            client.wait(60)
            # what a get leaves when it is killed the next one sweeps up
            if put:
                wait_until(lambda: not leftovers(daemon.top), "temporary files are gone")
            with open(target, "rb") as file:
                check(file.read() in wanted, "half a file", put, part)
    works("--early=always", daemon.url("new"), f"{top}/got/f")
    equal(os.listdir(f"{top}/got"), ["f"])


if __name__ == "__main__":
    rftptest.main()
