#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's "Everyday use", line by line, as somebody types it who has just started the daemon on an
empty directory."""

import os
import re
import shlex

import rftptest
from rftptest import Daemon, case, check, equal, finish, make_file, same_files, spawn, tree

# what the examples are too large for, or this host has not
SMALLER = (("16G", "16M"), ("/run/cam1.fifo", "cam1.fifo"))
# what the reader is taken to have, and the names that the examples must leave at the server
LOCAL = ("results.tar", "a.dat", "b.dat", "c.dat", "experiment/run1/log", "src/main.c",
         "results/one", "results/two/three", "today.log")
REMOTE = ("results.tar", "2024/experiment/run1/log", "incoming/a.dat", "incoming/b.dat", "incoming/c.dat",
          "src.tar", "src/main.c", "results/two/three", "from-batch", "all.log",
          "cams/cam1/00000001.seg", "cams/cam2/00000001.seg")


def examples():
    """The indented lines of the section, without their comments."""
    with open(os.path.join(rftptest.REPOSITORY, "README.md")) as f:
        section = re.search(r"^## Everyday use\n(.*?)^## ", f.read(), re.S | re.M)[1]
    lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    return [re.sub(r"\s{2,}#.*", "", line) for line in lines]


@case
def everyday_use_works_on_a_fresh_export(top):
    for name in ("export", "local", "local/bin", "local/logs"):
        os.mkdir(os.path.join(top, name))
    local = os.path.join(top, "local")
    for name in LOCAL:
        os.makedirs(os.path.dirname(os.path.join(local, name)), exist_ok=True)
        make_file(os.path.join(local, name), 100000)
    with open(os.path.join(local, "commands.txt"), "w") as f:
        f.write("mkdir from-batch\n")
    with open(os.path.join(local, "bin/ffmpeg"), "w") as f:
        f.write("#!/bin/sh\nexec echo pictures\n")
    os.chmod(os.path.join(local, "bin/ffmpeg"), 0o755)
    os.mkfifo(os.path.join(local, "cam1.fifo"))

    lines = examples()
    check(len(lines) > 9 and lines[0].startswith("rftpd "), "the examples:", lines)
    words = shlex.split(lines.pop(0))[1:]
    for option, value in (("--listen", "127.0.0.1:0"), ("--export", os.path.join(top, "export") + ":rw")):
        check(option in words, "no", option, "in", words)
        words[words.index(option) + 1] = value
    daemon = Daemon(os.path.join(top, "export"), command=words)

    env = rftptest.clean_environment({"HOME": local})
    env["PATH"] = f"{os.path.join(local, 'bin')}:{os.path.abspath(rftptest.BUILD)}:{env['PATH']}"
    for line in lines:
        check("rftp://localhost/" in line, "which server does this ask:", line)
        command = line.replace("rftp://localhost/", daemon.url(""))
        for large, small in SMALLER:
            command = command.replace(large, small)
        writer = spawn(["sh", "-c", "echo frames >cam1.fifo"], cwd=local) if "cam1.fifo" in command else None
        result = finish(spawn(["sh", "-c", command], cwd=local, env=env, stdin=rftptest.subprocess.DEVNULL,
                              stdout=rftptest.subprocess.PIPE, stderr=rftptest.subprocess.PIPE))
        equal(result.code, 0, "exit code of", line, "which said", result)
        # a command whose error is ignored is one that the README ignores it of
        if "-rm " not in line:
            check(b"error" not in result.err, line, "said", result)
        if writer:
            equal(writer.wait(20 * rftptest.PATIENCE), 0, "exit code of the FIFO's writer")
    there = tree(daemon.top)
    for name in REMOTE:
        check(name.encode() in there, name, "is not at the server, but", sorted(there))
    for name in LOCAL[:1]:
        same_files(os.path.join(local, name), daemon.path(name))


rftptest.main()
