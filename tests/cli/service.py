#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rftpd as a service: what `make install` brings, the unit, and what the service manager is told."""

import os
import re
import shutil
import signal
import socket
import subprocess

import rftptest
from rftptest import Daemon, case, check, equal, skip, wait_until


def installed(top):
    """`make install` into `top`: nothing of it leaves that directory."""
    env = {k: v for k, v in rftptest.clean_environment().items() if not k.startswith("MAKE") and k != "MFLAGS"}
    settings = [f"prefix={top}/usr", f"sysconfdir={top}/etc", f"statedir={top}/var/lib/rftpd",
                f"B={os.path.relpath(rftptest.BUILD, rftptest.REPOSITORY)}", "DESTDIR="]
    # the programs are built already; -o keeps make from looking whether they still are up to date
    done = subprocess.run(["make", "-s", "-o", "all", "install", *settings], cwd=rftptest.REPOSITORY, env=env,
                          capture_output=True)
    equal(done.returncode, 0, "make install", done.stderr)
    return f"{top}/usr"


def unit(prefix):
    """{name: [values]} of all sections."""
    found = {}
    with open(f"{prefix}/lib/systemd/system/rftpd.service") as f:
        for line in f:
            if "=" in line and not line.startswith("#"):
                name, _, value = line.strip().partition("=")
                found.setdefault(name, []).append(value)
    return found


def tool(name, *arguments):
    if not shutil.which(name):
        skip(f"no {name} here")
    return subprocess.run([name, *arguments], capture_output=True, timeout=60 * rftptest.PATIENCE)


@case
def what_is_installed_can_be_run(top):
    prefix = installed(top)
    said = unit(prefix)
    words = said["ExecStart"][0].split()
    check(words[0] == f"{prefix}/sbin/rftpd" and f"{top}/etc/rftpd.conf" in words, "ExecStart:", words)
    for path in ("bin/rftp", "share/man/man8/rftpd.8", "lib/sysusers.d/rftpd.conf", "lib/tmpfiles.d/rftpd.conf"):
        check(os.path.exists(f"{prefix}/{path}"), path, "is not installed")
    for where, _, files in os.walk(top):
        for name in files:
            if name.endswith((".conf", ".service", ".example")):
                with open(os.path.join(where, name)) as f:
                    check(not re.search("@[a-z]+@", f.read()), name, "has a place that is not filled in")
    done = subprocess.run([*words, "--listen", "127.0.0.1:0", "-t"], capture_output=True, timeout=20)
    equal(done.returncode, 0, "rftpd -t of the installed configuration", done.stderr)
    # a client must not read the host key, which is in the state directory
    with open(f"{top}/etc/rftpd.conf") as f:
        export = re.search(r"(?m)^export = (.*):rw$", f.read())[1]
    check(export == f"{top}/var/lib/rftpd/export", "the export is", export)
    # a second installation does not touch what the administrator wrote
    with open(f"{top}/etc/rftpd.conf", "a") as f:
        f.write("# mine\n")
    installed(top)
    with open(f"{top}/etc/rftpd.conf") as f:
        check(f.read().endswith("# mine\n"), "the configuration was written over")


@case
def the_unit_lets_rdma_through_and_hides_no_failure(top):
    said = unit(installed(top))
    equal(said.get("PrivateDevices", ["no"]), ["no"], "PrivateDevices")
    allowed = " ".join(said["DeviceAllow"])
    check("char-infiniband_verbs rw" in allowed and "/dev/infiniband/rdma_cm rw" in allowed, allowed)
    check("AF_NETLINK" in said["RestrictAddressFamilies"][0], said["RestrictAddressFamilies"])
    check("landlock_restrict_self" in said["SystemCallFilter"][0], "it may not confine itself:", said["SystemCallFilter"])
    equal(said["LimitMEMLOCK"], ["infinity"], "LimitMEMLOCK")
    equal(said["Type"], ["notify"], "Type")
    check(not any(name.startswith(("Condition", "PIDFile")) for name in said), "unit:", said)
    # without its configuration it fails, with a message
    done = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "--config", f"{top}/missing.conf"],
                          capture_output=True, timeout=20)
    equal(done.returncode, int(said["RestartPreventExitStatus"][0]), "without a configuration")
    check(b"missing.conf: No such file" in done.stderr, done.stderr)


@case
def systemd_finds_nothing_wrong_with_the_unit(top):
    path = f"{installed(top)}/lib/systemd/system/rftpd.service"
    done = tool("systemd-analyze", "verify", "--man=no", path)
    equal((done.returncode, done.stdout + done.stderr), (0, b""), "systemd-analyze verify")
    done = tool("systemd-analyze", "verify", "--man=no", path.replace(".service", ".socket"))
    equal((done.returncode, done.stdout + done.stderr), (0, b""), "systemd-analyze verify of the socket")
    # 0 is as confined as can be, 100 not at all
    done = tool("systemd-analyze", "security", "--offline=true", "--threshold=20", path)
    if b"nrecognized option" in done.stderr:
        skip("this systemd-analyze has no --offline")
    equal(done.returncode, 0, "systemd-analyze security", done.stdout[-300:], done.stderr)


