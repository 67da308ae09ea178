#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon that runs for long: its log, new settings without an end of sessions, and an end in order."""

import os
import re
import signal
import socket
import subprocess

import iwarp
import rftptest
from rftptest import LOST, Daemon, Proxy, case, check, equal, leftovers, make_file, same_files, wait_until, works


class Configured(Daemon):
    """A daemon with a configuration file that can be written again."""

    def __init__(self, top, *lines, **options):
        self.config = f"{top}/conf"
        self.write(*lines)
        super().__init__(top, command=["--config", self.config, "--listen", "127.0.0.1:0"], **options)

    def write(self, *lines):
        with open(self.config, "w") as f:
            f.writelines(line + "\n" for line in lines)

    def reload(self, *lines, says=b"is in use"):
        self.write(*lines)
        before = self.stderr().count(says)
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.stderr().count(says) > before, lambda: f"no word of the reload: {self.stderr()!r}")


def directories(top, *names):
    for name in names:
        os.mkdir(f"{top}/{name}")
        make_file(f"{top}/{name}/in-{name}", 100)


def names(daemon):
    return works("-c", "ls", daemon.url("")).out.decode().split()


@case
def sessions_go_on_and_new_ones_have_the_new_settings(top):
    directories(top, "a", "b")
    daemon = Configured(top, f"export = {top}/a:ro", "sandbox = no")  # which cannot get another export
    before = daemon.settled()
    old = iwarp.Session(daemon.port)
    old.hello()
    equal(names(daemon), ["in-a"], "the export")
    daemon.reload(f"export = {top}/b:rw", "max-sessions = 2", "log-level = debug", "sandbox = no")
    equal(old.ask(iwarp.PING, b"cookie 8")[0], 0, "PING of a session from before")
    equal(names(daemon), ["in-b"], "the new export")
    make_file(f"{top}/f", 100000)
    works(f"{top}/f", daemon.url("f"))
    same_files(f"{top}/f", f"{top}/b/f")
    check(b"debug:" in daemon.stderr(), "the log level is the old one")
    # a client does not wait until the daemon has taken its session for ended
    wait_until(lambda: daemon.stderr().count(b" ended after") == 3, "only the old session is left")
    other = iwarp.Session(daemon.port)
    other.hello()
    rftptest.fails(rftptest.REFUSED, "-c", "ls", daemon.url(""), says="as many sessions")
    # the old session is on the old export; once it has gone, that is closed
    links = lambda: [os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}") for fd in  # noqa: E731
                     os.listdir(f"/proc/{daemon.process.pid}/fd")]

    def open_exports():
        try:
            return sorted(link[-1] for link in links() if link in (f"{top}/a", f"{top}/b"))
        except OSError:
            return None  # one was closed meanwhile
    wait_until(lambda: open_exports() == ["a", "b"], "both exports are open")
    old.close()
    other.close()
    wait_until(lambda: open_exports() == ["b"], lambda: f"the old export is closed: {open_exports()}")
    wait_until(lambda: daemon.fds() <= before[0] + 1, "descriptors")


@case
def a_transfer_goes_on_over_a_reload(top):
    directories(top, "a", "b")
    daemon = Configured(top, f"export = {top}/a:rw", "memory = 1G", "sandbox = no")
    make_file(f"{top}/f", 32 << 20)
    proxy = Proxy(daemon.port, hold=4 << 20)
    client = rftptest.start_rftp("--no-resume", f"{top}/f", proxy.url("f"))
    wait_until(proxy.held.is_set, "the transfer begins")
    # less memory than it holds, and another export
    daemon.reload(f"export = {top}/b:rw", "memory = 16M", "threads = 8", "open-files = 8", "idle-timeout = 1")
    proxy.release()
    equal(rftptest.finish(client).code, 0, "the transfer")
    same_files(f"{top}/f", f"{top}/a/f")
    works(f"{top}/f", daemon.url("g"))
    same_files(f"{top}/f", f"{top}/b/g")
    proxy.close()
    daemon.reload(f"export = {top}/b:rw", "memory = 1G")
    works(f"{top}/f", daemon.url("h"))


