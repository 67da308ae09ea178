#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rftpd itself: options, configuration, ready line, signals, sessions that wait."""

import os
import re
import resource
import signal
import socket
import subprocess

import iwarp
import rftptest
from rftptest import ROOT, Daemon, case, check, equal, make_file, needs_ipv6, same_files, scaled, skip, \
    wait_until, works


def rftpd(*arguments, timeout=20):
    """Runs rftpd until it ends by itself."""
    process = rftptest.spawn([os.path.join(rftptest.BUILD, "rftpd"), *arguments],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=rftptest.clean_environment())
    return rftptest.finish(process, timeout=timeout)


def export(top):
    os.makedirs(f"{top}/export", exist_ok=True)
    return f"{top}/export"


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


@case
def ready_line_port_zero_and_sigterm(top):
    daemon = Daemon(export(top))
    check(0 < daemon.port < 65536, "port", daemon.port)
    check("soft" in daemon.fabrics, "fabrics", daemon.fabrics)
    other = Daemon(export(top))
    check(daemon.port != other.port, "the same port twice")
    daemon.stop()
    other.stop()


@case
def ipv6(top):
    needs_ipv6()
    daemon = Daemon(export(top), listen="[::1]:0")
    make_file(f"{top}/f", 100000)
    host = daemon.host.strip("[]")
    works(f"{top}/f", f"rftp://[{host}]:{daemon.port}/f")
    same_files(f"{top}/f", daemon.path("f"))


@case
def sigterm_ends_it_with_sessions_and_a_transfer(top):
    daemon = Daemon(export(top))
    make_file(f"{top}/f", 32 << 20)
    idle = iwarp.Session(daemon.port)
    idle.hello()
    proxy = rftptest.Proxy(daemon.port, hold=4 << 20)
    client = rftptest.start_rftp(f"{top}/f", proxy.url("f"))
    wait_until(proxy.held.is_set, "the transfer begins")
    daemon.process.send_signal(signal.SIGTERM)
    proxy.release()
    daemon.process.wait(30 * rftptest.PATIENCE)
    equal(daemon.process.returncode, 0, "exit code, stderr", daemon.stderr()[-2000:])
    rftptest.no_sanitizer_report(daemon.stderr(), "rftpd")
    daemon.stopped = True
    result = rftptest.finish(client)
    check(result.code in (0, rftptest.LOST), "the client:", result)
    equal(rftptest.leftovers(daemon.top), [], "temporary files")
    equal(os.path.exists(daemon.path("f")), result.code == 0, "the file is there")
    idle.close()
    proxy.close()


@case
def sigint_and_sighup_do_not_crash_it(top):
    daemon = Daemon(export(top))
    daemon.process.send_signal(signal.SIGINT)
    daemon.process.wait(20 * rftptest.PATIENCE)
    check(daemon.process.returncode in (0, 130, -signal.SIGINT), "after SIGINT",
          daemon.process.returncode)
    daemon.stopped = True


@case
def only_loopback_unless_insecure(top):
    directory = export(top)
    for address in ("0.0.0.0:0", "[::]:0"):
        result = rftpd("--listen", address, "--export", f"{directory}:rw")
        check(result.code != 0, address, "was listened on:", result)
        check(b"insecure" in result.err.lower(), address, "message:", result.err)
        equal(result.out, b"", "stdout")
    daemon = Daemon(directory, "rw", "--insecure", listen="0.0.0.0:0")
    make_file(f"{top}/f", 1000)
    works(f"{top}/f", f"rftp://127.0.0.1:{daemon.port}/f")


@case
def a_port_that_is_taken(top):
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        result = rftpd("--listen", f"127.0.0.1:{port}", "--export", f"{export(top)}:rw")
    check(result.code != 0 and str(port).encode() in result.err, "message:", result)


