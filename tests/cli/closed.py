#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are started without standard input, output or error: no file or socket is taken for one."""

import os
import subprocess

import rftptest
from rftptest import BUILD, LOCAL_IO, Daemon, case, check, equal, make_file, same_files

ALL = (0, 1, 2)


def without(fds, program, *arguments, **options):
    """-> a process in which these are closed"""
    closing = " ".join(f"{fd}>&-" for fd in fds)
    return rftptest.spawn(["sh", "-c", f'exec "$0" "$@" {closing}', os.path.join(BUILD, program), *arguments],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=rftptest.clean_environment(), **options)


@case
def the_client(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 300000)
    for fds in ((0,), (1,), (2,), ALL):
        # -v: messages from the beginning to the end
        for words in (("-v", f"{top}/f", daemon.url("f")), ("-v", daemon.url("f"), f"{top}/back")):
            result = rftptest.finish(without(fds, "rftp", *words))
            equal(result.code, 0, words, "without", fds, result)
        same_files(f"{top}/f", daemon.path("f"))
        same_files(f"{top}/f", f"{top}/back")
        os.unlink(daemon.path("f"))
        os.unlink(f"{top}/back")


@case
def what_should_come_from_it_or_go_to_it(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(daemon.path("f"), 100)
    for fd, words in ((0, ("-", daemon.url("new"))), (0, ("-b", "-", daemon.url(""))), (1, (daemon.url("f"), "-")),
                      (1, ("-c", "cat f", daemon.url(""))), (1, ("-c", "ls", daemon.url(""))),
                      (1, ("--json", f"{top}/export/f", daemon.url("g")))):
        result = rftptest.finish(without((fd,), "rftp", *words), timeout=20)
        equal(result.code, LOCAL_IO, words, "without", fd, result)
        check(b"standard " in result.err, "it names", result)
    check("new" not in os.listdir(daemon.top), "what was read from nowhere was stored")


@case
def the_daemon(top):
    os.mkdir(f"{top}/export")
    for fds in ((0,), (2,), (0, 2)):
        process = without(fds, "rftpd", "--listen", "127.0.0.1:0", "--export", f"{top}/export:rw", "--log-level", "debug")
        ready = process.stdout.readline().split()
        equal(ready[0], b"ready", "without", fds)
        make_file(f"{top}/f", 300000)
        rftptest.works(f"{top}/f", f"rftp://{ready[1].decode()}/f")
        same_files(f"{top}/f", f"{top}/export/f")
        process.terminate()
        equal(rftptest.finish(process).code, 0, "without", fds)
    result = rftptest.finish(without((1,), "rftpd", "--listen", "127.0.0.1:0", "--export", f"{top}/export:rw"))
    check(result.code == 1 and b"Bad file descriptor" in result.err, "nobody would know where it listens:", result)


rftptest.main()
