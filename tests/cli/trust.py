#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whom the client trusts: host keys that are new, known, changed, revoked; fingerprints; authorities; and a
man in the middle, who sees no name and changes no byte unnoticed."""

import contextlib
import os
import pty
import re
import select
import socket
import subprocess
import threading
import time

import iwarp
import rftptest
from rftptest import OK, PATIENCE, UNTRUSTED, Daemon, case, check, equal, fails, rng, same_files, scaled, \
    wait_until, works

NEW = ("--host-keys=ask",)  # loopback, too


class Place:
    def __init__(self, top, *arguments):
        os.mkdir(f"{top}/export")
        self.top, self.known = top, f"{top}/known_hosts"
        self.file = f"{top}/file"
        with open(self.file, "wb") as f:
            f.write(rng().randbytes(100000))
        self.daemon = Daemon(f"{top}/export", "rw", *arguments)
        self.fingerprint = fingerprint(self.daemon)

    def put(self, *options):
        return [*options, "--known-hosts", self.known, self.file, self.daemon.url("f")]

    def arrived(self):
        same_files(self.file, f"{self.top}/export/f")
        os.unlink(f"{self.top}/export/f")

    def lines(self):
        try:
            with open(self.known) as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []


def fingerprint(daemon):
    match = re.search(rb"host key (SHA256:\S{43}) ", daemon.stderr())
    check(match, "no fingerprint in", daemon.stderr())
    return match[1].decode()


def other_key(top, name="other"):
    """A daemon with another key: its fingerprint, and its line's type and key."""
    os.mkdir(f"{top}/{name}")
    daemon = Daemon(f"{top}/{name}", "ro", "--host-key", f"{top}/{name}-key")
    works("--accept-new", "--known-hosts", f"{top}/{name}-known", "-c", "ls", daemon.url())
    with open(f"{top}/{name}-known") as f:
        return fingerprint(daemon), f.read().split(None, 1)[1]


@case
def without_a_terminal(top):
    place = Place(top)
    result = fails(UNTRUSTED, *place.put(*NEW), says="is not known")
    check(place.fingerprint.encode() in result.err, result)
    fails(UNTRUSTED, *place.put("--host-keys=strict"), says="is not known")
    equal(place.lines(), [], "remembered")
    check(not os.listdir(f"{top}/export"), "something arrived")
    works(*place.put())  # loopback: taken as it is, and not remembered
    equal(place.lines(), [], "remembered")
    place.arrived()
    result = works(*place.put("--accept-new"))
    check(b"is remembered" in result.err, result)
    equal(len(place.lines()), 1, "lines")
    place.arrived()
    result = works(*place.put("--host-keys=strict"))
    check(b"remembered" not in result.err, result)
    place.arrived()
    equal(len(place.lines()), 1, "lines")


@case
def a_changed_key(top):
    place = Place(top)
    _, line = other_key(top)
    with open(place.known, "w") as f:
        f.write(f"[127.0.0.1]:{place.daemon.port} {line}")
    for way in ("auto", "ask", "accept-new", "strict"):
        result = fails(UNTRUSTED, *place.put(f"--host-keys={way}"), says="HAS CHANGED")
        check(f"{place.known}:1".encode() in result.err, result)
        check(place.fingerprint.encode() in result.err, result)
    check(not os.listdir(f"{top}/export"), "something arrived")
    equal(len(place.lines()), 1, "lines")


@case
def a_revoked_key(top):
    place = Place(top)
    works(*place.put("--accept-new"))
    line = place.lines()[0].split(None, 1)[1]
    with open(place.known, "a") as f:
        f.write(f"@revoked * {line}\n")
    fails(UNTRUSTED, *place.put(), says="revoked")


@case
def a_fingerprint(top):
    place = Place(top)
    works(*place.put("--host-key", place.fingerprint))
    place.arrived()
    equal(place.lines(), [], "remembered")
    wrong = "SHA256:" + "A" * 43
    result = fails(UNTRUSTED, *place.put("--host-key", wrong), says="--host-key")
    check(place.fingerprint.encode() in result.err, result)
    fails(rftptest.USAGE, *place.put("--host-key", "SHA256:short"), says="fingerprint")


