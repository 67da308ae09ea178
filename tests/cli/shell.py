#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shell: commands from -c, -b and stdin, and a person at a terminal."""

import errno
import os
import pty
import re
import select
import signal
import termios
import time

import rftptest
from rftptest import FAILED, KIND, NO_FILE, USAGE, Daemon, Proxy, case, check, equal, fails, \
    leftovers, make_file, same_files, skip, tree, wait_until, works


def places(top, *arguments):
    for name in ("export", "local"):
        os.mkdir(os.path.join(top, name))
    return Daemon(os.path.join(top, "export"), "rw", *arguments), os.path.join(top, "local")


# ---- scripts ----

@case
def every_command(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 70000)
    make_file(daemon.path("there"), 1234)
    os.mkdir(f"{local}/below")
    out = works("-c", f"""lcd {local}; lpwd; lls; pwd; ls -l; mkdir d; put f; put f d/g; cd d; pwd; ls
mv g h; stat h; get h; get h below/i; rm h; cd ..; rmdir d; df; ls; help; set; set block 64K
set block; put f j; get j below""", daemon.url("")).out
    equal(sorted(tree(daemon.top)), [b"f", b"j", b"there"], "the export")
    for name in ("h", "below/i", "below/j"):
        same_files(f"{local}/f", f"{local}/{name}")
    for word in (local.encode(), b"below", b"there", b"1234", b"70000", b"/d", b"block", b"64"):
        check(word in out, "the output lacks", word, ":", out)
    for command in ("open", "close", "ls", "cd", "pwd", "lcd", "lls", "lpwd", "get", "put", "mkdir",
                    "rmdir", "rm", "mv", "stat", "df", "set", "help", "quit", "bench"):
        check(command.encode() in out, "help does not name", command)
        help_ = works("-c", f"help {command}", daemon.url("")).out
        check(command.encode() in help_, "help", command, "says", help_)
    # help, the help of each, and the manual page name the same commands
    with open(os.path.join(rftptest.REPOSITORY, "man", "rftp.1")) as page:
        page = page.read()
    listed = re.findall(r"(?m)^  (!|[a-z]+) ", works("-c", "help").out.decode())
    check(len(listed) > 30 and "!" in listed and "mget" in listed, listed)
    for command in listed:
        check(command in works("-c", f"help {command}").out.decode(), "help", command)
        item = r"\\&!" if command == "!" else rf"{command}\b"
        check(re.search(rf"(?m)^\.It Ic {item}", page), "rftp(1) lacks", command)


@case
def open_close_and_open_again(top):
    daemon, local = places(top)
    make_file(f"{local}/f", 100)
    works("-c", f"open {daemon.url('')}; put {local}/f; close; open {daemon.url('')}; ls; quit; nonsense")
    same_files(f"{local}/f", daemon.path("f"))
    result = rftptest.rftp("-c", "ls")
    check(result.code not in (0, rftptest.LOST), "ls without a connection:", result)
    check(b"open" in result.err or b"connect" in result.err, "message:", result)
    result = rftptest.rftp("-c", "close; ls", daemon.url(""))
    check(result.code != 0, "ls after close:", result)


@case
def it_stops_at_the_first_error(top):
    daemon, local = places(top)
    fails(NO_FILE, "-c", "mkdir a; rm missing; mkdir b", daemon.url(""), says="missing")
    equal(tree(daemon.top), {b"a": None}, "after an error")
    result = works("-c", "mkdir c; -rm missing; mkdir d", daemon.url(""))
    check(b"missing" in result.err, "an ignored error is said:", result)
    equal(sorted(tree(daemon.top)), [b"a", b"c", b"d"], "after an ignored error")
    fails(USAGE, "-c", "mkdir e; nonsense; mkdir f", daemon.url(""), says="nonsense")
    check("f" not in os.listdir(daemon.top), "it went on after an unknown command")


