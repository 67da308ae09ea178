#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many round trips things take, TCP's and TLS's own included: on a long way that is how long they
take."""

import os
import shutil
import subprocess

import rftptest
from lockstep import least_trips
from rftptest import KIND, Daemon, case, check, equal, fails, make_file, needs, needs_ipv6, same_files, tree, works

# round trips, at most
PUT, GET, LS, NEXT_PUT, NEXT_GET, TREE = 5, 4, 4, 1, 1, 8
MIDDLE_PUT, MIDDLE_GET = 6, 6  # over data channels
REMOVE = 14  # 64 at once
SMALL = 4000
INLINE = 60 << 10  # inline-max
MIDDLE = 200000
TREE_FILES = 1000
MANY = 300


def within(bar, count, what):
    print(f"# {what}: {count:g} round trips", flush=True)
    check(count <= bar, f"{what} takes {count:g} round trips, at most {bar} are allowed")


def exported(top):
    os.mkdir(f"{top}/export")
    make_file(f"{top}/small", SMALL)
    make_file(f"{top}/export/there", SMALL)
    return Daemon(f"{top}/export")


@case(seconds=120)
def one_put(top):
    daemon = exported(top)
    within(PUT, least_trips(daemon, PUT, f"{top}/small", "{url}put"), "a put")
    same_files(f"{top}/small", daemon.path("put"))


@case(seconds=120)
def middle_sizes(top):
    """Files that are too large to be part of a request."""
    daemon = exported(top)
    make_file(f"{top}/middle", MIDDLE)
    within(MIDDLE_PUT, least_trips(daemon, MIDDLE_PUT, f"{top}/middle", "{url}put"), f"a put of {MIDDLE} bytes")
    same_files(f"{top}/middle", daemon.path("put"))
    within(MIDDLE_GET, least_trips(daemon, MIDDLE_GET, "{url}put", f"{top}/got"), f"a get of {MIDDLE} bytes")
    same_files(f"{top}/middle", f"{top}/got")


@case(seconds=120)
def one_put_into_a_directory(top):
    daemon = exported(top)
    within(PUT, least_trips(daemon, PUT, f"{top}/small", "{url}"), "a put into a directory")
    same_files(f"{top}/small", daemon.path("small"))


@case(seconds=120)
def one_get(top):
    daemon = exported(top)
    within(GET, least_trips(daemon, GET, "{url}there", f"{top}/got"), "a get")
    same_files(daemon.path("there"), f"{top}/got")


@case(seconds=120)
def several_to_a_stream(top):
    daemon = exported(top)
    for i in range(8):
        make_file(daemon.path(f"f{i}"), SMALL + i)
    within(GET + 1, least_trips(daemon, GET + 1, "-c", "cat f0 f1 f2 f3 f4 f5 f6 f7", "{url}"), "a cat of eight files")


def both_ways(top, daemon, what, *options, sizes=(SMALL, MIDDLE), **more):
    """A put and a get of such sizes, and an ls, are within the bars whatever the options."""
    for size in sizes:
        put, get = (PUT, GET) if size <= INLINE else (MIDDLE_PUT, MIDDLE_GET)
        make_file(f"{top}/f", size)
        within(put, least_trips(daemon, put, *options, f"{top}/f", "{url}copy", **more), f"a put of {size} bytes, {what}")
        same_files(f"{top}/f", daemon.path("copy"))
        within(get, least_trips(daemon, get, *options, "{url}copy", f"{top}/got", **more), f"a get of {size} bytes, {what}")
        same_files(f"{top}/f", f"{top}/got")
    within(LS, least_trips(daemon, LS, *options, "-c", "ls", "{url}", **more), f"an ls, {what}")


@case(seconds=120)
def sizes_at_the_edges(top):
    """What fits in a request, just so, and what no longer does; and what nearly fills the area for early data."""
    both_ways(top, exported(top), "as it comes", sizes=(0, 1, INLINE, INLINE + 1, 900 << 10))


@case(seconds=120)
def other_ways_to_move(top):
    daemon = exported(top)
    for option in ("--protect=safe", "--protect=private", "--engine=status"):
        both_ways(top, daemon, option, option)


@case(seconds=120)
def a_host_that_is_new(top):
    """Its key is noted, or is known: neither costs anything."""
    daemon = exported(top)
    both_ways(top, daemon, "each with a new host", "--host-keys=ask", "--accept-new", "--known-hosts", f"{top}/known",
              before=lambda: os.path.exists(f"{top}/known") and os.unlink(f"{top}/known"))
    both_ways(top, daemon, "to a host that is known", "--host-keys=ask", "--accept-new", "--known-hosts", f"{top}/known")


@case(seconds=120)
def logins_cost_nothing(top):
    """What is shown for a login crosses with what is asked for."""
    exported(top).stop()
    done = subprocess.run([os.path.join(rftptest.BUILD, "rftpd"), "passwd", "alice", "--users", f"{top}/users"],
                          input=b"secret\n", capture_output=True, env=rftptest.clean_environment(), check=False)
    equal(done.returncode, 0, done.stderr)
    with open(f"{top}/password", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
        f.write("secret\n")
    daemon = Daemon(f"{top}/export", "rw", "--users", f"{top}/users")
    both_ways(top, daemon, "with a password", "--password-file", f"{top}/password", user="alice@")
    daemon.stop()
    needs("ssh-keygen")
    os.mkdir(f"{top}/keys")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{top}/alice"], check=True)
    shutil.copy(f"{top}/alice.pub", f"{top}/keys/alice")
    daemon = Daemon(f"{top}/export", "rw", "--authorized-keys", f"{top}/keys/%u")
    both_ways(top, daemon, "with a key", "--identity", f"{top}/alice", user="alice@")


@case(seconds=120)
def over_ipv6(top):
    needs_ipv6()
    os.mkdir(f"{top}/export")
    both_ways(top, Daemon(f"{top}/export", listen="[::1]:0"), "over IPv6")


def batch(top, name, *commands):
    with open(f"{top}/{name}", "w") as f:
        f.write("".join(c + "\n" for c in commands))
    return f"{top}/{name}"


@case(seconds=120)
def one_ls(top):
    daemon = exported(top)
    within(LS, least_trips(daemon, LS, "-c", "ls", "{url}"), "an ls")
    os.makedirs(daemon.path("a/b"))
    for i in range(330):  # more than a frame has room for, and less than a pipe has
        make_file(daemon.path(f"a/b/{i:0190}"), 0)
    within(LS, least_trips(daemon, LS, "-c", "ls -1", "{url}a//b/"), "an ls of a directory")
    # what was asked ahead and is not wanted goes by
    equal(works("-c", "-ls -x; ls /", daemon.url("a/b")).out, b"a\nthere\n", "behind a list that nobody wants")
    fails(KIND, "-c", "ls; pwd", daemon.url("there"), says="not a directory")


@case(seconds=120)
def all_beneath_a_name(top):
    """As many directories as there are, one request."""
    daemon = exported(top)
    for i in range(60):
        os.makedirs(daemon.path(f"t/{i}/x"))
    within(LS + 2, least_trips(daemon, LS + 2, "-c", "find t", "{url}"), "a find")
    within(LS + 2, least_trips(daemon, LS + 2, "-c", "du -s t", "{url}"), "a du")


@case(seconds=120)
def directories_in_directories(top):
    """ls -R asks for many before the first has answered: as many round trips as the tree is deep."""
    daemon = exported(top)
    for i in range(300):
        os.makedirs(daemon.path(f"t/{i % 10}/{i}"))
        make_file(daemon.path(f"t/{i % 10}/{i}/f"), i)
    bar = LS + 10  # 64 at once
    within(bar, least_trips(daemon, bar, "-c", "ls -R t", "{url}"), "an ls -R of 311 directories")
    said = works("-c", "ls -1R t", daemon.url("")).out.decode()
    heads = [line[:-1] for line in said.split("\n") if line.endswith(":")]
    expected = ["t"]
    for d in sorted(map(str, range(10))):
        expected.append(f"t/{d}")
        expected += [f"t/{d}/{i}" for i in sorted(str(i) for i in range(300) if i % 10 == int(d))]
    equal(heads, expected, "the directories, each behind the one that it is in")
    equal(said.split("\n").count("f"), 300, "files")
    several = [f"t/{i}" for i in range(10)]
    within(LS + 2, least_trips(daemon, LS + 2, "-c", "ls " + " ".join(several), "{url}"), "an ls of 10 directories")


def next_one(top, daemon, bar, command):
    """The difference between two and one, of the least of each."""
    first = least_trips(daemon, 0, "-c", command.format("1"), "{url}", tries=3)
    both = least_trips(daemon, first + bar, "-c", f"{command.format('1')}; {command.format('2')}", "{url}")
    return both - first


@case(seconds=120)
def next_put(top):
    daemon = exported(top)
    within(NEXT_PUT, next_one(top, daemon, NEXT_PUT, f"put {top}/small p{{}}"), "the next put of a session")
    same_files(f"{top}/small", daemon.path("p2"))


@case(seconds=120)
def next_get(top):
    daemon = exported(top)
    within(NEXT_GET, next_one(top, daemon, NEXT_GET, f"get there {top}/g{{}}"), "the next get of a session")
    same_files(daemon.path("there"), f"{top}/g2")


@case(seconds=240)
def trees_of_small_files(top):
    daemon = exported(top)
    for i in range(TREE_FILES):
        os.makedirs(f"{top}/tree/d{i % 20}", exist_ok=True)
        make_file(f"{top}/tree/d{i % 20}/f{i}", i % 700)
    within(TREE, least_trips(daemon, TREE, "-r", f"{top}/tree", "{url}put", tries=3),
           f"a put of {TREE_FILES} small files")
    equal(tree(daemon.path("put/tree")), tree(f"{top}/tree"), "what was put")


def full(top, daemon):
    """300 files at the server, and a directory here that is as empty as it was there"""
    os.makedirs(daemon.path("many"), exist_ok=True)
    os.makedirs(f"{top}/many", exist_ok=True)
    for i in range(MANY):
        make_file(daemon.path(f"many/f{i}"), 1)


@case(seconds=240)
def many_removals(top):
    """Each is a request, and none waits for the reply to the one before."""
    daemon = exported(top)
    within(REMOVE, least_trips(daemon, REMOVE, "-c", "rm many/*", "{url}", before=lambda: full(top, daemon)),
           f"rm of {MANY} files")
    equal(os.listdir(daemon.path("many")), [], "what is left")
    within(REMOVE, least_trips(daemon, REMOVE, "sync", "--delete", f"{top}/many", "{url}many",
                               before=lambda: full(top, daemon)),
           f"a sync that removes {MANY} files")
    equal(os.listdir(daemon.path("many")), [], "what is left")


@case(seconds=240)
def many_names(top):
    """Of each of many names a request, and none waits for the reply to the one before."""
    daemon = exported(top)
    full(top, daemon)
    os.mkdir(daemon.path("into"))
    names = " ".join(f"many/{name}" for name in os.listdir(daemon.path("many")))
    for command in ("stat", "ls -l"):
        with open(f"{top}/commands", "w") as f:
            f.write(f"{command} {names}\n")
        within(REMOVE, least_trips(daemon, REMOVE, "-b", f"{top}/commands", "{url}"), f"{command} of {MANY} names")

    def back():
        for name in os.listdir(daemon.path("into")):
            os.rename(daemon.path(f"into/{name}"), daemon.path(f"many/{name}"))

    with open(f"{top}/commands", "w") as f:
        f.write(f"mv {names} into\n")
    within(REMOVE, least_trips(daemon, REMOVE, "-b", f"{top}/commands", "{url}", before=back), f"mv of {MANY} names")
    equal(len(os.listdir(daemon.path("into"))), MANY, "names that were moved")


rftptest.main()
