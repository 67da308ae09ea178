# SPDX-License-Identifier: Apache-2.0
"""A daemon with two users, two exports, and a configuration that can be written again; for the tests of limits."""

import json
import os
import signal
import subprocess

import rftptest
from rftptest import Daemon, equal, start_rftp, wait_until


class Users(Daemon):
    """alice and bob; exports a and b, both theirs."""

    def __init__(self, top, *lines):
        for name in ("a", "b"):
            os.makedirs(f"{top}/{name}", exist_ok=True)
        for user in ("alice", "bob"):
            done = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "passwd", user, "--users", f"{top}/users"],
                                  input=b"secret\n", capture_output=True, env=rftptest.clean_environment())
            equal(done.returncode, 0, "passwd", done.stderr)
        with open(f"{top}/password", "w") as f:
            f.write("secret\n")
        os.chmod(f"{top}/password", 0o600)
        self.directory = top
        self.login = ["--password-file", f"{top}/password"]
        self.control, self.config = f"{top}/control", f"{top}/conf"
        self.write(*lines)
        super().__init__(top, command=["--config", self.config, "--listen", "127.0.0.1:0"])

    def write(self, *lines):
        top = self.directory
        with open(self.config, "w") as f:
            f.write("\n".join([f"export = {name} {top}/{name} rights=read,list,write,delete,append" for name in "ab"] +
                              [f"users = {top}/users", f"control = {self.control}", "log-level = debug",
                               "anonymous = yes", "insecure = yes", *lines, ""]))

    def reload(self, *lines):
        self.write(*lines)
        before = self.stderr().count(b"is in use")
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.stderr().count(b"is in use") > before, lambda: f"no reload: {self.stderr()[-500:]!r}")

    def ctl(self, *words, code=0):
        done = subprocess.run([os.path.join(rftptest.BUILD, "rftpctl"), "-s", self.control, *words],
                              capture_output=True, env=rftptest.clean_environment())
        equal(done.returncode, code, "rftpctl", words, done.stderr)
        return (done.stderr if code else done.stdout).decode()

    def rules(self):
        shown = [json.loads(line) for line in self.ctl("--json", "limit").splitlines()]
        return [o["value"] for o in shown if o["name"] == "limit"]

    def at(self, user, path=""):
        return self.url(path).replace("//", f"//{user}@") if user else self.url(path)

    def shell(self, user, *words):
        """A session that stays, once it has listed a directory."""
        client = start_rftp(*(self.login if user else []), "-b", "-", self.at(user, *words), stdin=-1)
        client.stdin.write(b"ls\n")
        client.stdin.flush()
        client.stdout.readline()
        return client

    def ls(self, user, path=""):
        return (*(self.login if user else []), "-c", "ls", self.at(user, path))

    def begins(self, user, source, to):
        """A put that is under way."""
        names = set(os.listdir(f"{self.directory}/{to[0]}"))
        client = start_rftp(*(self.login if user else []), source, self.at(user, to))
        wait_until(lambda: set(os.listdir(f"{self.directory}/{to[0]}")) - names, "it begins", 30)
        return client
