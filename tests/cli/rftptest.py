# SPDX-License-Identifier: Apache-2.0
"""What the command line tests share: cases and TAP, a daemon on a free port, clean-up.

A test script defines functions decorated with @case and ends with main().  Every case has a
temporary directory of its own and a deadline; whatever it started is killed, by process group, when
it ends.  Nothing here knows what a case is about.

Arguments of a script: names of cases to run (default: all).
Environment:
    RFTP_BUILD   where rftp and rftpd are (default: build)
    RFTP_SEED    seed of what is random, printed when first used
    RFTP_SCALE   factor of loops and counts (default 1)
    RFTP_SAN     the sanitizers that the programs are built with: time limits grow
"""

import atexit
import ctypes
import contextlib
import fcntl
import functools
import glob
import hashlib
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback

ROOT = os.geteuid() == 0
NOBODY = 65534
SANITIZED = bool(os.environ.get("RFTP_SAN"))
SCALE = float(os.environ.get("RFTP_SCALE", "1"))
PATIENCE = 8 if SANITIZED else 1  # factor of every time limit

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("RFTP_BUILD") or os.path.join(REPOSITORY, "build")

# exit codes of rftp(1)
OK, FAILED, USAGE, CONNECT, LOST, PROTOCOL, NO_FILE, DENIED, NO_SPACE, INTEGRITY, KIND, CHANGED, \
    REFUSED, LOCAL_IO, UNTRUSTED = range(15)
INTERRUPTED = 130


class Failure(Exception):
    """A check that did not hold."""


class Skip(Exception):
    """Why this case cannot run here."""


def check(condition, *what):
    if not condition:
        raise Failure(" ".join(w if isinstance(w, str) else repr(w) for w in what) or "check failed")


def equal(got, wanted, *what):
    if got != wanted:
        raise Failure(f"{' '.join(map(str, what))}: {shorten(got)}, expected {shorten(wanted)}")


def shorten(value):
    text = repr(value)
    return text if len(text) < 600 else text[:300] + " ... " + text[-250:]


def skip(why):
    raise Skip(why)


def scaled(count, least=1):
    return max(least, int(count * SCALE))


# ---- seed ----

_random = None


def rng():
    global _random
    if _random is None:
        given = os.environ.get("RFTP_SEED")
        seed = int(given, 0) if given else time.time_ns() & 0xffffffff
        print(f"# seed {seed} (repeat with RFTP_SEED={seed})", flush=True)
        _random = random.Random(seed)
    return _random


# ---- processes ----

_started = []
_libc = ctypes.CDLL(None, use_errno=True)


def before_exec():
    """What every process begins with, whoever started this script: a shell's background job ignores SIGINT, and
    one of nohup SIGHUP."""
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: also when this script is killed itself
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def spawn(command, **options):
    """A process in a group of its own that does not outlive the case."""
    if "user" in options:
        # subprocess sets the ids before preexec_fn, and a change of ids clears the death signal
        options.setdefault("group", options["user"])
        options.setdefault("extra_groups", [])
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=before_exec,
                               **options)
    _started.append(process)
    return process


def kill(process, number=signal.SIGKILL):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def kill_all():
    while _started:
        process = _started.pop()
        if process.poll() is None:
            kill(process)
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                try:
                    stream.close()
                except OSError:
                    pass


atexit.register(kill_all)


def states():
    """What each thread of what was started waits for, where the kernel tells: when a case hangs."""
    lines = []
    for process in _started:
        if process.poll() is not None:
            continue
        for task in sorted(glob.glob(f"/proc/{process.pid}/task/*")):
            words = []
            for name in ("comm", "wchan", "stat"):
                with contextlib.suppress(OSError), open(f"{task}/{name}") as f:
                    text = f.read().strip()
                    # of stat: the state, and ticks of CPU time in user space and in the kernel
                    words += [text] if name != "stat" else [text.rpartition(")")[2].split()[i] for i in (0, 11, 12)]
            lines.append(f"  {shorten(process.args[0])} {task.rpartition('/')[2]}: {' '.join(words)}")
    return "\n".join(["still there:", *lines])


