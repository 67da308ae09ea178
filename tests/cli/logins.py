#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logins and exports: who is let in and who is not, by which method, to see and change what."""

import base64
import json
import os
import pwd
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import iwarp
import rftptest
from iwarp import Dropped, Session
from rogue import Rogue
from rftptest import (DENIED, KIND, NO_FILE, REFUSED, USAGE, Daemon, case, check, equal, fails, make_file, needs, wait_until,
                      works)

WAIT = 20 * rftptest.PATIENCE
STATUS_LOGIN = 110


def passwd(*arguments, password=None):
    """rftpd passwd, with a password on its standard input"""
    return subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "passwd", *arguments], capture_output=True,
                          input=password, env=rftptest.clean_environment(), timeout=20 * rftptest.PATIENCE)


def users(top, **passwords):
    path = f"{top}/users"
    for user, password in passwords.items():
        done = passwd(user, "--users", path, password=password.encode() + b"\n")
        equal(done.returncode, 0, "passwd", done.stderr)
    return path


def private(path, text, mode=0o600):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def served(top, *arguments, mode="rw", **passwords):
    os.makedirs(f"{top}/export/d", exist_ok=True)
    make_file(f"{top}/export/f", 3000)
    return Daemon(f"{top}/export", mode, "--users", users(top, **passwords), *arguments)


def url(daemon, user, path=""):
    return daemon.url(path).replace("rftp://", f"rftp://{user}@")


def status(daemon, user=None, *arguments):
    """What `status` says after a login."""
    return works("--json", *arguments, "-c", "status", url(daemon, user) if user else daemon.url()).events()[-1]


# ---- passwords ----

@case
def a_file_of_users_that_is_not_there(top):
    os.makedirs(f"{top}/export")
    try:
        Daemon(f"{top}/export", "rw", "--users", f"{top}/users")
    except rftptest.NotReady as e:
        check(b"/users: No such file or directory (`rftpd passwd USER --users FILE` makes it)" in e.said, e.said)
    else:
        raise rftptest.Failure("the daemon runs without its users")


@case
def a_password(top):
    daemon = served(top, alice="sesame")
    right, wrong = private(f"{top}/right", "sesame\n"), private(f"{top}/wrong", "sesam\n")
    said = status(daemon, "alice", "--password-file", right)
    equal((said["user"], said["method"], said["read_only"]), ("alice", "password", False), "the session")
    works("--password-file", right, "-c", f"put {top}/export/f new; rm new", url(daemon, "alice"))
    works("--password-file", right, "--user", "alice", "-c", "ls", daemon.url())
    works("--password-command", f"cat {right}", "-c", "ls", url(daemon, "alice"))
    for arguments in (("--password-file", wrong), ("--password-command", f"cat {wrong}")):
        fails(REFUSED, *arguments, "-c", "ls", url(daemon, "alice"), says="login as alice is refused (tried: password)")
    fails(REFUSED, "--password-file", right, "-c", "ls", url(daemon, "bob"), says="login as bob is refused")
    # who shows nothing is no longer let in
    fails(REFUSED, "-c", "ls", daemon.url(), says="name a user")
    fails(USAGE, "-c", "ls", url(daemon, "alice:sesame"), says="a password does not belong into a URL")
    log = daemon.stderr()
    check(b"login as alice refused (password): the password is wrong" in log, "the log", log)
    check(b"login as bob refused (password): there is no such user" in log, "the log", log)
    check(b"sesam" not in log, "a password in the log", log)


@case
def a_line_that_is_broken(top):
    """It is said when the file is taken and at each login, and lets in nobody."""
    right = private(f"{top}/right", "sesame\n")
    daemon = served(top, alice="sesame", bob="sesame")
    for line in ("bob:", "bob", "bob :x", "bob:" + 384 * "x"):
        with open(f"{top}/users") as f:
            alices = f.readline()
        private(f"{top}/users", f"{alices}{line}\n")
        before = daemon.stderr().count(b"refused (password)")
        fails(REFUSED, "--password-file", right, "-c", "ls", url(daemon, "bob"))
        works("--password-file", right, "-c", "ls", url(daemon, "alice"))
        said = daemon.stderr().split(b"refused (password)")
        equal(len(said), before + 2, "refused once more", said)
        check(said[-1].startswith(f": {top}/users: line 2 is not USER:HASH".encode()), line, said[-1])
        check(line.encode() not in said[-1] or line == "bob", "the line is in the log", said[-1])
        tried = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "-t", "--export", f"{top}/export:rw", "--users",
                                f"{top}/users"], capture_output=True, env=rftptest.clean_environment(), timeout=20)
        equal(tried.returncode, 0, "rftpd -t", tried.stderr)
        check(b"line 2 is not USER:HASH" in tried.stderr, "rftpd -t", tried.stderr)
    daemon.stop()
    another = Daemon(f"{top}/export", "rw", "--users", f"{top}/users")
    check(b"line 2 is not USER:HASH" in another.stderr(), "what it begins with", another.stderr())
    users(top, bob="sesame")
    works("--password-file", right, "-c", "ls", url(another, "bob"))


@case
def the_daemon_takes_a_change_at_once(top):
    daemon = served(top, alice="sesame")
    new = private(f"{top}/new", "changed\n")
    fails(REFUSED, "--password-file", new, "-c", "ls", url(daemon, "alice"))
    users(top, alice="changed", bob="other")
    works("--password-file", new, "-c", "ls", url(daemon, "alice"))
    equal(passwd("-d", "alice", "--users", f"{top}/users").returncode, 0, "passwd -d")
    fails(REFUSED, "--password-file", new, "-c", "ls", url(daemon, "alice"))
    works("--password-command", "echo other", "-c", "ls", url(daemon, "bob"))


@case
def passwd_makes_the_file(top):
    path = users(top, alice="a", bob="b")
    equal(os.stat(path).st_mode & 0o7777, 0o600, "mode")
    with open(path) as f:
        lines = f.read().splitlines()
    equal([line.split(":")[0] for line in lines], ["alice", "bob"], "users")
    check(all(line.split(":")[1].startswith("$y$") for line in lines), "yescrypt:", lines)
    users(top, alice="c")
    with open(path) as f:
        again = f.read().splitlines()
    equal(again[1], lines[1], "the other user's line")
    check(again[0] != lines[0], "the password is another")
    equal([n for n in os.listdir(top) if n.startswith("users")], ["users"], "files")
    for arguments, password in ((("-d", "carol", "--users", path), None), (("a:b", "--users", path), b"x\n"),
                                (("-x", "--users", path), b"x\n"), (("carol", "--users", path), b"\n"),
                                (("carol", "--users", path), b""), (("carol",), b"x\n"),
                                (("carol", "--users", f"{top}/missing/users"), b"x\n")):
        done = passwd(*arguments, password=password)
        check(done.returncode in (1, 2) and done.stderr, arguments, password, done)
    with open(path) as f:
        equal(f.read().splitlines(), again, "the file after what was refused")


