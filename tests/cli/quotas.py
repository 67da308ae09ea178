#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quotas of exports, by lines `limit = export=... quota=... files=...`: what is refused before a byte of it has
come, what is cut off, and that the count stays right whatever is done."""

import json
import os

import rftptest
from rftptest import case, check, equal, fails, leftovers, make_file, rng, same_files, tree, wait_until, works
from users_daemon import Users

M = 1 << 20
NO_SPACE = 8


def taken(top):
    """As the daemon counts: the disk's blocks, and names."""
    size = count = 0
    for path, directories, files in os.walk(top):
        count += len(directories) + len([f for f in files if not f.startswith(".rftp-")])
        for f in files:
            st = os.lstat(os.path.join(path, f))
            size += st.st_blocks * 512 // st.st_nlink if os.path.isfile(os.path.join(path, f)) \
                and not os.path.islink(os.path.join(path, f)) else 0
    return size, count


class Counted(Users):
    def __init__(self, top, *lines):
        super().__init__(top, *lines)
        self.measured("a")

    def measured(self, name, count=1):
        wait_until(lambda: self.stderr().count(f"export {name}: ".encode()) >= count, "it is measured", 60)

    def quota(self, name):
        for line in self.ctl("--json", "quota").splitlines():
            one = json.loads(line)
            if one["export"] == name:
                return one
        return None

    def is_right(self, name, *what):
        one = self.quota(name)
        equal((one["bytes"], one["files"], one["arriving_bytes"]), (*taken(f"{self.directory}/{name}"), 0), name, *what)

    def put(self, user, source, to, *options):
        return (*self.login, *options, source, self.at(user, to))

    def shell_line(self, user, line, to=""):
        return (*self.login, "-c", line, self.at(user, to))


@case
def more_than_the_quota_is_refused_before_it_comes(top):
    os.makedirs(f"{top}/a/before")
    make_file(f"{top}/a/before/x", 2 * M)
    daemon = Counted(top, "limit = export=a quota=10M", "quota-scan = 0")
    daemon.is_right("a", "what was there before")
    make_file(f"{top}/9m", 9 * M)
    make_file(f"{top}/5m", 5 * M)
    result = fails(NO_SPACE, *daemon.put("alice", f"{top}/9m", "a/f", "--json"), says="quota: 8.0 MiB of 10.0 MiB are left")
    # but for what went ahead of the answer, into memory
    check(result.done()["sent_bytes"] <= M, "bytes that went:", result.done()["sent_bytes"])
    check(not os.path.exists(f"{top}/a/f") and not leftovers(f"{top}/a"), "something is there")
    daemon.is_right("a")
    works(*daemon.put("alice", f"{top}/5m", "a/f"))
    fails(NO_SPACE, *daemon.put("bob", f"{top}/5m", "a/g"), says="quota: 3.0 MiB")
    # the other export has none
    works(*daemon.put("bob", f"{top}/9m", "b/f"))
    equal(daemon.quota("b"), None, "b")
    daemon.is_right("a")
    # what df says
    out = works(*daemon.shell_line("alice", "df", "a")).out.decode()
    check(str(10 * M) in out or "10.0M" in out or "10M" in out, "df", out)
    # more, and none
    daemon.reload("limit = export=a quota=20M")
    works(*daemon.put("bob", f"{top}/5m", "a/g"))
    daemon.is_right("a", "after the reload")
    daemon.reload()
    works(*daemon.put("bob", f"{top}/9m", "a/h"))
    works(*daemon.put("bob", f"{top}/9m", "a/i"))
    daemon.stop()


@case
def it_may_be_of_some_users_only(top):
    daemon = Counted(top, "limit = export=a user=bob quota=1M", "limit = export=* user=carol files=1")
    make_file(f"{top}/2m", 2 * M)
    fails(NO_SPACE, *daemon.put("bob", f"{top}/2m", "a/f"))
    works(*daemon.put("alice", f"{top}/2m", "a/f"))
    make_file(f"{top}/small", 10)
    fails(NO_SPACE, *daemon.put("bob", f"{top}/small", "a/s"))  # it is what is there that counts, whoever's
    works(*daemon.put("alice", f"{top}/small", "a/s"))
    daemon.is_right("a")
    daemon.stop()