@case
def asked_on_a_terminal(top):
    place = Place(top)
    for answers, code, remembered in (((b"no\n",), UNTRUSTED, False), ((b"\4",), UNTRUSTED, False),
                                      ((b"perhaps\n", b"no\n"), UNTRUSTED, False),
                                      ((b"perhaps\n", b"yes\n"), OK, True),
                                      ((place.fingerprint.encode() + b"\n",), OK, True)):
        if os.path.exists(place.known):
            os.unlink(place.known)
        said, got = on_terminal(place.put(*NEW), answers)
        check(place.fingerprint.encode() in said, "not shown:", said)
        equal(got, code, answers, said)
        equal(len(place.lines()), int(remembered), "lines after", answers)
        if code == OK:
            place.arrived()
        check(not os.listdir(f"{top}/export"), "something arrived")
    said, got = on_terminal(place.put(*NEW), ())  # now known: not asked
    equal(got, OK, said)
    check(b"Trust it" not in said, said)
    place.arrived()
    os.unlink(place.known)
    said, got = on_terminal(place.put(*NEW), (b"\3",))
    equal(got, rftptest.INTERRUPTED, said)
    equal(place.lines(), [], "lines")


@case(seconds=90)
def who_takes_long_to_answer(top):
    """The daemon hangs up meanwhile, and is connected to again."""
    place = Place(top, "--handshake-timeout", "1")

    def gone():
        return b"ended after" in place.daemon.stderr()

    said, got = on_terminal(place.put(*NEW), (b"yes\n",), lambda: wait_until(gone, "the daemon hangs up", 20))
    equal(got, OK, said)
    place.arrived()


def on_terminal(arguments, answers, before=lambda: None):
    """Runs it with a controlling terminal, and answers its questions.  -> what it said, exit code"""
    pid, fd = pty.fork()
    if not pid:
        try:
            rftptest.before_exec()
            os.execve(f"{rftptest.BUILD}/rftp", ["rftp", *arguments], rftptest.clean_environment())
        finally:
            os._exit(99)
    said, questions, end = b"", 0, time.monotonic() + 30 * PATIENCE
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            said += data
        asked = said.count(b"fingerprint)? ") + said.count(b"or the fingerprint: ")
        if asked > questions and questions < len(answers):
            before()
            os.write(fd, answers[questions])
            questions += 1
    os.close(fd)
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# ---- authorities ----

def openssl(*arguments):
    try:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        rftptest.skip("no openssl command to make certificates with")


@case
def an_authority(top):
    ca, key, request, chain = (f"{top}/{n}" for n in ("ca.pem", "key.pem", "request.pem", "chain.pem"))
    openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", f"{top}/ca-key.pem", "-out", ca,
            "-subj", "/CN=the tests' authority", "-days", "2")
    openssl("req", "-new", "-newkey", "ed25519", "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=x")
    with open(f"{top}/names", "w") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", f"{top}/ca-key.pem", "-CAcreateserial",
            "-out", chain, "-days", "2", "-extfile", f"{top}/names")
    os.chmod(key, 0o600)
    place = Place(top, "--host-key", key, "--certificate", chain)
    works(*place.put("--ca", ca, "--host-keys=strict"))
    place.arrived()
    works("--ca", ca, "--known-hosts", place.known, "-c", "ls", f"rftp://localhost:{place.daemon.port}/")
    fails(UNTRUSTED, *place.put("--host-keys=strict"), says="is not known")
    equal(place.lines(), [], "remembered")
    # a certificate for other names, and another authority
    with open(f"{top}/names", "w") as f:
        f.write("subjectAltName=DNS:elsewhere.example.org\n")
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", f"{top}/ca-key.pem", "-CAcreateserial",
            "-out", f"{top}/wrong.pem", "-days", "2", "-extfile", f"{top}/names")
    wrong = Daemon(f"{top}/export", "rw", "--host-key", key, "--certificate", f"{top}/wrong.pem")
    fails(UNTRUSTED, "--ca", ca, "--known-hosts", place.known, "-c", "ls", wrong.url(), says="do not vouch")
    openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", f"{top}/o.key", "-out",
            f"{top}/other-ca.pem", "-subj", "/CN=another", "-days", "2")
    fails(UNTRUSTED, *place.put("--ca", f"{top}/other-ca.pem"), says="do not vouch")
    # or both: the authority says nothing, but the key is known
    works(*place.put("--accept-new"))
    works(*place.put("--ca", f"{top}/other-ca.pem"))
    fails(rftptest.USAGE, *place.put("--ca", place.file), says=place.file)


# ---- the daemon's key ----