@case
def a_batch_file_and_stdin(top):
    daemon, local = places(top)
    with open(f"{local}/batch", "w") as f:
        f.write("# a comment\n\nmkdir one\n  mkdir 'two words' ; mkdir three\n-rm missing\n"
                "mkdir four # and a comment\nrm missing\nmkdir five\n")
    fails(NO_FILE, "-b", f"{local}/batch", daemon.url(""), says="missing")
    equal(sorted(tree(daemon.top)), [b"four", b"one", b"three", b"two words"], "the batch file")
    works("-b", "-", daemon.url(""), input=b"mkdir six\nmkdir seven")
    works(daemon.url(""), input=b"mkdir eight\nls\n")
    for name in ("six", "seven", "eight"):
        check(os.path.isdir(daemon.path(name)), name, "is missing")
    fails((NO_FILE, rftptest.LOCAL_IO), "-b", f"{local}/no-batch", daemon.url(""), says="no-batch")
    fails(KIND, "-b", local, daemon.url(""), says="is a directory")


@case
def patterns(top):
    daemon, local = places(top)
    for name in ("a1", "a2", "b1", "[x]"):
        make_file(f"{local}/{name}", 10)
        make_file(daemon.path("r" + name), 10)
    works("-c", f"lcd {local}; put a*; get r[ab]1; put '[x]'", daemon.url(""))
    for name in ("a1", "a2", "[x]"):
        check(os.path.exists(daemon.path(name)), name, "did not come over")
    for name in ("ra1", "rb1"):
        check(os.path.exists(f"{local}/{name}"), name, "did not come back")
    check(not os.path.exists(daemon.path("b1")), "b1 came over")
    works("-c", f"mkdir m; cd m; lcd {local}; mput a1 b*; mget ../ra1 ../r[[]x]", daemon.url(""))
    equal(sorted(os.listdir(daemon.path("m"))), ["a1", "b1"], "mput: the last name is a source, too")
    check(os.path.exists(f"{local}/r[x]") and os.path.exists(f"{local}/ra1"), "mget")
    fails((NO_FILE, FAILED), "-c", f"lcd {local}; put z*", daemon.url(""), says="z*")


@case
def what_is_wrong_is_what_is_said(top):
    daemon, local = places(top)
    for url, why in (("sftp://127.0.0.1/", "only rftp://"), ("127.0.0.1:99999", "1 to 65535"),
                     ("rftp://127.0.0.1:x/", "1 to 65535"), ("rftp://::1/", "brackets")):
        fails(USAGE, "-c", f"open {url}", says=why)
    for names in (("a", "sftp://127.0.0.1/"), ("sftp://127.0.0.1/a", "."), ("sftp://127.0.0.1/",)):
        fails(USAGE, *names, says="only rftp://")
    for names in (("feed",), ("feed", daemon.url(""))):
        result = fails(USAGE, *names, says="usage: rftp feed NAME=SOURCE")
        check(b"./feed" in result.err, "a file of this name:", result)


@case
def listings_show_names_as_they_were_given(top):
    daemon, _ = places(top)
    os.makedirs(daemon.path("sub/a b"))
    for name in ("hello", "sub/f", "sub/a b/g"):
        make_file(daemon.path(name), 10)
    os.symlink("nowhere", daemon.path("dangling"))
    for command, said in (
            ("ls hello", "hello"), ("ls /hello", "/hello"), ("ls *", "dangling\nhello\n\nsub:\na b\nf"),
            ("ls ..", "dangling\nhello\nsub"), ("cd ..; ls ../../sub", "a b\nf"),
            ("cd sub; ls ../hello ../h*", "../hello\n../hello"), ("ls sub/f sub/[f]", "sub/f\nsub/f"),
            ("cd sub; ls a\\ b/* './a b/?'", "a b/g"), ("ls dangling", "dangling"),
            ("cd sub; ls ../d*", "../dangling"), ("ls -1 /s*/f", "/sub/f")):
        result = rftptest.rftp("-c", command, daemon.url(""))
        if "?" in command:
            equal(result.code, NO_FILE, command)  # it was quoted
        else:
            equal((result.code, result.err), (0, b""), command)
        equal(result.out.decode().strip(), said, command)
    out = works("-c", "ls -l d*", daemon.url("")).out
    check(out.startswith(b"l"), "a link that leads nowhere")
    targets = {e: os.readlink(daemon.path(e)) for e in os.listdir(daemon.path("")) if os.path.islink(daemon.path(e))}
    check(targets, "there are links")
    lines = works("-c", "ls -la", daemon.url("")).out.decode().splitlines()
    equal({line.split(" -> ")[0].split()[-1]: line.split(" -> ")[1] for line in lines if " -> " in line}, targets, "ls -l")
    told = works("--json", "-c", "ls -a", daemon.url("")).events()
    equal({e["name"]: e["target"] for e in told if e["event"] == "entry" and "target" in e}, targets, "--json")
    fails(NO_FILE, "-c", "ls missing", daemon.url(""), says="missing")


