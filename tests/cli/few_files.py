#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trees of many files where a process may have few descriptors: fewer files are open at once, and all
arrive."""

import os

import rftptest
from rftptest import BUILD, Daemon, case, check, equal, finish, leftovers, scaled, spawn, start_rftp, tree

LIMITS = (64, 256)
SUBPROCESS = -1


def limited(top, limit):
    """A directory with rftp and rftpd as they are where `ulimit -n` says `limit`."""
    directory = f"{top}/bin{limit}"
    os.mkdir(directory)
    for name in ("rftp", "rftpd"):
        with open(f"{directory}/{name}", "w") as f:
            f.write(f"#!/bin/sh\nulimit -n {limit} && exec '{os.path.join(BUILD, name)}' \"$@\"\n")
        os.chmod(f"{directory}/{name}", 0o755)
    return directory


def make_tree(path, files):
    """Small files, some of them deep, in more directories than there are descriptors."""
    for i in range(files):
        where = f"{path}/d{i % 97}" + "/deep" * (i % 5)
        os.makedirs(where, exist_ok=True)
        with open(f"{where}/f{i}", "wb") as f:
            f.write(rftptest.rng().randbytes(rftptest.rng().choice((0, 1, 5000, 70000))))


def copies(client, *arguments):
    process = spawn([f"{client}/rftp", *arguments], stdin=rftptest.subprocess.DEVNULL,
                    stdout=SUBPROCESS, stderr=SUBPROCESS, env=rftptest.clean_environment())
    result = finish(process, timeout=100)
    equal((result.code, result.err), (0, b""), "rftp", *arguments, "with", client)


@case(seconds=120)
def trees_both_ways(top):
    make_tree(f"{top}/tree", scaled(300))
    wanted = tree(f"{top}/tree")
    os.mkdir(f"{top}/export")
    plenty = max(LIMITS) * 8
    places = {limit: limited(top, limit) for limit in (*LIMITS, plenty)}
    for client, server in ((64, 64), (256, 256), (64, plenty), (plenty, 64)):
        daemon = Daemon(f"{top}/export", "rw", build=places[server])
        name = f"c{client}s{server}"
        copies(places[client], "-q", "-r", f"{top}/tree", daemon.url(name))
        equal(tree(daemon.path(name + "/tree")), wanted, f"put: {client} descriptors here, {server} there")
        copies(places[client], "-q", "-r", daemon.url(name + "/tree"), f"{top}/{name}")
        equal(tree(f"{top}/{name}/tree"), wanted, f"get: {client} descriptors here, {server} there")
        equal(leftovers(top), [], "left over")
        check(daemon.fds() < server, "descriptors at the end:", daemon.fds())
        daemon.stop()


@case(seconds=120)
def some_at_once(top):
    """Several clients, that share the descriptors of one daemon."""
    make_tree(f"{top}/tree", scaled(200))
    wanted = tree(f"{top}/tree")
    os.mkdir(f"{top}/export")
    few = limited(top, 64)
    daemon = Daemon(f"{top}/export", "rw", build=few)
    for way in ([f"{top}/tree", daemon.url("t{}")], [daemon.url("t{}/tree"), f"{top}/t{{}}"]):
        clients = [start_rftp("-q", "-r", *[text.format(i) for text in way]) for i in range(4)]
        for client in clients:
            result = finish(client, timeout=100)
            equal((result.code, result.err), (0, b""), result)
    for i in range(len(clients)):
        equal(tree(daemon.path(f"t{i}/tree")), wanted, f"put of tree {i}")
        equal(tree(f"{top}/t{i}/tree"), wanted, f"get of tree {i}")
    equal(leftovers(top), [], "left over")
    daemon.stop()


rftptest.main()