@case
def files_with_secrets_are_private(top):
    daemon = served(top, alice="sesame")
    path = private(f"{top}/password", "sesame\n", 0o640)
    fails(REFUSED, "--password-file", path, "-c", "ls", url(daemon, "alice"), says="chmod 600")
    fails((REFUSED, NO_FILE, rftptest.CONNECT), "--password-file", f"{top}/missing", "-c", "ls", url(daemon, "alice"),
          says="missing")
    for command, says in (("exit 3", "exit 3: it ended with 3"), ("echo sesame; exit 4", "it ended with 4"),
                          ("echo sesame; kill -9 $$", "it was ended by signal 9"),
                          ("true", "no password in its first line")):
        fails(REFUSED, "--password-command", command, "-c", "ls", url(daemon, "alice"), says=says)
    os.chmod(f"{top}/users", 0o644)
    fails(REFUSED, "--password-command", "echo sesame", "-c", "ls", url(daemon, "alice"))
    check(b"others may read or change it (mode 0644)" in daemon.stderr(), "the log", daemon.stderr())
    wrong = [(0o644, os.geteuid(), b"others may read or change it")]
    if rftptest.ROOT:  # who owns it may change it
        os.chmod(f"{top}/users", 0o600)
        os.chown(f"{top}/users", rftptest.NOBODY, -1)
        fails(REFUSED, "--password-command", "echo sesame", "-c", "ls", url(daemon, "alice"))
        os.chown(path, rftptest.NOBODY, -1)
        os.chmod(path, 0o600)
        fails(REFUSED, "--password-file", path, "-c", "ls", url(daemon, "alice"), says="others may read or change it")
        wrong.append((0o600, rftptest.NOBODY, b"it belongs to user"))
    daemon.stop()
    for mode, owner, why in wrong:
        os.chmod(f"{top}/users", mode)
        os.chown(f"{top}/users", owner, -1)
        try:
            served(top)
            raise rftptest.Failure("a daemon serves with passwords that are somebody else's")
        except rftptest.NotReady as e:
            equal(e.code, 2, "exit code")
            check(why in e.said, "why", e.said)
    if rftptest.ROOT:  # root tries what another user will run
        names = f"{top}/names"
        private(names, "alice CN=Alice\n")
        nobody = pwd.getpwuid(rftptest.NOBODY).pw_name
        files = [(f"{top}/users", "--users")]
        if shutil.which("openssl"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-noenc", "-subj", "/CN=ca", "-keyout",
                            f"{top}/ca.key", "-out", f"{top}/ca.pem"], check=True, capture_output=True)
            files.append((names, "--certificate-users"))
        for path, option in files:
            os.chown(path, rftptest.NOBODY, -1)
            for user, code, says in ((nobody, 0, b""), ("daemon", 2, path.encode()), (None, 0, b"")):
                done = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "-t", "--export", f"{top}/export", "--listen",
                                       "0", option, path, *(["--client-ca", f"{top}/ca.pem"] if path == names else []),
                                       *(["--user", user] if user else [])], capture_output=True, env=rftptest.clean_environment())
                equal(done.returncode, code, "rftpd -t", option, "as", user, done)
                check(says in done.stderr, done)
                if option == "--users" and not user:
                    check(b"it belongs to user" in done.stderr, "a warning", done)


@case
def kept_credentials(top):
    daemon = served(top, alice="se same", bob="other")
    config = f"{top}/config"
    os.makedirs(f"{config}/rftp")
    env = {"XDG_CONFIG_HOME": config}
    where = f"{daemon.host}:{daemon.port}"
    kept = private(f"{config}/rftp/credentials",
                   f'machine elsewhere login x password y\n# for the test\nmachine {where} login alice\n'
                   f'  password "se same"\nmachine {where} login bob password wrong\n')
    works("-c", "ls", daemon.url(), env=env)  # it names the user, too
    works("-c", "ls", url(daemon, "alice"), env=env)
    fails(REFUSED, "-c", "ls", url(daemon, "bob"), env=env)
    fails(REFUSED, "-c", "ls", url(daemon, "carol"), env=env)
    os.chmod(kept, 0o604)
    fails(USAGE, "-c", "ls", daemon.url(), says="chmod 600", env=env)
    private(kept, "machine x login\n")
    fails(USAGE, "-c", "ls", daemon.url(), says="credentials:2: not of the form", env=env)


def type_at(fd, wanted, answer):
    """Waits for a prompt, and types."""
    seen = b""
    end = time.monotonic() + WAIT
    while wanted not in seen:
        check(time.monotonic() < end, "no prompt", wanted, "in", seen)
        seen += os.read(fd, 4096)
    os.write(fd, answer)
    return seen


def on_terminal(*arguments, answers, env=None):
    """A client whose terminal is ours -> (what it says there, its exit code)"""
    pid, fd = os.forkpty()
    if not pid:
        rftptest.before_exec()
        os.execve(os.path.join(rftptest.BUILD, "rftp"), ["rftp", *arguments], rftptest.clean_environment(env))
    seen = b""
    try:
        for wanted, answer in answers:
            seen += type_at(fd, wanted, answer)
        while True:
            data = os.read(fd, 4096)
            if not data:
                break
            seen += data
    except OSError:
        pass  # EIO: nobody has it open any more
    finally:
        os.close(fd)
        _, code = os.waitpid(pid, 0)
    return seen, os.waitstatus_to_exitcode(code)


@case
def a_prompt(top):
    daemon = served(top, alice="sesame")
    ask = b"alice@127.0.0.1's password: "
    seen, code = on_terminal("-c", "ls", url(daemon, "alice"), answers=[(ask, b"sesame\n")])
    equal(code, 0, "exit code", seen)
    check(b"sesame" not in seen and b"f" in seen, "what is on the terminal:", seen)
    seen, code = on_terminal("-c", "ls", url(daemon, "alice"), answers=[(ask, b"wrong\n"), (ask, b"sesame\n")])
    equal(code, 0, "exit code of the second try", seen)
    seen, code = on_terminal("-c", "ls", url(daemon, "alice"), answers=[(ask, b"no\n")] * 3)
    equal(code, REFUSED, "exit code of three wrong ones", seen)
    seen, code = on_terminal("-c", "ls", url(daemon, "alice"), answers=[(ask, b"\x03")])
    equal(code, rftptest.INTERRUPTED, "Ctrl-C", seen)
    # passwd asks twice
    pid, fd = os.forkpty()
    if not pid:
        rftptest.before_exec()
        os.execve(os.path.join(rftptest.BUILD, "rftpd"), ["rftpd", "passwd", "bob", "--users", f"{top}/users"],
                  rftptest.clean_environment())
    seen = type_at(fd, b"New password: ", b"new\n") + type_at(fd, b"Once more: ", b"new\n")
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "passwd", seen)
    os.close(fd)
    works("--password-command", "echo new", "-c", "ls", url(daemon, "bob"))

# ---- keys ----

def keygen(path, *arguments, passphrase=""):
    done = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "for a test", "-f", path, *arguments],
                          capture_output=True, timeout=WAIT)
    equal(done.returncode, 0, "ssh-keygen", done.stderr)
    with open(path + ".pub") as f:
        return f.read().strip()


def keyed(top, *arguments, **lines):
    """A daemon with a file of authorized keys for each user"""
    os.makedirs(f"{top}/keys", exist_ok=True)
    os.makedirs(f"{top}/export", exist_ok=True)
    make_file(f"{top}/export/f", 3000)
    for user, text in lines.items():
        with open(f"{top}/keys/{user}", "w") as f:
            f.write(text + "\n")
    return Daemon(f"{top}/export", "rw", "--authorized-keys", f"{top}/keys/%u", *arguments)


@case
def a_key_of_a_file(top):
    needs("ssh-keygen")
    alice, other = keygen(f"{top}/alice"), keygen(f"{top}/other")
    daemon = keyed(top, alice=f"# first\nssh-rsa AAAA x\n{other.split()[0]} AAAA\nno-pty,restrict {alice}", bob=other,
                   carol=f'command="ls" {alice}', dave=f'from="10.0.0.0/8",no-pty {alice}')
    said = status(daemon, "alice", "--identity", f"{top}/alice")
    equal((said["user"], said["method"]), ("alice", "publickey"), "the session")
    works("-i", f"{top}/other", "-c", "ls", url(daemon, "bob"))
    for identity, user in (("other", "alice"), ("alice", "bob"), ("alice", "carol"), ("alice", "dave"), ("alice", "erin"),
                           ("alice", "..%2fkeys%2falice"), ("alice", "%2e"), ("alice", "ali%25u")):
        fails(REFUSED, "--identity", f"{top}/{identity}", "-c", "ls", url(daemon, user), says="(tried: publickey)")
    log = daemon.stderr()
    check(b"the key has an option there that rftpd cannot keep" in log, "the log", log)
    check(b"the key is not in it" in log, "the log", log)
    check(b"there can be no such user" in log, "the log", log)
    # the usual file of a user, and nothing to show
    os.makedirs(f"{top}/home/.ssh")
    shutil.copy(f"{top}/alice", f"{top}/home/.ssh/id_ed25519")
    works("-c", "ls", url(daemon, "alice"), env={"HOME": f"{top}/home"})
    fails(REFUSED, "-c", "ls", url(daemon, "alice"), says="there is nothing to show")
    # who may change the file of keys lets himself in
    os.chmod(f"{top}/keys/alice", 0o664)
    fails(REFUSED, "--identity", f"{top}/alice", "-c", "ls", url(daemon, "alice"))
    check(b"others may change it (mode 0664" in daemon.stderr(), "the log", daemon.stderr())