@case
def small_comforts(top):
    daemon, local = places(top)
    for name in ("one", "two"):
        os.mkdir(f"{local}/{name}")
    out = works("-c", f"lcd {local}/one; lcd ../two; lcd -; lpwd; lcd -; lpwd").out.decode().split()
    equal(out, [f"{local}/one", f"{local}/two"], "lcd -")
    env = dict(os.environ)
    env.pop("OLDPWD", None)
    process = rftptest.spawn(rftptest.client_command(["-c", "lcd -"]), stderr=-1, stdout=-1, env=env)
    result = rftptest.finish(process)
    check(result.code == USAGE and b"no other local directory" in result.err, result)
    equal(works("-c", "?").out, works("-c", "help").out, "?")
    for command, flag in (("get", "-r"), ("get", "-n"), ("ls", "-a"), ("mkdir", "-p"), ("df", "-h")):
        check(re.search(rf"(?m)^ +{flag}  ", works("-c", f"help {command}").out.decode()), "help", command, flag)
    size = [works("-c", f"df {flag}", daemon.url("")).out.split()[5].decode() for flag in ("", "-h")]
    check(size[0].isdigit() and int(size[0]) > 1 << 20, "df in bytes:", size)
    check(not size[1].isdigit() and len(size[1]) <= 5, "df -h:", size)


@case
def what_an_error_drops_is_said(top):
    daemon, _ = places(top)
    result = fails(NO_FILE, "-c", "rm missing; mkdir a; ls # b", daemon.url(""), says="not run after the error: mkdir a; ls")
    check(b"not run" not in fails(NO_FILE, "-c", "rm missing ; # nothing", daemon.url("")).err, result)
    check(b"not run" not in works("-c", "-rm missing; mkdir a", daemon.url("")).err, "an error that is ignored")


@case
def names_beneath_the_home_directory(top):
    daemon, local = places(top)
    os.mkdir(f"{local}/a [home] $HOME")
    env = {"HOME": f"{local}/a [home] $HOME"}
    result = fails(NO_FILE, "-c", "put ~/.bashrc", daemon.url(""), env=env, says="no such file")
    check(b".bashrc" in result.err, "no name in", result)
    fails(NO_FILE, "-c", "put ~nobody-of-this-name/x", daemon.url(""), env=env, says="home directory")
    make_file(f"{local}/a [home] $HOME/f", 100)
    make_file(f"{local}/~x", 10)
    works("-c", f"lcd {local}; put ~?; rm '~x'", daemon.url(""), env=env)
    works("-c", "put ~/f; get f ~/new; lcd ~; put ~/n* n", daemon.url(""), env=env)
    for name in (daemon.path("f"), f"{local}/a [home] $HOME/new", daemon.path("n")):
        same_files(f"{local}/a [home] $HOME/f", name)


@case
def two_dashes_end_the_flags(top):
    """Of every command that takes names, so that those which begin with a dash can be given."""
    daemon, local = places(top)
    make_file(f"{local}/-r", 30)
    make_file(f"{local}/-n", 40)
    os.mkdir(daemon.path("-d"))
    works("-c", f"lcd -- {local}; put -- -r -n .; cd -- -d; append -- -r; append -o 5 -- -n other; cd -; get -- -n copy",
          daemon.url(""))
    for there, here in (("-r", "-r"), ("-n", "-n"), ("-d/-r", "-r")):
        same_files(f"{local}/{here}", daemon.path(there))
    same_files(f"{local}/-n", f"{local}/copy")
    with open(daemon.path("-r"), "rb") as f:
        equal(works("-c", "cat -- -r", daemon.url("")).out, f.read(), "cat")
    for command in ("stat -- -r", f"lcd {local}; cmp -- -r", "sum -- -r", "ls -l -- -r", "du -- -d", "df -h -- -d",
                    f"lcd {local}; mirror -R -n -- . -d", "touch -- -r", "chmod -- 600 -r", "mv -- -r -x", "rm -- -x",
                    "rm -r -- -d", "mkdir -- -d", "rmdir -- -d"):
        works("-c", command, daemon.url(""))
    for command in ("cd -- a b", "df a b", "cmp --", "cat --"):
        fails(USAGE, "-c", command, daemon.url(""), says="usage:")