def wait_until(condition, what, seconds=10):
    """Waits for something that another process does."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"not within {seconds * PATIENCE} s: {what() if callable(what) else what}\n{states()}")
        time.sleep(0.005)


# ---- the client ----

class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"<exit {self.code}, stdout {shorten(self.out)}, stderr {shorten(self.err)}>"

    def events(self):
        """The JSON objects on stdout."""
        return [json.loads(line) for line in self.out.decode("utf-8", "surrogateescape").splitlines()
                if line.strip()]

    def done(self):
        done = [e for e in self.events() if e.get("event") == "done"]
        check(done, "no event done in", self)
        return done[-1]


def client_command(arguments):
    return [os.path.join(BUILD, "rftp"), *arguments]


@functools.cache
def state():
    """Where daemons keep their host key, and clients the keys that they trust: not the developer's own."""
    directory = tempfile.mkdtemp(prefix="rftp-state-")
    os.chmod(directory, 0o777)  # daemons of other users have theirs in it
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def clean_environment(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RFTP_")}
    env["STATE_DIRECTORY"] = os.path.join(state(), "daemon")
    env["XDG_CONFIG_HOME"] = os.path.join(state(), "config")
    env["HOME"] = os.path.join(state(), "home")  # no keys of the developer's log in
    for name in ("SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "DISPLAY", "WAYLAND_DISPLAY"):
        env.pop(name, None)
    env.setdefault("TSAN_OPTIONS", "halt_on_error=1")
    env.update(extra or {})
    return env


def start_rftp(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
               env=None, **options):
    return spawn(client_command(arguments), stdin=stdin, stdout=stdout, stderr=stderr,
                 env=clean_environment(env), **options)


def finish(process, input=None, timeout=60):
    try:
        out, err = process.communicate(input, timeout=timeout * PATIENCE)
    except subprocess.TimeoutExpired:
        there = states()
        kill(process, signal.SIGABRT if os.environ.get("RFTP_CORE") else signal.SIGKILL)
        out, err = process.communicate()
        raise Failure(f"{shorten(process.args)} did not end within {timeout * PATIENCE} s; "
                      f"stdout {shorten(out)}, stderr {shorten(err)}\n{there}")
    result = Result(process.returncode, out, err)
    no_sanitizer_report(err or b"", process.args)
    check(process.returncode >= 0 or -process.returncode in (signal.SIGKILL, signal.SIGTERM),
          "died of signal", -process.returncode, result)
    return result


def no_sanitizer_report(text, who):
    for word in (b"Sanitizer", b"runtime error:", b"Assertion"):
        if word in text:
            raise Failure(f"{shorten(who)}: {text[-3000:].decode('utf-8', 'replace')}")


def rftp(*arguments, input=None, timeout=60, **options):
    if input is not None:
        options["stdin"] = subprocess.PIPE
    return finish(start_rftp(*arguments, **options), input, timeout)


def on_terminal(*arguments, timeout=60, columns=80, **options):
    """-> what the client says on a terminal, as its bytes are, and its exit code"""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = start_rftp(*arguments, stdin=far, stdout=far, stderr=far, **options)
    os.close(far)
    out, end = b"", time.monotonic() + timeout * PATIENCE
    try:
        while select.select([near], [], [], max(0, end - time.monotonic()))[0]:
            out += os.read(near, 65536)
    except OSError:
        pass  # EIO: nobody has it open any more
    os.close(near)
    finish(process, None, max(1, end - time.monotonic()))
    return out, process.returncode


def works(*arguments, **options):
    result = rftp(*arguments, **options)
    check(result.code == OK, "rftp", *[repr(a) for a in arguments], "failed:", result)
    return result


def fails(code, *arguments, says=None, **options):
    """The client ends with `code` and one of `says` in its message, and says something anyway."""
    result = rftp(*arguments, **options)
    codes = code if isinstance(code, (tuple, list)) else (code,)
    check(result.code in codes, "rftp", *[repr(a) for a in arguments], f"should exit with {code}:",
          result)
    check(result.err.strip(), "no message:", result)
    if says is not None:
        wanted = says if isinstance(says, (tuple, list)) else (says,)
        text = result.err.lower()
        check(any(w.lower().encode() in text if isinstance(w, str) else w.lower() in text
                  for w in wanted), "message does not say", wanted, ":", result)
    return result


# ---- the daemon ----

class NotReady(Failure):
    """A daemon that has ended instead of being ready, or said something else."""

    def __init__(self, line, code, said):
        super().__init__(f"rftpd is not ready: it said {line!r}; exit code {code}, stderr: {said[-2000:]!r}")
        self.code, self.said = code, said


class Daemon:
    """rftpd on a free port of 127.0.0.1, serving `top`."""

    def __init__(self, top, mode="rw", *arguments, build=None, user=None, listen="127.0.0.1:0",
                 command=None, env=None):
        self.top = top
        self.log = tempfile.TemporaryFile()
        self.stopped = False
        command = command or ["--listen", listen, "--export", f"{os.fsdecode(top)}:{mode}"]
        options = {"user": user} if user is not None else {}
        if user is not None:
            env = {"STATE_DIRECTORY": os.path.join(state(), f"daemon-{user}")} | (env or {})
        self.process = spawn([os.path.join(build or BUILD, "rftpd"), *command, *arguments],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
                             env=clean_environment(env), **options)
        line = self.read_line(20)
        match = re.fullmatch(rb"ready (\S+):(\d+) (\S.*)\n", line)
        if not match:
            self.process.wait(5) if not line else kill(self.process)
            raise NotReady(line, self.process.returncode, self.stderr())
        self.host, self.port = match[1].decode(), int(match[2])
        self.fabrics = match[3].decode().split()
        _daemons.append(self)

    def read_line(self, seconds):
        fd = self.process.stdout.fileno()
        end = time.monotonic() + seconds * PATIENCE
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Failure(f"rftpd said {line!r} and no more within {seconds * PATIENCE} s; "
                              f"stderr: {self.stderr()[-2000:]!r}")
            byte = os.read(fd, 1)
            if not byte:
                break
            line += byte
        return line

    def stderr(self):
        self.log.seek(0)
        return self.log.read()

    def url(self, path=""):
        """An URL as bytes or text, as the path is."""
        start = f"rftp://{self.host}:{self.port}/"
        return start.encode() + path if isinstance(path, bytes) else start + path

    def path(self, name):
        return os.path.join(self.top, name)

    def alive(self):
        return self.process.poll() is None

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def resident_bytes(self, what="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith(what + ":"):
                    return int(line.split()[1]) * 1024
        raise Failure(f"no {what}")

    def peak_bytes(self):
        return self.resident_bytes("VmHWM")

    def settled(self):
        """(fds, threads) once no session is left: the same eight times in a row."""
        seen, same = None, 0
        end = time.monotonic() + 20 * PATIENCE
        while same < 8 and time.monotonic() < end:
            now = (self.fds(), self.threads())
            same = same + 1 if now == seen else 0
            seen = now
            time.sleep(0.01)
        return seen

    def back_to(self, before, what):
        """Descriptors and threads are what they were."""
        wait_until(lambda: (self.fds(), self.threads()) <= before and self.fds() <= before[0]
                   and self.threads() <= before[1],
                   f"{what}: descriptors and threads back to {before}, now "
                   f"{(self.fds(), self.threads())}", 30)

    def kill(self):
        kill(self.process)
        self.process.wait()
        self.stopped = True

    def stop(self):
        """SIGTERM; it must end by itself, with 0 and without a sanitizer's report."""
        if self.stopped:
            return
        self.stopped = True
        check(self.alive(), "rftpd ended by itself with", self.process.returncode, self.stderr()[-3000:])
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20 * PATIENCE)
        except subprocess.TimeoutExpired:
            kill(self.process)
            self.process.wait()
            raise Failure(f"rftpd did not end within {20 * PATIENCE} s of SIGTERM")
        text = self.stderr()
        no_sanitizer_report(text, "rftpd")
        equal(self.process.returncode, 0, "exit code of rftpd after SIGTERM, stderr",
              shorten(text[-1500:]))


_daemons = []


# ---- files ----

def needs(*programs):
    """Skips a case for which one of these is missing."""
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed")


def needs_ipv6():
    with socket.socket(socket.AF_INET6) as s:
        try:
            s.bind(("::1", 0))
        except OSError:
            skip("no ::1 here")


def run(*words):
    """What another program prints, which must not fail."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, *words, done.stdout)
    return done.stdout


def attributes_work(top):
    try:
        os.setxattr(top, "user.rftp", b"x")
        os.removexattr(top, "user.rftp")
    except OSError as e:
        skip(f"no extended attributes here: {e}")


def lists_work(top):
    needs("setfacl")
    if subprocess.run(["setfacl", "-m", "u:1:r", top], stderr=subprocess.DEVNULL).returncode:
        skip("no access control lists here")
    run("setfacl", "-b", top)


def opened_fifo(path):
    """-> a function that gives all that came through it since it was opened, without waiting"""
    fd, came = os.open(path, os.O_RDONLY | os.O_NONBLOCK), []

    def read():
        try:
            came.append(os.read(fd, 1 << 20))
        except BlockingIOError:
            pass
        return b"".join(came)
    return read


def make_file(path, size, mode=0o644):
    """A file of random bytes.  -> its bytes, when they are few"""
    data = rng().randbytes(min(size, 1 << 20))
    with open(path, "wb") as f:
        left = size
        while left:
            piece = data[:left] if left < len(data) else data
            f.write(piece)
            left -= len(piece)
            data = data[1:] + data[:1]
    os.chmod(path, mode)


def digest(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while piece := f.read(1 << 20):
            h.update(piece)
    return h.hexdigest()


def same_files(a, b, *what):
    check(os.path.isfile(b), *what, "is missing:", b)
    equal(os.path.getsize(b), os.path.getsize(a), *what, "size")
    equal(digest(b), digest(a), *what, "digest")


def tree(top):
    """{relative name: digest, or None for a directory} of everything beneath, hidden names too."""
    top = os.fsencode(top)
    found = {}
    for where, directories, files in os.walk(top):
        for name in directories:
            found[os.path.relpath(os.path.join(where, name), top)] = None
        for name in files:
            path = os.path.join(where, name)
            found[os.path.relpath(path, top)] = digest(path)
    return found


def leftovers(top):
    """Hidden temporary files beneath `top`; they may go while we look."""
    return [os.path.join(where, name) for where, _, files in os.walk(os.fsencode(top))
            for name in files if name.startswith(b".rftp-")]


def preloaded(name, **variables):
    """The environment of a program beneath which tests/preload/NAME.c lies."""
    library = os.path.join(BUILD, f"tests/preload/{name}.so")
    if SANITIZED or not os.path.exists(library):
        skip("tests/preload is not built, or not for sanitizers")
    return {"LD_PRELOAD": library} | variables


# ---- a proxy that cuts ----

class Proxy:
    """Carries TCP connections to `port`.  After `cut` bytes (of all connections, both ways together)
    every connection is reset; after `hold` bytes nothing is carried until release(); after `call`
    bytes `called` is called once, from a thread of the proxy.  What is carried takes `delay` seconds at
    least."""

    def __init__(self, port, cut=None, hold=None, call=None, called=None, delay=0):
        self.delay = delay
        self.target, self.cut, self.hold_at = port, cut, hold
        self.call_at, self.called = call, called
        self.carried = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        self.broken = threading.Event()
        self.held = threading.Event()
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, path=""):
        return f"rftp://127.0.0.1:{self.port}/{path}"

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            with self.lock:
                self.sockets += [near, far]
            for a, b in ((near, far), (far, near)):
                with contextlib.suppress(OSError):  # the cut may have come between
                    a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()
            if self.broken.is_set():
                self.reset()

    def count(self, data):
        """What of `data` may be carried now."""
        call = None
        with self.lock:
            if self.cut is not None and self.carried + len(data) >= self.cut:
                data = data[:max(self.cut - self.carried, 0)]
                self.broken.set()
            self.carried += len(data)
            if self.hold_at is not None and self.carried >= self.hold_at:
                self.hold_at = None
                self.held.set()
            if self.call_at is not None and self.carried >= self.call_at:
                self.call_at, call = None, self.called
        if call:
            call()
        return data

    def carry(self, a, b):
        try:
            while data := a.recv(65536):
                data = self.count(data)
                while self.held.is_set() and not self.broken.is_set():
                    time.sleep(0.005)
                if data:
                    time.sleep(self.delay)
                    b.sendall(data)
                if self.broken.is_set():
                    self.reset()
                    return
            b.shutdown(socket.SHUT_WR)
        except OSError:
            for s in (a, b):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def release(self, hold=None):
        """Carries on, for good (also when it had not come as far as to hold yet), or for `hold` bytes."""
        with self.lock:
            self.hold_at = self.carried + hold if hold else None
            self.held.clear()

    def reset(self):
        self.broken.set()
        with self.lock:
            for s in self.sockets:
                try:  # an RST, and not an orderly end
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.close()
        self.reset()
        with self.lock:
            for s in self.sockets:
                s.close()
            self.sockets.clear()


# ---- cases ----

_cases = []


def case(function=None, *, seconds=60):
    """Registers a case, called with its temporary directory."""
    if function is None:
        return functools.partial(case, seconds=seconds)
    _cases.append((function.__name__, function, seconds))
    return function


def _alarm(_signal, _frame):
    raise Failure("deadline of the case passed\n" + states())


def _run(function, seconds):
    top = tempfile.mkdtemp(prefix="rftp-cli-")
    os.chmod(top, 0o755)
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(int(seconds * PATIENCE * max(1, SCALE)))
    try:
        function(top)
        for daemon in _daemons:
            daemon.stop()
    finally:
        signal.alarm(0)
        texts = [d.stderr() for d in _daemons]
        for d in _daemons:
            d.log.close()
        _daemons.clear()
        kill_all()
        for where, names, _ in os.walk(top):
            for name in names:  # a case may have taken its own right to look
                path = os.path.join(where, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(top, ignore_errors=True)
        _run.logs = texts


def _tell(number, name, function, seconds):
    """Runs a case and prints what TAP has for it.  -> whether it failed"""
    try:
        _run(function, seconds)
        print(f"ok {number} - {name}", flush=True)
    except Skip as why:
        print(f"ok {number} - {name} # SKIP {why}", flush=True)
    except Exception as e:
        text = str(e) if isinstance(e, Failure) else ""
        where = [f for f in traceback.extract_tb(e.__traceback__)
                 if not f.filename.endswith("rftptest.py")]
        at = f"{os.path.basename(where[-1].filename)}:{where[-1].lineno}: " if where else ""
        lines = (text or traceback.format_exc()).splitlines()
        print(f"# {at}{lines[0] if lines else e!r}")
        for line in lines[1:]:
            print(f"#   {line}")
        for log in getattr(_run, "logs", []):
            for line in log.decode("utf-8", "backslashreplace").splitlines()[-25:]:
                print(f"#   rftpd: {line}")
        print(f"not ok {number} - {name}", flush=True)
        return True
    return False


def _start_beside(number, case):
    """A case in a process of its own.  -> its id, and what it prints"""
    out = tempfile.TemporaryFile()
    pid = os.fork()
    if pid:
        return pid, out
    failed = True
    try:
        _libc.prctl(1, signal.SIGKILL)
        os.dup2(out.fileno(), 1)
        failed = _tell(number, *case)
    finally:
        kill_all()
        sys.stdout.flush()
        os._exit(1 if failed else 0)  # what this process is to tidy up at its end is its parent's


def _run_beside(cases, together):
    """So many cases at a time; what they print comes in their order.  -> how many failed"""
    rng(), state()  # one for all of them
    sys.stdout.flush()
    running, printed, bad, shown = {}, {}, 0, 0
    # those that may take long first
    waiting = sorted(range(len(cases)), key=lambda number: -cases[number][2])
    while shown < len(cases):
        while waiting and len(running) < together:
            number = waiting.pop(0)
            pid, out = _start_beside(number + 1, cases[number])
            running[pid] = (number, out)
        pid, status = os.wait()
        number, out = running.pop(pid)
        with out:
            out.seek(0)
            text = out.read().decode("utf-8", "backslashreplace")
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            text += f"# its process ended with status {status}\nnot ok {number + 1} - {cases[number][0]}\n"
        bad += status != 0
        printed[number] = text
        while shown in printed:
            print(printed.pop(shown), end="", flush=True)
            shown += 1
    return bad


def main(together=1):
    """`together`: cases at a time, of a script most of whose time is spent waiting."""
    for program in ("rftp", "rftpd"):
        if not os.access(os.path.join(BUILD, program), os.X_OK):
            print(f"Bail out! {BUILD}/{program} is not there: build it first", flush=True)
            sys.exit(1)
    cases = [case for case in _cases if not sys.argv[1:] or case[0] in sys.argv[1:]]
    if together > 1 and len(cases) > 1:
        bad = _run_beside(cases, together)
    else:
        bad = sum(_tell(number, *case) for number, case in enumerate(cases, 1))
    print(f"1..{len(cases)}", flush=True)
    sys.exit(1 if bad else 0)
