#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands in the background: several transfers of one session at once."""

import json
import os

import rftptest
from rftptest import Daemon, Proxy, case, check, equal, fails, leftovers, make_file, same_files, works

M = 1 << 20
SLOW = "set limit-rate 4M; "  # for jobs that are to be there still: the setting is theirs alone
FAST = "; set limit-rate none; "


class Both:
    """A daemon with f0, f1 ..., and a local directory with l0, l1 ..."""

    def __init__(self, top, *arguments):
        self.local = f"{top}/local"
        for name in ("export", "local", "local/in"):
            os.mkdir(f"{top}/{name}")
        for number in range(4):
            make_file(f"{top}/export/f{number}", 5 * M + number)
            make_file(f"{self.local}/l{number}", 4 * M + number)
        self.daemon = Daemon(f"{top}/export", "rw", *arguments)
        self.proxy = Proxy(self.daemon.port)

    def run(self, commands, *options):
        return (*options, "-c", f"lcd {self.local}; " + commands, self.proxy.url())

    def arrived(self, number):
        same_files(f"{self.local}/l{number}", self.daemon.path(f"l{number}"))

    def came(self, number, directory="in"):
        same_files(self.daemon.path(f"f{number}"), f"{self.local}/{directory}/f{number}")


@case
def both_directions_at_once(top):
    both = Both(top)
    out = works(*both.run(SLOW + "put l0 & put l1 & get f0 in/ & jobs; ls; get f1 in/" + FAST + "get f2 in/; wait; jobs",
                          "--channels", "1")).out.decode()
    for number in range(2):
        both.arrived(number)
        both.came(number)
    both.came(2)
    running = [line for line in out.splitlines() if line.startswith("[")]
    equal([line.split(":")[1] for line in running], [" put l0", " put l1", " get f0 in/"], "jobs:", out)
    check(out.index("[3]") < out.index("f3\n"), "ls while they run:", out)
    # a control channel, and a data channel for each of the four that ran at once
    equal(len(both.proxy.sockets) // 2, 1 + 4, "connections")
    log = both.daemon.stderr()
    equal(log.count(b" connected: "), 1, "sessions:", log)
    both.proxy.close()
    equal(leftovers(both.daemon.top), [], "temporary files")


@case
def more_than_the_server_takes(top):
    both = Both(top)
    run = fails(12, *both.run(SLOW + "put l0 & put l1 & put l2 & put l3 & ls"))
    check(b"wait for one" in run.err and b"not run after the error: ls" in run.err, run)
    for number in range(3):  # those that ran are not given up for it
        both.arrived(number)
    both.proxy.close()


@case
def failures_are_told_by_wait(top):
    both = Both(top)
    equal(fails(6, *both.run("get missing in/ & wait; ls")).out, b"", "after a wait that fails")
    run = fails(6, *both.run("get missing in/ & put l0"))
    check(b"/missing" in run.err, run)
    both.arrived(0)
    run = works(*both.run("-get missing in/ & wait; pwd"))
    check(run.out.startswith(b"rftp://"), "an error that is ignored:", run)
    run = works(*both.run("get f0 in/ & wait %1; -wait 1; pwd"))
    check(run.out.startswith(b"rftp://") and b"no job 1" in run.err, "one that is over:", run)
    for bad in ("ls &", "!true &", "wait 0", "kill", "kill 7", "wait x"):
        if bad != "!true &":  # the system's shell has it
            fails(2, *both.run(bad))
    make_file(f"{both.local}/a&b", 10)
    works(*both.run("put a&b; put 'a&b' & wait"))
    same_files(f"{both.local}/a&b", both.daemon.path("a&b"))
    both.proxy.close()


@case
def one_that_is_killed_ends_alone(top):
    both = Both(top)
    run = fails(130, *both.run("set limit-rate 1M; put l0 & put l1 & set limit-rate none; get f0 in/; kill 1; wait 1"))
    check(b"cancelled" in run.err.lower() or b"interrupted" in run.err.lower(), run)
    check(not os.path.exists(both.daemon.path("l0")), "the one that was killed has arrived")
    both.arrived(1)
    both.came(0)
    equal(leftovers(both.daemon.top), [], "temporary files")
    both.proxy.close()


@case
def a_job_stays_where_it_began(top):
    """Here and at the server: `lcd` and `cd` are the shell's."""
    both = Both(top)
    os.mkdir(both.daemon.path("d"))
    make_file(both.daemon.path("d/f9"), M)
    works(*both.run(SLOW + "put l0 & get f0 in/ & lcd /; cd d; get f9 " + both.local + "/in/; lcd /tmp; wait"))
    both.arrived(0)
    both.came(0)
    same_files(both.daemon.path("d/f9"), f"{both.local}/in/f9")
    both.proxy.close()


@case
def a_lost_connection_ends_all(top):
    both = Both(top)
    proxy = Proxy(both.daemon.port, cut=6 * M)
    run = rftptest.rftp("-c", f"lcd {both.local}; put l0 & put l1 & get f0 in/ & wait; ls", proxy.url())
    check(run.code in (1, 4), run)
    proxy.close()
    rftptest.wait_until(lambda: not leftovers(both.daemon.top), "temporary files are gone")
    works(*both.run("put l2 & wait"))
    both.proxy.close()


@case
def other_servers_meanwhile(top):
    """`close` and `open` take the shell elsewhere; what runs goes on."""
    both = Both(top)
    works(*both.run(SLOW + f"put l0 & get f0 in/ & close; open {both.proxy.url()}" + FAST + "get f1 in/; close; wait"))
    both.arrived(0)
    both.came(0)
    both.came(1)
    equal(both.daemon.stderr().count(b" connected: "), 2, "sessions")
    both.proxy.close()


@case
def as_json(top):
    both = Both(top)
    out = works(*both.run(SLOW + "put l0 & get f0 in/ & jobs; wait", "--json")).out
    events = list(map(json.loads, out.splitlines()))
    equal(sorted(event["job"] for event in events if event["event"] == "done"), [1, 2], "whose they are")
    equal({event["job"] for event in events if event["event"] == "file" and event["remote"] == "/f0"}, {2}, "a file's")
    jobs = [event for event in events if event["event"] == "job"]
    equal([(job["job"], job["state"]) for job in jobs][:2], [(1, "running"), (2, "running")], "jobs")
    equal(sorted((job["job"], job["state"], job["moved_bytes"]) for job in jobs[2:]),
          [(1, "done", 4 * M), (2, "done", 5 * M)], "ends")
    equal(jobs[0]["command"], "put l0", "its command")
    both.proxy.close()


if __name__ == "__main__":
    rftptest.main()