@case
def what_is_wrong_changes_nothing(top):
    directories(top, "a")
    daemon = Configured(top, f"export = {top}/a:rw", f"audit-log = {top}/audit")
    for lines, why in ((["nonsense"], "conf:1: "), ([f"export = {top}/a:rw", "max-sessions = 0"], "conf:2: "),
                       ([f"export = {top}/missing:rw"], "(the log says why|within the sandbox)"), ([], "export")):
        daemon.reload(*lines, says=b"all stays as it was")
        check(re.search(rf"reload: .*{why}", daemon.stderr().decode()), why, daemon.stderr())
        equal(names(daemon), ["in-a"], "the export")
    # nor are logs left for others
    for lines, why in (([f"export = {top}/missing:rw", f"audit-log = {top}/other", f"log-file = {top}/other-log"], "sandbox"),
                       ([f"export = {top}/a:rw", f"audit-log = {top}/none/audit"], "audit-log .*none/audit: No such file"),
                       ([f"export = {top}/a:rw", f"log-file = {top}/none/log"], "log-file .*none/log: No such file"),
                       ([f"export = {top}/a:rw", f"xferlog = {top}/none/x"], "xferlog .*none/x: No such file")):
        audited = read(f"{top}/audit").count('"begin"')
        daemon.reload(*lines, says=b"all stays as it was")
        check(re.search(rf"reload: .*{why}", daemon.stderr().decode()), why, daemon.stderr())
        equal(names(daemon), ["in-a"], "the export")
        wait_until(lambda: read(f"{top}/audit").count('"begin"') == audited + 1, "the session is in the log that there was")
    equal([read(f"{top}/{name}") for name in ("other", "other-log")], ["", ""], "the other ones")
    os.unlink(daemon.config)
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: b"conf: No such file" in daemon.stderr(), "it says that the file is missing")
    daemon.reload(f"export = {top}/a:rw", "fabric = soft")
    check(b"fabric or crc is another now" in daemon.stderr(), "what needs a new start:", daemon.stderr())


@case
def files_that_are_fifos_hold_up_nobody(top):
    """Each file that is read or opened again is another kind of thing now."""
    directories(top, "a")
    lines = [f"export = {top}/a:rw", f"log-file = {top}/log", f"audit-log = {top}/audit"]
    daemon = Configured(top, *lines)
    equal(names(daemon), ["in-a"], "the export")
    for name in ("log", "audit"):
        os.unlink(f"{top}/{name}")
        os.mkfifo(f"{top}/{name}")
    os.rename(f"{top}/log", f"{top}/fifo")  # the messages are to be read
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(f"{top}/log"), "a new log")
    equal(names(daemon), ["in-a"], "the export")
    audit = rftptest.opened_fifo(f"{top}/audit")
    wait_until(lambda: b'"login"' in audit(), "who reads it later has what it took")
    os.unlink(daemon.config)
    os.mkfifo(daemon.config)
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "it is a pipe" in read(f"{top}/log"), "what it says of the configuration")
    equal(names(daemon), ["in-a"], "the export")
    # and its log
    os.rename(f"{top}/log", f"{top}/log.1")
    os.rename(f"{top}/fifo", f"{top}/log")
    daemon.process.send_signal(signal.SIGHUP)
    log = rftptest.opened_fifo(f"{top}/log")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: b"reload" in log(), "messages in it")
    equal(names(daemon), ["in-a"], "the export")


@case
def an_idle_timeout_is_for_sessions_that_are_there_too(top):
    directories(top, "a")
    daemon = Configured(top, f"export = {top}/a:rw", "idle-timeout = 3600")
    session = iwarp.Session(daemon.port)
    session.hello()
    daemon.reload(f"export = {top}/a:rw", "idle-timeout = 1")
    wait_until(lambda: b"ended after" in daemon.stderr(), "the session is ended")
    session.close()