@case
def what_is_removed_renamed_and_replaced_is_counted(top):
    daemon = Counted(top, "limit = export=a quota=100M files=1000")
    os.mkdir(f"{top}/tree")
    for i in range(40):
        os.makedirs(f"{top}/tree/d{i % 4}/e", exist_ok=True)
        make_file(f"{top}/tree/d{i % 4}/e/f{i}", i * 3000)
    os.symlink("d1", f"{top}/tree/link")
    os.link(f"{top}/tree/d1/e/f1", f"{top}/tree/d2/other")
    make_file(f"{top}/tree/large", 3 * M + 17)
    works(*daemon.login, "-r", "-aH", f"{top}/tree", daemon.at("alice", "a"))
    daemon.is_right("a", "a tree")
    works(*daemon.login, "-r", "-aH", f"{top}/tree", daemon.at("alice", "a"))
    daemon.is_right("a", "once more")
    make_file(f"{top}/tree/large", M)
    for name in ("tree/large", "tree/d1/e/f5", "new"):
        works(*daemon.put("alice", f"{top}/tree/large", f"a/{name}"))
        daemon.is_right("a", "replaced", name)
    for line in ("mkdir made", "mkdir -p made/of/three", "mkdir -p made", "rm -r made/of", "mv new tree/large", "rm tree/d1/e/f5", "mv tree/large tree/d0/e/f4",
                 "rmdir made", "touch touched", "touch touched", "ln -s x linked", "rm touched", "rm linked", "rm tree/link", "rm tree/d2/other", "mv tree/d0 moved", "rm -r moved", "rm -r tree"):
        works(*daemon.shell_line("alice", line, "a"))
        daemon.is_right("a", line)
    equal(daemon.quota("a")["bytes"], 0, "all is gone")
    daemon.stop()


