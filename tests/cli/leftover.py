#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Temporary files whose writer was killed: they are found and removed, those of the living are not,
and people can see and remove them by hand."""

import os
import re
import shutil
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


def told(*arguments):
    return [e for e in works("--json", "leftovers", *arguments).events() if e["event"] == "leftover"]


@case
def the_command_lists_and_removes_them(top):
    """On either side, with what each belongs to; what is in use stays."""
    export, local = places(top)
    make_file(f"{local}/f", SIZE)
    os.makedirs(f"{export}/a/b")
    shutil.copy(f"{local}/f", f"{export}/g")
    daemon = Daemon(export)
    equal(told(daemon.url("")), [], "nothing yet")
    check(b"nothing is left over" in works("leftovers", export).err, "and it is said")
    ways = (([f"{local}/f", "@a/b/f"], f"{export}/a/b/f", [daemon.url("")], [export]),
            (["@g", f"{local}/g"], f"{local}/g", [local], []))
    for names, copy, here, there in ways:
        proxy, client = half_way(daemon, "--resume", "1M", *names)
        where = os.path.dirname(copy)
        journal = leftovers(where)[0].decode()
        wait_until(lambda w=here: told(*w)[0]["verified_bytes"], "some of it is noted")
        for _ in range(2):
            one, = told(*here, "--remove")
            equal((one["state"], one["kind"], one["file_bytes"]), ("busy", "file", SIZE), "while it is written to", one)
        rftptest.kill(client, signal.SIGKILL)
        rftptest.finish(client)
        proxy.close()
        wait_until(lambda w=here: told(*w)[0]["state"] == "idle", "it is left behind")
        for arguments in (here, there):
            if arguments:
                one, = told(*arguments)
                check(0 < one["verified_bytes"] < SIZE and one["bytes"] >= one["verified_bytes"] and one["changed_s"], one)
                base = arguments[0] if "://" not in arguments[0] else arguments[0].rstrip("/")
                wanted = os.path.join(base, os.path.relpath(copy, export if where != local else local))
                equal((one["belongs_to"], os.path.basename(one["path"])[:22]), (wanted, os.path.basename(journal)[:22]), one)
        text = works("leftovers", *here)
        check(re.search(rb"idle .*/[fg] [(][0-9]+ % of 8 MiB is there[)]", text.out), text)
        check(b"1 left over" in text.err, text)
        equal([e["state"] for e in told("--remove", "--older", "1h", *here)], ["idle"], "they are too young")
        equal(len(leftovers(where)), 2, "both are there")
        result = works("leftovers", "--remove", *here)
        check(b"1 removed" in result.err and b"removed" in result.out, result)
        equal(leftovers(where), [], "after that")
    audit = rftptest.rftp("-c", "leftovers --remove; leftovers a", daemon.url(""))
    equal((audit.code, audit.out), (OK, b""), "in the shell", audit)
    for arguments in (("--older", "1h"), ("--older", "soon", "--remove"), ("--remove=x",)):
        rftptest.fails(rftptest.USAGE, "leftovers", *arguments, export)
    rftptest.fails(rftptest.NO_FILE, "leftovers", f"{export}/none", says=b"none")
    rftptest.fails(rftptest.KIND, "leftovers", daemon.url("g"), says=b"g")


@case
def who_may_not_remove_them_sees_them(top):
    export, _ = places(top)
    os.makedirs(f"{export}/d")
    for name in (".rftp-0123456789abcdef.part", ".rftp-0123456789abcdef.partial"):
        make_file(f"{export}/d/{name}", 10)
        os.utime(f"{export}/d/{name}", (5, 5))
    daemon = Daemon(export, "ro")
    equal([e["state"] for e in told(daemon.url(""))], ["idle", "idle"], "read-only")
    result = rftptest.rftp("leftovers", "--remove", daemon.url(""))
    check(result.code != OK and b"read-only" in result.err, result)
    equal(len(leftovers(export)), 2, "both are there")
    daemon.stop()
    os.makedirs(f"{top}/other")
    daemon = Daemon(top, command=["--listen", "127.0.0.1:0", "--export", f"one {export} rights=read,list",
                                  "--export", f"two {top}/other rights=read,list"])
    make_file(f"{top}/other/.rftp-0123456789abcdef.partial", 10)
    equal(sorted(e["path"].split("/", 3)[3] for e in told(daemon.url(""))),
          ["one/d/.rftp-0123456789abcdef.part", "one/d/.rftp-0123456789abcdef.partial",
           "two/.rftp-0123456789abcdef.partial"], "of all exports")


rftptest.main()