@case
def here_is_called_by_its_name(top):
    daemon, _ = places(top)
    os.makedirs(daemon.path("a/b"))
    for command, wanted in (("find .", b"/a\n/a/b\n"), ("find ./b", b"/a/b\n"), ("find ..", b"/\n/a\n/a/b\n")):
        equal(works("-c", f"cd a; {command}", daemon.url("")).out, wanted, command)
    fails(KIND, "-c", "rm -r /", daemon.url(""), says="the top cannot be removed")
    fails(KIND, "-c", "cd a; rm -r .", daemon.url(""), says="by its name")
    check(os.path.isdir(daemon.path("a/b")), "something was removed")


@case
def the_systems_shell(top):
    daemon, local = places(top)
    result = works("-c", f"lcd {local}; !echo said; echo and >done", daemon.url(""))
    check(b"said" in result.out, "no output of !:", result)


@case
def json_results_of_commands(top):
    daemon, local = places(top)
    make_file(daemon.path("f"), 321)
    events = works("--json", "-c", "ls; stat f; df; pwd", daemon.url("")).events()
    check(len(events) >= 4, "events:", events)
    check(any(321 in e.values() or any(isinstance(v, list) and any(321 in x.values() for x in v
              if isinstance(x, dict)) for v in e.values()) for e in events), "no size in", events)
    result = rftptest.rftp("--json", "-c", "rm missing", daemon.url(""))
    equal(result.code, NO_FILE, "exit code")
    errors = [e for e in result.events() if e["event"] == "error"]
    equal(errors[0]["code"], NO_FILE, "code in JSON")


# ---- a terminal ----

class Terminal:
    """rftp with a terminal as stdin, stdout and stderr."""

    def __init__(self, *arguments, home):
        try:
            self.master, slave = pty.openpty()
        except OSError as e:
            skip(f"no pseudo-terminals here: {e}")
        env = rftptest.clean_environment({"TERM": "vt100", "HOME": home, "INPUTRC": "/dev/null",
                                          "COLUMNS": "200", "LINES": "50"})
        for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            env.pop(name, None)
        # the terminal must be the controlling one, or ^C reaches nobody
        self.process = rftptest.subprocess.Popen(
            rftptest.client_command(arguments), stdin=slave, stdout=slave, stderr=slave, env=env,
            start_new_session=True, preexec_fn=lambda: self.control(slave))
        rftptest._started.append(self.process)
        os.close(slave)
        self.seen = b""
        self.all = b""

    @staticmethod
    def control(slave):
        import fcntl
        import termios
        rftptest.before_exec()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    def type(self, text):
        os.write(self.master, text.encode() if isinstance(text, str) else text)

    def read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            data = b""
        self.seen += data
        self.all += data
        return bool(data)

    def expect(self, pattern, seconds=15):
        """Reads until `pattern` has come; what came up to its end is consumed."""
        end = time.monotonic() + seconds * rftptest.PATIENCE
        while True:
            match = re.search(pattern, self.seen, re.S)
            if match:
                before = self.seen[:match.end()]
                self.seen = self.seen[match.end():]
                return before
            if time.monotonic() > end:
                break
            if not self.read(0.2) and self.process.poll() is not None:
                break
        raise rftptest.Failure(f"within {seconds * rftptest.PATIENCE} s the terminal does not show {pattern!r} "
                               f"but {self.all[-1500:]!r}\n{rftptest.states()}")

    PROMPT = rb"rftp[^\r\n]*> (?:\x1b\[[0-9;?]*[a-zA-Z])*$"

    def prompt(self):
        return self.expect(self.PROMPT)

    def end(self):
        while self.read(0.05):
            pass
        wait_until(lambda: (self.read(0.01), self.process.poll() is not None)[1], "the shell ends", 15)
        os.close(self.master)
        return self.process.returncode