@case
def keys_that_cannot_be_used(top):
    needs("ssh-keygen")
    keygen(f"{top}/locked", passphrase="secret")
    daemon = keyed(top, alice=open(f"{top}/locked.pub").read())
    fails(REFUSED, "--identity", f"{top}/locked", "-c", "ls", url(daemon, "alice"), says="use ssh-agent")
    equal(subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", f"{top}/ecdsa"]).returncode, 0, "ssh-keygen")
    fails((REFUSED, USAGE), "--identity", f"{top}/ecdsa", "-c", "ls", url(daemon, "alice"), says="not an Ed25519 key")
    key = private(f"{top}/readable", "", 0o644)
    fails(REFUSED, "--identity", key, "-c", "ls", url(daemon, "alice"), says="chmod 600")
    fails((REFUSED, USAGE), "--identity", private(f"{top}/text", "hello\n"), "-c", "ls", url(daemon, "alice"),
          says="not a private key of OpenSSH")
    fails((NO_FILE, rftptest.CONNECT, REFUSED), "--identity", f"{top}/missing", "-c", "ls", url(daemon, "alice"), says="missing")


def asks(path):
    return f"Enter passphrase for key '{path}': ".encode()


@case
def a_key_with_a_passphrase(top):
    needs("ssh-keygen")
    path, secret = f"{top}/locked", "open sesame"
    daemon = keyed(top, "--users", users(top, alice="a-word"), alice=keygen(path, passphrase=secret))
    right, wrong = (asks(path), secret.encode() + b"\n"), (asks(path), b"sesame open\n")
    ask = b"alice@127.0.0.1's password: "

    def tries(code, *answers, arguments=("-i", path), env=None, at=daemon):
        seen, got = on_terminal(*arguments, "-vv", "-c", "ls", url(at, "alice"), answers=answers, env=env)
        equal(got, code, "exit code", seen)
        for word in (b"sesame", b"a-word"):
            check(word not in seen, "what was typed is on the terminal", seen)
        return seen
    tries(0, right)
    seen = tries(0, wrong, wrong, right)
    equal(seen.count(b"The passphrase is wrong. "), 2, "what is said of wrong ones", seen)
    # after three, or an empty one, comes the next thing that can be asked for
    tries(0, wrong, wrong, wrong, (ask, b"a-word\n"))
    tries(0, (asks(path), b"\n"), (ask, b"a-word\n"))
    tries(rftptest.INTERRUPTED, (asks(path), b"\x03"))
    tries(rftptest.INTERRUPTED, wrong, (asks(path), b"\x03"))
    # what needs no asking comes before
    word = private(f"{top}/word", "a-word\n")
    works("-i", path, "--password-file", word, "-c", "ls", url(daemon, "alice"))
    # the usual key
    home = f"{top}/home"
    os.makedirs(f"{home}/.ssh")
    usual = f"{home}/.ssh/id_ed25519"
    shutil.copy(path, usual)
    env = {"HOME": home, "XDG_CONFIG_HOME": f"{home}/.config"}
    tries(0, (asks(usual), right[1]), arguments=("--accept-new",), env=env)
    os.makedirs(f"{home}/.config/rftp", exist_ok=True)
    kept = private(f"{home}/.config/rftp/credentials", f"machine 127.0.0.1:{daemon.port} login alice password a-word\n")
    works("-c", "ls", url(daemon, "alice"), env=env)
    os.unlink(kept)
    result = fails(REFUSED, "-vv", "-c", "ls", url(daemon, "alice"), env=env)
    check(b"has a passphrase, and there is no terminal" in result.err, result)
    # with an identity that is named, that is why it fails
    fails(REFUSED, "-i", path, "-c", "ls", url(daemon, "alice"), says="has a passphrase, and there is no terminal to ask on, nor SSH_ASKPASS")
    # not the user's key: refused, and on to the password
    other = f"{top}/other"
    keygen(other, passphrase="x")
    tries(0, (asks(other), b"x\n"), (ask, b"a-word\n"), arguments=("-i", other))
    # where there are no passwords
    keys = keyed(f"{top}/2", alice=open(f"{path}.pub").read())
    check(b"the passphrase of its key was wrong" in tries(REFUSED, wrong, wrong, wrong, at=keys), "the reason")
    tries(REFUSED, (asks(path), b"\n"), at=keys)
    tries(0, wrong, right, at=keys)


@case
def a_program_that_asks(top):
    """SSH_ASKPASS, as ssh has it: where there is no terminal, but a display; or as SSH_ASKPASS_REQUIRE says."""
    needs("ssh-keygen")
    path, secret = f"{top}/locked", "open sesame"
    daemon = keyed(top, "--users", users(top, alice="a-word"), alice=keygen(path, passphrase=secret))
    program, asked, answer = f"{top}/ask pass", f"{top}/asked", f"{top}/answer"
    private(program, f'#!/bin/sh\nprintf "%s\\n" "$1" >>{asked}\ncat {answer}\n', 0o700)
    display, wayland = {"DISPLAY": ":7"}, {"WAYLAND_DISPLAY": "wayland-7"}
    prompt, typed = "alice@127.0.0.1's password: ", b"a-word\n"

    def questions():
        if not os.path.exists(asked):
            return []
        with open(asked) as f:
            text = f.read()
        os.unlink(asked)
        return text.splitlines()

    def tries(code, expected, *arguments, says="", **env):
        result = rftptest.rftp("-vv", *arguments, "-c", "ls", url(daemon, "alice"), env={"SSH_ASKPASS": program} | env)
        equal(result.code, code, "exit code with", env, result)
        equal(questions(), expected, "what was asked with", env)
        check(says.encode() in result.err, says, result)
        check(b"a-word" not in result.err and b"sesame" not in result.err, "a secret is shown", result)

    private(answer, "a-word\nand more\n")
    tries(0, [prompt], **display)
    tries(0, [prompt], **wayland)
    tries(0, [prompt], **display, SSH_ASKPASS_REQUIRE="prefer")
    tries(0, [prompt], SSH_ASKPASS_REQUIRE="force")
    none = "there is no terminal to ask on"
    tries(REFUSED, [], says=none)
    tries(REFUSED, [], DISPLAY="", says=none)
    tries(REFUSED, [], SSH_ASKPASS_REQUIRE="prefer", says=none)
    tries(REFUSED, [], **display, SSH_ASKPASS_REQUIRE="never", says=none)
    tries(REFUSED, [], **display, SSH_ASKPASS=f"{top}/missing", says="missing: No such file")
    tries(REFUSED, [], **display, SSH_ASKPASS="", PATH=top, says=none)
    # a key: its passphrase, and where that is wrong the password
    private(answer, f"{secret}\n")
    tries(0, [asks(path).decode()], "-i", path, **display)
    private(answer, "a-word\n")
    again = "The passphrase is wrong. " + asks(path).decode()
    tries(0, [asks(path).decode(), again, again, prompt], "-i", path, **display)
    private(answer, "wrong\n")
    tries(REFUSED, [prompt] * 3, **display)
    # who does not want to answer is asked once
    private(answer, "")
    tries(REFUSED, [prompt], **display)
    private(program, f'#!/bin/sh\necho "$1" >>{asked}\necho a-word\nexit 1\n', 0o700)
    tries(REFUSED, [prompt], **display, says="it ended with 1")
    tries(REFUSED, [asks(path).decode(), prompt], "-i", path, **display)
    # with a terminal that is where it is asked, unless the program is to be preferred
    private(program, f'#!/bin/sh\necho "$1" >>{asked}\necho a-word\n', 0o700)
    for require, on_it in ((None, True), ("never", True), ("prefer", False), ("force", False)):
        env = {"SSH_ASKPASS": program} | display | ({"SSH_ASKPASS_REQUIRE": require} if require else {})
        seen, code = on_terminal("-c", "ls", url(daemon, "alice"), answers=[(prompt.encode(), typed)] if on_it else [],
                                 env=env)
        equal((code, questions()), (0, [] if on_it else [prompt]), "exit code, what was asked with", require, seen)
    # where it is preferred, but there is none
    seen, code = on_terminal("-c", "ls", url(daemon, "alice"), answers=[(prompt.encode(), typed)],
                             env={"SSH_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "prefer", "PATH": top} | display)
    equal((code, questions()), (0, []), "exit code, what was asked without a program", seen)
    # and Ctrl-C ends what asks
    private(program, f'#!/bin/sh\necho "$1" >>{asked}\nexec sleep 600\n', 0o700)
    client = rftptest.start_rftp("-c", "ls", url(daemon, "alice"), env={"SSH_ASKPASS": program} | display)
    wait_until(lambda: os.path.exists(asked), "it asks")
    client.send_signal(signal.SIGINT)
    equal(client.wait(WAIT), rftptest.INTERRUPTED, "Ctrl-C")


@case
def how_a_key_is_locked(top):
    """All that ssh-keygen has for it that libssh knows; of the rest, and without libssh, a clear word."""
    needs("ssh-keygen")
    keys = {}
    for cipher in ("aes256-ctr", "aes128-ctr", "aes256-cbc", "chacha20-poly1305@openssh.com"):
        keys[cipher] = keygen(f"{top}/{cipher}", "-Z", cipher, "-a", "2", passphrase="pass")
    daemon = keyed(top, alice="\n".join(keys.values()))

    def tried(name, env=None):
        return on_terminal("-i", f"{top}/{name}", "-c", "ls", url(daemon, "alice"),
                           answers=[(asks(f"{top}/{name}"), b"pass\n")], env=env)
    for cipher in list(keys)[:3]:
        seen, code = tried(cipher)
        equal(code, 0, cipher, seen)
    fails(REFUSED, "-i", f"{top}/chacha20-poly1305@openssh.com", "-c", "ls", url(daemon, "alice"),
          says="in a way that is not known here: use ssh-agent")
    # a damaged one
    with open(f"{top}/aes256-ctr") as f:
        lines = f.read().splitlines()
    lines[3] = lines[3][:50] + ("B" if lines[3][50] != "B" else "C") + lines[3][51:]
    private(f"{top}/damaged", "\n".join(lines) + "\n")
    seen, code = on_terminal("-i", f"{top}/damaged", "-c", "ls", url(daemon, "alice"),
                             answers=[(asks(f"{top}/damaged"), b"pass\n")] * 3,
                             env={"ASAN_OPTIONS": "detect_leaks=0"})  # of 12 bytes by libssh
    equal(code, REFUSED, "exit code", seen)
    if not rftptest.SANITIZED:
        os.makedirs(f"{top}/none")
        open(f"{top}/none/libssh.so.4", "w").close()
        fails(REFUSED, "-i", f"{top}/aes256-ctr", "-c", "ls", url(daemon, "alice"),
              says="libssh, which opens it, is not installed: use ssh-agent", env={"LD_LIBRARY_PATH": f"{top}/none"})


@case
def keys_of_an_agent(top):
    needs("ssh-keygen", "ssh-agent", "ssh-add")
    path = f"{top}/agent"
    agent = rftptest.spawn(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(path), "the agent's socket")
    env = {"SSH_AUTH_SOCK": path}
    lines = [keygen(f"{top}/key{i}") for i in range(3)]
    daemon = keyed(top, alice=lines[2], bob=lines[1])
    fails(REFUSED, "-c", "ls", url(daemon, "alice"), env=env, says="there is nothing to show")
    for i in range(3):
        equal(subprocess.run(["ssh-add", "-q", f"{top}/key{i}"], env=os.environ | env).returncode, 0, "ssh-add")
    works("-c", "ls", url(daemon, "alice"), env=env)  # the third of them
    # of an identity that is named the agent signs, if the file has a passphrase
    equal(subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", f"{top}/key1"]).returncode, 0, "ssh-keygen -p")
    works("-i", f"{top}/key1", "-c", "ls", url(daemon, "bob"), env=env)
    fails(REFUSED, "-i", f"{top}/key0", "-c", "ls", url(daemon, "bob"), env=env)
    result = fails(REFUSED, "-vv", "-c", "ls", url(daemon, "carol"), env=env, says="(tried: publickey)")
    equal(result.err.count(b"login: key SHA256:"), 3, "keys that were shown:", result.err)
    check(b"ssh-agent has 3 Ed25519 keys" in result.err, result.err)
    rftptest.kill(agent)
    agent.wait()
    result = fails(REFUSED, "-vv", "-c", "ls", url(daemon, "alice"), env=env)
    check(re.search(rb"login: ssh-agent at .*/agent: (Connection refused|No such file)", result.err), result.err)


def signed(key, message):
    """An Ed25519 signature by openssl, of a PEM key"""
    with tempfile.NamedTemporaryFile() as f:
        f.write(message)
        f.flush()
        done = subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", f.name], capture_output=True)
    equal(len(done.stdout), 64, "openssl", done.stderr)
    return done.stdout


def key_of_openssl(top):
    """-> a file with a key that openssl signs with, its public half as it crosses"""
    pem = f"{top}/key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", pem], check=True, capture_output=True)
    der = subprocess.run(["openssl", "pkey", "-in", pem, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
    return pem, struct.pack(">I", 11) + b"ssh-ed25519" + struct.pack(">I", 32) + der[-32:]


@case
def what_a_signature_is_good_for(top):
    """One session, one user, one key; nothing else."""
    needs("openssl")
    pem, blob = key_of_openssl(top)
    line = "ssh-ed25519 " + base64.b64encode(blob).decode()
    daemon = keyed(top, alice=line, bob=line)

    def session():
        s = Session(daemon.port, WAIT)
        s.hello(then_login=False)
        return s

    def shown(s, user, signature, key=blob):
        return s.ask(iwarp.LOGIN, iwarp.login(iwarp.KEY, user, iwarp.text(key) + iwarp.text(signature)))[0]

    s = session()
    right = signed(pem, iwarp.login_signed(s.bytes, b"alice"))
    equal(shown(s, b"bob", right), STATUS_LOGIN, "for another user")
    equal(shown(s, b"alice", right[:-1] + bytes([right[-1] ^ 1])), STATUS_LOGIN, "a bit of it changed")
    equal(shown(s, b"alice", right[:63]), STATUS_LOGIN, "short")
    equal(shown(s, b"alice", right, blob[:-1] + bytes([blob[-1] ^ 1])), STATUS_LOGIN, "another key")
    equal(shown(s, b"alice", right, blob + b"x"), STATUS_LOGIN, "a key that goes on")
    equal(shown(s, b"alice", signed(pem, iwarp.login_signed(s.bytes, b"alice")[len(iwarp.LOGIN_LABEL):])), STATUS_LOGIN,
          "without the label")
    equal(shown(s, b"alice", right), 0, "the right one")
    s.close()
    s = session()
    equal(shown(s, b"alice", right), STATUS_LOGIN, "in another session")
    equal(shown(s, b"alice", signed(pem, iwarp.login_signed(s.bytes, b"alice"))), 0, "the right one of this session")
    s.close()


# ---- certificates ----

@case
def certificates(top):
    needs("openssl")

    def openssl(*arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, cwd=top)
        equal(done.returncode, 0, "openssl", arguments, done.stderr)

    def issue(name, subject, ca="ca", days=30, san=None, usage=None):
        openssl("genpkey", "-algorithm", "ed25519", "-out", f"{name}.key")
        openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        with open(f"{top}/{name}.ext", "w") as f:
            f.write("basicConstraints=CA:FALSE\n")
            if san:
                f.write(f"subjectAltName={san}\n")
            if usage:
                f.write(f"extendedKeyUsage={usage}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days",
                str(days), "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        os.chmod(f"{top}/{name}.key", 0o600)

    for ca in ("ca", "foreign"):
        openssl("genpkey", "-algorithm", "ed25519", "-out", f"{ca}.key")
        openssl("req", "-x509", "-new", "-key", f"{ca}.key", "-subj", f"/CN={ca}", "-days", "30", "-out", f"{ca}.crt")
    issue("alice", "/O=Example/CN=Alice")
    issue("bob", "/CN=Robert", san="email:bob@example.org,DNS:bob.example.org")
    issue("unmapped", "/CN=Nobody")
    issue("old", "/O=Example/CN=Alice", days=-1)
    issue("server", "/O=Example/CN=Alice", usage="serverAuth")
    issue("stranger", "/O=Example/CN=Alice", ca="foreign")
    # names that would be those of the map if they were written down carelessly
    issue("comma", "/CN=Alice,O=Example")
    issue("turned", "/CN=Alice/O=Example")
    issue("longer", "/O=Example/CN=Alice/CN=Alice")
    issue("said", "/CN=email:bob@example.org", san="DNS:bob@example.org")
    with open(f"{top}/map", "w") as f:
        f.write("# users of certificates\nalice CN=Alice,O=Example\nbob\temail:bob@example.org\nadmin CN=Alice,O=Example\n")
    os.mkdir(f"{top}/export")
    daemon = Daemon(f"{top}/export", "rw", "--client-ca", f"{top}/ca.crt", "--certificate-users", f"{top}/map")

    def shows(name):
        return "--cert", f"{top}/{name}.crt", "--key", f"{top}/{name}.key"

    said = status(daemon, None, *shows("alice"))
    equal((said["user"], said["method"]), ("alice", "certificate"), "the map names the user")
    equal(status(daemon, "admin", *shows("alice"))["user"], "admin", "the other that it may be")
    equal(status(daemon, None, *shows("bob"))["user"], "bob", "by another name")
    with open(f"{top}/both.pem", "w") as both:
        both.write(open(f"{top}/alice.crt").read() + open(f"{top}/alice.key").read())
    os.chmod(f"{top}/both.pem", 0o600)
    equal(status(daemon, None, "--cert", f"{top}/both.pem")["user"], "alice", "key and certificate in one file")
    # what the server does not say, who has the certificate can see
    for name, of in (("unmapped", b"CN=Nobody, signed by CN=ca"),
                     ("old", b"CN=Alice,O=Example, signed by CN=ca: it has expired"),
                     ("stranger", b"CN=Alice,O=Example, signed by CN=foreign")):
        result = fails(REFUSED, "-vv", *shows(name), "-c", "ls", daemon.url(), says="the login is refused (tried: certificate)")
        check(b"login: certificate of " + of + b"\n" in result.err, of, result)
    for name, user in (("alice", "bob"), ("unmapped", None), ("old", None), ("server", None), ("stranger", None),
                       ("comma", None), ("turned", None), ("longer", None), ("said", None), ("comma", "alice"), ("said", "bob")):
        fails(REFUSED, *shows(name), "-c", "ls", url(daemon, user) if user else daemon.url())
    fails(REFUSED, "-c", "ls", daemon.url())
    session = Session(daemon.port, WAIT)  # that has shown none
    session.hello(then_login=False)
    equal(session.ask(iwarp.LOGIN, iwarp.login(iwarp.CERTIFICATE, b"alice"))[0], STATUS_LOGIN, "without a certificate")
    session.close()
    log = daemon.stderr()
    for words in (b"no certificate was shown", b"certificate has expired", b"has no line for"):
        check(words in log, words, "in the log", log)
    fails(USAGE, "--cert", f"{top}/alice.crt", "--key", f"{top}/bob.key", "-c", "ls", daemon.url(), says="not the private key")
    os.chmod(f"{top}/alice.key", 0o644)
    fails(USAGE, *shows("alice"), "-c", "ls", daemon.url(), says="chmod 600")
    for command in (("--client-ca", f"{top}/ca.crt"), ("--certificate-users", f"{top}/map"),
                    ("--client-ca", f"{top}/map", "--certificate-users", f"{top}/map"),
                    ("--authorized-keys", f"{top}/keys"), ("--authorized-keys", f"{top}/%u/%x")):
        try:
            Daemon(f"{top}/export", "rw", *command)
            raise rftptest.Failure(f"a daemon with {command}")
        except rftptest.NotReady as e:
            check(e.code in (1, 2), "exit code", e.code, e.said)


# ---- what a stranger learns ----

@case
def a_refusal_says_nothing(top):
    """The same status, the same text, and about the same time, for who is there and who is not."""
    daemon = served(top, alice="sesame")

    def refusal(user, password):
        session = Session(daemon.port, WAIT)
        hello = session.hello(then_login=False)
        equal(struct.unpack(">I", hello[22:26])[0] >> 8 & 63, 1 << iwarp.PASSWORD, "methods")
        began = time.monotonic()
        said = session.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, user, password))
        took = time.monotonic() - began
        session.close()
        return said, took

    (known, known_s), (unknown, unknown_s) = refusal(b"alice", b"x"), refusal(b"mallory", b"x")
    equal(known, unknown, "the answer to a wrong password and an unknown user")
    equal(known[0], STATUS_LOGIN, "status")
    check(known_s > 0.9 and unknown_s > 0.9, "too fast to be slow:", known_s, unknown_s)
    equal(refusal(b"alice\xff", b"x")[0], known, "bytes that are no name")
    equal(refusal(b"a" * 255, b"x" * 1024)[0], known, "the longest")


@case
def nor_of_whose_keys_there_are(top):
    """A signature that is right, by a key of nobody's: for a user with keys, one without, and one that cannot be."""
    needs("openssl")
    pem, blob = key_of_openssl(top)
    daemon = keyed(top, alice=keygen(f"{top}/other"))
    seen = []
    for user in (b"alice", b"mallory", b"../x", b"a" * 255):
        session = Session(daemon.port, WAIT)
        session.hello(then_login=False)
        message = iwarp.login_signed(session.bytes, user)
        began = time.monotonic()
        seen.append(session.ask(iwarp.LOGIN, iwarp.login(iwarp.KEY, user, iwarp.text(blob) + iwarp.text(signed(pem, message)))))
        took = time.monotonic() - began
        check(took > 0.2, "too fast to be held back:", user, took)
        session.close()
    equal(len(set(seen)), 1, "answers", seen)
    equal(seen[0][0], STATUS_LOGIN, "status")
    log = daemon.stderr()
    check(b"the key is not in it" in log and b"No such file" in log and b"there can be no such user" in log, "the log", log)


@case
def wrong_logins_are_counted(top):
    daemon = served(top, alice="sesame")
    session = Session(daemon.port, WAIT)
    session.hello(then_login=False)
    for i in range(3):
        code, _ = session.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"x"))
        equal(code, STATUS_LOGIN, "try", i)
    check(session.dropped_within(WAIT), "the session goes on after three wrong passwords")
    session.close()
    session = Session(daemon.port, WAIT)
    session.hello(then_login=False)
    for i in range(8):
        code, _ = session.ask(iwarp.LOGIN, iwarp.login())
        equal(code, STATUS_LOGIN, "try", i)
    check(session.dropped_within(WAIT), "the session goes on after eight wrong logins")
    session.close()
    # after wrong ones a right one is taken
    session = Session(daemon.port, WAIT)
    session.hello(then_login=False)
    session.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"x"))
    equal(session.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"sesame"))[0], 0, "the right one")
    equal(session.ask(iwarp.STAT, iwarp.text(b"/f"))[0], 0, "STAT")
    session.close()