@case
def the_log_is_opened_anew(top):
    directories(top, "a")
    lines = (f"export = {top}/a:rw", f"log-file = {top}/log")
    daemon = Configured(top, *lines)
    names(daemon)
    wait_until(lambda: "ended after" in read(f"{top}/log"), "a session is logged")
    os.rename(f"{top}/log", f"{top}/log.1")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(f"{top}/log") and "is in use" in read(f"{top}/log"), "another file")
    names(daemon)
    wait_until(lambda: "ended after" in read(f"{top}/log"), "a session is logged there")
    equal(read(f"{top}/log.1").count("ended after"), 1, "sessions in the old file")
    for line in read(f"{top}/log").splitlines():
        check(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z rftpd: (info|debug|warning): ", line), "a line:", line)
    daemon.write(f"export = {top}/a:rw", f"log-file = {top}/log.2")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(f"{top}/log.2") and "is in use" in read(f"{top}/log.2"), "a third one")
    result = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "--listen", "0", "--export", top, "--log-file",
                             f"{top}/missing/log"], capture_output=True, timeout=20 * rftptest.PATIENCE)
    check(result.returncode == 1 and b"missing/log" in result.stderr, result)


def read(path):
    with open(path) as f:
        return f.read()


@case
def the_service_manager_hears_of_a_reload(top):
    directories(top, "a")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(20 * rftptest.PATIENCE)
        manager.bind(f"{top}/notify")
        daemon = Configured(top, f"export = {top}/a:rw", env={"NOTIFY_SOCKET": f"{top}/notify"})
        equal(manager.recv(4096), b"READY=1", "at the start")
        daemon.reload("nonsense", says=b"all stays as it was")
        check(re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=\d+", manager.recv(4096)), "no RELOADING")
        equal(manager.recv(4096), b"READY=1", "afterwards")


# ---- the end ----

def held_transfer(daemon, top):
    make_file(f"{top}/f", 32 << 20)
    proxy = Proxy(daemon.port, hold=4 << 20)
    client = rftptest.start_rftp("--no-resume", f"{top}/f", proxy.url("f"))
    wait_until(proxy.held.is_set, "the transfer begins")
    return proxy, client


def ended(daemon):
    daemon.process.wait(30 * rftptest.PATIENCE)
    daemon.stopped = True
    rftptest.no_sanitizer_report(daemon.stderr(), "rftpd")
    equal(daemon.process.returncode, 0, "exit code", daemon.stderr()[-2000:])
    equal(leftovers(daemon.top), [], "temporary files")


@case
def sigterm_lets_a_transfer_end(top):
    directories(top, "export")
    daemon = Daemon(f"{top}/export", "rw", "--drain-timeout", "600")
    idle = iwarp.Session(daemon.port)
    idle.hello()
    proxy, client = held_transfer(daemon, top)
    daemon.process.send_signal(signal.SIGTERM)
    wait_until(lambda: b"1 transfers may go on" in daemon.stderr(), "it drains")
    wait_until(lambda: b"ended after" in daemon.stderr(), "the idle session is ended")
    rftptest.fails(rftptest.CONNECT, "-c", "ls", daemon.url(""))
    check(daemon.alive(), "it ended with a transfer under way")
    proxy.release()
    equal(rftptest.finish(client).code, 0, "the transfer")
    ended(daemon)
    same_files(f"{top}/f", f"{top}/export/f")
    idle.close()
    proxy.close()


@case
def but_not_for_ever(top):
    directories(top, "export")
    for arguments, again in (["--drain-timeout", "1"], False), (["--drain-timeout", "600"], True), \
            (["--drain-timeout", "0"], False):
        daemon = Daemon(f"{top}/export", "rw", *arguments)
        proxy, client = held_transfer(daemon, top)
        daemon.process.send_signal(signal.SIGTERM)
        if again:
            wait_until(lambda: b"may go on" in daemon.stderr(), "it drains")
            daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: re.search(b"not done within|again|ending", daemon.stderr()), "it goes on to end")
        wait_until(lambda: b"STORE ended" in daemon.stderr() or not daemon.alive(), "the transfer is cancelled", 30)
        proxy.release()
        check(rftptest.finish(client).code in (LOST, rftptest.FAILED), "the client")
        ended(daemon)
        proxy.close()


rftptest.main()
