#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people are told when a transfer does not end well: once, in plain words, and about which file."""

import os
import re
import signal
import subprocess

import iwarp
import rftptest
from rftptest import INTERRUPTED, LOST, NO_FILE, Daemon, Proxy, case, check, equal, finish, make_file, start_rftp
from rogue import Victim

SLOW = ("--channels", "1", "--block", "64K")


def places(top):
    for where in ("export", "local"):
        os.makedirs(f"{top}/{where}/t")
        for name in ("big", "t/one", "t/two"):
            make_file(f"{top}/{where}/{name}", 8 << 20)
    return Daemon(f"{top}/export")


def half_way(daemon, *words):
    """A transfer that has come to its middle, held there.  @ stands for the server."""
    proxy = Proxy(daemon.port, hold=3 << 20)
    client = start_rftp(*SLOW, *[w.replace("@", proxy.url()) for w in words], stdin=subprocess.DEVNULL)
    check(proxy.held.wait(30), "the transfer did not get so far")
    return proxy, client


# what is copied, and what the messages are about
COPIES = [(["{}/big", "@new"], "{}/big"), (["@big", "{}/new"], "{}/new"), (["-r", "{}/t", "@new"], "@"),
          (["-r", "@t", "{}/new/"], "@")]


def each(top, daemon):
    for words, about in COPIES:
        words = [w.format(f"{top}/local") for w in words]
        about = about.format(f"{top}/local")
        if about == "@":
            about = "/new" if words[-1] == "@new" else "/t"
        yield words, about, half_way(daemon, *words)


def said(result, code, line):
    """One line, and these words."""
    equal(result.code, code, result)
    check(re.fullmatch(line.encode() + b"\n", result.err), "it should say", line, "and no more:", result)


@case
def cancelled(top):
    daemon = places(top)
    for words, about, (proxy, client) in each(top, daemon):
        client.send_signal(signal.SIGINT)
        proxy.release()
        said(finish(client), INTERRUPTED, f"rftp: {about}: cancelled")
        proxy.close()


@case
def connection_lost(top):
    for how in ("reset", "killed"):
        os.mkdir(f"{top}/{how}")
        daemon = places(f"{top}/{how}")
        for words, about, (proxy, client) in each(f"{top}/{how}", daemon):
            if how == "reset":
                proxy.reset()
            else:
                daemon.kill()
                proxy.release()
            said(finish(client), LOST, f"rftp: {about}: connection lost" + r"(: data channel \d+ broke: [a-z ]+)?")
            proxy.close()
            if how == "killed":
                break


@case
def no_word_twice(top):
    """What a server says of a status in the words that stand for it anyway."""
    victim = Victim(top)
    for status, text, code in ((107, b"by the server", LOST), (107, b"ended by the server", LOST),
                               (300, b"no space left", rftptest.NO_SPACE), (107, b"", LOST)):
        abort = iwarp.abort(status, text)
        for type_, words in ((iwarp.RETRIEVE, ("{}report", "in/")), (iwarp.STORE, ("canary", "{}x"))):
            def answer(session, _, type_=type_, abort=abort):
                session.reply(type_)
                session.put(iwarp.ABORT, abort)
                return False
            result = victim.suffers({type_: answer}, "--fabric", "soft", *words, code=code, says="rftp: ")
            for phrase in (b"by the server", b"no space left"):
                check(result.err.count(phrase) <= 1 and result.err.count(b"\n") == 1, "said twice:", result)


@case
def the_progress_line_is_ended(top):
    daemon = places(top)
    proxy = Proxy(daemon.port, cut=6 << 20, delay=0.002)
    out, code = rftptest.on_terminal(*SLOW, f"{top}/local/big", proxy.url("new"))
    equal(code, LOST, out)
    lines = out.replace(b"\r\n", b"\n").split(b"\n")
    check(b"\r\x1b[K" in out, "no progress was drawn:", out)
    left = [line.split(b"\x1b[K")[-1] for line in lines if line]
    check(left[0].startswith(f"rftp: {top}/local/big: connection lost".encode()), "what stands there in the end", out)
    check(len(left) == 2 and b"0 files" in left[1], "and the sum, no more:", left)


@case
def a_link_that_leads_nowhere(top):
    """The name is that of the source, which is what is wrong."""
    daemon = places(top)
    os.symlink("nowhere", daemon.path("t/link"))
    os.symlink("nowhere", daemon.path("alone"))
    os.symlink("nowhere", f"{top}/local/t/link")
    for source, target, about in ((daemon.url("t"), f"{top}/local/back", "/t/link"),
                                  (f"{top}/local/t", daemon.url("new"), f"{top}/local/t/link")):
        said(rftptest.rftp("--links", "follow", "-r", source, target), NO_FILE,
             f"rftp: {about}: no such file or directory" + r"( \(.*\))?")
    said(rftptest.rftp(daemon.url("alone"), f"{top}/local/back"), NO_FILE, "rftp: /alone: no such file or directory.*")


rftptest.main()