@case
def nothing_before_the_login(top):
    """No request is answered, no data channel granted, before somebody has logged in."""
    daemon = served(top, alice="sesame")
    for type_, data in ((iwarp.CHANNELS, b"\0\1"), (iwarp.STAT, iwarp.text(b"/f")), (iwarp.LIST, iwarp.text(b"/")),
                        (iwarp.PING, b"cookie 8"), (iwarp.STORE, iwarp.data_request()),
                        (iwarp.RETRIEVE, iwarp.data_request()), (iwarp.STATFS, iwarp.text(b"/"))):
        session = Session(daemon.port, WAIT)
        session.hello(then_login=False)
        try:
            code, said = session.ask(type_, data)
            check(code == 100 and b"came before LOGIN" in said, type_, code, said)
        except Dropped:
            pass
        check(session.dropped_within(WAIT), "the session goes on after request", type_)
        session.close()
    # nor while a login is refused, and whatever was sent behind it
    session = Session(daemon.port, WAIT)
    session.hello(then_login=False)
    session.put(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"wrong"))
    session.put(iwarp.STAT, iwarp.text(b"/f"))
    equal(session.get()[:2], (iwarp.LOGIN | iwarp.REPLY, STATUS_LOGIN), "LOGIN")
    equal(session.get()[:2], (iwarp.STAT | iwarp.REPLY, STATUS_LOGIN), "STAT")
    session.close()
    # all in one go is fine where it is right
    session = Session(daemon.port, WAIT)
    session.put(iwarp.HELLO, iwarp.hello())
    session.put(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"sesame"))
    session.put(iwarp.CHANNELS, b"\0\2")
    session.put(iwarp.STAT, iwarp.text(b"/f"))
    equal([session.get()[:2] for _ in range(4)],
          [(t | iwarp.REPLY, 0) for t in (iwarp.HELLO, iwarp.LOGIN, iwarp.CHANNELS, iwarp.STAT)], "replies")
    code, _ = session.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"sesame"))
    equal(code, 100, "a second login")
    session.close()