@case
def wrong_options(top):
    directory = export(top)
    for arguments in ([], ["--listen"], ["--nonsense"], ["--listen", "127.0.0.1:0"],
                      ["--export", directory, "--listen", "127.0.0.1:99999"],
                      ["--export", directory, "--listen", "127.0.0.1:x"],
                      ["--export", directory, "--listen", "nonsense:0"],
                      ["--export", f"{top}/missing:rw", "--listen", "127.0.0.1:0"],
                      ["--export", f"{directory}:rwx", "--listen", "127.0.0.1:0"],
                      ["--config", f"{top}/missing.conf"], ["extra"]):
        result = rftpd(*arguments)
        check(result.code > 0, "rftpd", arguments, "should fail:", result)
        check(result.err.strip(), "rftpd", arguments, "no message")
        equal(result.out, b"", "stdout of", arguments)
    make_file(f"{top}/file", 10)
    result = rftpd("--listen", "127.0.0.1:0", "--export", f"{top}/file:rw")
    check(result.code > 0 and b"file" in result.err, "an export that is a file:", result)
    for option in ("--help", "--version"):
        result = rftpd(option)
        equal(result.code, 0, option)
        check(b"rftpd" in result.out, option, "says", result.out)


@case
def a_config_file(top):
    directory = export(top)
    config = write(f"{top}/good.conf", f"# a comment\n\nlisten = 127.0.0.1:0\nexport = {directory}:rw\n")
    result = rftpd("-t", "--config", config)
    equal(result.code, 0, "rftpd -t", result)
    daemon = Daemon(directory, command=["--config", config])
    make_file(f"{top}/f", 5000)
    works(f"{top}/f", daemon.url("f"))
    same_files(f"{top}/f", daemon.path("f"))


@case
def the_check_finds_what_would_fail(top):
    directory = export(top)
    equal(rftpd("-t", "--export", directory, "--listen", "0").code, 0, "rftpd -t with a port alone")
    result = rftpd("-t", "--export", directory, "--listen", "192.0.2.1:0", "--insecure")
    check(result.code == 2 and b"192.0.2.1:0" in result.err, "an address of another host:", result)
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        result = rftpd("-t", "--export", directory, "--listen", "0", "--fabric", "verbs")
        check(result.code == 2 and b"verbs" in result.err, "a fabric without a device:", result)
    result = rftpd("-t", "--export", directory, "--export", f"{directory}:rw", "--listen", "0")
    check(result.code == 2 and b"twice" in result.err, "two exports:", result)
    result = rftpd("-t", "--export", f"{top}/missing", "--listen", "0")
    check(result.code == 2 and b"missing" in result.err, "an export that is not there:", result)
    result = rftpd("-t", "--export", directory, "--listen", "70000")
    check(result.code == 2 and b"70000 is no port" in result.err, result)


@case
def the_check_takes_nothing(top):
    """Beside the daemon that runs with this configuration, which goes on."""
    directory = export(top)
    with socket.create_server(("127.0.0.1", 0)) as s:
        metrics = s.getsockname()[1]
    text = f"export = {directory}:rw\ncontrol = {top}/control\n"
    daemon = Daemon(directory, command=["--config", write(f"{top}/conf", text + "listen = 127.0.0.1:0\n"),
                                        "--metrics", f"127.0.0.1:{metrics}"])
    text += f"listen = 127.0.0.1:{daemon.port}\nmetrics = 127.0.0.1:{metrics}\n"
    before = os.lstat(f"{top}/control")
    for config in (text, text.replace("control = ", f"control = {top}/missing/../")):
        result = rftpd("-t", "--config", write(f"{top}/conf", config))
        equal(result.code, 0 if config == text else 2, "rftpd -t beside it", result)
    equal(os.lstat(f"{top}/control").st_ino, before.st_ino, "its socket")
    make_file(f"{top}/f", 10)
    works(f"{top}/f", daemon.url("f"))
    # and no socket is made, nor another file taken away
    for name, code in (("none", 0), ("f", 2), ("n" * 200, 2)):
        result = rftpd("-t", "--export", directory, "--listen", "0", "--control", f"{top}/{name}")
        equal(result.code, code, name, result)
    check(os.path.isfile(f"{top}/f") and not os.path.lexists(f"{top}/none"), os.listdir(top))


