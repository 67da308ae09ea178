# SPDX-License-Identifier: Apache-2.0
"""The part of bench.py that moves trees of small files, on one host and through a long line."""

import os
import shutil

import peers
import unchanged


def per_second(rate):
    return f"{rate:,.0f} files/s"


def count_files(top):
    return sum(len(names) for _, _, names in os.walk(top))


class SmallFiles:
    """The options, rounds and rows are Bench's, which is one of these."""

    def make_small(self):
        """-> directory, files"""
        count, small = self.options.small, f"{self.top}/small"
        if os.path.isdir(small):
            return small, count
        for d in range(20):
            os.makedirs(f"{small}/{d}")
            for i in range(count // 20):
                with open(f"{small}/{d}/{i}", "wb") as f:
                    f.write(os.urandom(4096))
        return small, count

    def make_trees(self):
        """-> [(what, directory, files)]"""
        small, count = self.make_small()
        trees = [(f"{count:,} files of 4 KiB", small, count)]
        if os.path.isdir("/usr/include"):
            shutil.copytree("/usr/include", f"{self.top}/include", ignore_dangling_symlinks=True)
            trees.append(("/usr/include", f"{self.top}/include", count_files(f"{self.top}/include")))
        return trees

    def one_tree(self, action, target, files):
        """A contestant that puts `files` files to `target`, which was not there and then is right."""
        def run():
            try:
                done = action()
                if count_files(target) != files:
                    raise RuntimeError(f"{count_files(target)} of {files} files arrived")
                return done
            finally:
                shutil.rmtree(target, ignore_errors=True)
        return run

    def tree_rows(self, part, contestants, against):
        """`against`: {peer: what the ratio should be at least}"""
        results = self.rounds(part, contestants)
        for name in contestants:
            if not name.startswith("rftp") and self.rate(results[name]):
                self.row(f"{part}, {name}", per_second(self.rate(results[name])))
        for name in contestants:
            if not name.startswith("rftp") or not self.rate(results[name]):
                continue
            peaks = [r for r in results[name] if r]
            figure = (f"{per_second(self.rate(results[name]))}, at most "
                      f"{max(r.client_peak for r in peaks) >> 20} and "
                      f"{max(r.server_peak for r in peaks) >> 20} MiB")
            for peer, target in against.items():
                way = "get" if peer.endswith(" get") else "put"
                if peer in results and self.rate(results[peer]) and (
                        name.endswith(way) or not peer.endswith((" get", " put"))):
                    self.row(f"{part}, {name}", figure, peer,
                             f"{self.ratio(results[name], results[peer]):.2f}", target)

    def small_files(self):
        rsync = self.started([peers.Rsync()])
        # on a disk who flushes is what counts: those that can be told
        ready = self.started([peers.Copy()] if self.options.ext4 else
                             [peers.Copy(), peers.GridFTP(1), peers.Vsftpd(), peers.XRootD()])
        out, away = f"{self.top}/out/copy", f"{self.top}/away"
        for what, source, files in self.make_trees():
            contestants = {p.name: self.one_tree(
                lambda p=p: p.put_tree(source, out, files), out, files) for p in ready}
            for tool, name in [(p, p.name) for p in rsync] + [(self.rftp, "rftp")]:
                contestants[f"{name} put"] = self.one_tree(
                    lambda t=tool: t.put_tree(source, out, files), out, files)
                contestants[f"{name} get"] = self.one_tree(
                    lambda t=tool: t.get_tree(source, away, files), away, files)
            if self.options.ext4:
                self.flushed(contestants, rsync, source, out, files)
            against = {"rsync daemon put": "1.5", "rsync daemon get": "1.5", "cp": "",
                       "rsync daemon --fsync put": "1"}
            against |= {p.name: "5" for p in ready if p.name != "cp"}
            self.tree_rows(what, contestants, against)
        if not self.options.ext4:
            self.far_files(rsync, *self.trees_of_far())
        for peer in rsync + ready:
            peer.stop()

    def flushed(self, contestants, rsync, source, out, files):
        """rsync flushes when it is told to, rftp unless it is told not to."""
        for tool, option in [(p, "--fsync") for p in rsync] + [(self.rftp, "--fsync=never")]:
            name = "rftp" if tool is self.rftp else tool.name
            contestants[f"{name} {option} put"] = self.one_tree(
                lambda t=tool, o=option: t.put_tree(source, out, files, options=(o,)), out, files)

    def many_files(self):
        """A million: what both sides take of memory, and whether the time grows with more than their number."""
        source, out, away = f"{self.top}/many", f"{self.top}/out/copy", f"{self.top}/away"
        for count in (self.options.many // 10, self.options.many):
            for i in range(count):
                if not i % 1000:
                    os.makedirs(f"{source}/{i // 1000}")
                with open(f"{source}/{i // 1000}/{i}", "wb") as f:
                    f.write(b"1")
            part = f"{count:,} files of a byte"
            ways = {"put": lambda n=count: self.rftp.put_tree(source, out, n),
                    "sync -a, all the same": lambda n=count: self.rftp.run_tree(
                        ["-a", "sync", source, self.rftp.tree_url(f"{out}/many", None)], n),
                    "get": lambda n=count: self.rftp.get_tree(out, away, n)}
            for way, action in ways.items():
                run = self.one(part, f"rftp {way}", action)
                if run:
                    self.row(f"{part}, rftp {way}", f"{run.seconds:.1f} s, {per_second(run.rate)}, at most "
                             f"{run.client_peak >> 20} and {run.server_peak >> 20} MiB")
            arrived = [count_files(top) for top in (out, away)]
            if arrived != [count, count]:
                self.notes.append(f"{part}: {arrived} arrived")
                self.failures += 1
            for top in (source, out, away):
                shutil.rmtree(top, ignore_errors=True)

    def trees_of_far(self):
        return f"{self.top}/small", self.options.small

    def far_files(self, rsync, source, files):
        """The same behind a line of 50 ms that holds up nothing but time."""
        ports = {p.name: p.port for p in rsync} | {"rftp": self.rftp.daemon.port}
        out, away = f"{self.top}/out/copy", f"{self.top}/away"
        contestants = {}
        with unchanged.long_lines(self.build, ports) as lines:
            for tool, name in [(p, p.name) for p in rsync] + [(self.rftp, "rftp")]:
                contestants[f"{name} put"] = self.one_tree(
                    lambda t=tool, p=lines[name]: t.put_tree(source, out, files, p), out, files)
                contestants[f"{name} get"] = self.one_tree(
                    lambda t=tool, p=lines[name]: t.get_tree(source, away, files, p), away, files)
            self.tree_rows(f"{files:,} files of 4 KiB at 50 ms", contestants,
                           {"rsync daemon put": "5", "rsync daemon get": "5"})