@case
def a_login_costs_no_round_trip(top):
    """LOGIN comes without waiting for the reply to HELLO: this server gives none before."""
    rogue = Rogue({iwarp.HELLO: lambda session, data: None,
                   iwarp.LOGIN: lambda session, data: (session.hello(data), session.login(data)) and None})
    for arguments in ((), ("--user", "alice", "--password-file", private(f"{top}/password", "x\n"))):
        works(*arguments, "-c", "ls", rogue.url())


@case
def a_login_has_a_deadline(top):
    daemon = served(top, "--login-timeout", "1", alice="sesame")
    sessions = [Session(daemon.port, WAIT) for _ in range(3)]
    sessions[1].hello(then_login=False)
    sessions[2].hello(then_login=False)
    sessions[2].put(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"wrong"))
    for i, session in enumerate(sessions):
        check(session.dropped_within(WAIT), "session", i, "goes on")
        session.close()
    check(daemon.stderr().count(b"it did not log in in time") >= 2, "the log", daemon.stderr())
    works("--password-command", "echo sesame", "-c", "ls", url(daemon, "alice"))


@case
def a_flood_of_passwords_holds_up_nobody(top):
    """Threads and memory stay bounded while many passwords wait, and who has logged in goes on."""
    daemon = served(top, alice="sesame")
    there = Session(daemon.port, WAIT)
    there.hello(then_login=False)
    equal(there.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"sesame"))[0], 0, "LOGIN")
    before, threads = daemon.resident_bytes(), daemon.threads()
    flood = [Session(daemon.port, WAIT) for _ in range(24)]
    for session in flood:
        session.hello(then_login=False)
        session.put(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"wrong"))
    slowest = 0
    for _ in range(20):
        began = time.monotonic()
        equal(there.ask(iwarp.STAT, iwarp.text(b"/f"))[0], 0, "STAT meanwhile")
        slowest = max(slowest, time.monotonic() - began)
    most = daemon.threads()
    grown = daemon.resident_bytes() - before
    print(f"# STAT took at most {slowest * 1000:.1f} ms; {most - threads} more threads, {grown >> 20} MiB more")
    check(most - threads <= os.cpu_count() + 3, "threads", threads, most)
    if not rftptest.SANITIZED:
        check(grown < (os.cpu_count() + 2) * (24 << 20), "memory", grown)
    # some of them go away while their password is tried
    for session in flood[::2]:
        session.close()
    for session in flood[1::2]:
        equal(session.get()[:2], (iwarp.LOGIN | iwarp.REPLY, STATUS_LOGIN), "LOGIN")
        session.close()
    there.close()