@case
def the_key_of_the_daemon(top):
    os.mkdir(f"{top}/export")
    key = f"{top}/state/deep/host_key"
    first = Daemon(f"{top}/export", "ro", "--host-key", key)
    equal(os.stat(key).st_mode & 0o777, 0o600, "mode of the key")
    wanted = fingerprint(first)
    first.stop()
    equal(fingerprint(Daemon(f"{top}/export", "ro", "--host-key", key)), wanted, "fingerprint of the same key")
    for what, mode in (("readable", 0o644), ("writable", 0o620)):
        os.chmod(key, mode)
        refused(top, what, "chmod 600", "--host-key", key)
    os.chmod(key, 0o600)
    with open(f"{top}/garbage", "w") as f:
        f.write("no key\n")
    os.chmod(f"{top}/garbage", 0o600)
    refused(top, "garbage", "not a private key", "--host-key", f"{top}/garbage")
    refused(top, "a certificate that is none", "no certificate", "--host-key", key, "--certificate", key)
    # where clients could fetch it
    os.makedirs(f"{top}/export/a/b")
    os.symlink(f"{top}/export/a", f"{top}/beside")
    for inside in (f"{top}/export/host_key", f"{top}/export/a/b/host_key", f"{top}/beside/host_key"):
        refused(top, inside, "within the export", "--host-key", inside)
        check(not os.path.exists(inside), inside, "was made")


def refused(top, what, says, *arguments):
    for test in ([], ["-t"]):
        done = subprocess.run([f"{rftptest.BUILD}/rftpd", "--listen", "127.0.0.1:0", "--export",
                               f"{top}/export:ro", *arguments, *test], capture_output=True, timeout=60 * PATIENCE,
                              env=rftptest.clean_environment())
        if test and says == "within the export" and done.returncode == 0:
            continue
        check(done.returncode in (1, 2), what, test, done)
        check(says.encode() in done.stderr, what, test, done.stderr)


# ---- a man in the middle ----

class Middle:
    """A relay that keeps what crosses it, and flips one bit of a connection at an offset, in one direction."""

    def __init__(self, port):
        self.port = port
        self.seen = {"up": bytearray(), "down": bytearray()}
        self.flip = None  # (direction, offset, bit) within a connection
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            for one, other, way in ((client, server, "up"), (server, client, "down")):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.pump, args=(one, other, way), daemon=True).start()

    def pump(self, one, other, way):
        at = 0
        try:
            while data := one.recv(65536):
                self.seen[way] += data
                if self.flip and self.flip[0] == way and at <= self.flip[1] < at + len(data):
                    changed = bytearray(data)
                    changed[self.flip[1] - at] ^= 1 << self.flip[2]
                    data = bytes(changed)
                at += len(data)
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            for s in (one, other):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.close()


@case
def the_middle_sees_no_names(top):
    place = Place(top)
    middle = Middle(place.daemon.port)
    url = f"rftp://127.0.0.1:{middle.own}"
    works("-c", "mkdir a-secret-directory; ls; stat a-secret-directory", url)
    works(place.file, f"{url}/a-secret-directory/a-secret-name")
    works(f"{url}/a-secret-directory/a-secret-name", f"{top}/back")
    same_files(place.file, f"{top}/back")
    middle.close()
    with open(place.file, "rb") as f:
        content = f.read(64)
    for way, seen in middle.seen.items():
        check(len(seen) > 1000, "nothing was seen", way)
        for word in (b"secret", b"rftp/0", b"rftpd/0", f"{top}/export".encode()):
            check(word not in seen, word, "was seen", way)
    check(content in middle.seen["up"], "the contents of files are in the clear, and were not seen")


@case
def private_hides_what_files_contain(top):
    place = Place(top)
    with open(place.file, "rb") as f:
        content = f.read()
    for protect, engine in (("private", "credit"), ("private", "status"), ("private", "window"),
                            ("private", "pull"), ("safe", "credit")):
        middle = Middle(place.daemon.port)
        url = f"rftp://127.0.0.1:{middle.own}/f"
        how = ("--json", f"--protect={protect}", f"--engine={engine}")
        for arguments in ((place.file, url), (url, f"{top}/back")):
            equal(works(*how, *arguments).done()["protect"], protect, "protection of", arguments)
        same_files(place.file, f"{top}/back")
        middle.close()
        for way, seen in middle.seen.items():
            check(len(seen) > len(content), "nothing was seen", way)
            found = [at for at in range(0, len(content) - 16, 997) if content[at:at + 16] in seen]
            check(bool(found) == (protect == "safe"), protect, engine, way, "seen at", found[:3])
        os.unlink(f"{top}/back")
        place.arrived()


