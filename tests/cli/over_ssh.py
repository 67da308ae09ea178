#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rftp ssh://: a server for one session, started through a real sshd, and through what is no ssh at all."""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time

import iwarp
import rftptest
from iwarp import Session
from rftptest import (CONNECT, DENIED, NO_FILE, REFUSED, USAGE, case, check, equal, fails, make_file, needs_ipv6, same_files, skip, wait_until,
                      works)

WAIT = 20 * rftptest.PATIENCE
RFTPD = os.path.join(rftptest.BUILD, "rftpd")


def program(name):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        skip(f"no {name} here")
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Sshd:
    """Of its own configuration and keys; its user is who runs this, with another home."""

    def __init__(self, top, address="127.0.0.1"):
        sshd = program("sshd")
        self.host = f"[{address}]" if ":" in address else address
        self.home, self.user = f"{top}/home", pwd.getpwuid(os.geteuid()).pw_name
        os.mkdir(self.home)
        if rftptest.ROOT:
            os.makedirs("/run/sshd", exist_ok=True)  # where sshd leaves its rights behind
        for name in ("host", "user"):
            subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", f"{top}/{name}"], check=True)
        config = f"{top}/sshd_config"
        for _ in range(5):
            self.port = free_port()
            with open(config, "w") as f:
                f.write(f"""Port {self.port}
ListenAddress {address}
HostKey {top}/host
AuthorizedKeysFile {top}/user.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
PidFile none
SetEnv HOME={self.home} XDG_CONFIG_HOME={self.home}/none
""")
            self.log = open(f"{top}/sshd.log", "ab")
            self.process = rftptest.spawn([sshd, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL,
                                          stdout=self.log, stderr=self.log)
            if self.listens():
                break
        with open(f"{top}/known_hosts", "w") as known, open(f"{top}/host.pub") as host:
            known.write(f"[{address}]:{self.port} {host.read()}")
        self.ssh = (f"{program('ssh')} -F /dev/null -i {top}/user -o IdentitiesOnly=yes -o BatchMode=yes -o "
                    f"UserKnownHostsFile={top}/known_hosts")
        done = subprocess.run(f"{self.ssh} -p {self.port} {self.user}@{address} echo '$HOME'", shell=True, capture_output=True,
                              timeout=WAIT)
        if done.stdout.decode().strip() != self.home:
            with open(f"{top}/sshd.log") as f:
                skip(f"sshd does not let {self.user} in here: {done.stderr!r} {f.read()[-600:]!r}")

    def listens(self):
        end = time.monotonic() + WAIT
        while self.process.poll() is None and time.monotonic() < end:
            with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as s:
                if not s.connect_ex((self.host.strip("[]"), self.port)):
                    return True
            time.sleep(0.02)
        return False

    def options(self):
        return "--ssh", self.ssh, "--rftpd-path", RFTPD

    def url(self, path=""):
        return f"ssh://{self.user}@{self.host}:{self.port}/{path}"


def servers():
    """Processes of ours that serve once."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if b"--serve-once" in words and words[0] == os.fsencode(RFTPD):
            found.append(int(pid))
    return found


@case
def through_sshd(top):
    sshd = Sshd(top)
    make_file(f"{top}/file", 300000)
    os.makedirs(f"{top}/tree/sub")
    make_file(f"{top}/tree/sub/a", 5000)
    # a path begins in the home, with another slash at the top
    works(*sshd.options(), f"{top}/file", sshd.url("new"))
    same_files(f"{sshd.home}/new", f"{top}/file")
    works(*sshd.options(), sshd.url("new"), f"{top}/back")
    same_files(f"{top}/back", f"{top}/file")
    works(*sshd.options(), f"{top}/file", sshd.url(f"/{top.lstrip('/')}/abs"))
    same_files(f"{top}/abs", f"{top}/file")
    works(*sshd.options(), "-r", f"{top}/tree", sshd.url())
    same_files(f"{sshd.home}/tree/sub/a", f"{top}/tree/sub/a")
    works(*sshd.options(), "-r", sshd.url("tr*"), f"{top}/trees")
    same_files(f"{top}/trees/tree/sub/a", f"{top}/tree/sub/a")
    works(*sshd.options(), "--protect", "private", sshd.url(f"/{top.lstrip('/')}/file"), f"{top}/back2")
    same_files(f"{top}/back2", f"{top}/file")
    # the shell is in the home, and links of the user's own work
    os.symlink(f"{top}/tree", f"{sshd.home}/link")
    out = works(*sshd.options(), "-c", "pwd; ls link/sub; mkdir d; mv new d/new; rm -r d; status", sshd.url()).out.decode()
    check(f"ssh://{sshd.user}@127.0.0.1:{sshd.port}/{sshd.home}" in out, "pwd:", out)
    check(re.search(rf"(?m)^user +{sshd.user} \(one-time-key\)", out), "status:", out)
    check(not os.path.exists(f"{sshd.home}/d"), "rm -r")
    equal(works(*sshd.options(), "-c", "pwd", sshd.url("tree/sub")).out.decode().strip(),
          f"ssh://{sshd.user}@127.0.0.1:{sshd.port}/{sshd.home}/tree/sub", "a directory in the URL")
    fails(NO_FILE, *sshd.options(), sshd.url("missing"), f"{top}/x")
    wait_until(lambda: not servers(), "the servers end")


@case
def a_tree_is_kept_the_same_in_the_home(top):
    """sync and feed: their paths begin where those of a copy do, also when something is removed."""
    sshd = Sshd(top)
    os.makedirs(f"{top}/tree/sub")
    make_file(f"{top}/tree/sub/a", 5000)
    os.makedirs(f"{sshd.home}/copy/old")
    works(*sshd.options(), "--delete", "sync", f"{top}/tree", sshd.url("copy"))
    same_files(f"{sshd.home}/copy/sub/a", f"{top}/tree/sub/a")
    check(not os.path.exists(f"{sshd.home}/copy/old"), "what is extra stays")
    works(*sshd.options(), "sync", sshd.url("copy"), f"{top}/back")
    same_files(f"{top}/back/sub/a", f"{top}/tree/sub/a")
    works(*sshd.options(), "sync", sshd.url(f"/{top.lstrip('/')}/tree"), f"{top}/back2")
    same_files(f"{top}/back2/sub/a", f"{top}/tree/sub/a")
    works(*sshd.options(), "feed", f"a={top}/tree/sub/a", sshd.url("streams"))
    check(os.listdir(f"{sshd.home}/streams/a"), "no segment of the feed")


@case
def ssh_says_nothing_of_its_own(top):
    """As a script has it: what it reads itself is left to it, and nothing is said of what went well."""
    sshd = Sshd(top)
    make_file(f"{top}/file", 1000)
    script = '"$@" && cat'
    done = subprocess.run(["sh", "-c", script, "sh", os.path.join(rftptest.BUILD, "rftp"), *sshd.options(), f"{top}/file",
                           sshd.url("new")], input=b"for the script\n", capture_output=True, timeout=WAIT,
                          env=rftptest.clean_environment())
    equal((done.returncode, done.stdout, done.stderr), (0, b"for the script\n", b""), "a copy, and what follows")
    same_files(f"{sshd.home}/new", f"{top}/file")
    result = works(*sshd.options(), sshd.url(), input=b"ls\n")
    equal((result.out, result.err), (b"new\n", b""), "commands of a script")


@case
def through_another_host(top):
    """ssh takes the way that its options say; the data goes to where ssh's configuration leads."""
    sshd = Sshd(top)
    make_file(f"{sshd.home}/f", 1000)
    jump = f"{sshd.ssh} -o ProxyCommand='{sshd.ssh} -p {sshd.port} -W %h:%p {sshd.user}@127.0.0.1'"
    works("--ssh", jump, "--rftpd-path", RFTPD, sshd.url("f"), f"{top}/got")
    same_files(f"{top}/got", f"{sshd.home}/f")
    with open(f"{top}/config", "w") as f:
        f.write(f"Host else.where\n Hostname 127.0.0.1\n Port {sshd.port}\n User {sshd.user}\n")
    works("--ssh", sshd.ssh.replace("/dev/null", f"{top}/config"), "--rftpd-path", RFTPD, "ssh://else.where/f", f"{top}/got2")
    same_files(f"{top}/got2", f"{sshd.home}/f")


@case
def by_ipv6(top):
    needs_ipv6()
    sshd = Sshd(top, "::1")
    make_file(f"{top}/file", 1000)
    works(*sshd.options(), f"{top}/file", sshd.url("new"))
    same_files(f"{sshd.home}/new", f"{top}/file")


@case
def a_host_whose_key_has_changed(top):
    """It is ssh that refuses, in its words: no rftpd is started, nothing sent."""
    sshd = Sshd(top)
    make_file(f"{top}/file", 1000)
    subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", f"{top}/other"], check=True)
    with open(f"{top}/known_hosts", "w") as known, open(f"{top}/other.pub") as other:
        known.write(f"[127.0.0.1]:{sshd.port} {other.read()}")
    result = fails(CONNECT, *sshd.options(), f"{top}/file", sshd.url("new"), says="before rftpd listened")
    check(b"REMOTE HOST IDENTIFICATION HAS CHANGED" in result.err, "what ssh says", result)
    check(not os.path.exists(f"{sshd.home}/new") and not servers(), "something was started")
    # nor is anybody let in whose key the host does not know
    with open(f"{top}/known_hosts", "w") as known, open(f"{top}/host.pub") as host:
        known.write(f"[127.0.0.1]:{sshd.port} {host.read()}")
    os.replace(f"{top}/other", f"{top}/user")
    result = fails(CONNECT, *sshd.options(), f"{top}/file", sshd.url("new"), says="before rftpd listened")
    check(b"Permission denied" in result.err, "what ssh says", result)


@case
def what_keeps_it_from_starting(top):
    sshd = Sshd(top)
    fails(CONNECT, "--ssh", sshd.ssh, "--rftpd-path", f"{top}/missing", sshd.url("x"), f"{top}/y", says="is rftpd installed")
    fails(CONNECT, "--ssh", "false", sshd.url("x"), f"{top}/y", says="before rftpd listened")
    fails(CONNECT, "--ssh", "echo rftp-once 2 nonsense #", sshd.url("x"), f"{top}/y", says="another version")
    fails(CONNECT, "--ssh", "yes", sshd.url("x"), f"{top}/y", says="said too much")
    fails((USAGE, CONNECT), *sshd.options(), "ssh://-oProxyCommand=touch$IFS/x/y", f"{top}/y")
    fails(USAGE, *sshd.options(), "doctor", sshd.url())
    # another server on the port that is told, as if somebody stood in between
    other = rftptest.Daemon(sshd.home)
    script = private_script(f"{top}/ssh", f"""#!/bin/sh
for word; do case $word in -G) exit;; esac; done
{RFTPD} --serve-once | sed -u 's/^rftp-once 1 [0-9]*/rftp-once 1 {other.port}/'
""")
    fails(rftptest.UNTRUSTED, "--ssh", script, "ssh://127.0.0.1/x", f"{top}/y", says="not the one that --host-key names")


@case
def names_that_are_commands(top):
    """A URL may be somebody else's: neither ssh nor a shell that its configuration calls takes a name for something else."""
    script = private_script(f"{top}/ssh", f'#!/bin/sh\nprintf "%s\\n" "$@" >>{top}/started\nexit 1\n')

    def tries(url, says):
        fails((USAGE, CONNECT), "--ssh", script, url, f"{top}/y", says=says)
        return os.path.exists(f"{top}/started")
    for host in ("-oProxyCommand=x", "-x", "`x`", "$(x)", "a;x", "a b", "a'", 'a"', "a|x", "a&x", "a\nx", "a\x7f", "a\\x"):
        check(not tries(f"ssh://{host}/x", ""), "ssh is started with the host", host)
        check(not tries(f"ssh://user@{host}/x", ""), "ssh is started with user and the host", host)
    for user in ("-oProxyCommand=x", "%2doProxyCommand%3dx", "%60x%60", "a%0a-oProxyCommand%3dx", "$(x)", "a%20-x", "a;x"):
        check(not tries(f"ssh://{user}@host/x", ""), "ssh is started with the user", user)
    check(tries("ssh://a.user_1%2b2@a-host.example.org/x", "before rftpd listened"), "ssh is not started")
    with open(f"{top}/started") as f:
        equal(f.read().splitlines()[0], "a.user_1+2@a-host.example.org", "whom it is started for")


def private_script(path, text):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o700)
    return path