@case
def the_daemon_ends_while_passwords_are_tried(top):
    daemon = served(top, alice="sesame")
    flood = [Session(daemon.port, WAIT) for _ in range(8)]
    for session in flood:
        session.hello(then_login=False)
        session.put(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"wrong"))
    daemon.stop()
    for session in flood:
        session.close()


# ---- anonymous ----

@case
def anonymous(top):
    daemon = served(top, "--anonymous=yes", alice="sesame")
    # beside users it reads, whatever the export is to them
    said = status(daemon)
    equal((said["user"], said["method"], said["read_only"]), (None, "anonymous", True), "the session")
    works(daemon.url("f"), f"{top}/got")
    fails(DENIED, f"{top}/export/f", daemon.url("new"), says="read-only")
    works("--password-command", "echo sesame", f"{top}/export/f", url(daemon, "alice", "new"))
    daemon.stop()
    # without users it may do what the export says, as ever
    daemon = Daemon(f"{top}/export")
    works(f"{top}/export/f", daemon.url("new2"))
    fails(REFUSED, "--password-command", "echo x", "-c", "ls", url(daemon, "alice"), says="login as alice is refused")
    daemon.stop()
    daemon = Daemon(f"{top}/export", "rw", "--anonymous=no")
    fails(REFUSED, "-c", "ls", daemon.url(), says="refused")


@case
def open_networks(top):
    """Beyond loopback with logins, without --insecure; and not without."""
    os.mkdir(f"{top}/export")
    path = users(top, alice="sesame")

    def starts(*command):
        try:
            Daemon(f"{top}/export", command=["--listen", "0.0.0.0:0", *command]).stop()
            return True
        except rftptest.NotReady as e:
            equal(e.code, 2, "exit code", e.said)
            check(b"nobody has to log in" in e.said, "message", e.said)
            return False

    export = ["--export", f"{top}/export:rw"]
    check(not starts(*export), "open to everybody")
    check(starts(*export, "--insecure"), "open, but that was said")
    check(starts(*export, "--users", path), "with users")
    check(starts(*export, "--users", path, "--anonymous=yes"), "with users, and anonymous who reads")
    check(starts("--export", f"{top}/export", "--anonymous=yes"), "anonymous who reads, which was said")
    check(not starts(*export, "--anonymous=yes"), "anonymous who writes")
    check(not starts("--export", f"x {top}/export users=@anonymous rights=read,write", "--anonymous=yes", "--users",
                     path), "anonymous who writes to a named export")


# ---- several exports ----

def several(top, *lines, daemon_users=None):
    for name in "abc":
        os.makedirs(f"{top}/{name}/sub", exist_ok=True)
        make_file(f"{top}/{name}/in-{name}", 2000)
    command = ["--listen", "127.0.0.1:0"]
    for line in lines:
        command += ["--export", line]
    return Daemon(top, command=command + (["--users", daemon_users] if daemon_users else []))


def ls(daemon, path="", user=None, *arguments):
    target = url(daemon, user, "") if user else daemon.url("")
    return sorted(e["name"].rpartition("/")[2] for e in works("--json", *arguments, "-c", f"ls {path}", target).events()
                  if e["event"] == "entry")


