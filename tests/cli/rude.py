# SPDX-License-Identifier: Apache-2.0
"""What tests of hostile peers share: a daemon that must be as it was afterwards, a source that does what
it likes, and what the daemon answers."""

import os
import re
import struct

import iwarp
import rftptest
from iwarp import Dropped, Session, Silent
from rftptest import Daemon, check, equal, leftovers, make_file, same_files, tree, wait_until, works

WAIT = 15 * rftptest.PATIENCE  # until the daemon has answered something wrong
READS = 4  # at once


class Place:
    def __init__(self, top, *arguments, **more):
        """`more`: files, by name, and what is in them"""
        os.mkdir(f"{top}/export")
        for name, data in more.items():
            with open(f"{top}/export/{name}", "wb") as f:
                f.write(data)
        make_file(f"{top}/export/f", 300000)
        make_file(f"{top}/local", 1 << 20)
        self.top = top
        self.daemon = Daemon(f"{top}/export", "rw", *arguments)
        self.port = self.daemon.port
        works(f"{top}/local", self.daemon.url("warm-up"))
        self.files = tree(self.daemon.top)
        self.before = self.daemon.settled()

    def whole(self, what=""):
        """The daemon is as it was, and serves."""
        check(self.daemon.alive(), what, "the daemon died:", self.daemon.stderr()[-3000:])
        self.daemon.back_to(self.before, what or "after hostile peers")
        wait_until(lambda: not leftovers(self.daemon.top), "temporary files are gone")
        equal(tree(self.daemon.top), self.files, what, "the export")
        works(f"{self.top}/local", self.daemon.url("served"))
        same_files(f"{self.top}/local", self.daemon.path("served"))
        os.unlink(self.daemon.path("served"))

    def said(self, session, words, what):
        """The daemon's log has it about that session."""
        line = re.compile(f" session {session.number} .*{re.escape(words)}".encode())
        wait_until(lambda: line.search(self.daemon.stderr()),
                   lambda: f"{what}: {words!r} in the log:\n{self.daemon.stderr()[-3000:].decode()}")


class Answer:
    DROPPED = "dropped"
    QUIET = "quiet"


def answer(session, *frames):
    """Sends frames, then says what the daemon answered: a list of (type, status), which ends with
    Answer.DROPPED when it ended the session."""
    seen = []
    try:
        for frame in frames:
            session.put(*frame) if isinstance(frame, tuple) else session.put_stream(frame)
        while True:
            type_, status, data = session.get()
            if type_ in (iwarp.ABORT, iwarp.RESULT):
                status, = struct.unpack(">H", data[:2] if type_ == iwarp.ABORT else data[4:6])
            if type_ == iwarp.RESULTS and data[13:15] != b"\0\0":
                status, = struct.unpack(">H", data[17:19])  # of the first that is named
            seen.append((type_, status))
            if status or type_ & iwarp.REPLY:
                return seen
    except Dropped:
        seen.append(Answer.DROPPED)
    except Silent:
        seen.append(Answer.QUIET)
    except OSError:
        seen.append(Answer.DROPPED)
    return seen


def refused(seen):
    """Dropped, or a status that is not 0."""
    return seen[-1] == Answer.DROPPED or (isinstance(seen[-1], tuple) and seen[-1][1] != 0)


class Store:
    """A session with channels and an accepted STORE (or `request`)."""

    def __init__(self, place, path=b"stored", channels=1, flags=0, request=None,
                 engine=iwarp.ENGINE_CREDIT):
        self.session = Session(place.port, WAIT, reads=READS)
        self.session.hello(engines=1 << engine)
        self.channels = self.session.open_channels(channels)
        status, data = self.session.ask(*request or (iwarp.STORE, iwarp.data_request(
            path=path, flags=flags, engine=engine)))
        if status:
            raise Dropped(f"{request or 'STORE'} refused: {status} {data!r}")
        self.engine = engine
        self.credits = []

    def offer(self, **fields):
        fields = {"engine": self.engine} | fields
        self.gathers = fields.get("notice") == iwarp.NOTICE_GATHERED
        self.session.put(iwarp.OFFER, iwarp.offer(**fields))
        type_, _, data = self.session.get()
        equal(type_, iwarp.ACCEPT, "the answer to OFFER", data)
        self.depth, self.stride, self.base, self.key, _, self.status_base, self.status_key = \
            struct.unpack(">IIQIIQI", data)
        return self

    def file(self, **fields):
        """With the credits that came, if the engine has any"""
        self.session.put(iwarp.FILE, iwarp.file(**fields))
        ready = False
        while not (ready and (self.credits or self.engine != iwarp.ENGINE_CREDIT)):
            type_, _, data = self.session.get()
            if type_ == iwarp.READY:
                ready = True
            elif type_ == iwarp.GRANT:
                count, = struct.unpack(">H", data[:2])
                self.credits += struct.unpack(f">{count}I", data[2:])
            else:
                raise Dropped(f"frame {type_} {data!r}")
        return self

    def bundle(self, *entries, **fields):
        """FILES, with the credits that came"""
        self.session.put(iwarp.FILES, iwarp.files(entries, **fields))
        return self.granted()

    def granted(self):
        while not self.credits:
            type_, _, data = self.session.get()
            equal(type_, iwarp.GRANT, "credits", data)
            count, = struct.unpack(">H", data[:2])
            self.credits += struct.unpack(f">{count}I", data[2:])
        return self

    def block(self, index, notice=None, **fields):
        header, data = iwarp.block(**fields), bytes(min(fields.get("length", 65536), 65536))
        if not self.gathers:
            self.fill(index, header + data)
        elif data:
            self.channels[0].write(self.key, self.base + index * self.stride + 4096, data)
        return self.notice(index if notice is None else notice, header)

    def fill(self, index, data):
        """Writes a block, and says nothing."""
        self.channels[0].write(self.key, self.base + index * self.stride + 4096 - 32, data)
        return self

    def notice(self, index, header=bytes(32)):
        """Of a block: as the engine has it, and as was offered."""
        if self.engine == iwarp.ENGINE_STATUS:
            self.channels[0].write(self.status_key, self.status_base + index, b"\1")
        else:
            self.channels[0].send(struct.pack(">I", index) + (header if self.gathers else b""))
        return self

    def close(self):
        for c in self.channels:
            c.close()
        self.session.close()


def store_is_refused(place, what, action, says=None):
    """`action(store)` does something wrong: ABORT, RESULT with a status, or the end.  `says`: and why, in
    the daemon's log."""
    store = Store(place)
    try:
        frames = action(store) or ()
        seen = answer(store.session, *frames)
    except Dropped:
        seen = [Answer.DROPPED]
    check(refused(seen), what, seen)
    check(not os.path.exists(place.daemon.path("stored")), what, "left a file under the real name")
    store.close()
    if says:
        place.said(store.session, says, what)