@case
def prompt_and_commands_at_a_terminal(top):
    daemon, local = places(top)
    make_file(daemon.path("seen"), 10)
    t = Terminal(daemon.url(""), home=top)
    t.prompt()
    t.type("ls\n")
    t.expect(rb"seen")
    t.prompt()
    t.type("nonsense\n")
    t.expect(rb"nonsense.*nonsense")
    t.prompt()
    t.type("mkdir made\n")
    t.prompt()
    check(os.path.isdir(daemon.path("made")), "mkdir did nothing")
    t.type("quit\n")
    equal(t.end(), 0, "exit code of quit")


@case
def ctrl_c_leaves_the_line_and_keeps_the_session(top):
    daemon, local = places(top, "--bandwidth", "1M", "--share", "1M", "--turn", "none")
    make_file(f"{local}/f", 1000)
    with open("/dev/urandom", "rb") as endless:
        holder = rftptest.start_rftp("-", daemon.url("long"), stdin=endless)
    wait_until(lambda: leftovers(daemon.top), "the other's transfer")
    t = Terminal(daemon.url(""), home=top)
    t.prompt()
    for command in (f"put {local}/f /f", "get /seen"):
        make_file(daemon.path("seen"), 10)
        t.type(command + "\n")
        t.expect(rb"waiting: 1st in default")
        t.type(b"\x03")
        t.expect(rb"cancelled")
        t.prompt()
        t.type("ls\n")
        before = t.expect(rb"seen")
        check(b"again" not in before, "another session:", before)
        t.prompt()
    check(not os.path.exists(daemon.path("f")), "it was stored")
    rftptest.kill(holder)
    t.type(f"put {local}/f /f\n")
    t.prompt()
    same_files(f"{local}/f", daemon.path("f"))
    t.type("quit\n")
    t.end()