@case
def config_errors_name_the_line(top):
    directory = export(top)
    good = f"listen = 127.0.0.1:0\nexport = {directory}:rw\n"
    for line, text in ((3, good + "nonsense = 1\n"), (3, good + "a line without equals\n"),
                       (4, good + "\nlisten = 127.0.0.1:99999\n"), (3, good + "= 1\n"),
                       (3, good + "[section\n"), (1, "\0\0\0\n" + good),
                       (3, good + "max-sessions = many\n"), (3, good + "max-sessions = -1\n"),
                       (3, good + "x" * 100000 + "\n")):
        config = write(f"{top}/bad.conf", text)
        for arguments in (["-t", "--config", config], ["--config", config]):
            result = rftpd(*arguments)
            check(result.code > 0, shorten(text), "was taken:", result)
            check(re.search(rb"bad\.conf[: ]+(line )?%d\b" % line, result.err),
                  f"line {line} of the file is not named:", result.err)
    for text in ("", good[:good.index("export")]):
        result = rftpd("-t", "--config", write(f"{top}/bad.conf", text))
        check(result.code > 0 and result.err.strip(), "a file without what is needed:", result)
    result = rftpd("-t", "--config", top)
    check(result.code > 0, "a directory as the file:", result)


def shorten(text):
    return repr(text[-60:])


@case
def the_example_and_the_unit(top):
    example = os.path.join(rftptest.REPOSITORY, "packaging", "rftpd.conf")
    with open(example) as f:
        text = f.read()
    directory = export(top)
    # what it proposes, also where it is commented out, is what the daemon takes
    text = re.sub(r"(?m)^#\s?([a-z-]+ *=)", r"\1", text)
    text = re.sub(r"(?m)^(export *= *)[^:\n]*", rf"\g<1>{directory}", text)
    text = re.sub(r"(?m)^((?:log-file|audit-log|xferlog) *= *).*", rf"\g<1>{top}/log", text)
    text = re.sub(r"(?m)^(control *= *).*", rf"\g<1>{top}/control", text)
    text = re.sub(r"(?m)^(metrics *= *).*", r"\g<1>127.0.0.1:0", text)
    # whether port 7387 is free here is not the question
    result = rftpd("-t", "--listen", "0", "--config", write(f"{top}/example.conf", text))
    equal(result.code, 0, "rftpd -t of the example", result)


@case
def a_thousand_idle_sessions(top):
    count = scaled(1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 200:
        skip(f"only {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 200), hard))
    daemon = Daemon(export(top))
    make_file(f"{top}/f", 1 << 20)
    works(f"{top}/f", daemon.url("f"))
    before = daemon.settled()
    sessions = []
    for _ in range(count):  # each set up before the next: many at once that are not are a flood
        sessions.append(iwarp.Session(daemon.port, 30 * rftptest.PATIENCE))
        sessions[-1].hello()
    resident, threads = daemon.resident_bytes(), daemon.threads()
    print(f"# {count} idle sessions: {resident >> 20} MiB, {threads} threads", flush=True)
    check(threads <= before[1], "threads grew from", before[1], "to", threads)
    if not rftptest.SANITIZED:
        check(resident < 100 << 20, "resident:", resident >> 20, "MiB")
    works(f"{top}/f", daemon.url("g"))
    for s in sessions[::100]:
        equal(s.ask(iwarp.PING, b"cookie 8")[0], 0, "PING of an idle session")
    for s in sessions:
        s.close()
    daemon.back_to(before, "after a thousand sessions")


@case
def a_transfer_while_others_come_and_go(top):
    daemon = Daemon(export(top))
    make_file(f"{top}/f", 64 << 20)
    client = rftptest.start_rftp(f"{top}/f", daemon.url("f"))
    rounds = 0
    while client.poll() is None and rounds < 200:
        s = iwarp.Session(daemon.port)
        s.hello()
        s.close()
        rounds += 1
    result = rftptest.finish(client)
    equal(result.code, 0, "the transfer", result)
    same_files(f"{top}/f", daemon.path("f"))


rftptest.main()