@case(seconds=120)
def changed_blocks_are_noticed(top):
    place = Place(top)
    with open(place.file, "wb") as f:
        f.write(rng().randbytes(1 << 20))
    wrong = 0
    for turn in range(scaled(30)):
        middle = Middle(place.daemon.port)
        middle.flip = ("up", rng().randrange(20000, 400000), rng().randrange(8))
        result = rftptest.rftp("--timeout", "5", f"--protect={('safe', 'private')[turn % 2]}", "--channels", "1",
                               place.file, f"rftp://127.0.0.1:{middle.own}/f", timeout=60)
        middle.close()
        check(result.code != OK, "a block that was changed at", middle.flip, "arrived:", result)
        wrong += b"checksum" in result.err
        check(not os.path.exists(f"{top}/export/f"), "the file has its name")
    check(wrong > scaled(30) // 2, "mostly because of its seal:", wrong)


class Blocks:
    """What one who knows the protocol does to the blocks of a data channel on their way up: `hold` and `spoil` get
    WRITEs as {address: bytes} of one block, in the order in which they crossed."""

    def __init__(self, attack):
        self.attack = attack
        self.data = b""
        self.greeted = False
        self.old, self.held, self.kept = [], [], None
        self.done = 0

    def feed(self, data):
        """-> what goes on"""
        self.data += data
        out = b""
        if not self.greeted:
            if len(self.data) < 20 or len(self.data) < 20 + int.from_bytes(self.data[18:20], "big"):
                return b""
            end = 20 + int.from_bytes(self.data[18:20], "big")
            private = self.data[end - len(iwarp.greeting()):end]
            if private[5] != iwarp.DATA:
                self.attack = None
            out, self.data, self.greeted = self.data[:end], self.data[end:], True
        if self.attack is None:
            out, self.data = out + self.data, b""
            return out
        while len(self.data) >= 2:
            length = int.from_bytes(self.data[:2], "big")
            end = 2 + length + -(2 + length) % 4 + 4
            if len(self.data) < end:
                break
            segment, self.data = self.data[2:2 + length], self.data[end:]
            for one in self.pass_on(segment):
                out += iwarp.fpdu(one)
        return out

    def pass_on(self, segment):
        """Segments until a block's notice; then the attack's idea of them."""
        if not self.held and not segment[0] & 0x80:
            return [segment]
        self.held.append(segment)
        if segment[0] & 0x80:
            return []
        block, self.held = self.held, []
        return self.attack(self, block)


def with_payload(block, other, head=True):
    """The WRITEs of one block, with what those of another carry; with its own header, unless that goes with it.
    Where a segment ends does not matter."""
    mine, theirs = ([s for s in b if s[0] & 0x80] for b in (block, other))
    own, data = (b"".join(s[14:] for s in segments) for segments in (mine, theirs))
    if len(own) != len(data):
        return None
    keep = -int.from_bytes(mine[0][6:14], "big") % 4096 if head else 0  # payloads begin with a page
    data = own[:keep] + data[keep:]
    out = []
    for segment in mine:
        out.append(segment[:14] + data[:len(segment) - 14])
        data = data[len(segment) - 14:]
    return out


def notices(*blocks):
    return [s for b in blocks for s in b if not s[0] & 0x80]


def swap(blocks, block, head=True):
    """Two blocks change places, before either is told of, once the window is open.  A notice may be of several blocks,
    and which of them lie side by side depends on time: so the next two are tried where these are not alike."""
    blocks.old.append(block)
    if blocks.done or len(blocks.old) < 4:
        return block
    if not blocks.kept:
        blocks.kept = block
        return []
    first, second, blocks.kept = blocks.kept, block, None
    one, two = with_payload(first, second, head), with_payload(second, first, head)
    blocks.done += one is not None
    return (one + two if one else first[:-1] + second[:-1]) + notices(first, second)


def swap_slots(blocks, block):
    return swap(blocks, block, head=False)


def replay(blocks, block):
    """One that has crossed crosses again, in the place of a later one."""
    blocks.old.append(block)
    for other in blocks.old[:-1] if len(blocks.old) >= 4 and not blocks.done else []:
        again = with_payload(block, other, head=False)
        if again:
            blocks.done += 1
            return again + notices(block)
    return block


class Rewriter(Middle):
    def __init__(self, port, attack):
        self.attack, self.all = attack, []
        super().__init__(port)

    def pump(self, one, other, way):
        if way == "down":
            return super().pump(one, other, way)
        blocks = Blocks(self.attack)
        self.all.append(blocks)
        try:
            while data := one.recv(65536):
                other.sendall(blocks.feed(data))
            other.shutdown(socket.SHUT_WR)
        except OSError:
            for s in (one, other):
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)


