#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transfers that were cut off are gone on with by the same command: what was verified is not sent
again, a source that is another one by then is, and nothing wrong ever gets the real name."""

import contextlib
import os
import re
import shutil
import signal
import struct
import threading

import rftptest
from rftptest import INTERRUPTED, LOST, OK, Daemon, Proxy, case, check, equal, leftovers, make_file, rng, \
    same_files, scaled, wait_until, works

BLOCK = 1 << 16
SIZE = 100 * BLOCK + 777
OPTIONS = ["--resume", "1M", "--block", "64K", "--channels", "2", "--connect-timeout", "5"]


def journals(top):
    return [n for n in leftovers(top) if n.endswith(b".journal")]


def records(path):
    """Of a journal, as rftp-journal(5) has them; checksums are not looked at."""
    with open(path, "rb") as f:
        data = f.read()
    while len(data) >= 16:
        length, kind, zeros = struct.unpack(">IHH", data[:8])
        equal(zeros, 0, "zeros of a record")
        if 16 + length > len(data):
            return
        yield kind, data[8:8 + length]
        data = data[16 + length:]


def noted(path):
    """-> the bytes that a journal says are there"""
    blocks, size = set(), 0
    for kind, data in records(path):
        if kind == 1:
            version, block, size, _, _, _, length = struct.unpack(">HIQqIQH", data[:36])
            equal((version, len(data)), (1, 36 + length), "what a journal begins with")
            blocks = set()
        else:
            equal(kind, 2, "type of a record")
            blocks |= {struct.unpack(">Q", data[at:at + 8])[0] for at in range(0, len(data), 16)}
    return sum(min(block, size - index * block) for index in blocks) if blocks else 0


class Place:
    """A source on one side, and where it goes on the other."""

    def __init__(self, top, way, tree=False):
        self.way, self.tree, self.options = way, tree, []
        self.export, self.local = f"{top}/export", f"{top}/local"
        for where in (self.export, self.local):
            os.makedirs(where)
        self.source, self.copy = (f"{self.local}/a", f"{self.export}/b")
        if way == "get":
            self.source, self.copy = f"{self.export}/a", f"{self.local}/b"
        self.sink = os.path.dirname(self.copy)
        if tree:
            os.makedirs(f"{self.source}/d/e")
            for i in range(12):
                make_file(f"{self.source}/d/{i}", rng().randrange(3 * BLOCK))
            make_file(f"{self.source}/d/e/large", SIZE // 2)
            make_file(f"{self.source}/d/larger", SIZE // 2)
        else:
            make_file(self.source, SIZE)

    def arguments(self, url):
        more, slash = (["-r"], "/") if self.tree else ([], "")
        more += self.options
        if self.way == "put":
            return [*OPTIONS, *more, self.source + slash, url("b")]
        return [*OPTIONS, *more, url("a" + slash), self.copy]

    def check(self, *what):
        if self.tree:
            equal(rftptest.tree(self.copy), rftptest.tree(self.source), *what, "the tree")
        else:
            same_files(self.source, self.copy, *what)
        equal(leftovers(self.sink), [], *what, "left behind")

    def bytes(self):
        return sum(os.path.getsize(os.path.join(where, name))
                   for where, _, files in os.walk(self.source) for name in files) if self.tree \
            else os.path.getsize(self.source)

    def landed(self):
        """-> the bytes of files of a tree that have their names, and how many these are"""
        sizes = [os.path.getsize(os.path.join(where, name)) for where, _, files in os.walk(self.copy)
                 for name in files if not name.startswith(".rftp-")] if self.tree else []
        return sum(sizes), len(sizes)

    def noted(self):
        """-> the bytes that are noted; a journal that goes while we look has none"""
        total = 0
        for journal in journals(self.sink):
            with contextlib.suppress(FileNotFoundError):
                total += noted(journal)
        return total


def strike(how, client, daemon, proxy):
    if how == "cut":
        proxy.reset()
    else:
        rftptest.kill(daemon.process if how == "daemon" else client,
                      signal.SIGINT if how == "interrupt" else signal.SIGKILL)


def break_off(place, daemon, how, point, before=None):
    """Begins the command, and ends it when so many bytes have crossed, after a call of `before`.  -> its Result"""
    started = []

    def called():
        client = wait_until(lambda: started, "the client is started")[0]
        if before:
            before()
        strike(how, client, daemon, proxy)

    proxy = Proxy(daemon.port, call=point, called=called)
    client = rftptest.start_rftp(*place.arguments(proxy.url))
    started.append(client)
    result = rftptest.finish(client)
    proxy.close()
    if how == "daemon":
        daemon.kill()
    return result


def break_off_later(place, daemon, how, point, enough=None):
    """The same when so many bytes have crossed and half of them have come so far that they need not cross
    again.  What the one that is killed has handed to its sockets still arrives when the proxy lets it: a
    small window, so that this is never all of the rest."""
    proxy = Proxy(daemon.port, hold=point)
    client = rftptest.start_rftp("--depth", "8", *place.arguments(proxy.url))
    wait_until(enough or (lambda: place.noted() + place.landed()[0] > point // 2), "half of it is noted, or has landed", 30)
    strike(how, client, daemon, proxy)
    if how == "interrupt":  # it looks ten times a second, and the rest would come within less
        rftptest.time.sleep(1)
    if how in ("client", "daemon"):  # it does nothing more
        (daemon.process if how == "daemon" else client).wait()
    if how != "cut":
        proxy.release()
    result = rftptest.finish(client)
    proxy.close()
    if how == "daemon":
        daemon.kill()
    settled(place, daemon)
    check(result.code != OK, place.way, how, result)
    return result


def settled(place, daemon):
    """The daemon has noticed, and let go of what it wrote to."""
    if place.way == "put" and daemon.alive():
        wait_until(lambda: daemon.stderr().count(b" connected: ") <= len(re.findall(
            rb" session \d+ \S+ ended after ", daemon.stderr())), "the daemon has noticed", 20)


def go_on(place, url, what):
    """The same command again.  -> how many bytes crossed"""
    there, (landed, files) = place.noted(), place.landed()
    done = works("--json", *place.arguments(url)).done()
    place.check(what)
    size = place.bytes()
    if landed == size and done["sent_bytes"]:  # the sink had come to its end, and knew of nothing to go on with
        landed = files = 0
    check(done["sent_bytes"] <= size - there - landed, done["sent_bytes"], what,
          f"sent, of {size}, {there} of which were noted and {landed} had landed")
    equal((done["bytes"], done["skipped"]), (size - landed, files), what, "bytes, skipped")
    return done["sent_bytes"]


@case(seconds=100)
def each_side_each_way(top):
    """In the middle of a file: some of it must have been noted."""
    for way in ("put", "get"):
        for how in ("cut", "interrupt", "client", "daemon"):
            where = f"{top}/{way}-{how}"
            place = Place(where, way)
            daemon = Daemon(place.export)
            result = break_off_later(place, daemon, how, SIZE // 2)
            what = f"{way}, {how}:"
            equal(len(journals(place.sink)), 1, what, "journals", leftovers(place.sink), result)
            check(place.noted() > SIZE // 4, what, "only", place.noted(), "of", SIZE // 2, "bytes are noted")
            check(not os.path.exists(place.copy), what, "has its name")
            if how == "daemon":
                daemon = Daemon(place.export)
            go_on(place, daemon.url, what)
            daemon.stop()
            shutil.rmtree(where)


@case(seconds=100)
def trees_each_side_each_way(top):
    """Files that have landed do not come again, and the large ones are gone on with."""
    for way in ("put", "get"):
        for how in ("cut", "interrupt", "client", "daemon"):
            where = f"{top}/{way}-{how}"
            place = Place(where, way, True)
            daemon = Daemon(place.export)
            what = f"{way}, {how}:"
            break_off_later(place, daemon, how, place.bytes() * 3 // 4)
            if how == "daemon":
                daemon = Daemon(place.export)
            go_on(place, daemon.url, what)
            # a transfer that is over is not gone on with: all of it comes again
            done = works("--json", *place.arguments(daemon.url)).done()
            equal((done["sent_bytes"], done["skipped"]), (place.bytes(), 0), what, "once more")
            daemon.stop()
            shutil.rmtree(where)


@case
def files_of_a_tree_that_are_others(top):
    """Of what has landed, too: older ones that happen to be alike were not part of it."""
    place = Place(top, "put", True)
    os.makedirs(f"{place.copy}/d")
    shutil.copy2(f"{place.source}/d/larger", f"{place.copy}/d/larger")
    rftptest.time.sleep(0.05)
    daemon = Daemon(place.export)
    break_off_later(place, daemon, "cut", place.bytes() * 3 // 4,
                    lambda: len([n for n in os.listdir(f"{place.copy}/d") if n.isdigit()]) > 3)
    landed = [n for n in os.listdir(f"{place.copy}/d") if n.isdigit()]
    check(len(landed) > 3, "have landed:", landed)
    with open(f"{place.source}/d/{landed[0]}", "ab") as f:
        f.write(b"more")
    st = os.stat(f"{place.source}/d/{landed[1]}")
    os.utime(f"{place.source}/d/{landed[1]}", ns=(st.st_mtime_ns, st.st_mtime_ns + 1))
    os.unlink(f"{place.copy}/d/{landed[2]}")
    result = works("--json", *place.arguments(daemon.url))
    place.check("the tree")
    again = {os.path.basename(e["path"]) for e in result.events() if e["event"] == "file" and e["status"] == "ok"}
    check({landed[0], landed[1], landed[2], "larger"} <= again, "came again:", again)
    check(not again & set(landed[3:]), "came again:", again)


def change(place, how):
    """What happens to a source before the second run, or in the middle of the first."""
    change_file(place.source, how, 2 << 20)


def change_file(path, how, least=0):
    st = os.stat(path)
    if how == "written":
        with open(path, "r+b") as f:
            f.seek(rng().randrange(st.st_size))
            old = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(b"x" if old != b"x" else b"y")
    elif how == "written-and-touched":  # its time does not tell
        change_file(path, "written")
        os.utime(path, ns=(st.st_mtime_ns, st.st_mtime_ns))
    elif how == "shrunk":
        os.truncate(path, rng().randrange(least, st.st_size))
    elif how == "grown":
        with open(path, "ab") as f:
            f.write(b"more")
    elif how == "replaced":
        make_file(path + ".new", st.st_size)
        os.utime(path + ".new", ns=(st.st_mtime_ns, st.st_mtime_ns))
        os.rename(path + ".new", path)
    elif how == "gone":
        os.unlink(path)


CHANGES = ("written", "written-and-touched", "shrunk", "grown", "replaced", "gone")


def after_change(place, daemon, how, what):
    if how == "gone":
        result = rftptest.rftp(*place.arguments(daemon.url))
        check(result.code == rftptest.NO_FILE, what, result)
        check(not os.path.exists(place.copy), what, "has its name")
        return
    done = works("--json", *place.arguments(daemon.url)).done()
    place.check(what)
    equal(done["sent_bytes"], place.bytes(), what, "all of it is sent")


@case(seconds=100)
def a_source_that_is_another_one(top):
    for way in ("put", "get"):
        for how in CHANGES:
            where = f"{top}/{way}-{how}"
            place = Place(where, way)
            daemon = Daemon(place.export)
            break_off_later(place, daemon, "cut", SIZE // 2)
            equal(len(journals(place.sink)), 1, way, how, "journals")
            change(place, how)
            after_change(place, daemon, how, f"{way}, {how}:")
            daemon.stop()
            shutil.rmtree(where)


@case
def too_small_by_then(top):
    """It starts over, and what was kept of the large one goes, too."""
    for way in ("put", "get"):
        for tree in (False, True):
            place = Place(f"{top}/{way}-{tree}", way, tree)
            daemon = Daemon(place.export)
            break_off_later(place, daemon, "cut", place.bytes() * 3 // 4)
            check(journals(place.sink), way, tree, "nothing is kept")
            for name in ("d/larger", "d/e/large") if tree else ("",):
                os.truncate(os.path.join(place.source, name).rstrip("/"), rng().randrange(1 << 20))
            works(*place.arguments(daemon.url))
            place.check(way, "of a tree" if tree else "of a file")
            daemon.stop()


@case(seconds=60)
def a_source_that_changes_meanwhile(top):
    """It fails, and nothing of it is gone on with; what is left of a second run is."""
    for way in ("put", "get"):
        for how in ("written", "shrunk", "grown"):
            place = Place(f"{top}/{way}-{how}", way)
            daemon = Daemon(place.export)
            proxy = Proxy(daemon.port, hold=SIZE // 2)
            client = rftptest.start_rftp("--depth", "4", *place.arguments(proxy.url))
            wait_until(lambda: proxy.held.is_set(), "the transfer begins")
            change(place, how)
            proxy.release()
            result = rftptest.finish(client)
            proxy.close()
            what = f"{way}, {how} meanwhile:"
            equal(result.code, rftptest.CHANGED, what, result)
            equal(leftovers(place.sink), [], what, "left behind")
            done = works("--json", *place.arguments(daemon.url)).done()
            equal(done["sent_bytes"], place.bytes(), what, "sent")
            place.check(what)
            daemon.stop()


@case
def what_the_disk_lost_is_sent_again(top):
    """Nothing was flushed, so a host that stops may leave anything in the partial file."""
    for way in ("put", "get"):
        place = Place(f"{top}/{way}", way)
        daemon = Daemon(place.export)
        break_off_later(place, daemon, "cut", SIZE // 2)
        there = place.noted()
        partial, = (n for n in leftovers(place.sink) if n.endswith(b".partial"))
        with open(partial, "r+b") as f:
            f.write(bytes(100))
        done = works("--json", *place.arguments(daemon.url)).done()
        equal(done["sent_bytes"], SIZE - there + BLOCK, way, "sent")
        place.check(way)


@case
def blocks_of_another_size_and_no_resume(top):
    place = Place(top, "put")
    daemon = Daemon(place.export)
    break_off_later(place, daemon, "cut", SIZE // 2)
    there = place.noted()
    options = place.arguments(daemon.url)
    done = works("--json", *options, "--block", "128K").done()
    check(SIZE - there <= done["sent_bytes"] < SIZE - there // 2, done, "of", SIZE, "there were", there)
    place.check("larger blocks")
    for option in (["--no-resume"], ["--resume", "never"], ["--resume", "1G"]):
        os.unlink(place.copy)
        proxy = Proxy(daemon.port, cut=SIZE // 2)
        equal(rftptest.rftp(*place.arguments(proxy.url), *option).code, LOST, option)
        proxy.close()
        wait_until(lambda: not leftovers(place.export), f"{option}: nothing is left", 20)
        works(*place.arguments(daemon.url), *option)


@case
def protected_and_compressed(top):
    """What is noted is what the file contains, however it crosses."""
    for way in ("put", "get"):
        for i, options in enumerate((["--protect", "private"], ["-z"], ["--engine", "status"], ["--engine", "pull"])):
            place = Place(f"{top}/{way}-{i}", way)
            place.options = options
            with open(place.source, "wb") as f:
                f.write(b"all that is sent is said twice\n" * (SIZE // 31) + bytes(SIZE % 31))
            daemon = Daemon(place.export)
            proxy = Proxy(daemon.port, cut=100000 if options == ["-z"] else SIZE // 2)
            rftptest.rftp(*place.arguments(proxy.url))
            proxy.close()
            settled(place, daemon)
            go_on(place, daemon.url, f"{way}, {options}:")
            daemon.stop()


def make_sparse(path):
    """Data in every second piece of five blocks; some of it is zeros, and some no whole block."""
    make_file(path, 0)
    with open(path, "r+b") as f:
        for at in range(0, SIZE - 5 * BLOCK, 10 * BLOCK):
            f.seek(at + rng().randrange(BLOCK))
            f.write(bytes(rng().randrange(BLOCK)) + rng().randbytes(4 * BLOCK))
        f.truncate(SIZE)


def garble_gaps(partial):
    """Where no data is there is something else, as after a host stopped in the middle of it."""
    with open(partial, "r+b") as f:
        at, end = 0, os.path.getsize(partial)
        while at < end:
            hole = os.lseek(f.fileno(), at, os.SEEK_HOLE)
            if hole >= end:
                return
            f.seek(hole)
            try:
                at = os.lseek(f.fileno(), hole, os.SEEK_DATA)
            except OSError:
                at = end
            f.seek(hole)
            f.write(b"garbage"[:at - hole])


@case(seconds=100)
def files_with_holes(top):
    """They are gone on with, and stay as they are on the disk; what is in a hole by then is not believed."""
    for way in ("put", "get"):
        for how, block in (("cut", "64K"), ("client", "64K"), ("daemon", "64K"), ("cut", "128K")):
            where = f"{top}/{way}-{how}-{block}"
            place = Place(where, way)
            make_sparse(place.source)
            if os.stat(place.source).st_blocks * 512 > SIZE * 3 // 4:
                rftptest.skip("no holes in files here")
            daemon = Daemon(place.export)
            what = f"{way}, {how}, {block}:"
            break_off_later(place, daemon, how, SIZE // 4)
            there = place.noted()
            check(there > SIZE // 8, what, "only", there, "bytes are noted")
            if how == "daemon":
                daemon = Daemon(place.export)
            partial, = (n for n in leftovers(place.sink) if n.endswith(b".partial"))
            exact = (how, block) == ("cut", "64K")
            if not exact:
                garble_gaps(partial)
            done = works("--json", *place.arguments(daemon.url), "--block", block).done()
            place.check(what)
            if exact:
                check(done["sent_bytes"] + done["hole_bytes"] <= SIZE - there, what, done, "there were", there)
            # of larger blocks, one of which only a part is there comes again
            check(done["sent_bytes"] + done["hole_bytes"] < SIZE - there // 4, what, "of", SIZE, "some was there:",
                  there, done)
            blocks = [os.stat(name).st_blocks for name in (place.source, place.copy)]
            check(blocks[1] <= blocks[0] + 16, what, "blocks on the disk", blocks)
            daemon.stop()
            shutil.rmtree(where)


@case(seconds=100)
def files_with_holes_where_none_can_be_made(top):
    """What is there of them cannot be made sure of: all comes again, and is right, with its holes."""
    for way in ("put", "get"):
        for how in ("none", "behind"):
            env = rftptest.preloaded("disk", RFTP_TEST_PUNCH=how)
            place = Place(f"{top}/{way}-{how}", way)
            make_sparse(place.source)
            if os.stat(place.source).st_blocks * 512 > SIZE * 3 // 4:
                rftptest.skip("no holes in files here")
            daemon = Daemon(place.export, env=env if way == "put" else None)
            break_off_later(place, daemon, "cut", SIZE // 4)
            partial, = (n for n in leftovers(place.sink) if n.endswith(b".partial"))
            garble_gaps(partial)
            result = rftptest.rftp("--json", *place.arguments(daemon.url), env=env if way == "get" else None)
            equal(result.code, OK, way, how, result)
            place.check(way, how)
            equal(result.done()["sent_bytes"] + result.done()["hole_bytes"], SIZE, way, how, "sent")
            blocks = [os.stat(name).st_blocks for name in (place.source, place.copy)]
            check(blocks[1] <= blocks[0] + 16, way, how, "blocks on the disk", blocks)
            daemon.stop()


@case(seconds=60)
def where_new_files_may_not_be_written_to(top):
    """By the directory's default list, which takes that from their owner as well: what is gone on with, or only gets
    an attribute, is written to all the same."""
    if not rftptest.ROOT:
        rftptest.skip("needs root, for a daemon of somebody else's")
    rftptest.attributes_work(top)
    rftptest.lists_work(top)
    os.chmod(top, 0o755)
    place = Place(f"{top}/place", "put")
    place.options = ["-X"]
    os.setxattr(place.source, "user.a", b"1")
    os.chown(place.export, rftptest.NOBODY, rftptest.NOBODY)
    rftptest.run("setfacl", "-d", "-m", "u::r-x,g::-,o::-", place.export)
    daemon = Daemon(place.export, user=rftptest.NOBODY)
    break_off_later(place, daemon, "cut", SIZE // 2)
    there = place.noted()
    done = works("--json", *place.arguments(daemon.url)).done()
    place.check("gone on with")
    check(done["sent_bytes"] <= SIZE - there, done["sent_bytes"], "sent,", there, "were noted")
    equal(os.getxattr(place.copy, "user.a"), b"1", "the attribute of what was gone on with")
    small = f"{place.local}/small"
    make_file(small, 10)
    os.setxattr(small, "user.b", b"2")
    for options in ([], ["--inline-max=0"], ["-r"]):
        works("-X", *options, small, daemon.url(""))
        equal(os.getxattr(daemon.path("small"), "user.b"), b"2", "the attribute of a small file", *options)
        os.unlink(daemon.path("small"))
    os.mkdir(f"{place.local}/tree")
    for i in range(300):
        make_file(f"{place.local}/tree/{i}", i)
        os.setxattr(f"{place.local}/tree/{i}", "user.c", b"3")
    for options in ([], ["--inline-max=0"]):
        works("-X", "-r", *options, f"{place.local}/tree/", daemon.url(""))
        for i in range(300):
            equal(os.getxattr(daemon.path(f"{i}"), "user.c"), b"3", "the attribute of one of many", i, *options)
            os.unlink(daemon.path(f"{i}"))
    daemon.stop()


@case
def two_at_once_on_one_name(top):
    """Neither uses what the other one writes to."""
    place = Place(top, "put")
    daemon = Daemon(place.export)
    proxy = Proxy(daemon.port, hold=SIZE // 2)
    first = rftptest.start_rftp(*place.arguments(proxy.url))
    wait_until(lambda: proxy.held.is_set(), "the first begins")
    done = works("--json", *place.arguments(daemon.url)).done()
    equal(done["sent_bytes"], SIZE, "the second")
    same_files(place.source, place.copy)
    proxy.release()
    equal(rftptest.finish(first).code, OK, "the first")
    proxy.close()
    place.check("both")


@case
def a_retry_goes_on(top):
    place = Place(top, "put")
    daemon = Daemon(place.export)
    proxy = Proxy(daemon.port, cut=SIZE // 2)

    def mend():
        proxy.broken.wait()
        wait_until(lambda: proxy.carried >= SIZE // 2, "the cut")
        rftptest.time.sleep(0.3)  # the client's pause is longer
        with proxy.lock:
            proxy.cut = None
        proxy.broken.clear()

    threading.Thread(target=mend, daemon=True).start()
    result = works("--retries", "30", "--json", *place.arguments(proxy.url))
    proxy.close()
    check(result.done()["sent_bytes"] < SIZE, result.done())
    place.check("after the retry")


def forget(daemon):
    """Of hundreds, each has descriptors."""
    rftptest._daemons.remove(daemon)
    daemon.log.close()
    daemon.process.stdout.close()


def change_in_tree(place, how):
    """One of the files that have some bytes.  -> its path there"""
    files = [os.path.join(where, n) for where, _, names in os.walk(place.source) for n in sorted(names)
             if os.path.getsize(os.path.join(where, n)) > 1]
    path = rng().choice(files)
    change_file(path, how)
    return place.copy + path[len(place.source):]


def after_change_in_tree(place, daemon, path, what):
    works(*place.arguments(daemon.url))
    if not os.path.exists(place.source + path[len(place.copy):]):  # it may have come before it went
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        for name in leftovers(place.sink):  # and this is all that nobody goes on with
            os.unlink(name)
    place.check(what)


@case(seconds=60 + 4 * scaled(10))
def at_random_moments(top):
    """RFTP_SCALE makes it any number of runs.  In half of them the source changes, shrinks or vanishes in the middle,
    in others afterwards."""
    for run in range(scaled(10)):
        way, tree = rng().choice(("put", "get")), rng().random() < 0.4
        where = f"{top}/{run}"
        place = Place(where, way, tree)
        size, what = place.bytes(), f"run {run}, {way} of a {'tree' if tree else 'file'}:"
        daemon = Daemon(place.export)
        changed = []  # what of the source is another one by now

        def meanwhile(wanted):
            changed.append((wanted, change_in_tree(place, wanted) if tree else change(place, wanted)))

        for _ in range(rng().randrange(1, 4)):
            how = rng().choice(("cut", "interrupt", "client", "daemon"))
            point = rng().randrange(size + 100000)
            # of a tree, a file that has landed and looks the same by size and time does not come again
            during = rng().choice(("written", "shrunk", "grown", "gone") if tree else CHANGES) if rng().random() < 0.5 else None
            what += f" {how} at {point}{f' and {during}' if during else ''},"
            result = break_off(place, daemon, how, point, during and (lambda d=during: meanwhile(d)))
            check(result.code in (OK, LOST, INTERRUPTED, rftptest.CONNECT, rftptest.PROTOCOL, -signal.SIGKILL,
                                  rftptest.CHANGED, rftptest.NO_FILE, rftptest.FAILED), what, result)
            if how == "daemon":
                forget(daemon)
                daemon = Daemon(place.export)
            settled(place, daemon)
            if result.code == OK or changed:
                break
        if changed:
            what += f" {changed},"
            if tree:
                after_change_in_tree(place, daemon, changed[0][1], what)
            elif os.path.exists(place.copy) and changed[0][0] == "gone":  # it had come
                same = rftptest.rftp(*place.arguments(daemon.url))
                equal(same.code, rftptest.NO_FILE, what, same)
            else:
                after_change(place, daemon, changed[0][0], what)
            daemon.stop()
            forget(daemon)
            shutil.rmtree(where)
            continue
        wanted = rng().choice(CHANGES) if not tree and rng().random() < 0.3 else None
        if wanted and result.code != OK:
            change(place, wanted)
            what += f" {wanted}"
            after_change(place, daemon, wanted, what)
        else:
            go_on(place, daemon.url, what)
        daemon.stop()
        forget(daemon)
        shutil.rmtree(where)


rftptest.main()
