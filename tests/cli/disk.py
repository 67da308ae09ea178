#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What reaches the disk, and when: --fsync, and --verify with a disk that does not keep what it is given.

tests/preload/disk.c lies beneath the programs."""

import os
import shutil
import subprocess

import rftptest
from rftptest import (INTEGRITY, OK, Daemon, case, check, equal, fails, leftovers, make_file, same_files, skip, wait_until,
                      works)

SIZE = 300000
FILES = 5


def preloaded(**variables):
    return rftptest.preloaded("disk", **{f"RFTP_TEST_{k.upper()}": v for k, v in variables.items()})


class Place:
    def __init__(self, top, *arguments):
        self.export, self.local, self.log = f"{top}/export", f"{top}/local", f"{top}/flushes"
        for where in (self.export, self.local):
            os.makedirs(f"{where}/in")
            os.mkdir(f"{where}/out")
            for i in range(FILES):
                make_file(f"{where}/in/{i}", SIZE)
        self.env = preloaded(flushes=self.log)
        self.daemon = Daemon(self.export, "rw", "--sandbox=no", *arguments, env=self.env)

    def flushes(self, way, *options):
        """-> how many fsyncs and syncfs there were, on both sides"""
        open(self.log, "w", encoding="ascii").close()
        words = {"put": [*(f"{self.local}/in/{i}" for i in range(FILES)), self.daemon.url("out/")],
                 "get": [*(self.daemon.url(f"in/{i}") for i in range(FILES)), f"{self.local}/out/"]}[way]
        result = rftptest.rftp(*options, *words, env=self.env)
        equal(result.code, OK, result)
        for i in range(FILES):
            a, b = (self.local, self.export)[::1 if way == "put" else -1]
            same_files(f"{a}/in/{i}", f"{b}/out/{i}")
        with open(self.log, encoding="ascii") as f:
            lines = f.read().split()
        return lines.count("fsync"), lines.count("syncfs")


@case
def files_are_flushed_as_it_was_asked_for(top):
    place = Place(top)
    for way in ("put", "get"):
        for option in ("auto", "file"):
            fsyncs, syncs = place.flushes(way, "--fsync", option)
            check(fsyncs >= FILES and not syncs, way, option, fsyncs, syncs)
        fsyncs, syncs = place.flushes(way)
        check(fsyncs >= FILES and not syncs, way, "by default", fsyncs, syncs)
        equal(place.flushes(way, "--fsync", "end"), (0, 1), way, "end")
        equal(place.flushes(way, "--fsync", "never"), (0, 0), way, "never")


@case
def trees_are_flushed_as_it_was_asked_for(top):
    """Small files come many in one block, or as single requests."""
    place = Place(top)
    for side in (place.local, place.export):
        for i in range(40):
            os.makedirs(f"{side}/tree/{i % 3}", exist_ok=True)
            make_file(f"{side}/tree/{i % 3}/{i}", 1000)
        os.symlink("0", f"{side}/tree/link")
    for way, inline in (("put", "0"), ("put", "60K"), ("get", "0"), ("get", "60K")):
        for option in ("never", "file"):
            open(place.log, "w", encoding="ascii").close()
            target = f"{way}-{inline}-{option}"
            for side in (place.local, place.export):  # what is made by a request of its own is flushed by itself
                os.mkdir(f"{side}/out/{target}")
            words = {"put": [f"{place.local}/tree", place.daemon.url(f"out/{target}/")],
                     "get": [place.daemon.url("tree"), f"{place.local}/out/{target}/"]}[way]
            result = rftptest.rftp("-r", "--inline-max", inline, "--fsync", option, *words, env=place.env)
            equal(result.code, OK, result)
            with open(place.log, encoding="ascii") as f:
                flushes = len(f.read().split())
            check(not flushes if option == "never" else flushes, target, flushes, "flushes")


@case
def a_server_does_no_less_than_its_administrator_wants(top):
    place = Place(f"{top}/end", "--fsync", "end")
    equal(place.flushes("put", "--fsync", "never"), (0, 1), "end, never")
    equal(place.flushes("get", "--fsync", "never"), (0, 0), "end, never: the client's own disk")
    check(place.flushes("put", "--fsync", "file")[0] >= FILES, "end, file")
    place = Place(f"{top}/file", "--fsync", "file")
    check(place.flushes("put", "--fsync", "never")[0] >= FILES, "file, never")
    result = rftptest.spawn([os.path.join(rftptest.BUILD, "rftpd"), "--fsync", "often"], stderr=rftptest.subprocess.PIPE)
    check(b"never, end, file" in result.communicate()[1], "another word")


def copies(top, way, flip, *options):
    """One file, with a disk beneath its `flip` side.  -> (Result, paths of source and copy)"""
    where = f"{top}/{way}-{flip}-{'-'.join(options)}"
    os.makedirs(f"{where}/export")
    os.makedirs(f"{where}/local")
    source, copy = (f"{where}/local/a", f"{where}/export/b")
    if way == "get":
        source, copy = f"{where}/export/a", f"{where}/local/b"
    make_file(source, SIZE)
    client = daemon = None
    if flip:
        bad = preloaded(flip=flip)
        client, daemon = (bad, None) if (way == "put") == (flip == "read") else (None, bad)
    server = Daemon(f"{where}/export", env=daemon)
    words = [source, server.url("b")] if way == "put" else [server.url("a"), copy]
    result = rftptest.rftp("--block", "64K", *options, *words, env=client)
    server.stop()
    equal(leftovers(where), [], "left behind")
    return result, source, copy


@case
def a_disk_that_does_not_keep_what_is_written(top):
    for way in ("put", "get"):
        for verify in ("readback", "all"):
            result, _, copy = copies(top, way, "write", "--verify", verify)
            equal(result.code, INTEGRITY, way, verify, result)
            check(b"read back" in result.err, way, verify, result)
            check(not os.path.exists(copy), way, verify, "has its name")
        result, source, copy = copies(top, way, "write", "--verify", "wire")
        equal(result.code, OK, way, "nobody reads it back", result)
        check(rftptest.digest(source) != rftptest.digest(copy), way, "the disk is no bad one")


@case
def a_disk_that_does_not_give_what_it_has(top):
    for way in ("put", "get"):
        for verify in ("file", "all"):
            result, _, copy = copies(top, way, "read", "--verify", verify)
            equal(result.code, INTEGRITY, way, verify, result)
            check(way == "get" or b"what the disk has" in result.err, way, verify, result)
            check(not os.path.exists(copy), way, verify, "has its name")
        for verify in ("wire", "readback"):
            result, source, copy = copies(top, way, "read", "--verify", verify)
            equal(result.code, OK, way, verify, result)
            check(rftptest.digest(source) != rftptest.digest(copy), way, "the disk is no bad one")


@case
def good_disks(top):
    for way in ("put", "get"):
        for verify in ("wire", "file", "readback", "all"):
            for option in ([], ["--fsync", "never"], ["--protect", "private"]):
                result, source, copy = copies(top, way, "", "--verify", verify, *option)
                equal(result.code, OK, way, verify, result)
                same_files(source, copy)
    os.makedirs(f"{top}/e")
    daemon = Daemon(f"{top}/e")
    for size in (0, 1, 65536, 65537):
        make_file(f"{top}/f", size)
        works("--verify", "all", f"{top}/f", daemon.url("f"))
        works("--verify", "all", daemon.url("f"), f"{top}/g")
        same_files(f"{top}/f", f"{top}/g")


@case
def a_limit_of_what_a_file_may_be(top):
    """ulimit -f: an error of who writes the file, on either side, and the end of nobody; not for a log, either."""
    if not shutil.which("prlimit"):
        skip("no prlimit here")
    for name in ("rftp", "rftpd"):
        os.makedirs(f"{top}/limited", exist_ok=True)
        with open(f"{top}/limited/{name}", "w") as f:
            f.write(f'#!/bin/sh\nexec prlimit --fsize=100000 {rftptest.BUILD}/{name} "$@"\n')
        os.chmod(f"{top}/limited/{name}", 0o755)
    os.makedirs(f"{top}/export")
    make_file(f"{top}/export/large", 300000)
    daemon = Daemon(f"{top}/export", "rw", "--audit-log", f"{top}/audit", build=f"{top}/limited")
    got = subprocess.run([f"{top}/limited/rftp", daemon.url("large"), f"{top}/got"], capture_output=True,
                         env=rftptest.clean_environment(), timeout=60 * rftptest.PATIENCE)
    equal(got.returncode, rftptest.NO_SPACE, "exit code of a get", got.stderr)
    check(b"File too large" in got.stderr and not os.path.exists(f"{top}/got"), "what is said", got.stderr)
    fails(rftptest.NO_SPACE, f"{top}/export/large", daemon.url("put"), says="File too large")
    names = " ".join(f"{'long' * 50}-{i}" for i in range(400))
    works("-c", f"mkdir {names}", daemon.url(""))
    wait_until(lambda: b"audit-log: a line is lost: File too large" in daemon.stderr(), "the log is full, which is said")
    works("-c", "ls", daemon.url(""))
    daemon.stop()


rftptest.main()