@case
def the_user_and_the_directory_can_be_made(top):
    prefix = installed(top)
    root = f"{top}/root"
    os.makedirs(f"{root}/etc")
    done = tool("systemd-sysusers", f"--root={root}", f"{prefix}/lib/sysusers.d/rftpd.conf")
    equal(done.returncode, 0, "systemd-sysusers", done.stderr)
    with open(f"{root}/etc/passwd") as f:
        check(any(line.startswith("rftpd:") for line in f), "no user rftpd was made")
    if not rftptest.ROOT:
        skip("only root can give a directory to another user")
    done = tool("systemd-tmpfiles", f"--root={root}", "--create", f"{prefix}/lib/tmpfiles.d/rftpd.conf")
    equal(done.returncode, 0, "systemd-tmpfiles", done.stderr)
    check(os.path.isdir(f"{root}{top}/var/lib/rftpd/export"), "no directory was made")


@case
def the_service_manager_is_told(top):
    os.mkdir(f"{top}/export")
    for name in (f"{top}/notify", f"@rftp-test-{os.getpid()}-{rftptest.rng().randrange(1 << 32)}"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.settimeout(20 * rftptest.PATIENCE)
            manager.bind("\0" + name[1:] if name[0] == "@" else name)
            daemon = Daemon(f"{top}/export", env={"NOTIFY_SOCKET": name})
            equal(manager.recv(4096), b"READY=1", "when it serves")
            daemon.process.send_signal(signal.SIGTERM)
            equal(manager.recv(4096), b"STOPPING=1", "when it ends")
            wait_until(lambda: not daemon.alive(), "it ends")
            daemon.stopped = True
    # a manager that is not there is no reason to fail
    daemon = Daemon(f"{top}/export", env={"NOTIFY_SOCKET": f"{top}/nobody"})
    wait_until(lambda: b"nobody" in daemon.stderr(), "it says that it could not tell", 20)  # after it is ready


def handed_over(top, sockets, *arguments):
    """rftpd with these as the service manager hands them over: from descriptor 3 on, to its process."""
    text = "import os, sys\n" \
           "os.environ['LISTEN_PID'] = str(os.getpid())\n" \
           "fds = [int(f) for f in sys.argv[1].split(',')]\n" \
           "spare = [os.dup2(f, 100 + i, inheritable=True) for i, f in enumerate(fds)]\n" \
           "for i, f in enumerate(spare): os.dup2(f, 3 + i, inheritable=True); os.close(f)\n" \
           "os.environ['LISTEN_FDS'] = str(len(fds))\n" \
           "os.execv(sys.argv[2], sys.argv[2:])\n"
    numbers = [s.fileno() for s in sockets]
    process = rftptest.spawn(["python3", "-c", text, ",".join(map(str, numbers)),
                              os.path.join(rftptest.BUILD, "rftpd"), "--export", f"{top}/export:rw", *arguments],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=numbers,
                             env=rftptest.clean_environment({"PATH": os.environ["PATH"]}))
    line = process.stdout.readline().decode()
    check(line.startswith("ready "), "it said", line)
    return process, line.split()[1]


@case
def sockets_of_the_service_manager(top):
    os.mkdir(f"{top}/export")
    rftptest.make_file(f"{top}/f", 100000)
    with socket.create_server(("127.0.0.1", 0)) as ours, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wrong:
        address = f"127.0.0.1:{ours.getsockname()[1]}"
        # one that comes before the daemon waits, and is served
        early = rftptest.start_rftp(f"{top}/f", f"rftp://{address}/early")
        process, ready = handed_over(top, [wrong, ours])
        equal(ready, address, "where it listens")
        equal(rftptest.finish(early).code, 0, "who came before it")
        rftptest.works(f"{top}/f", f"rftp://{address}/f")
        rftptest.same_files(f"{top}/f", f"{top}/export/f")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        result = rftptest.finish(process)
        equal(result.code, 0, "exit code", result)
        check(b"no TCP socket" in result.err and b"listen is another" not in result.err, result.err)
        # and the socket is still there for the next
        process, ready = handed_over(top, [ours], "--listen", "127.0.0.1:0")
        rftptest.works(f"rftp://{address}/f", f"{top}/back")
        process.send_signal(signal.SIGTERM)
        rftptest.finish(process)
    # those of another process are not ours
    daemon = Daemon(f"{top}/export", env={"LISTEN_PID": "1", "LISTEN_FDS": "3"})
    rftptest.works("-c", "ls", daemon.url(""))


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@case
def it_stays_in_the_foreground(top):
    os.mkdir(f"{top}/export")
    for arguments in ([], ["--foreground"]):
        daemon = Daemon(f"{top}/export", "ro", *arguments)
        check(daemon.alive(), "it went into the background", arguments)
        pid = daemon.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            children = [int(child) for child in f.read().split()]
        # the process that looks users up is its child as long as it lives, and ends with it
        check(len(children) <= 1, "children", children)
        daemon.stop()
        wait_until(lambda: not any(runs(child) for child in children), "its children have ended")


rftptest.main()
