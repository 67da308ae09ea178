#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Users of the host: their passwords are PAM's business, their files are opened as they may open them, and rftpd is
not root.  Needs root, and makes users that go again."""

import ctypes
import glob
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import time

import iwarp
import rftptest
from iwarp import Session
from rftptest import DENIED, Daemon, case, check, equal, fails, make_file, same_files, skip, wait_until, works

PASSWORD = "correct horse"
CLONE_NEWNS = 0x20000
HASH = "$y$jCT$abcdefgh$qmTXjUo8J.WswSVjZ2vHR6VpkRVFef7orQfRYFgRJ1A"  # takes 128 MiB


def own_etc(top):
    """From here on /etc is a copy, of this process and what it starts alone.  A daemon of another test, which
    is confined, would know no user any more once /etc/passwd is another file."""
    if own_etc.done:
        return
    own_etc.done = True
    if ctypes.CDLL(None).unshare(CLONE_NEWNS):
        return
    os.mkdir(f"{top}/etc")
    for command in (["mount", "--make-rprivate", "/"], ["mount", "-t", "tmpfs", "etc", f"{top}/etc"],
                    ["cp", "-a", "/etc/.", f"{top}/etc"], ["mount", "--bind", f"{top}/etc", "/etc"],
                    ["umount", f"{top}/etc"]):
        if subprocess.run(command, capture_output=True).returncode:
            return  # not allowed here: it is the host's own, then
    os.rmdir(f"{top}/etc")


own_etc.done = False


class Users:
    """Two users of the host, and one for the daemon, all of this process alone."""

    def __init__(self, top):
        for tool in ("useradd", "userdel", "chpasswd"):
            if not rftptest.ROOT or not shutil.which(tool):
                skip(f"only root, and with {tool}")
        if not os.path.exists("/lib/x86_64-linux-gnu/security/pam_unix.so") and \
                not shutil.which("pam-auth-update") and not os.path.exists("/lib/security/pam_unix.so"):
            skip("no pam_unix")
        own_etc(top)
        self.names = [f"rftp-{what}-{os.getpid()}" for what in ("ann", "bob", "run")]
        for name in self.names:
            done = subprocess.run(["useradd", "-M", "-N", "-s", "/usr/sbin/nologin", name], capture_output=True)
            if done.returncode:
                self.close()
                skip(f"no user can be made: {done.stderr.decode()}")
        self.ann, self.bob, self.run = self.names
        subprocess.run(["chpasswd"], input=f"{self.ann}:{PASSWORD}\n{self.bob}:{PASSWORD}2\n".encode(), check=True)
        self.service = f"{top}/pam/rftp-test"
        os.makedirs(f"{top}/pam", exist_ok=True)
        with open(self.service, "w") as f:
            f.write("auth required pam_unix.so nodelay\naccount required pam_unix.so\n")
        for name, text in (("right", PASSWORD), ("wrong", "no"), ("bobs", PASSWORD + "2")):
            with open(f"{top}/{name}", "w") as f:
                f.write(text + "\n")
            os.chmod(f"{top}/{name}", 0o600)

    def uid(self, name):
        return pwd.getpwnam(name).pw_uid

    def close(self):
        for name in self.names:
            subprocess.run(["userdel", name], capture_output=True)


def served(top, users, *arguments, **options):
    for name in (users.ann, users.bob):
        os.makedirs(f"{top}/export/{name}", exist_ok=True)
        os.chown(f"{top}/export/{name}", users.uid(name), -1)
        os.chmod(f"{top}/export/{name}", 0o700)
    os.makedirs(f"{top}/state", exist_ok=True)
    os.chown(f"{top}/state", users.uid(users.run), -1)
    return Daemon(f"{top}/export", command=[
        "--listen", "127.0.0.1:0", "--export", f"{top}/export:rw", "--system-users", "--pam-service", users.service,
        "--user", users.run, "--xferlog", f"{top}/state/xferlog", *arguments], env={"STATE_DIRECTORY": f"{top}/state"}, **options)


def url(daemon, user, path=""):
    return f"rftp://{user}@127.0.0.1:{daemon.port}/{path}"


def mine(top):
    return "--password-file", f"{top}/right"


def owners(top):
    return {os.lstat(os.path.join(where, name)).st_uid for where, names, files in os.walk(top)
            for name in names + files}


@case(seconds=90)
def files_are_the_users(top):
    users = Users(top)
    try:
        daemon = served(top, users)
        pid = daemon.process.pid
        equal(os.stat(f"/proc/{pid}").st_uid, users.uid(users.run), "as whom rftpd runs")
        with open(f"/proc/{pid}/status") as f:
            text = f.read()
        equal(set(re.search(r"(?m)^Uid:\s(.*)$", text)[1].split()), {str(users.uid(users.run))}, "its user ids")
        home = daemon.path(users.ann)
        make_file(f"{top}/f", 300000)
        os.makedirs(f"{top}/tree/d")
        make_file(f"{top}/tree/d/g", 5000, mode=0o640)
        for i in range(40):
            make_file(f"{top}/tree/d/small-{i}", 100 + i)
        os.symlink("d/g", f"{top}/tree/link")
        where = users.ann
        works(*mine(top), f"{top}/f", url(daemon, users.ann, f"{where}/f"))
        works(*mine(top), "-r", f"{top}/tree", url(daemon, users.ann, f"{where}/"))
        works(*mine(top), "-c", f"mkdir -p {where}/a/b; mv {where}/f {where}/a/f; ls -l {where}; stat {where}/a/f; "
              f"ls -lR {where}", url(daemon, users.ann))
        works(*mine(top), "feed", "--segment", "64K", f"x={top}/f", url(daemon, users.ann, f"{where}/feed"))
        same_files(f"{top}/f", f"{home}/a/f")
        equal(owners(home), {users.uid(users.ann)}, "whose the files are")
        equal(os.stat(f"{home}/tree/d/g").st_mode & 0o777, 0o640, "its mode")
        equal(os.readlink(f"{home}/tree/link"), "d/g", "the link")
        os.chmod(f"{home}/a/f", 0o600)
        works(*mine(top), url(daemon, users.ann, f"{where}/a/f"), f"{top}/got")
        works(*mine(top), "-r", url(daemon, users.ann, f"{where}/tree"), f"{top}/back")
        same_files(f"{top}/f", f"{top}/got")
        equal(rftptest.tree(f"{top}/back/tree"), rftptest.tree(f"{top}/tree"), "the tree that came back")
        # a directory that keeps its owner out, into which a copy of a tree goes all the same
        os.chmod(f"{home}/tree/d", 0o500)
        make_file(f"{top}/tree/d/later", 77)
        works(*mine(top), "-r", f"{top}/tree", url(daemon, users.ann, f"{where}/"))
        same_files(f"{top}/tree/d/later", f"{home}/tree/d/later")
        works(*mine(top), "-c", f"chmod 0 {where}/a/f; touch -d @7 {where}/a/f; ln -s f {where}/a/l; touch {where}/new; "
              f"chmod -R u+rwX,go= {where}/tree", url(daemon, users.ann))
        st = os.stat(f"{home}/a/f")
        equal((st.st_mode & 0o7777, st.st_mtime), (0, 7), "mode and time of a file that its owner cannot read")
        equal(owners(home), {users.uid(users.ann)}, "whose the link and the new file are")
        equal(os.stat(f"{home}/tree/d/g").st_mode & 0o7777, 0o600, "a mode beneath -R")
        works(*mine(top), "-c", f"rm {where}/new", url(daemon, users.ann))
        works(*mine(top), "-c", f"rm -r {where}/a {where}/tree; rm -r {where}/feed", url(daemon, users.ann))
        equal(os.listdir(home), [], "what is left")
        # nobody else's, though the daemon is the same
        with open(daemon.path(f"{users.bob}/secret"), "w") as f:
            f.write("bob's")
        os.chown(daemon.path(f"{users.bob}/secret"), users.uid(users.bob), -1)
        for arguments in ((url(daemon, users.ann, f"{users.bob}/secret"), f"{top}/no"),
                          (f"{top}/f", url(daemon, users.ann, f"{users.bob}/f")),
                          ("-c", f"ls {users.bob}", url(daemon, users.ann)),
                          ("-c", f"rm {users.bob}/secret", url(daemon, users.ann)),
                          ("-c", f"chmod 777 {users.bob}", url(daemon, users.ann)),
                          ("-c", f"touch {users.bob}/secret", url(daemon, users.ann)),
                          ("-c", f"ln -s x {users.bob}/l", url(daemon, users.ann)),
                          ("sum", url(daemon, users.ann, f"{users.bob}/secret")),
                          ("-c", f"mv {users.bob}/secret {where}/", url(daemon, users.ann)),
                          ("-c", f"mkdir {users.bob}/d", url(daemon, users.ann)),
                          (f"{top}/f", url(daemon, users.ann, "top"))):
            fails(DENIED, *mine(top), *arguments)
        works("--password-file", f"{top}/bobs", url(daemon, users.bob, f"{users.bob}/secret"), f"{top}/secret")
        works("--password-file", f"{top}/bobs", "cmp", url(daemon, users.bob, f"{users.bob}/secret"), f"{top}/secret")
        equal(sorted(os.listdir(daemon.path(users.bob))), ["secret"], "what bob has")
        with open(f"{top}/state/xferlog") as f:
            equal({tuple(line.split()[12:14]) for line in f if line.split()[8].endswith("/secret")
                   and line.split()[17] == "c"}, {("r", users.bob)}, "the user in the xferlog")
        daemon.stop()
    finally:
        rftptest.kill_all()
        users.close()


def lists(path):
    return subprocess.run(["getfacl", "-n", "-c", path], capture_output=True, check=True).stdout


@case(seconds=90)
def access_control_lists_are_kept(top):
    if not shutil.which("setfacl") or subprocess.run(["setfacl", "-m", "u:1:r", top], capture_output=True).returncode:
        skip("no access control lists here")
    subprocess.run(["setfacl", "-b", top], check=True)
    users = Users(top)
    try:
        daemon = served(top, users)
        home, where = daemon.path(users.ann), users.ann
        os.makedirs(f"{top}/tree/d")
        make_file(f"{top}/tree/d/f", 300000)
        make_file(f"{top}/tree/small", 10)
        for options, path in ((("-m", "u:7:rw,g:3:r,u:2:x,g:1:-"), "d/f"), (("-m", "u:1:r"), "small"),
                              (("-m", "u:5:rx"), "d"), (("-d", "-m", "u:6:rwx,g::r"), "d")):
            subprocess.run(["setfacl", *options, f"{top}/tree/{path}"], check=True)
        result = works(*mine(top), "-r", "-A", f"{top}/tree", url(daemon, users.ann, f"{where}/"))
        equal(result.err, b"", "nothing is lost")
        for path in ("d", "d/f", "small"):
            equal(lists(f"{home}/tree/{path}"), lists(f"{top}/tree/{path}"), path)
        equal(owners(home), {users.uid(users.ann)}, "whose the files are")
        # and back, and away
        works(*mine(top), "-r", "-A", url(daemon, users.ann, f"{where}/tree"), f"{top}/back")
        for path in ("d", "d/f", "small"):
            equal(lists(f"{top}/back/tree/{path}"), lists(f"{top}/tree/{path}"), path)
        subprocess.run(["setfacl", "-R", "-b", f"{top}/tree"], check=True)
        works(*mine(top), "-r", "-A", f"{top}/tree", url(daemon, users.ann, f"{where}/"))
        for path in ("d", "d/f", "small"):
            equal(lists(f"{home}/tree/{path}"), lists(f"{top}/tree/{path}"), path)
        daemon.stop()
    finally:
        rftptest.kill_all()
        users.close()


class Elsewhere:
    """A host where a user and a group of this one have other numbers."""

    def __init__(self, top, name, number):
        self.files = []
        for path in ("/etc/passwd", "/etc/group"):
            with open(path) as f:
                lines = [line.split(":") for line in f.read().splitlines()]
            for line in lines:
                if line[0] == name:
                    line[2] = str(number)
            self.files.append(f"{top}/{os.path.basename(path)}-elsewhere")
            with open(self.files[-1], "w") as f:
                f.writelines(":".join(line) + "\n" for line in lines)

    def works(self, *arguments):
        mount = 'mount --bind "$1" /etc/passwd && mount --bind "$2" /etc/group && shift 2 && exec "$@"'
        result = rftptest.finish(rftptest.spawn(
            ["unshare", "--mount", "sh", "-c", mount, "sh", *self.files, *rftptest.client_command(arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=rftptest.clean_environment()))
        equal(result.code, 0, "exit code elsewhere", result)


@case(seconds=90)
def users_made_later(top):
    """The daemon knows them, though it is confined: owners and lists have the numbers of who has the name."""
    users = Users(top)
    late = f"rftp-late-{os.getpid()}"
    try:
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
            skip("no mount namespace can be made")
        os.makedirs(f"{top}/roots")
        roots = Daemon(f"{top}/roots", "rw")
        theirs = served(top, users)
        # what was not known is not remembered
        make_file(f"{top}/before", 10)
        os.chown(f"{top}/before", 71001, 71001)
        works("-a", f"{top}/before", roots.url("before"))
        equal(os.stat(roots.path("before")).st_uid, 71001, "the number of nobody")
        users.names.append(late)
        subprocess.run(["useradd", "-M", "-U", "-s", "/usr/sbin/nologin", late], check=True, capture_output=True)
        uid, gid = pwd.getpwnam(late).pw_uid, pwd.getpwnam(late).pw_gid
        elsewhere = Elsewhere(top, late, 71001)
        make_file(f"{top}/file", 300000)
        os.chown(f"{top}/file", 71001, 71001)
        lists = shutil.which("setfacl") and not subprocess.run(
            ["setfacl", "-m", "u:71001:r,g:71001:r", f"{top}/file"], capture_output=True).returncode
        elsewhere.works("-a", *(["-A"] if lists else []), f"{top}/file", roots.url("file"))
        st = os.stat(roots.path("file"))
        equal((st.st_uid, st.st_gid), (uid, gid), "whose the file is here")
        if lists:
            text = subprocess.run(["getfacl", "-n", "-c", roots.path("file")], capture_output=True, check=True).stdout
            check(f"user:{uid}:r".encode() in text and f"group:{gid}:r".encode() in text, "the list here", text)
        # and back, from this daemon and from one that serves users of the host
        shutil.copy(f"{top}/file", theirs.path("file"))
        os.chown(theirs.path("file"), uid, gid)
        os.chmod(theirs.path("file"), 0o644)
        for i, (daemon, url_, more) in enumerate(((roots, roots.url("file"), ()),
                                                  (theirs, url(theirs, users.ann, "file"), mine(top)))):
            elsewhere.works(*more, "-a", url_, f"{top}/back{i}")
            st = os.stat(f"{top}/back{i}")
            equal((st.st_uid, st.st_gid), (71001, 71001), "whose it is elsewhere")
            same_files(f"{top}/file", f"{top}/back{i}")
        # who is made later logs in
        subprocess.run(["chpasswd"], input=f"{late}:{PASSWORD}\n".encode(), check=True)
        works(*mine(top), "-c", "ls", url(theirs, late))
        roots.stop()
        theirs.stop()
    finally:
        rftptest.kill_all()
        users.close()


@case(seconds=90)
def the_priority_of_a_session(top):
    """A guess has little of the CPU, and who is let in what the daemon has, also where nothing may be taken back."""
    users = Users(top)
    try:
        os.mkdir(f"{top}/build")
        with open(f"{top}/build/rftpd", "w") as f:
            f.write(f'#!/bin/sh\nexec setpriv --bounding-set=-sys_nice "{os.path.abspath(rftptest.BUILD)}/rftpd" "$@"\n')
        os.chmod(f"{top}/build/rftpd", 0o755)
        for options in ({}, {"build": f"{top}/build"}):
            if options and not shutil.which("setpriv"):
                continue
            daemon = served(top, users, **options)
            client = rftptest.start_rftp(*mine(top), "-b", "-", url(daemon, users.ann), stdin=-1)
            client.stdin.write(b"ls\n")
            client.stdin.flush()

            def sessions():
                found = []
                for pid in os.listdir("/proc"):
                    try:
                        if os.stat(f"/proc/{pid}").st_uid == users.uid(users.ann):
                            found.append(os.getpriority(os.PRIO_PROCESS, int(pid)))
                    except (OSError, ValueError):
                        pass
                return found
            wait_until(sessions, "a process of the user's")
            equal(sessions(), [os.getpriority(os.PRIO_PROCESS, daemon.process.pid)], "its priority", options)
            equal(rftptest.finish(client).code, 0, "the session")
            daemon.stop()
            wait_until(lambda: not sessions(), "it ends")
    finally:
        rftptest.kill_all()
        users.close()


@case(seconds=90)
def who_is_let_in(top):
    users = Users(top)
    try:
        daemon = served(top, users)
        for who, password in ((users.ann, "wrong"), (users.bob, "right"), ("nobody-of-the-name", "right"),
                              ("root", "right"), ("../ann", "right")):
            result = rftptest.rftp("--password-file", f"{top}/{password}", "-c", "ls", url(daemon, who))
            check(result.code != 0, who, "is let in with", password, result)
        fails(rftptest.REFUSED, "-c", "ls", daemon.url())  # anonymous
        works(*mine(top), "-c", "ls", url(daemon, users.ann))
        # a right password, of a user whom PAM does not let in
        if shutil.which("chage"):
            for options, says in ((("-E", "1"), b"expired"), (("-E", "-1", "-d", "0"), b"new one required")):
                subprocess.run(["chage", *options, users.ann], check=True)
                before = len(daemon.stderr())
                fails(rftptest.REFUSED, *mine(top), "-c", "ls", url(daemon, users.ann))
                wait_until(lambda says=says, before=before: says in daemon.stderr()[before:],
                           lambda: f"why: {daemon.stderr()}")
            subprocess.run(["chage", "-d", "20000", users.ann], check=True)
            works(*mine(top), "-c", "ls", url(daemon, users.ann))

        def processes():
            """Of the monitor: who else is there for sessions."""
            found = []
            for pid in os.listdir("/proc"):
                try:
                    with open(f"/proc/{pid}/stat") as f:
                        name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
                    if name == "rftpd-monitor":
                        found.append((int(pid), int(rest.split()[1]), os.stat(f"/proc/{pid}").st_uid))
                except (OSError, IndexError):
                    pass
            monitors = [p for p, parent, _ in found if parent == daemon.process.pid]
            check(len(monitors) == 1 or not daemon.alive(), "monitors", found)
            return [f for f in found if f[1] in monitors], monitors
        wait_until(lambda: not processes()[0], lambda: f"those of sessions that ended are gone: {processes()}")
        monitor = processes()[1][0]
        # one that is there is of the user, and ends with its session
        client = rftptest.start_rftp(*mine(top), "-b", "-", url(daemon, users.ann), stdin=-1)
        client.stdin.write(b"ls\n")
        client.stdin.flush()
        wait_until(lambda: [uid for _, _, uid in processes()[0]] == [users.uid(users.ann)],
                   lambda: f"a process of the user's for the session: {processes()}")
        pid = processes()[0][0][0]
        with open(f"/proc/{pid}/status") as f:
            text = f.read()
        equal(set(re.search(r"(?m)^Uid:\s(.*)$", text)[1].split()), {str(users.uid(users.ann))}, "its user ids")
        equal(re.search(r"(?m)^NoNewPrivs:\s(.*)$", text)[1], "1", "NoNewPrivs")
        rftptest.kill(client)
        wait_until(lambda: not processes()[0], "it ends with its session")
        # who is there stays when the monitor is killed, and nobody else comes in, which is said
        client = rftptest.start_rftp(*mine(top), "-b", "-", url(daemon, users.ann), stdin=-1)
        client.stdin.write(b"ls\n")
        client.stdin.flush()
        wait_until(lambda: processes()[0], "a process of the user's")
        os.kill(monitor, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{monitor}/fd/0"), "it has gone")
        client.stdin.write(f"ls {users.ann}\n".encode())
        equal(rftptest.finish(client).code, 0, "the session that was there")
        fails(rftptest.REFUSED, *mine(top), "-c", "ls", url(daemon, users.ann))
        check(b"the monitor has ended: no user of the host can log in until a new start" in daemon.stderr(), daemon.stderr())
        daemon.stop()
        # and all ends with the daemon, however that ends
        daemon = served(top, users)
        works(*mine(top), "-c", "ls", url(daemon, users.ann))
        monitor = processes()[1][0]
        daemon.kill()
        wait_until(lambda: not os.path.exists(f"/proc/{monitor}"), "the monitor ends")
    finally:
        rftptest.kill_all()
        users.close()


@case
def a_refusal_says_nothing(top):
    """Who is a user of the host, who of the file, and who of neither."""
    users = Users(top)
    try:
        path = f"{top}/state/passwords"
        os.makedirs(f"{top}/state")
        subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "passwd", "carol", "--users", path], input=b"x\n", check=True,
                       capture_output=True)
        os.chown(path, users.uid(users.run), -1)
        daemon = served(top, users, "--users", path)
        seen = []
        for user in (users.ann, "carol", "root", "nobody-of-the-name"):
            session = Session(daemon.port, 20 * rftptest.PATIENCE)
            session.hello(then_login=False)
            began = time.monotonic()
            seen.append(session.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, user.encode(), b"wrong")))
            took = time.monotonic() - began
            check(took > 0.9, "too fast to be held back:", user, took)
            session.close()
        equal(len(set(seen)), 1, "answers", seen)
        log = daemon.stderr()
        check(b"login as carol refused (password): the password is wrong" in log, "the log", log)
        daemon.stop()
    finally:
        rftptest.kill_all()
        users.close()


@case(seconds=180)
def few_passwords_of_the_file_are_hashed_at_once(top):
    """Also where users of the host, who wait for PAM, may be many: a hash takes memory and CPU."""
    threads = (len(os.sched_getaffinity(0)) + 1) // 2
    if threads > 8:
        skip("so many CPUs would take too much memory")
    users = Users(top)
    try:
        with open(f"{top}/file", "w") as f:
            f.write(f"carol:{HASH}\n")
        os.chmod(f"{top}/file", 0o600)
        os.chown(f"{top}/file", users.uid(users.run), -1)
        daemon = served(top, users, "--users", f"{top}/file")
        works(*mine(top), "-c", "ls", url(daemon, users.ann))
        before = daemon.peak_bytes()
        with open(f"{top}/sesame", "w") as f:
            f.write("sesame\n")
        os.chmod(f"{top}/sesame", 0o600)
        clients = [rftptest.start_rftp("--connect-timeout", "120", "--password-file", f"{top}/sesame", "-c", "ls",
                                       url(daemon, "carol")) for _ in range(threads + 7)]
        for client in clients:
            equal(rftptest.finish(client).code, 0, "a login")
        most = (daemon.peak_bytes() - before) >> 20
        check(most > 100, "one hash takes memory:", most, "MiB")
        check(most < 128 * threads + 100, "hashes of", threads, "threads take", most, "MiB")
        # and both kinds of users are let in still
        works(*mine(top), "-c", "ls", url(daemon, users.ann))
        daemon.stop()
    finally:
        rftptest.kill_all()
        users.close()


@case(seconds=180)
def slow_passwords_hold_up_nobody(top):
    """Who waits for PAM waits alone; a delay that its modules ask for is the daemon's business; it knows from where."""
    users = Users(top)
    try:
        if not glob.glob("/lib/*/security/pam_exec.so") or not glob.glob("/lib/*/security/pam_faildelay.so"):
            skip("no pam_exec, or no pam_faildelay")
        gate, seen, script = f"{top}/gate", f"{top}/seen", f"{top}/script"
        with open(script, "w") as f:
            f.write(f'#!/bin/sh\n[ "$PAM_USER" = {users.bob} ] || exit 0\necho "$PAM_RHOST" >{seen}.$$\n'
                    f'while [ -e {gate} ]; do sleep 0.05; done\n')
        os.chmod(script, 0o755)
        with open(users.service, "w") as f:
            f.write(f"auth requisite pam_exec.so quiet {script}\nauth optional pam_faildelay.so delay=50000000\n"
                    "auth required pam_unix.so\naccount required pam_unix.so\n")
        open(gate, "w").close()
        daemon = served(top, users)
        slow = [rftptest.start_rftp("--connect-timeout", "120", "--password-file", f"{top}/wrong", "-c", "ls",
                                    url(daemon, users.bob)) for _ in range(6)]
        wait_until(lambda: len(glob.glob(f"{seen}.*")) == len(slow), "all of them wait for PAM at once")
        works(*mine(top), "-c", "ls", url(daemon, users.ann))
        start = time.monotonic()
        os.unlink(gate)
        for client in slow:
            equal(rftptest.finish(client).code, rftptest.REFUSED, "a wrong password")
        check(time.monotonic() - start < 25 * rftptest.PATIENCE, "a refusal took", time.monotonic() - start, "s")
        for name in glob.glob(f"{seen}.*"):
            with open(name) as f:
                equal(f.read(), "127.0.0.1\n", "from where, as PAM has it")
        daemon.stop()
    finally:
        rftptest.kill_all()
        users.close()