@case(seconds=120)
def blocks_that_are_swapped_or_replayed(top):
    """Each was sealed by the client, and is not here, or not now, what it was.  A block that keeps its header may
    lie in any slot."""
    place = Place(top)
    with open(place.file, "wb") as f:
        f.write(rng().randbytes(8 << 20))
    for protect in ("safe", "private", "clear"):
        # in the clear a block's header crosses with its notice
        for attack in (swap, replay, swap_slots)[:2 if protect == "clear" else 3]:
            middle = Rewriter(place.daemon.port, attack)
            result = rftptest.rftp("--timeout", "5", f"--protect={protect}", "--channels", "1", "--block", "64K",
                                   "--engine", "credit", place.file, f"rftp://127.0.0.1:{middle.own}/f", timeout=60)
            middle.close()
            what = (protect, attack.__name__)
            equal(sum(b.done for b in middle.all), 1, *what, "was not done", result)
            if attack is swap_slots:
                equal(result.code, OK, *what, result)
                place.arrived()
            else:
                check(result.code != OK and result.err.strip(), *what, result)
                check(b"checksum" in result.err or (attack is replay and b"came twice" in result.err), *what, result)
                check(not os.path.exists(f"{top}/export/f"), *what, "the file has its name")


@case
def what_the_daemon_demands(top):
    place = Place(top, "--protect", "safe")
    for asked, given in (("clear", "safe"), ("safe", "safe"), ("private", "private")):
        for more in ((), ("-c", f"bench 1M put; bench 1M get; status")):
            arguments = place.put("--json", f"--protect={asked}") if not more else \
                ["--json", f"--protect={asked}", *more, place.daemon.url()]
            result = works(*arguments)
            equal({e["protect"] for e in result.events() if "protect" in e}, {given}, asked, arguments)
        place.arrived()
    # more than was agreed on: the session is opened again; less than that is no reason to
    place = Place(f"{top}/2") if os.mkdir(f"{top}/2") is None else None
    result = works("--json", "-c", "status; set protect private; status; bench 1M put; set protect clear; status",
                   place.daemon.url())
    equal([e["protect"] for e in result.events() if "protect" in e], ["clear", "private", "private", "private"],
          "after set")
    result = works("-v", "--protect=safe", "-c", "ls", place.daemon.url())
    check(b"blocks: safe" in result.err, result)
    fails(rftptest.USAGE, "--protect=none", "-c", "ls", place.daemon.url(), says="clear, safe or private")


@case(seconds=180)
def every_changed_bit_is_noticed(top):
    """Of the control channel's stream: names, sizes, times, keys.  A run ends well and right, or it fails."""
    place = Place(top)
    stamp = 1_500_000_000_123_456_789
    os.utime(place.file, ns=(stamp, stamp))
    noticed = 0
    for _ in range(scaled(60)):
        middle = Middle(place.daemon.port)
        # greeting and welcome are in the clear and come first; both directions are some 3 KB long
        middle.flip = (rng().choice(("up", "down")), rng().randrange(20, 3000), rng().randrange(8))
        result = rftptest.rftp("--connect-timeout", "5", "--timeout", "5", place.file,
                               f"rftp://127.0.0.1:{middle.own}/f", timeout=60)
        middle.close()
        here = os.listdir(f"{top}/export")
        if result.code == OK:
            equal(here, ["f"], "names after", middle.flip)
            same_files(place.file, f"{top}/export/f")
            equal(os.stat(f"{top}/export/f").st_mtime_ns, stamp, "time after", middle.flip)
            os.unlink(f"{top}/export/f")
            continue
        noticed += 1
        check(result.err.strip(), "no message:", result, middle.flip)
        for name in here:
            check(name == "f" or name.startswith(".rftp-"), "another name:", here, middle.flip)
            wait_until(lambda n=name: n == "f" or not os.path.exists(f"{top}/export/{n}"), "the part is gone", 20)
        if "f" in here:  # it was complete when the answer was changed
            same_files(place.file, f"{top}/export/f")
            os.unlink(f"{top}/export/f")
    print(f"# {noticed} of {scaled(60)} failed", flush=True)
    check(noticed > scaled(60) // 4, "most changes were not even seen:", noticed)


if __name__ == "__main__":
    rftptest.main()
