#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon in its sandbox: that it is there, said, insisted on where that is asked for, and in the way of
nothing that the daemon does.  (What cannot be done from within is tested by tests/unit/sandbox.)"""

import os
import re
import shutil
import signal
import subprocess

import rftptest
from rftptest import NOBODY, Daemon, NotReady, case, check, equal, make_file, same_files, skip, wait_until, works
from rftptest import BUILD

WITHOUT = os.path.join(BUILD, "tests/preload/old_kernel.so")


def served(top, *arguments, **options):
    os.makedirs(f"{top}/export", exist_ok=True)
    return Daemon(f"{top}/export", "rw", *arguments, **options)


def said(daemon):
    lines = [line for line in daemon.stderr().decode().splitlines() if " sandbox: " in line]
    equal(len(lines), 1, "lines about the sandbox", lines)
    return lines[0]


def landlock(daemon):
    """Its version; 0: the kernel has none."""
    match = re.search(r"Landlock (\d+)\)", said(daemon))
    return int(match[1]) if match else 0


def status(daemon):
    """{thread: (Seccomp, NoNewPrivs)}"""
    found = {}
    for task in os.listdir(f"/proc/{daemon.process.pid}/task"):
        with open(f"/proc/{daemon.process.pid}/task/{task}/status") as f:
            text = f.read()
        found[task] = tuple(re.search(rf"(?m)^{name}:\s*(\d+)$", text)[1] for name in ("Seccomp", "NoNewPrivs"))
    return found


@case
def it_is_there_and_said(top):
    daemon = served(top)
    if "seccomp)" not in said(daemon):
        skip("this kernel has no seccomp: " + said(daemon))
    make_file(f"{top}/f", 100000)
    works(f"{top}/f", daemon.url("f"))  # by now there are threads of every kind
    works(daemon.url("f"), f"{top}/g")
    threads = status(daemon)
    check(len(threads) > 2, "threads", threads)
    equal(set(threads.values()), {("2", "1")}, "Seccomp and NoNewPrivs of its threads")
    daemon.stop()
    daemon = served(top, "--sandbox=no")
    check("none" in said(daemon), said(daemon))
    equal(set(status(daemon).values()), {("0", "0")}, "without a sandbox")


def old_kernel(what):
    if rftptest.SANITIZED or not os.path.exists(WITHOUT):
        skip("tests/preload is not built")
    return {"LD_PRELOAD": WITHOUT, "RFTP_TEST_WITHOUT": what}


@case
def who_insists_is_not_served_without(top):
    env = old_kernel("landlock")
    daemon = served(top, env=env)
    check("files are not confined" in said(daemon), said(daemon))
    daemon.stop()
    for arguments, env, why in ((["--require-sandbox"], env, b"Landlock"),
                                (["--require-sandbox"], old_kernel("seccomp"), b"seccomp"),
                                (["--require-sandbox", "--sandbox=no"], {}, b"sandbox")):
        try:
            served(top, *arguments, env=env)
        except NotReady as e:
            equal(e.code, 2, "exit code")
            check(b"require-sandbox" in e.said and why in e.said, e.said)
        else:
            raise rftptest.Failure(f"it serves with {arguments} and {env}")
        done = subprocess.run([os.path.join(BUILD, "rftpd"), "-t", "--listen", "127.0.0.1:0", "--export", top,
                               *arguments], env=rftptest.clean_environment(env), capture_output=True)
        equal(done.returncode, 2, "of a test of the configuration", done.stderr)
        check(b"require-sandbox" in done.stderr, done.stderr)
    daemon = served(top)
    if landlock(daemon):
        daemon.stop()
        served(top, "--require-sandbox")


@case
def logs_and_sockets_and_the_configuration(top):
    """All that is opened, made or removed long after the start."""
    for name in ("export", "export/beneath", "logs", "etc", "run", "other"):
        os.mkdir(f"{top}/{name}")
    log, audit, conf = f"{top}/logs/log", f"{top}/logs/audit", f"{top}/etc/conf"
    text = f"export = {top}/export:ro\nlog-file = {log}\naudit-log = {audit}\ncontrol = {top}/run/control\n"

    def write(more=""):
        with open(conf + ".new", "w") as f:
            f.write(text + more)
        os.rename(conf + ".new", conf)  # as an editor does: another file of the name

    def read(path):
        with open(path) as f:
            return f.read()

    write()
    daemon = Daemon(f"{top}/export", command=["--config", conf, "--listen", "127.0.0.1:0"])
    confined = re.search(r"Landlock \d", read(log))
    make_file(f"{top}/export/f", 1000)
    works(daemon.url("f"), f"{top}/got")
    for path in (log, audit):
        os.rename(path, path + ".1")
    write("max-sessions = 7\n")
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(audit) and "is in use" in read(log), "it reloads")
    works(daemon.url("f"), f"{top}/again")
    wait_until(lambda: '"end"' in read(audit), "the new audit log is written to")
    done = subprocess.run([os.path.join(BUILD, "rftpctl"), "-s", f"{top}/run/control", "limit"], capture_output=True)
    check(done.returncode == 0 and b"max-sessions 7" in re.sub(rb"[ =]+", b" ", done.stdout), done)

    def reload_with(line):
        nonlocal text
        before = text
        text = re.sub(r"export = .*\n", f"export = {line}\n", text)
        write()
        was = read(log)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: re.search("is in use|stays as it was", read(log)[len(was):]), lambda: read(log))
        if "as it was" in (now := read(log)[len(was):]):
            text = before
            return now
        return None

    equal(reload_with(f"{top}/export/beneath:ro"), None, "an export beneath the one that there was")
    if confined:
        for line in (f"{top}/other:ro", f"{top}/export:rw"):
            why = reload_with(line)
            check(why and "needs a new start" in why, "an export that is out of reach:", line, why)
    equal(works("-c", "ls", daemon.url("")).out, b"", "the export")
    daemon.stop()
    check(not os.path.exists(f"{top}/run/control"), "its socket is left behind")


@case
def what_a_client_asks_for_works_inside(top):
    daemon = served(top)
    make_file(f"{top}/f", 3 << 20)
    os.mkdir(f"{top}/tree")
    for i in range(5):
        make_file(f"{top}/tree/{i}", 10000 * i)
    works(f"{top}/f", daemon.url("f"))
    works("-r", f"{top}/tree", daemon.url(""))
    works("-c", "mkdir -p a/b; mv f a/b/g; ls -l a/b; stat a/b/g; df; mv tree a/tree; rm a/tree/0", daemon.url(""))
    works(daemon.url("a/b/g"), f"{top}/back")
    same_files(f"{top}/f", f"{top}/back")
    works("-r", daemon.url("a/tree"), f"{top}/trees")
    works("-c", "rm -r a", daemon.url(""))
    works("feed", "--segment", "64K", f"x={top}/f", daemon.url("feed"))
    for protect in ("safe", "private"):
        works("--protect", protect, f"{top}/f", daemon.url(protect))
        same_files(f"{top}/f", daemon.path(protect))


def children(pid):
    """{process: its name}"""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if int(rest.split()[1]) == pid:
            found[int(entry)] = name
    return found


def what_is_open(pid):
    names = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            names.append(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0])
        except FileNotFoundError:  # it was closed just now
            pass
    return sorted(names)


@case
def who_looks_up_names(top):
    """Processes outside, which have nothing but that to do, and nothing to do it harm with."""
    daemon = served(top)
    pid = daemon.process.pid
    found = children(pid)
    equal(list(found.values()), ["rftpd-lookup"], "processes of the daemon's")
    helper = next(iter(found))
    theirs = children(helper)
    equal(set(theirs.values()), {"rftpd-lookup"}, "and those that it keeps")
    for one in [helper, *theirs]:
        with open(f"/proc/{one}/status") as f:
            text = f.read()
        equal(re.search(r"(?m)^NoNewPrivs:\s(.*)$", text)[1], "1", "NoNewPrivs")
        if rftptest.ROOT:
            equal(set(re.search(r"(?m)^Uid:\s(.*)$", text)[1].split()), {str(NOBODY)}, "its user ids")
            equal(set(re.search(r"(?m)^Gid:\s(.*)$", text)[1].split()), {str(NOBODY)}, "its group ids")
            equal(re.search(r"(?m)^CapEff:\s(.*)$", text)[1], "0" * 16, "its capabilities")
            equal(re.search(r"(?m)^Groups:[ \t]*(.*)$", text)[1].strip(), "", "its groups")
            # one that was just started closes first what it has of who started it
            wait_until(lambda: what_is_open(one) == ["/dev/null"] * 3 + ["socket"], "it has one socket open")
    make_file(f"{top}/f", 1000)
    works("-a", f"{top}/f", daemon.url("f"))
    works("-a", daemon.url("f"), f"{top}/g")
    # a daemon that is killed, too, leaves none behind; nor does one that ends
    daemon.kill()
    wait_until(lambda: not os.path.exists(f"/proc/{helper}"), "it ends with the daemon")
    daemon = served(top)
    helper = next(iter(children(daemon.process.pid)))
    os.kill(helper, signal.SIGTERM)  # as a service manager does to all of a service
    works("-a", f"{top}/f", daemon.url("f"))
    daemon.stop()
    wait_until(lambda: not os.path.exists(f"/proc/{helper}"), "it ends with the daemon")
    # those that are killed are replaced
    daemon = served(top)
    helper = next(iter(children(daemon.process.pid)))
    theirs = children(helper)
    for one in theirs:
        os.kill(one, signal.SIGKILL)
    if rftptest.ROOT:
        os.chown(f"{top}/f", 1, 1)
    works("-a", f"{top}/f", daemon.url("f"))
    works("-a", daemon.url("f"), f"{top}/g")
    if rftptest.ROOT:
        log = daemon.stderr()
        check(b"has ended: another one is started" in log and b"kept by number" not in log, "the log", log)
        check(set(children(helper)) - set(theirs), "another one, of", children(helper))
    # without who keeps them owners are numbers, and that is said
    os.kill(helper, signal.SIGKILL)
    works("-a", f"{top}/f", daemon.url("f"))
    works("-a", daemon.url("f"), f"{top}/g")
    if rftptest.ROOT:
        check(b"owners are kept by number until a new start" in daemon.stderr(), daemon.stderr())
    daemon.stop()
    equal(children(served(top, "--sandbox=no").process.pid), {}, "processes without a sandbox")


@case
def what_cannot_be_given_up_is_said(top):
    """In a user namespace that has no other user, and lets nobody change its groups."""
    own = ["unshare", "--user", "--map-root-user"]
    if not shutil.which("unshare") or subprocess.run([*own, "true"], capture_output=True).returncode:
        skip("no user namespace can be made")
    os.makedirs(f"{top}/start")
    with open(f"{top}/start/rftpd", "w") as f:
        f.write(f"#!/bin/sh\nexec {' '.join(own)} {BUILD}/rftpd \"$@\"\n")
    os.chmod(f"{top}/start/rftpd", 0o755)
    daemon = served(top, build=f"{top}/start")
    make_file(f"{top}/f", 1000)
    works("-a", f"{top}/f", daemon.url("f"))
    log = daemon.stderr()
    for what in (b"groups", b"user"):
        check(b"what looks up users and groups keeps the daemon's " + what + b": " in log, what, log)
    check(b"in a user namespace" in log, "why", log)
    helper = next(iter(children(daemon.process.pid)))
    with open(f"/proc/{helper}/status") as f:
        equal(re.search(r"(?m)^CapEff:\s(.*)$", f.read())[1], "0" * 16, "its capabilities")
    daemon.stop()
    if rftptest.ROOT:
        done = subprocess.run([*own, f"{BUILD}/rftpd", "--listen", "127.0.0.1:0", "--export", top, "--system-users",
                               "--user", "nobody"], capture_output=True, timeout=60, env=rftptest.clean_environment())
        check(done.returncode != 0, "it serves users of the host there", done)
        check(b"user nobody: rftpd cannot take its groups" in done.stderr, "the reason", done.stderr)


@case
def who_looks_up_names_has_no_capability(top):
    """Nor has it one of a daemon that is not root, and was started with some."""
    if not rftptest.ROOT:
        skip("needs root to give capabilities")
    os.chmod(top, 0o755)
    os.mkdir(f"{top}/start")
    os.mkdir(f"{top}/state")
    os.chown(f"{top}/state", NOBODY, NOBODY)
    some = "+net_bind_service"
    with open(f"{top}/start/rftpd", "w") as f:
        f.write(f"#!/bin/sh\nexec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --inh-caps {some} "
                f"--ambient-caps {some} {BUILD}/rftpd \"$@\"\n")
    os.chmod(f"{top}/start/rftpd", 0o755)
    daemon = served(top, build=f"{top}/start", env={"STATE_DIRECTORY": f"{top}/state"})
    helper = next(iter(children(daemon.process.pid)))

    def has(pid):
        with open(f"/proc/{pid}/status") as f:
            return set(re.findall(r"(?m)^Cap(?:Prm|Eff|Amb):\s(.*)$", f.read()))

    equal(has(daemon.process.pid), {"0" * 13 + "400"}, "the daemon's own")
    wait_until(lambda: has(helper) == {"0" * 16}, "it drops them while the daemon starts")


if __name__ == "__main__":
    rftptest.main()
