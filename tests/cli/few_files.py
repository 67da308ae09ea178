#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where a process may have few descriptors: of trees fewer files are open at once, and all arrive; sessions that
have many leave some for others."""

import os

import rftptest
from iwarp import Dropped, Session
from rftptest import BUILD, Daemon, case, check, equal, finish, leftovers, make_file, same_files, scaled, spawn, \
    start_rftp, tree, wait_until, works
from rude import WAIT

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


@case
def sessions_that_have_many(top):
    """As many sessions as may be, with as many data channels as they get, that then do nothing."""
    os.mkdir(f"{top}/export")
    make_file(f"{top}/f", 100000)
    daemon = Daemon(f"{top}/export", "rw", "--idle-timeout", "120", build=limited(top, 256))
    held, channels, refused = [], [], False
    while not refused:
        check(len(held) < 256, "there is no end to them")
        try:
            session = Session(daemon.port, WAIT)
            session.hello(channels=64)
            channels.append(session.open_channels(64))
            held.append(session)
        except Dropped as e:
            equal(str(e), "rejected", "the daemon's answer")
            refused = True
        if len(held) < 6:  # there is room for some more
            works(f"{top}/f", daemon.url("put"))
            same_files(f"{top}/f", daemon.path("put"))
    equal(len(channels[0]), 64, "where there are plenty")
    equal(len(channels[-1]), 1, "where there are few")
    check(b"cannot accept" not in daemon.stderr(), daemon.stderr()[-1000:])
    # in the end those give way that have been idle for longest: two seconds, here
    wait_until(lambda: rftptest.rftp(f"{top}/f", daemon.url("later")).code == 0, "another one is served")
    same_files(f"{top}/f", daemon.path("later"))
    check(held[0].dropped_within(WAIT), "the one that was idle for longest is still there")
    for session in held:
        session.close()
    for channel in sum(channels, []):
        channel.close()
    works(f"{top}/f", daemon.url("last"))
    daemon.stop()


rftptest.main()