@case(seconds=90)
def a_broken_line_of_the_file(top):
    """Who has a line in the file of users is that user, also where it says nothing: PAM is not asked."""
    users = Users(top)
    try:
        path = f"{top}/file"

        def write(text):
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o600)
            os.chown(path, users.uid(users.run), -1)

        write("")
        daemon = served(top, users, "--users", path)
        login = ("--password-file", f"{top}/bobs", "-c", "ls", url(daemon, users.bob))
        works(*login)
        for line in ("{}:", "{}", "{}:" + 384 * "x", " {}:" + HASH, "{}:" + HASH + ":19000:0:99999:7:::"):
            write(f"{users.ann}:{HASH}\n{line.format(users.bob)}\n")
            fails(rftptest.REFUSED, *login)
        equal(daemon.stderr().count(b"line 2 is not USER:HASH"), 5, daemon.stderr())
        write(f"{users.ann}:{HASH}\n#{users.bob}:\n")
        works(*login)
        daemon.stop()
    finally:
        rftptest.kill_all()
        users.close()


@case(seconds=90)
def the_name_that_the_login_ended_with(top):
    """PAM's modules may know the user by another name than the client gave: that one counts, for limits too."""
    module = os.path.join(os.path.abspath(rftptest.BUILD), "tests/preload/pam_small.so")
    if rftptest.SANITIZED or not os.path.exists(module):
        skip("tests/preload is not built, or not for sanitizers")
    users = Users(top)
    try:
        with open(users.service, "w") as f:
            f.write(f"auth required {module}\nauth required pam_unix.so nodelay\naccount required pam_unix.so\n")
        with open(f"{top}/file", "w") as f:
            f.write(f"{users.bob}:{HASH}\n")
        os.chmod(f"{top}/file", 0o600)
        os.chown(f"{top}/file", users.uid(users.run), -1)
        daemon = served(top, users, "--limit", "user=* sessions=1", "--users", f"{top}/file", "--audit-log",
                        f"{top}/state/audit")
        make_file(f"{top}/f", 1000)
        works(*mine(top), f"{top}/f", url(daemon, users.ann.upper(), f"{users.ann}/f"))
        equal(owners(daemon.path(users.ann)), {users.uid(users.ann)}, "whose the file is")
        first = rftptest.start_rftp(*mine(top), "-b", "-", url(daemon, users.ann.upper()), stdin=-1)
        first.stdin.write(b"ls\n")
        first.stdin.flush()
        first.stdout.readline()
        for name in (users.ann, users.ann.upper(), users.ann.title()):
            fails(rftptest.CONNECT, *mine(top), "-c", "ls", url(daemon, name), says="as many sessions")
        equal(rftptest.finish(first).code, 0, "the session")
        # who has a line in the file is not to be had by another spelling of the name
        fails(rftptest.REFUSED, "--password-file", f"{top}/bobs", "-c", "ls", url(daemon, users.bob.upper()))
        check(b"one of the file" in daemon.stderr(), daemon.stderr())
        with open(f"{top}/state/audit") as f:
            names = {e["user"] for e in map(json.loads, f) if e["event"] == "login" and e["status"] == "ok"}
        equal(names, {users.ann}, "the name in the audit log")
        daemon.stop()
    finally:
        rftptest.kill_all()
        users.close()


@case
def what_it_needs(top):
    def refused(*arguments, user=None, says):
        done = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "--listen", "127.0.0.1:0", "--export", top,
                               "--system-users", *arguments], capture_output=True, timeout=20,
                              env=rftptest.clean_environment(), **({"user": user} if user else {}))
        equal(done.returncode, 2, "exit code", done.stderr)
        check(says in done.stderr, says, done.stderr)
    if rftptest.ROOT:
        refused("--user", "no-user-of-this-name", says=b"no such user")
        refused("--user", "root", says=b"root")
        refused(user=rftptest.NOBODY, says=b"only root")
    else:
        refused(says=b"only root")


if __name__ == "__main__":
    rftptest.main()