@case
def holes_do_not_count(top):
    daemon = Counted(top, "limit = export=a quota=4M")
    with open(f"{top}/sparse", "wb") as f:
        f.truncate(1 << 30)
        for at in (0, 300 * M, (1 << 30) - M):
            f.seek(at)
            f.write(rng().randbytes(M // 2))
    works(*daemon.put("alice", f"{top}/sparse", "a/f"))
    same_files(f"{top}/sparse", f"{top}/a/f")
    daemon.is_right("a")
    check(daemon.quota("a")["bytes"] < 2 * M, daemon.quota("a"))
    with open(f"{top}/sparse", "r+b") as f:
        for at in range(0, 64 * M, 8 * M):
            f.seek(at)
            f.write(rng().randbytes(M))
    fails(NO_SPACE, *daemon.put("alice", f"{top}/sparse", "a/g"))
    check(not os.path.exists(f"{top}/a/g"), "it is there")
    wait_until(lambda: not leftovers(f"{top}/a"), "nothing is left")
    daemon.is_right("a", "after a refusal")
    daemon.stop()


@case
def a_stream_is_cut_off(top):
    daemon = Counted(top, "limit = export=a quota=4M")
    make_file(f"{top}/a/kept", 100)
    data = rng().randbytes(8 * M)
    works(*daemon.login, "-", daemon.at("alice", "a/s"), input=data[:2 * M])
    fails(NO_SPACE, *daemon.login, "-", daemon.at("alice", "a/s"), input=data, says="quota")
    with open(f"{top}/a/s", "rb") as f:
        equal(f.read() == data[:2 * M], True, "the old one is as it was")
    wait_until(lambda: not leftovers(f"{top}/a"), "nothing is left")
    equal(daemon.quota("a")["arriving_bytes"], 0, "what was claimed")
    daemon.stop()


@case
def what_is_written_in_place_counts(top):
    os.makedirs(f"{top}/a")
    daemon = Counted(top, "limit = export=a quota=10M files=2", "quota-scan = 0")
    make_file(f"{top}/4m", 4 * M)
    make_file(f"{top}/7m", 7 * M)
    works(*daemon.put("alice", f"{top}/4m", "a/f", "--append"))
    works(*daemon.put("alice", f"{top}/4m", "a/f", "--append"))
    daemon.is_right("a", "8 MiB in one file")
    fails(NO_SPACE, *daemon.put("alice", f"{top}/4m", "a/f", "--append"), says="quota")
    daemon.is_right("a", "nothing came")
    works(*daemon.put("alice", "-", "a/g", "--append"), input=b"x" * 70000)
    fails(NO_SPACE, *daemon.put("alice", "-", "a/h", "--append"), input=b"x", says="quota")
    check(not os.path.exists(f"{top}/a/h"), "a third file was made")
    with open(f"{top}/7m", "rb") as f:
        fails(NO_SPACE, *daemon.put("alice", "-", "a/f", "--append"), input=f.read(), says=("quota", "no space"))
    wait_until(lambda: daemon.quota("a")["arriving_bytes"] == 0, "it is over")
    daemon.is_right("a", "a stream that was cut off")
    check(os.stat(f"{top}/a/f").st_size <= 10 * M, "more than the quota came")


@case
def a_sync_that_replaces_needs_no_names(top):
    daemon = Counted(top, "limit = export=a files=130", "quota-scan = 0")
    os.mkdir(f"{top}/tree")
    for size in 9000, 9001:  # more than cross each in a request of its own
        for i in range(100):
            make_file(f"{top}/tree/{i}", size)
        works(*daemon.login, "sync", f"{top}/tree", daemon.at("alice", "a/tree"))
        equal(tree(f"{top}/a/tree"), tree(f"{top}/tree"), size, "the tree")
        daemon.is_right("a", size)


@case
def small_files_and_names(top):
    """Many in a block: those for which there is no room are refused, each by itself."""
    daemon = Counted(top, "limit = export=a files=10")
    os.mkdir(f"{top}/tree")
    for i in range(30):
        make_file(f"{top}/tree/{i:02}", 1000)
    fails(NO_SPACE, *daemon.login, "-r", f"{top}/tree", daemon.at("alice", "a"), says="files are left")
    daemon.is_right("a")
    equal(daemon.quota("a")["files"], 10, "names")
    fails(NO_SPACE, *daemon.shell_line("alice", "mkdir more", "a"))
    fails(NO_SPACE, *daemon.put("alice", f"{top}/tree/01", "a/more"))
    # in place of another one it needs no more names
    there = sorted(os.listdir(f"{top}/a/tree"))[0]
    works(*daemon.put("alice", f"{top}/tree/01", f"a/tree/{there}"))
    works(*daemon.shell_line("alice", f"rm tree/{there}", "a"))
    works(*daemon.put("alice", f"{top}/tree/01", "a/more"))
    daemon.is_right("a")
    daemon.stop()


@case
def what_is_on_its_way_counts(top):
    """8 of 10 MiB are claimed by one who takes minutes; who comes then is refused, until he is gone."""
    daemon = Counted(top, "limit = export=a quota=10M", "limit = user=alice rate=32K")
    make_file(f"{top}/8m", 8 * M)
    make_file(f"{top}/4m", 4 * M)
    slow = daemon.begins("alice", f"{top}/8m", "a/slow")
    equal(daemon.quota("a")["arriving_bytes"], 8 * M, "claimed")
    fails(NO_SPACE, *daemon.put("bob", f"{top}/4m", "a/f"), says="quota: 2.0 MiB")
    rftptest.kill(slow)
    slow.wait()
    wait_until(lambda: daemon.quota("a")["arriving_bytes"] == 0, "it is given back", 60)
    one = daemon.quota("a")
    # some of it, or nothing; the journal beside it is small
    check(abs(one["bytes"] - taken(f"{top}/a")[0]) <= 65536, "what it left behind", one)
    works(*daemon.put("bob", f"{top}/4m", "a/f"))
    # it goes on with what is there
    daemon.reload("limit = export=a quota=20M")
    works(*daemon.put("alice", f"{top}/8m", "a/slow"))
    same_files(f"{top}/8m", f"{top}/a/slow")
    daemon.is_right("a", "after it went on")
    daemon.stop()


@case
def what_others_change_is_noticed(top):
    daemon = Counted(top, "limit = export=a quota=10M", "quota-scan = 1")
    make_file(f"{top}/a/x", 9 * M)
    wait_until(lambda: daemon.quota("a")["bytes"] >= 9 * M, "it is seen", 30)
    make_file(f"{top}/4m", 4 * M)
    fails(NO_SPACE, *daemon.put("bob", f"{top}/4m", "a/f"))
    os.unlink(f"{top}/a/x")
    wait_until(lambda: daemon.quota("a")["bytes"] == 0, "it is seen", 30)
    works(*daemon.put("bob", f"{top}/4m", "a/f"))
    daemon.stop()


@case
def a_feed_is_cut_off(top):
    daemon = Counted(top, "limit = export=a quota=2M")
    make_file(f"{top}/stream", 8 * M)
    result = rftptest.rftp(*daemon.login, "-c", f"feed cam={top}/stream .", daemon.at("alice", "a"))
    check(result.code != 0, "the feed ended well", result)
    wait_until(lambda: daemon.quota("a")["arriving_bytes"] == 0, "it is given back", 60)
    check(daemon.quota("a")["bytes"] <= 2 * M + 65536, daemon.quota("a"))
    daemon.is_right("a")
    daemon.stop()


rftptest.main()