class Once:
    """rftpd --serve-once by itself"""

    def __init__(self, *arguments, **options):
        self.process = rftptest.spawn([RFTPD, "--serve-once", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=rftptest.clean_environment(options.get("env")))
        line = self.process.stdout.readline().decode()
        match = re.fullmatch(r"rftp-once 1 (\d+) (SHA256:\S{43}) ([0-9a-f]{64}) (\S+)\n", line)
        check(match, "what it says", line)
        self.port, self.fingerprint, self.key = int(match[1]), match[2], bytes.fromhex(match[3])

    def login(self, key=None):
        session = Session(self.port, WAIT)
        session.hello(then_login=False)
        return session, session.ask(iwarp.LOGIN, iwarp.login(iwarp.ONCE, b"", key or self.key))

    def ended(self, what):
        try:
            equal(self.process.wait(WAIT), 0, "exit code,", what)
        except subprocess.TimeoutExpired:
            check(False, "it does not end:", what)


@case
def one_that_is_of_no_use_is_ended(top):
    """The server is there already when a file turns out to be missing, and the shell goes on."""
    sshd = Sshd(top)
    shell = rftptest.start_rftp(*sshd.options(), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    shell.stdin.write(f"set cert {top}/missing\n-open {sshd.url()}\n".encode())
    shell.stdin.flush()
    said = iter(shell.stderr.readline, b"")
    check(any(b"/missing" in line for line in said), "what is wrong is said")
    wait_until(lambda: not servers(), "the server ends while the shell runs")
    check(shell.poll() is None, "the shell runs")
    shell.stdin.close()
    shell.wait()


@case
def it_serves_one_session(top):
    once = Once()
    wrong, (status, _) = once.login(bytes(32))
    equal(status, 110, "a wrong key")
    for method, user, data in ((iwarp.ANONYMOUS, b"", b""), (iwarp.PASSWORD, b"root", b"x")):
        equal(wrong.ask(iwarp.LOGIN, iwarp.login(method, user, data))[0], 110, "another method")
    session, (status, reply) = once.login()
    equal(status, 0, "the key")
    check(os.path.join(rftptest.state(), "home").encode() in reply or b"/" in reply, "its home", reply)
    equal(wrong.ask(iwarp.LOGIN, iwarp.login(iwarp.ONCE, b"", once.key))[0], 110, "the key once more")
    second, (status, _) = once.login()
    equal(status, 110, "the key a third time")
    equal(session.ask(iwarp.STAT, iwarp.text(b"/"))[0], 0, "STAT")
    session.close()
    once.ended("its session has")
    wrong.close()
    second.close()


@case
def it_ends_with_its_input(top):
    once = Once()
    once.process.stdin.close()
    once.ended("its input has")
    once = Once()
    session, (status, _) = once.login()
    equal(status, 0, "the key")
    once.process.stdin.close()
    once.ended("its input has, in a session")
    session.close()
    # a client that is killed takes it along
    sshd = Sshd(top)
    make_file(f"{top}/large", 64 << 20)
    client = rftptest.start_rftp(*sshd.options(), "--channels", "1", "-", sshd.url("large"), stdin=subprocess.PIPE)
    wait_until(servers, "a server")
    client.stdin.write(bytes(1 << 20))
    rftptest.kill(client, signal.SIGKILL)
    client.wait()
    wait_until(lambda: not servers(), "it ends, too")


@case
def what_does_not_go_with_it(top):
    for arguments in (["--export", top], ["--listen", "127.0.0.1:0"], ["--users", f"{top}/users"]):
        done = subprocess.run([RFTPD, "--serve-once", *arguments], stdin=subprocess.PIPE, capture_output=True, timeout=WAIT,
                              env=rftptest.clean_environment())
        equal(done.returncode, 2, "exit code with", arguments)
        check(b"--serve-once goes without" in done.stderr, "message", done.stderr)


@case
def only_what_its_user_may(top):
    """Its rights are those of who started it."""
    if not rftptest.ROOT:
        skip("needs root, to be somebody else")
    os.chmod(top, 0o755)
    os.mkdir(f"{top}/closed", 0o700)
    make_file(f"{top}/closed/f", 10)
    home = f"{top}/nobody"
    os.mkdir(home)
    os.chown(home, rftptest.NOBODY, rftptest.NOBODY)
    script = private_script(f"{top}/ssh", f"""#!/bin/sh
for word; do case $word in -G) exit;; esac; done
exec setpriv --reuid {rftptest.NOBODY} --regid {rftptest.NOBODY} --clear-groups env HOME={home} {RFTPD} --serve-once
""")
    if not shutil.which("setpriv"):
        skip("no setpriv here")
    works("--ssh", script, f"{top}/ssh", "ssh://127.0.0.1/mine")
    equal(os.stat(f"{home}/mine").st_uid, rftptest.NOBODY, "whose it is")
    fails(DENIED, "--ssh", script, f"ssh://127.0.0.1/{top}/closed/f", f"{top}/got")
    fails(DENIED, "--ssh", script, f"{top}/ssh", f"ssh://127.0.0.1/{top}/new")


rftptest.main()