@case
def named_exports(top):
    daemon = several(top, f"one {top}/a rights=read,list,write,delete", f"two {top}/b", f"three {top}/c addresses=192.0.2.0/24")
    equal(ls(daemon), ["one", "two"], "the top")
    equal(ls(daemon, "one"), ["in-a", "sub"], "an export")
    equal(ls(daemon, "/./two//sub"), [], "beneath one")
    fails(NO_FILE, "-c", "ls three", daemon.url(), says="no such file")
    fails(NO_FILE, daemon.url("three/in-c"), f"{top}/got")
    works(daemon.url("two/in-b"), f"{top}/got")
    rftptest.same_files(f"{top}/got", f"{top}/b/in-b")
    works(f"{top}/b/in-b", daemon.url("one/new"))
    works("-r", daemon.url("one"), f"{top}/tree")
    rftptest.same_files(f"{top}/tree/one/in-a", f"{top}/a/in-a")
    fails(DENIED, f"{top}/b/in-b", daemon.url("two/new"), says="read-only")
    works(daemon.url("one/in-a"), daemon.url("two/in-b"), f"{top}/both/")
    rftptest.same_files(f"{top}/both/in-b", f"{top}/b/in-b")
    works("-r", daemon.url("*"), f"{top}/everything")
    rftptest.same_files(f"{top}/everything/two/in-b", f"{top}/b/in-b")
    # out of one into the other, or above
    session = Session(daemon.port, WAIT)
    session.hello()
    for path in (b"/one/../two", b"one/../../x", b"../one", b"/..", b"./../one/in-a"):
        equal(session.ask(iwarp.STAT, iwarp.text(path))[0], 208, "outside:", path)
    equal(session.ask(iwarp.STAT, iwarp.text(b"/./one//sub/../in-a"))[0], 0, "within")
    equal(session.ask(iwarp.STAT, iwarp.text(b"on"))[0], 200, "half a name")
    session.close()
    fails(KIND, "-c", "mv one/in-a two/in-a", daemon.url(), says="file system")
    works("-c", "mv one/new one/sub/new; rm one/sub/new", daemon.url())
    # the top is nobody's
    for command in ("mkdir new", "rm one", "rmdir one", "mv one uno", f"put {top}/got", "df"):
        fails((DENIED, KIND, NO_FILE), "-c", command, daemon.url())
    fails(DENIED, "-r", daemon.url(), f"{top}/all", says="/ lists the exports")
    equal(ls(daemon), ["one", "two"], "the top afterwards")
    works("-c", "cd one; cd ../; cd two; ls; stat /; stat /one; mkdir -p /", daemon.url())


@case
def exports_by_user(top):
    path = users(top, alice="a", bob="b")
    daemon = several(top, f"data {top}/a users=alice rights=read,list,write,delete", f"data {top}/a users=@users,@anonymous",
                     f"drop {top}/b users=bob rights=write,list", f"all {top}/c rights=read,list,write",
                     daemon_users=path)
    a, b = ("--password-command", "echo a"), ("--password-command", "echo b")
    equal(ls(daemon, "", "alice", *a), ["all", "data"], "alice sees")
    equal(ls(daemon, "", "bob", *b), ["all", "data", "drop"], "bob sees")
    works(*a, f"{top}/a/in-a", url(daemon, "alice", "data/new"))
    fails(DENIED, *b, f"{top}/a/in-a", url(daemon, "bob", "data/new"), says="read-only")
    works(*b, url(daemon, "bob", "data/in-a"), f"{top}/got")
    # a drop box: what is in it is not read or removed, also not by who put it there
    works(*b, f"{top}/a/in-a", url(daemon, "bob", "drop/from-bob"))
    for command in ("cat drop/in-b", "rm drop/from-bob", "mv drop/from-bob drop/x"):
        fails(DENIED, *b, "-c", command, url(daemon, "bob"))
    check(os.path.exists(f"{top}/b/from-bob"), "what was dropped")
    fails(DENIED, *a, "-c", "rm all/in-c", url(daemon, "alice"))  # write is not delete
    daemon.stop()
    # anonymous where the export names it, with all that it says; elsewhere for reading
    daemon = Daemon(top, command=["--listen", "127.0.0.1:0", "--users", path, "--anonymous=yes",
                                  "--export", f"in {top}/b users=@anonymous rights=write,list,read",
                                  "--export", f"out {top}/c rights=read,list,write", "--export", f"mine {top}/a users=alice"])
    equal(ls(daemon), ["in", "out"], "anonymous sees")
    works(f"{top}/a/in-a", daemon.url("in/new"))
    fails(DENIED, f"{top}/a/in-a", daemon.url("out/new"))
    equal(ls(daemon, "", "alice", *a), ["mine", "out"], "alice sees")


IN_PLACE = 32768  # flags of a STORE and a RETRIEVE
RECURSIVE = 2
# what each request needs
NEEDS = [
    ("list", iwarp.STAT, iwarp.text(b"%s/f")),
    ("list", iwarp.LIST, iwarp.text(b"%s")),
    ("list", iwarp.STATFS, iwarp.text(b"%s")),
    ("list", iwarp.LEFTOVERS, struct.pack(">IQ", 0, 0) + iwarp.text(b"%s")),
    ("list", iwarp.TREE, struct.pack(">I", 0) + iwarp.text(b"%s") + b"\0\0"),
    ("read", iwarp.GET, iwarp.get(b"%s/f")),
    ("read", iwarp.RETRIEVE, iwarp.data_request(b"%s/f")),
    ("read list", iwarp.RETRIEVE, iwarp.data_request(b"%s/t", flags=RECURSIVE)),
    ("write", iwarp.MKDIR, struct.pack(">II", 0o755, 0) + iwarp.text(b"%s/new-d")),
    ("write", iwarp.MAKE_LINK, struct.pack(">I", 0) + iwarp.text(b"f") + iwarp.text(b"%s/new-l")),
    ("write", iwarp.SETATTR, struct.pack(">HBIqI", 1, 1, 0o640, 0, 0) + iwarp.text(b"%s/f")),
    ("write", iwarp.PUT, iwarp.put(b"%s/new-p")),
    ("write", iwarp.STORE, iwarp.data_request(b"%s/new-s")),
    ("write", iwarp.FEED, struct.pack(">IHQQ", 0, 1, 0, 0) + iwarp.text(b"%s/new-f")),
    ("append", iwarp.STORE, iwarp.data_request(b"%s/f", flags=IN_PLACE, resume=iwarp.UNKNOWN)),
    ("append write", iwarp.STORE, iwarp.data_request(b"%s/f", flags=IN_PLACE, resume=7)),
    ("write delete", iwarp.RENAME, struct.pack(">I", 1) + iwarp.text(b"%s/a") + iwarp.text(b"%s/b")),
    ("delete", iwarp.REMOVE, iwarp.text(b"%s/r")),
    ("delete", iwarp.RMDIR, iwarp.text(b"%s/e")),
    ("delete", iwarp.REMOVE_TREE, iwarp.text(b"%s/rt")),
    ("list delete", iwarp.LEFTOVERS, struct.pack(">IQ", 1, 0) + iwarp.text(b"%s")),
]
TRANSFERS = (iwarp.STORE, iwarp.RETRIEVE, iwarp.FEED)


