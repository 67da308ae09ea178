#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Temporary files whose writer was killed: they are found and removed, those of the living are not,
and people can see and remove them by hand."""

import os
import signal

import rftptest
from rftptest import OK, Daemon, Proxy, case, check, equal, leftovers, make_file, same_files, \
    wait_until, works

M = 1 << 20
SIZE = 8 * M


def places(top):
    for name in ("export", "local"):
        os.mkdir(os.path.join(top, name))
    return os.path.join(top, "export"), os.path.join(top, "local")


def half_way(daemon, *names):
    """A client whose transfer is held in the middle.  names: with "@" for the URL's beginning"""
    proxy = Proxy(daemon.port, hold=SIZE // 2)
    client = rftptest.start_rftp("--block", "64K", "--channels", "1", "-r",
                                 *[n.replace("@", proxy.url("")) for n in names])
    wait_until(lambda: proxy.held.is_set() or client.poll() is not None, "the transfer begins")
    return proxy, client


@case
def a_killed_daemons_are_swept_when_it_starts(top):
    export, local = places(top)
    os.makedirs(f"{export}/a/b")
    make_file(f"{local}/f", SIZE)
    for to in ("f", "a/b/f"):
        daemon = Daemon(export)
        proxy, client = half_way(daemon, f"{local}/f", "@" + to)
        equal(len(leftovers(export)), 1, to, "on its way")
        daemon.kill()
        proxy.close()
        rftptest.finish(client)
        equal(len(leftovers(export)), 1, to, "after SIGKILL")
        daemon = Daemon(export, "ro")
        works("-c", "ls", daemon.url(""))
        daemon.kill()
        equal(len(leftovers(export)), 1, to, "a read-only export is not touched")
        daemon = Daemon(export)
        wait_until(lambda: not leftovers(export), "it is swept")
        wait_until(lambda: b"removed 1 temporary file " in daemon.stderr(), "the log says so")
        daemon.kill()


@case
def the_livings_stay(top):
    """Two daemons on one export: the second one's start takes nothing from the first one's clients."""
    export, local = places(top)
    make_file(f"{local}/f", SIZE)
    first = Daemon(export)
    proxy, client = half_way(first, f"{local}/f", "@f")
    dead = f"{export}/.rftp-0123456789abcdef.part"  # of another host, and old
    make_file(dead, 10)
    os.utime(dead, (0, 0))
    Daemon(export)
    wait_until(lambda: not os.path.exists(dead), "the second has looked")
    equal(len(leftovers(export)), 1, "the first one's")
    proxy.release()
    equal(rftptest.finish(client).code, OK, "the transfer")
    proxy.close()
    same_files(f"{local}/f", f"{export}/f")


@case
def a_killed_clients_are_swept_by_the_next(top):
    export, local = places(top)
    daemon = Daemon(export)
    make_file(f"{export}/f", SIZE)
    make_file(f"{export}/small", 10)
    os.makedirs(f"{export}/t/d")
    make_file(f"{export}/t/d/f", SIZE)
    os.utime(f"{export}/t/d", ns=(1, 1234567890123456789))
    for names, where in ((["@f", f"{local}/f"], local), (["@t/", f"{local}/t"], f"{local}/t/d")):
        proxy, client = half_way(daemon, *names)
        equal(len(leftovers(where)), 1, "on its way")
        # another one in the same directory leaves it alone
        works(daemon.url("small"), f"{where}/small")
        equal(len(leftovers(where)), 1, "while it lives")
        rftptest.kill(client, signal.SIGKILL)
        rftptest.finish(client)
        proxy.close()
        equal(len(leftovers(where)), 1, "after SIGKILL")
        if where == local:
            works(daemon.url("small"), where)
        else:
            works("-r", daemon.url("t/."), f"{local}/t")
            equal(os.stat(where).st_mtime_ns, 1234567890123456789, "the directory's time")
        equal(leftovers(local), [], "after the next")


@case
def an_empty_directory_is_removed_with_them(top):
    """What is hidden keeps a directory for nobody; what is written to does."""
    export, local = places(top)
    daemon = Daemon(export)
    names = [".rftp-0123456789abcdef.journal", ".rftp-0123456789abcdef.partial", ".rftp-fedcba9876543210.partial",
             ".rftp-0123456789abcdef.tree"]
    for more in ([], ["f"]):
        os.mkdir(f"{export}/d")
        for name in [*names, *more]:
            make_file(f"{export}/d/{name}", 10)
        result = rftptest.rftp("-c", "rmdir d", daemon.url(""))
        equal((result.code == OK, os.path.exists(f"{export}/d")), (not more, bool(more)), more, result)
    equal(sorted(os.listdir(f"{export}/d")), sorted([*names, "f"]), "all of it stays")
    works("-c", "rm -r d", daemon.url(""))
    os.mkdir(f"{export}/d")
    make_file(f"{local}/f", SIZE)
    for option in ("1M", "never"):
        proxy, client = half_way(daemon, "--resume", option, f"{local}/f", "@d/f")
        rftptest.fails(rftptest.KIND, "-c", "rmdir d", daemon.url(""), says=b"not empty")
        proxy.release()
        equal(rftptest.finish(client).code, OK, "the transfer")
        proxy.close()
        same_files(f"{local}/f", f"{export}/d/f")
        os.unlink(f"{export}/d/f")


@case
def those_that_can_be_gone_on_with_are_kept_for_a_while(top):
    """By the daemon as long as it was told to, from its start on."""
    export, local = places(top)
    make_file(f"{local}/f", SIZE)
    daemon = Daemon(export)
    proxy, client = half_way(daemon, "--resume", "1M", f"{local}/f", "@f")
    daemon.kill()
    proxy.close()
    rftptest.finish(client)
    equal(len(leftovers(export)), 2, "journal and partial file")
    dead = f"{export}/.rftp-0123456789abcdef.part"
    for keep, left in ((1000, 2), (0, 0)):
        make_file(dead, 10)
        os.utime(dead, (0, 0))
        daemon = Daemon(export, "rw", "--keep-partial", str(keep))
        wait_until(lambda: b"removed " in daemon.stderr(), "it has looked")
        equal(len(leftovers(export)), left, f"--keep-partial {keep}")
        daemon.stop()


@case
def people_see_and_remove_them(top):
    export, local = places(top)
    daemon = Daemon(export)
    name = ".rftp-0123456789abcdef.part"
    make_file(f"{export}/{name}", 10)
    make_file(f"{export}/f", 10)
    equal(works("-c", "ls", daemon.url("")).out.split(), [b"f"], "ls")
    equal(works("-c", "ls -a", daemon.url("")).out.split(), [name.encode(), b"f"], "ls -a")
    works("-r", daemon.url("."), f"{local}/got")
    equal(os.listdir(f"{local}/got"), ["f"], "a tree goes without")
    works("-c", f"rm {name}", daemon.url(""))
    equal(os.listdir(export), ["f"], "after rm")


rftptest.main()
