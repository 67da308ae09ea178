# SPDX-License-Identifier: Apache-2.0
"""What measurements leave: tables in Markdown, a CSV a figure, and a plot of each where gnuplot is installed.
Part of pull.py and pull_requests.py; knows nothing of what is measured."""

import csv
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time


def show_size(n):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit and n % unit == 0:
            return f"{n // unit} {name}"
    return f"{n} B"


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def ratio(above, below):
    """Median of the rounds' ratios, of two lists of figures by round"""
    return median(a / b for a, b in zip(above, below) if a is not None and b)


def show(value, digits=1, unit=""):
    return "-" if value is None else f"{value:,.{digits}f}{unit}"


class Report:
    """`prefix`: of the names of its files in `out`"""

    def __init__(self, out, prefix, what):
        self.out, self.prefix, self.what = out, prefix, what
        self.text = []
        self.load = os.getloadavg()[0]
        os.makedirs(out, exist_ok=True)

    def base(self, name):
        return os.path.join(self.out, f"{self.prefix}-{name}")

    def say(self, *lines):
        """A paragraph or a heading, shown at once"""
        self.text += [*lines, ""]
        print("\n".join(lines) + "\n", flush=True)

    def table(self, head, rows):
        self.say(*("| " + " | ".join(str(c) for c in row) + " |" for row in [head, ["---"] * len(head), *rows]))

    def csv(self, name, head, rows):
        with open(f"{self.base(name)}.csv", "w", newline="", encoding="ascii") as f:
            writer = csv.writer(f)
            writer.writerow([h.replace(",", ":") for h in head])  # gnuplot takes a comma for the end of a title
            writer.writerows([["" if c is None else c for c in row] for row in rows])

    def dicts(self, name, rows):
        self.csv(name, list(rows[0]), [list(row.values()) for row in rows])

    def plot(self, name, title, xlabel, ylabel, columns, log="x"):
        """Curves of these columns of the CSV of that name, over its first"""
        curves = ", ".join(f"'{self.base(name)}.csv' using 1:{i} with linespoints title columnheader({i})" for i in columns)
        self.gnuplot(name, f"set title '{title}'\nset xlabel '{xlabel}'\nset ylabel '{ylabel}'\nset logscale {log}\n"
                     f"plot {curves}\n")

    def bars(self, name, title, ylabel, columns, names):
        """A bar a row, of these columns one above the other; names: of the rows"""
        tics = ", ".join(f"'{n}' {i}" for i, n in enumerate(names))
        parts = ", ".join(f"'{self.base(name)}.csv' using {i} title columnheader({i})" for i in columns)
        self.gnuplot(name, f"set title '{title}'\nset ylabel '{ylabel}'\nset style data histogram\n"
                     "set style histogram rowstacked\nset style fill solid 0.6\nset boxwidth 0.7\nset yrange [0:*]\n"
                     f"set xtics ({tics}) rotate by -30\nset bmargin 9\nset rmargin 12\nplot {parts}\n")

    def gnuplot(self, name, script):
        if not shutil.which("gnuplot"):
            return
        head = (f"set terminal svg size 720,420 background 'white'\nset output '{self.base(name)}.svg'\n"
                "set datafile separator ','\nset grid\nset key outside bottom horizontal\n")
        done = subprocess.run(["gnuplot"], input=head + script, text=True, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            print(f"gnuplot: {name}: {done.stderr.strip()}", file=sys.stderr)

    def write(self, lines=()):
        """All that was said, in one file; lines: about the run"""
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
        cpu = names[0] if names else platform.machine()
        head = [f"{time.strftime('%Y-%m-%d')}, {self.what}, {os.cpu_count()} x {cpu}, Linux {platform.release()}, "
                "both ends on one host.", *lines]
        if self.load > 0.5:
            head.append(f"The load average was {self.load:.1f} at the start: something else was running; ratios say "
                        "more than figures.")
        path = os.path.join(self.out, f"{self.prefix}.md")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(head) + "\n\n" + "\n".join(self.text))
        print("\n".join(head) + f"\n{path}; a CSV and a plot each beside it")