@case(seconds=120)
def each_right_alone(top):
    """All 31 sets of rights, and each request: it is granted with all that it needs, and refused without one of them."""
    names = ["read", "list", "write", "append", "delete"]
    sets = [[name for i, name in enumerate(names) if bits >> i & 1] for bits in range(1, 32)]
    command = ["--listen", "127.0.0.1:0", "--control", f"{top}/control"]
    for i, rights in enumerate(sets):
        for directory in ("e", "t", "rt"):
            os.makedirs(f"{top}/{i:02}/{directory}")
        for name in ("f", "a", "r", "t/f", "rt/f"):
            make_file(f"{top}/{i:02}/{name}", 100)
        command += ["--export", f"{i:02} {top}/{i:02} rights={','.join(rights)}"]
    daemon = Daemon(top, command=command)

    def fresh():
        session = Session(daemon.port, WAIT)
        session.hello()
        session.channels = session.open_channels(1)
        return session
    session = fresh()
    for i, rights in enumerate(sets):
        for needs_, type_, data in NEEDS:
            status, reply = session.ask(type_, data.replace(b"%s", b"%02d" % i))
            if type_ == iwarp.SETATTR and not status:  # which is of one path
                count, status = struct.unpack(">HH", reply[:4])
                equal(count, 1, "paths of SETATTR")
            may = set(needs_.split()) <= set(rights)
            what = f"type {type_} with {rights}: {reply!r}"
            if may:
                equal(status, 0, "granted", what)
            else:
                check(status in (201, 202), "refused", what, status)
            if type_ in TRANSFERS and may:
                session.close()
                for channel in session.channels:
                    channel.close()
                session = fresh()
            elif type_ in TRANSFERS:  # its channels are there for the next one
                equal(session.ask(iwarp.PING, b"cookie 8")[0], 0, "PING")
    for i, rights in enumerate(sets):
        with open(f"{top}/{i:02}/f", "rb") as f:
            equal(len(f.read()), 100, "the file with", rights)
        equal(sorted(os.listdir(f"{top}/{i:02}/t")), ["f"], "the tree with", rights)
    daemon.stop()


@case
def a_user_without_an_export(top):
    """A right password from a wrong address is refused as a wrong one is."""
    path = users(top, alice="a")
    daemon = several(top, f"far {top}/a addresses=192.0.2.0/24,2001:db8::/32", daemon_users=path)
    seen = []
    for password in (b"a", b"x"):
        session = Session(daemon.port, WAIT)
        session.hello(then_login=False)
        seen.append(session.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", password)))
        session.close()
    equal(seen[0], seen[1], "the answers")
    check(b"no export is for this user from this address" in daemon.stderr(), "the log", daemon.stderr())


@case
def exports_that_are_refused(top):
    os.mkdir(f"{top}/a")
    for exports, why in (([f"{top}/a", f"{top}/a"], "given twice"), ([f"{top}/a", f"x {top}/a"], "given twice"),
                         ([f"x {top}/a rights=read,fly"], "fly"), ([f"x {top}/a users="], "is no user"),
                         ([f"x {top}/a users=@admins"], "@admins"), ([f"x {top}/a addresses=1.2.3.4/8"], "1.2.3.4/8"),
                         ([f"x {top}/a addresses=host"], "host"), ([f"x {top}/a nonsense"], "nonsense"),
                         ([f".x {top}/a"], "no name for an export"), ([f"x {top}/missing"], "missing")):
        command = ["--listen", "127.0.0.1:0"]
        for e in exports:
            command += ["--export", e]
        try:
            Daemon(top, command=command)
            raise rftptest.Failure(f"{exports} is served")
        except rftptest.NotReady as e:
            equal(e.code, 2, "exit code", e.said)
            check(why.encode() in e.said, why, "in", e.said)


# ---- what is told of it ----

@case
def who_did_it(top):
    """The audit log, rftpctl who and the statistics name user and export."""
    path = users(top, alice="a")
    for name in "ab":
        os.makedirs(f"{top}/{name}")
        make_file(f"{top}/{name}/f", 100)
    daemon = Daemon(top, command=["--listen", "127.0.0.1:0", "--users", path, "--audit-log", f"{top}/audit", "--control",
                                  f"{top}/control", "--export", f"one {top}/a rights=read,list,write,delete", "--export",
                                  f"two {top}/b"])
    works("--password-command", "echo a", "-c", f"get one/f {top}/got; rm one/f", url(daemon, "alice"))
    fails(REFUSED, "--password-command", "echo x", "-c", "ls", url(daemon, "alice"))
    wait_until(lambda: open(f"{top}/audit").read().count('"end"') == 2, "both sessions end")
    with open(f"{top}/audit") as f:
        events = [json.loads(line) for line in f]
    logins = [(e["user"], e["method"], e["status"]) for e in events if e["event"] == "login"]
    equal(logins, [("alice", "password", "ok"), ("alice", "password", "login")], "logins")
    for event in ("get", "rm"):
        found = [e for e in events if e["event"] == event]
        equal([(e["user"], e["export"], e["status"]) for e in found], [("alice", "one", "ok")], event, events)
    equal(["user" in e for e in events if e["event"] == "end"], [True, False], "whose the end is")
    check(not any("echo" in json.dumps(e) for e in events), "secrets", events)
    session = Session(daemon.port, WAIT)
    session.hello(then_login=False)
    equal(session.ask(iwarp.LOGIN, iwarp.login(iwarp.PASSWORD, b"alice", b"a"))[0], 0, "LOGIN")
    ctl = [os.path.join(rftptest.BUILD, "rftpctl"), "-s", f"{top}/control"]
    who = subprocess.run([*ctl, "who"], capture_output=True, text=True, timeout=WAIT).stdout
    check("alice" in who.splitlines()[1].split(), "who:", who)
    who = json.loads(subprocess.run([*ctl, "--json", "who"], capture_output=True, text=True, timeout=WAIT).stdout)
    equal(who["user"], "alice", "who --json")
    stats = json.loads(subprocess.run([*ctl, "--json", "stats"], capture_output=True, text=True, timeout=WAIT).stdout)
    equal([row["export"] for row in stats["by"]], ["one"], "exports in the statistics")
    equal(stats["logins_failed_total"], 1, "failed logins")
    session.close()


@case
def a_login_that_is_tried(top):
    path = users(top, alice="a")
    daemon = several(top, f"one {top}/a rights=read,list,write", f"two {top}/b users=alice", daemon_users=path)
    out = works("--password-command", "echo a", "login", url(daemon, "alice")).out.decode()
    for words in ("alice (password)", "read,list,write (not in every export)", "one", "two"):
        check(words in out, words, "in", out)
    events = works("--json", "--password-command", "echo a", "login", url(daemon, "alice")).events()
    equal([(e["user"], e["method"], e["rights"], e["home"]) for e in events if e["event"] == "login"],
          [("alice", "password", "read,list,write", "/")], "login")
    equal([e["name"] for e in events if e["event"] == "export"], ["one", "two"], "exports")
    fails(REFUSED, "--password-command", "echo b", "login", url(daemon, "alice"))
    for arguments in (("login",), ("login", f"{top}/a"), ("login", daemon.url(), daemon.url())):
        fails(USAGE, *arguments, says="login takes one URL")


@case
def why_says_the_client(top):
    """rftp -vv tells what was tried."""
    daemon = served(top, alice="sesame")
    result = fails(REFUSED, "-vv", "--password-command", "echo wrong", "-c", "ls", url(daemon, "alice"))
    for words in (b"login: password of alice", b"the server does not take it (password)"):
        check(words in result.err, words, "in", result.err)
    check(b"wrong" not in result.err, "the password", result.err)
    result = fails(REFUSED, "-vv", "-c", "ls", daemon.url())
    check(b"the server does not take it (anonymous)" in result.err, result.err)


@case
def what_there_is_to_show(top):
    """And why there is not more: rftp -vv says it of the agent, the usual key, and the server's methods."""
    needs("ssh-keygen")
    daemon = keyed(top, alice=keygen(f"{top}/alice"))
    os.makedirs(f"{top}/home/.ssh")
    usual, env = f"{top}/home/.ssh/id_ed25519", {"HOME": f"{top}/home", "SSH_AUTH_SOCK": ""}

    def says(*words, arguments=()):
        result = fails(REFUSED, "-vv", *arguments, "-c", "ls", url(daemon, "alice"), env=env)
        for one in words:
            check(one.encode() in result.err, one, "in", result.err)
    says("no ssh-agent: SSH_AUTH_SOCK is not set", "id_ed25519: No such file", "the server knows the methods publickey")
    shutil.copy(f"{top}/alice", usual)
    os.chmod(usual, 0o644)
    says("chmod 600")
    private(usual, "hello\n")
    says("not a private key of OpenSSH")
    says("--identity names a key of OpenSSH", arguments=("--key", f"{top}/alice"))


if __name__ == "__main__":
    rftptest.main(together=4)
