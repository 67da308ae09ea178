#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--retries: copies that are begun again."""

import os
import signal
import struct
import subprocess
import threading

import rftptest
from rftptest import CONNECT, INTERRUPTED, LOST, NO_FILE, OK, Daemon, Proxy, case, check, equal, finish, make_file, \
    rftp, same_files, start_rftp, wait_until


def nobody():
    """A port on which nobody listens."""
    s = rftptest.socket.create_server(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


def cut_once(daemon, cut):
    """A proxy whose first connections are cut, and the next ones are not."""
    proxy = Proxy(daemon.port, cut=cut)

    def mend():
        proxy.broken.wait()
        wait_until(lambda: proxy.carried >= cut, "the cut")
        rftptest.time.sleep(0.3)  # the client's pause is longer
        with proxy.lock:
            proxy.cut = None
        proxy.broken.clear()

    threading.Thread(target=mend, daemon=True).start()
    return proxy


@case
def a_connection_that_is_lost_once(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 8 << 20)
    for words in (["{}", "@f"], ["@f", "{}.back"]):
        words = [w.format(f"{top}/f") for w in words]
        proxy = cut_once(daemon, 2 << 20)
        result = rftp("--retries", "30", "--json", "--block", "64K", *[w.replace("@", proxy.url()) for w in words])
        equal(result.code, OK, result)
        events = [e["event"] for e in result.events()]
        again = events.count("retry")
        check(again >= 1, "not tried again:", events)
        equal((events.count("start"), events.count("done")), (again + 1, again + 1), events)
        check(b"trying again in" in result.err and b"(1 of 30)" in result.err, "what people are told:", result)
        same_files(f"{top}/f", daemon.path("f"))
        proxy.close()
    same_files(f"{top}/f", f"{top}/f.back")
    proxy = Proxy(daemon.port, cut=2 << 20)
    equal(rftp("--block", "64K", f"{top}/f", proxy.url("g")).code, LOST, "without it")
    proxy.close()


@case
def a_server_that_ends_while_one_connects(top):
    """It closes the connection before it has answered: that is no other kind of server."""
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 1000)
    for how in ("fin", "rst"):
        with rftptest.socket.create_server(("127.0.0.1", 0)) as ending:
            def end():
                connected, _ = ending.accept()
                connected.recv(10)
                if how == "rst":
                    connected.setsockopt(rftptest.socket.SOL_SOCKET, rftptest.socket.SO_LINGER, struct.pack("ii", 1, 0))
                connected.close()
            thread = threading.Thread(target=end, daemon=True)
            thread.start()
            result = rftp("--fabric", "soft", f"{top}/f", f"rftp://127.0.0.1:{ending.getsockname()[1]}/f")
            thread.join()
        equal(result.code, CONNECT, how, result)
        check(b"closed before it was answered" in result.err, how, result)
    proxy = cut_once(daemon, 1)
    result = rftp("--retries", "30", "--fabric", "soft", f"{top}/f", proxy.url("f"))
    equal(result.code, OK, result)
    same_files(f"{top}/f", daemon.path("f"))
    proxy.close()


@case
def a_server_that_is_not_there(top):
    make_file(f"{top}/f", 10)
    result = rftp("--retries", "2", f"{top}/f", f"rftp://127.0.0.1:{nobody()}/f")
    equal(result.code, CONNECT, result)
    equal(result.err.count(b"trying again"), 2, result)


@case
def what_is_not_tried_again(top):
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export")
    make_file(f"{top}/f", 10)
    url = f"rftp://127.0.0.1:{nobody()}/f"
    for code, words in ((NO_FILE, [daemon.url("absent"), f"{top}/g"]), (CONNECT, ["-", url]), (CONNECT, [url, "-"])):
        result = rftp("--retries", "5", *words)
        equal((result.code, result.err.count(b"trying again")), (code, 0), result)
    # a person who has had enough
    client = start_rftp("--retries", "50", f"{top}/f", url, stdin=subprocess.DEVNULL)
    said = b""
    while b"trying again" not in said:
        said += os.read(client.stderr.fileno(), 1000)
    client.send_signal(signal.SIGINT)
    equal(finish(client, timeout=20).code, INTERRUPTED, "Ctrl-C in a pause")


rftptest.main()
