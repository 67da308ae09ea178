#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option and setting is stated once, in a table of the program: --help, `set`, completion, the
configuration that is installed and the manual say the same of it."""

import os
import re
import shutil
import subprocess

import rftptest
from rftptest import case, check, equal, skip, works


def page(name):
    with open(os.path.join(rftptest.REPOSITORY, "man", name)) as f:
        return f.read()


def help_of(program):
    """{long option: (letter or None, what may be given or "", help with the default)}"""
    done = subprocess.run([os.path.join(rftptest.BUILD, program), "--help"], capture_output=True, text=True,
                          env=rftptest.clean_environment(), timeout=20 * rftptest.PATIENCE)
    equal(done.returncode, 0, program, "--help")
    found = {}
    for line in done.stdout.splitlines():
        match = re.fullmatch(r"  (?:-(.), |    )--([a-z0-9-]+)(?: (\S+))? +(\S.*)", line)
        if match:
            found[match[2]] = match[1], match[3] or "", match[4]
    check(len(found) > 10, program, "--help:", done.stdout)
    return found


def options_of(text):
    """{long option: letter or None} of a manual page's lists."""
    found = {}
    for line in re.findall(r"(?m)^\.It (Fl .*)$", text):
        words = re.findall(r"Fl (-?[A-Za-z0-9-]+)", line)
        letters = [w for w in words if not w.startswith("-")]
        names = [w[1:] for w in words if w.startswith("-")]
        for name in names:
            found[name] = letters[0] if letters else None
    return found


def default_in(text):
    match = re.search(r"\(([^()]*)\)$", text)
    return match and match[1]


def settings():
    """{name: (value, values)} as the shell shows them."""
    shown = works("--json", "-c", "set").events()
    return {e["name"]: (e["value"], e["values"]) for e in shown if e["event"] == "setting"}


@case
def rftp_help_and_manual(top):
    said = {name: letter for name, (letter, _, _) in help_of("rftp").items()}
    wanted = options_of(page("rftp.1"))
    for name in ("remove", "older"):  # of a command, and in its usage
        check(name in wanted and f"--{name}" in works("--help").out.decode(), name)
        del wanted[name]
    equal(wanted, said, "options of rftp(1), and of --help")


@case
def rftp_set_and_manual(top):
    part = re.search(r"(?s)\.It Ic set .*?\.It Ic", page("rftp.1"))[0]
    names = re.findall(r"[a-z0-9-]+", " ".join(re.findall(r"(?m)^\.Cm (.*)$", part)))
    equal(sorted(names), sorted(settings()), "settings of rftp(1), and of `set`")


@case
def json_events_and_manual(top):
    part = re.search(r"(?s)\.Sh JSON OUTPUT(.*?)\n\.Sh ", page("rftp.1"))[1]
    said = {name for line in re.findall(r"(?m)^\.It Li (.*)$", part) for name in re.findall(r"\w+", line)}
    written = set()
    for where, _, names in os.walk(os.path.join(rftptest.REPOSITORY, "rftp")):
        for name in filter(lambda n: n.endswith(".c"), names):
            with open(os.path.join(where, name)) as f:
                for call in re.findall(r"report_json_begin\(&\w+,([^;]*)\);", f.read()):
                    written |= set(re.findall(r'"(\w+)"', call))
    check({"start", "file", "directory", "done", "error"} <= written, "the programs write", written)
    check(written <= said, "events that rftp(1) does not tell of:", written - said)


@case
def what_help_says_of_values_is_what_set_takes(top):
    options, shown = help_of("rftp"), settings()
    for name, (value, values) in shown.items():
        if name in options and options[name][1]:
            equal(options[name][1], values, "values of", name)
            equal(default_in(options[name][2]), value, "default of", name)
        for word in values.split("|"):
            if not re.search("[A-Z0-9]", word):
                works("-c", f"set {name} {word}")


@case
def bash_completes_what_help_says(top):
    if not shutil.which("bash"):
        skip("no bash here")
    script = os.path.join(rftptest.REPOSITORY, "rftp", "shell", "completion.bash")

    def complete(*words):
        text = (f'. "{script}"; compopt() {{ :; }}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rftp; '
                'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", text, "bash", os.path.join(rftptest.BUILD, "rftp"), *words],
                              capture_output=True, text=True, timeout=30 * rftptest.PATIENCE)
        equal((done.returncode, done.stderr), (0, ""), "completion of", words)
        return done.stdout.split()
    options = help_of("rftp")
    equal(sorted(complete("-")), sorted(f"--{name}" for name in options), "options")
    equal(complete("--direct", "o"), ["on", "off"], "values of --direct")
    equal(complete("--engine", ""), ["auto", "credit", "status", "window", "pull"], "values of --engine")
    equal(complete("--block", "a"), ["auto"], "values of --block")


@case
def rftpd_help_and_manual(top):
    said = help_of("rftpd")
    text = page("rftpd.8")
    equal(options_of(text), {name: letter for name, (letter, _, _) in said.items()},
          "options of rftpd(8), and of --help")
    for name, (_, _, help) in said.items():
        part = re.search(rf"(?s)\.It Fl -{name}\b.*?(?=\n\.It|\n\.El)", text)
        stated = part and re.search(r"(?s)Default:\n?(.*?)\.?$", part[0])
        default = default_in(help)
        if default and re.fullmatch(r"[\w:.]+", default):
            check(stated, "rftpd(8) does not say the default of", name)
            equal(re.sub(r"\.(Ql|Cm) | |\.$|\n", "", stated[1]), default, "default of", name, "in rftpd(8)")
        else:
            check(bool(default) == bool(stated), "rftpd(8), default of", name)


@case
def rftpd_conf_is_what_help_says(top):
    said = help_of("rftpd")
    no_settings = {"config", "test-config", "verbose", "quiet", "foreground", "help", "version", "serve-once"}
    rows = dict(re.findall(r"(?m)^\.It Ic (\S+) Ta .* Ta (.*)$", page("rftpd.conf.5")))
    equal(sorted(rows), sorted(set(said) - no_settings), "settings of rftpd.conf(5)")
    with open(os.path.join(rftptest.REPOSITORY, "packaging", "rftpd.conf")) as f:
        example = dict(re.findall(r"(?m)^#?([a-z-]+) *= *(.*)$", f.read()))
    for name, value in rows.items():
        default = default_in(said[name][2])
        if default and re.fullmatch(r"[\w:.]+", default):
            equal(value.split(",")[0], default, "default of", name, "in rftpd.conf(5)")
            check(example.get(name, default) == default, "the installed rftpd.conf says", name, example.get(name))
        check(name in said, "the installed rftpd.conf knows", name)


@case
def rftpd_conf_renders_properly(top):
    path = os.path.join(rftptest.REPOSITORY, "man", "rftpd.conf.5")
    renderers = [r for r in (["mandoc", "-Tascii"], ["groff", "-mdoc", "-Tascii", "-rLL=100n"]) if shutil.which(r[0])]
    if not renderers:
        skip("neither mandoc nor groff here")
    for renderer in renderers:
        done = subprocess.run([*renderer, path], capture_output=True, text=True, timeout=30 * rftptest.PATIENCE)
        text = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)
        for row in (r"listen +\[ADDR:\]PORT, repeatable +127\.0\.0\.1:7387", r"export +DIR\[:ro\|:rw\] +none; must be given",
                    r"max-block +64K to 16M +16M", r"log-level +error, warning, info, debug\s+info"):
            check(re.search(rf"(?m)^ *{row}$", text), renderer[0], "does not show", row, text[1000:4000])


rftptest.main()