@case
def the_prompt_names_the_server_that_is_open(top):
    daemon, local = places(top)
    taken = rftptest.socket.socket()  # nobody listens on its port
    taken.bind(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    t = Terminal(home=top)
    t.expect(rb"rftp> $")
    t.type(f"open {daemon.url('')}\n")
    t.expect(rb"rftp 127\.0\.0\.1:%d:/> $" % daemon.port)
    t.type(f"open 127.0.0.1:{port}\n")
    t.expect(rb"refused.*rftp> $")
    t.type("ls\n")
    t.expect(rb"not connected.*rftp> $")
    t.type(f"open {daemon.url('')}\n")
    t.expect(rb"rftp 127\.0\.0\.1:%d:/> $" % daemon.port)
    daemon.kill()
    t.expect(rb"connection to 127\.0\.0\.1:%d lost.*rftp 127\.0\.0\.1:%d:/ \(lost\)> $" % (daemon.port, daemon.port))
    t.type("quit\n")
    equal(t.end(), 0, "exit code of quit")


@case
def an_ipv6_address_stands_in_brackets(top):
    os.mkdir(os.path.join(top, "export"))
    rftptest.needs_ipv6()
    daemon = Daemon(os.path.join(top, "export"), listen="[::1]:0")
    url = f"rftp://[::1]:{daemon.port}/"
    t = Terminal(url, home=top)
    t.expect(rb"rftp \[::1\]:%d:/> $" % daemon.port)
    t.type("pwd\n")
    t.expect(re.escape(url.encode()))
    t.prompt()
    t.type("quit\n")
    equal(t.end(), 0, "exit code of quit")


@case
def names_do_not_reach_the_terminal_as_they_are(top):
    daemon, local = places(top)
    for name in (b"colour\x1b[31m", b"two\nlines", b"bell\x07", b"not \xff utf-8"):
        make_file(os.fsencode(daemon.top) + b"/" + name, 10)
    t = Terminal("-c", "ls; ls -l", daemon.url(""), home=top)
    equal(t.end(), 0, "exit code", t.all)
    check(t.all.count(b"colour") == 2, "no listing:", t.all)
    for raw in (b"\x1b[31m", b"\x07", b"two\r\n", b"\xff"):
        check(raw not in t.all, "the listing shows", raw, "as it is:", t.all)


@case
def end_of_file_ends_it(top):
    daemon, local = places(top)
    t = Terminal(daemon.url(""), home=top)
    t.prompt()
    t.type(b"\x04")
    equal(t.end(), 0, "exit code of ^D")


@case
def completion_of_commands_and_paths(top):
    daemon, local = places(top)
    os.mkdir(daemon.path("directory-one"))
    make_file(daemon.path("directory-one/inside-file"), 10)
    make_file(f"{local}/local-file", 4321)
    t = Terminal(daemon.url(""), home=top)
    t.prompt()
    t.type(f"lcd {local}\n")
    t.prompt()
    t.type("mkd\t")
    t.expect(rb"mkdir ")
    t.type("made-by-completion\n")
    t.prompt()
    check(os.path.isdir(daemon.path("made-by-completion")), "no command from completion")
    t.type("put loc\t")
    t.expect(rb"local-file")
    t.type("\n")
    t.expect(t.PROMPT)
    wait_until(lambda: os.path.exists(daemon.path("local-file")), "put of a completed local name")
    t.type("cd dir\t")
    t.expect(rb"directory-one")
    t.type("\n")
    t.prompt()
    t.type("get ins\t")
    t.expect(rb"inside-file")
    t.type("\n")
    t.expect(t.PROMPT)
    wait_until(lambda: os.path.exists(f"{local}/inside-file"), "get of a completed remote name")
    # "~" is a home directory (here: top) and stays what it is; the name behind it is quoted
    os.mkdir(f"{top}/the home")
    make_file(f"{top}/the home/in it", 77)
    t.type("put ~/the\t")
    t.expect(rb"~/the\\ home/")
    t.type("in\t")
    t.expect(rb"in\\ it ")
    t.type("\n")
    t.expect(t.PROMPT)
    wait_until(lambda: os.path.exists(daemon.path("directory-one/in it")), "put of a name in the home directory")
    t.type("quit\n")
    equal(t.end(), 0, "exit code")


@case
def history_within_and_between_sessions(top):
    daemon, local = places(top)
    t = Terminal(daemon.url(""), home=top)
    t.prompt()
    t.type("mkdir from-history\n")
    t.prompt()
    t.type("rmdir from-history\n")
    t.prompt()
    t.type(b"\x1b[A\x1b[A\n")  # up, up
    t.prompt()
    check(os.path.isdir(daemon.path("from-history")), "the line before the last did not come back")
    t.type("quit\n")
    equal(t.end(), 0, "exit code")
    t = Terminal(daemon.url(""), home=top)
    t.prompt()
    os.rmdir(daemon.path("from-history"))
    t.type(b"\x1b[A\x1b[A\n")  # quit, then the mkdir
    t.prompt()
    check(os.path.isdir(daemon.path("from-history")), "history did not outlive the session")
    t.type("quit\n")
    t.end()


@case
def history_of_two_shells(top):
    """Each saves what is its own; neither takes the other's away."""
    daemon, local = places(top)
    shells = [Terminal(daemon.url(""), home=top) for _ in range(2)]
    for number, t in enumerate(shells):
        t.prompt()
        t.type(f"mkdir of-shell-{number}\n")
        t.prompt()
    for t in shells:
        t.type("quit\n")
        equal(t.end(), 0, "exit code")
    path = f"{top}/.local/state/rftp/history"
    lines = open(path).read().splitlines()
    equal(lines, ["mkdir of-shell-0", "quit", "mkdir of-shell-1", "quit"], "the history")
    equal(os.stat(path).st_mode & 0o777, 0o600, "its mode")
    # it does not grow for ever
    with open(path, "w") as f:
        f.write("pwd\n" * 3000)
    t = Terminal(daemon.url(""), home=top)
    t.prompt()
    t.type("quit\n")
    t.end()
    lines = open(path).read().splitlines()
    equal((len(lines), lines[-1]), (2000, "quit"), "lines that are kept")


@case
def interrupt_returns_to_the_prompt(top):
    daemon, local = places(top)
    make_file(f"{local}/big", 64 << 20)
    proxy = Proxy(daemon.port, hold=8 << 20)
    t = Terminal(proxy.url(), home=top)
    t.prompt()
    t.type(b"half a line\x03")
    t.prompt()
    t.type(f"put {local}/big\n")
    wait_until(lambda: t.read(0.01) or proxy.held.is_set(), "the transfer begins")
    while not proxy.held.is_set():
        t.read(0.01)
    t.type(b"\x03")
    time.sleep(0.1)
    proxy.release()
    t.prompt()
    check(b"interrupt" in t.all.lower() or b"cancel" in t.all.lower(), "no word of it:", t.all[-500:])
    t.type("ls\nput " + local + "/big again\n")  # the session, or a new one, goes on
    wait_until(lambda: (t.read(0.01), os.path.exists(daemon.path("again")))[1], "a put afterwards")
    check(not os.path.exists(daemon.path("big")), "it arrived all the same")
    equal(len(leftovers(daemon.top)), 2, "what can be gone on with:", leftovers(daemon.top))
    t.type("put " + local + "/big\n")
    wait_until(lambda: (t.read(0.01), os.path.exists(daemon.path("big")))[1], "the rest of it")
    wait_until(lambda: (t.read(0.01), not leftovers(daemon.top))[1],
               lambda: f"temporary files are gone; the terminal shows {t.all[-1000:]!r}")
    t.type("quit\n")
    t.end()
    proxy.close()
    same_files(f"{local}/big", daemon.path("again"))
    same_files(f"{local}/big", daemon.path("big"))


@case
def job_control_at_the_prompt(top):
    """Ctrl-Z gives the terminal back as it was, and takes it again when it goes on; Ctrl-\\ does not end it."""
    daemon, _ = places(top)
    t = Terminal(daemon.url(""), home=top)
    found = termios.tcgetattr(t.master)
    found[3] |= termios.ECHO | termios.ICANON  # readline may have it already
    t.prompt()

    def echoes():
        t.read(0.01)
        return bool(termios.tcgetattr(t.master)[3] & termios.ECHO)

    check(not echoes(), "readline echoes itself")
    t.type(b"\x1c")  # which drops what was typed before it
    t.type("mkdir made\n")
    wait_until(lambda: (t.read(0.01), os.path.isdir(daemon.path("made")))[1], "Ctrl-\\ did nothing else")
    t.prompt()
    for _ in range(2):
        t.process.send_signal(signal.SIGTSTP)  # as Ctrl-Z does where there is a shell
        wait_until(lambda: os.waitid(os.P_PID, t.process.pid, os.WSTOPPED | os.WNOHANG), "it stops")
        check(echoes(), "the terminal is left as readline wants it")
        t.process.send_signal(signal.SIGCONT)
        t.prompt()
        check(not echoes(), "the terminal was not taken again")
    # stopped in a way that cannot be caught, by a shell that sets the terminal for itself
    t.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: os.waitid(os.P_PID, t.process.pid, os.WSTOPPED | os.WNOHANG), "it stops")
    termios.tcsetattr(t.master, termios.TCSANOW, found)
    t.process.send_signal(signal.SIGCONT)
    wait_until(lambda: not echoes(), "the terminal was not taken again")
    t.type("mkdir again\n")
    wait_until(lambda: (t.read(0.01), os.path.isdir(daemon.path("again")))[1], "it goes on")
    t.type("quit\n")
    equal(t.end(), 0, "exit code")


@case
def progress_on_a_terminal(top):
    daemon, local = places(top)
    make_file(f"{local}/big", 48 << 20)
    proxy = Proxy(daemon.port, hold=16 << 20)
    t = Terminal(f"{local}/big", proxy.url(), home=top)
    t.expect(rb"%")  # drawn while it waits
    proxy.release()
    equal(t.end(), 0, "exit code")
    check(re.search(rb"\d+(\.\d+)? ?[KMGT]?i?B/s", t.all), "no rate in", t.all[-500:])
    proxy.close()


@case
def the_daemon_goes_away_under_a_prompt(top):
    daemon, local = places(top)
    t = Terminal(daemon.url(""), home=top)
    t.prompt()
    daemon.kill()
    t.expect(rb"lost; the next command connects again")
    t.prompt()  # drawn anew behind that
    t.type("ls\n")
    t.expect(rb"refused")
    t.prompt()
    other = Daemon(daemon.top)
    t.type(f"open {other.url('')}\n")
    t.prompt()
    t.type("mkdir after\n")
    t.prompt()
    check(os.path.isdir(other.path("after")), "open again did not help")
    t.type("quit\n")
    t.end()


rftptest.main()
