#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a destination means: the same before and after the copy, whatever is there already.

A directory goes into the destination under its name; with a slash behind its name, what is in it goes right
there.  A file is renamed unless the destination is a directory or ends in a slash.
"""

import os
import signal
import subprocess

import rftptest
from rftptest import (KIND, NO_FILE, USAGE, Daemon, case, check, equal, fails, finish, make_file, start_rftp, tree, works)

# sources, destination, what is there afterwards; each twice, and then once more into a directory that was there
MEANINGS = [
    (["t"], "new", ["new/t/d/g", "new/t/f"]),
    (["t"], "new/", ["new/t/d/g", "new/t/f"]),
    (["t/"], "new", ["new/d/g", "new/f"]),
    (["t/"], "new/", ["new/d/g", "new/f"]),
    (["t/."], "new", ["new/d/g", "new/f"]),
    (["t//"], "new/deep/er", ["new/deep/er/d/g", "new/deep/er/f"]),
    (["t"], "new/deep/er", ["new/deep/er/t/d/g", "new/deep/er/t/f"]),
    (["t", "x"], "new", ["new/t/d/g", "new/t/f", "new/x"]),
    (["t/", "x"], "new", ["new/d/g", "new/f", "new/x"]),
    (["x", "y"], "new", ["new/x", "new/y"]),
    (["x"], "new/", ["new/x"]),
    (["x"], "new", ["new"]),
]


def files(top):
    return sorted(n.decode() for n, digest in tree(top).items() if digest)


def clear(top):
    for name in os.listdir(top):
        path = os.path.join(top, name)
        rftptest.shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def places(top):
    for where in ("from", "to"):
        os.makedirs(f"{top}/{where}")
    os.makedirs(f"{top}/from/t/d")
    for i, name in enumerate(("t/f", "t/d/g", "x", "y")):
        make_file(f"{top}/from/{name}", 1000 + i)


def means(top, copy):
    """copy(sources, destination), in all ways, from nothing and over what is there."""
    for sources, destination, there in MEANINGS:
        what = f"{sources} to {destination}"
        for again in ("", " again"):
            copy(sources, destination)
            equal(files(f"{top}/to"), there, what + again)
        clear(f"{top}/to")
        os.mkdir(f"{top}/to/new")
        if there == ["new"]:  # the one thing that depends on what is there: a file's new name is none, then
            there = ["new/x"]
        copy(sources, destination)
        equal(files(f"{top}/to"), there, what, "into a directory that is there")
        clear(f"{top}/to")


@case
def put(top):
    places(top)
    daemon = Daemon(f"{top}/to")
    means(top, lambda sources, to: works("-r", *[f"{top}/from/{s}" for s in sources], daemon.url(to)))
    # in the shell
    works("-c", f"lcd {top}/from; put -r t new; put -r t/ other", daemon.url(""))
    equal(files(f"{top}/to"), ["new/t/d/g", "new/t/f", "other/d/g", "other/f"], "put -r")


@case
def get(top):
    places(top)
    daemon = Daemon(f"{top}/from", "ro")
    means(top, lambda sources, to: works("-r", *[daemon.url(s) for s in sources], f"{top}/to/{to}"))
    works("-c", f"lcd {top}/to; get -r t new; get -r t/ other; get -r t", daemon.url(""))
    equal(files(f"{top}/to"), ["new/t/d/g", "new/t/f", "other/d/g", "other/f", "t/d/g", "t/f"], "get -r")


@case
def nothing_is_made_for_nothing(top):
    places(top)
    daemon = Daemon(f"{top}/to")
    for sources in (["absent"], ["absent", "missing"]):
        fails(NO_FILE, "-r", *[f"{top}/from/{s}" for s in sources], daemon.url("new/"), says="no such file")
        fails(NO_FILE, "-r", *[daemon.url(s) for s in sources], f"{top}/from/new/", says="no such file")
    fails(KIND, f"{top}/from/t", daemon.url("new/"), says="-r")
    equal(sorted(os.listdir(f"{top}/to")), [], "at the server")
    os.mkdir(f"{top}/to/d")
    fails(KIND, daemon.url("d"), f"{top}/from/new/", says="-r")
    check(not os.path.exists(f"{top}/from/new"), "a directory was made for nothing here")
    # a file is no directory to go into
    make_file(f"{top}/to/file", 10)
    for destination in ("file/", "file"):
        fails(KIND, "-r", f"{top}/from/t", daemon.url(destination), says="not a directory")
        fails(KIND, f"{top}/from/x", f"{top}/from/y", daemon.url(destination), says="not a directory")
        fails(KIND, daemon.url("file"), daemon.url("d"), f"{top}/from/x" + destination[4:], says="not a directory")


@case
def interrupted_and_again(top):
    """Ctrl-C in the middle, and the same command once more: everything is where it would have been."""
    os.makedirs(f"{top}/export")
    os.makedirs(f"{top}/many")
    for i in range(40):
        make_file(f"{top}/many/{i}", 200000)
    daemon = Daemon(f"{top}/export")
    for destination, beneath in ((daemon.url("manyq"), daemon.path("manyq")), (f"{top}/manyq", f"{top}/manyq")):
        source = f"{top}/many" if destination.startswith("rftp") else daemon.url("manyq/many")
        proxy = rftptest.Proxy(daemon.port, hold=1000000)
        words = [w.replace(f":{daemon.port}/", f":{proxy.port}/") for w in (source, destination)]
        client = start_rftp("--channels", "1", "--block", "64K", "-r", *words, stdin=subprocess.DEVNULL)
        proxy.held.wait(30)
        client.send_signal(signal.SIGINT)
        proxy.release()
        equal(finish(client).code, rftptest.INTERRUPTED, "after SIGINT")
        proxy.close()
        works("-r", source, destination)
        equal(sorted(os.listdir(beneath)), ["many"], "what is in the destination")
        equal(tree(f"{beneath}/many"), tree(f"{top}/many"), "the tree")


@case
def a_destination_that_was_forgotten(top):
    places(top)
    daemon = Daemon(f"{top}/from")
    for words in (["-r", daemon.url("t")], ["-r", daemon.url("")], [daemon.url("x")], [daemon.url("t/")]):
        fails(USAGE, *words, stdin=subprocess.DEVNULL, says="destination is missing", cwd=f"{top}/to")
    equal(os.listdir(f"{top}/to"), [], "nothing was asked for")
    # commands are no copy
    works(daemon.url(""), stdin=subprocess.DEVNULL)
    equal(works(daemon.url("t"), input=b"ls\n").out, b"d\nf\n", "commands from standard input")
    works("-r", "-c", "get x", daemon.url(""), cwd=f"{top}/to")


rftptest.main()
