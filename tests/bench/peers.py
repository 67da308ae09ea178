# SPDX-License-Identifier: Apache-2.0
"""Other programs that move files, as the benchmark runs them.

Each peer starts its server on a free port of 127.0.0.1 with a configuration in a temporary
directory, puts one file, and is stopped.  A peer that is not installed says so in `missing()`.
Nothing here knows rftp or what is compared with what.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

NOBODY = 65534
ROOT = os.geteuid() == 0
CLOCK = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port, process, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{process.args[0]} does not listen after {seconds} s")


def tree_cpu_seconds(pid):
    """CPU of a process and of all it started, those that ended included."""
    parents, times = {}, {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as f:
                fields = f.read().rpartition(b")")[2].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        times[int(name)] = sum(map(int, fields[11:15]))
    total = 0
    for p in times:
        at = p
        while at != pid and at in parents:
            at = parents[at]
        if at == pid:
            total += times[p]
    return total / CLOCK


class Run:
    """What one transfer took: wall seconds, CPU seconds of both sides, bytes."""

    def __init__(self, bytes_, seconds, cpu):
        self.bytes, self.seconds, self.cpu = bytes_, seconds, cpu

    @property
    def rate(self):
        return self.bytes / self.seconds

    @property
    def cpu_per_gb(self):
        return self.cpu / (self.bytes / 1e9)


def timed(command, server, bytes_, timeout=600, **options):
    """Runs a client to its end.  -> Run, stdout"""
    before = tree_cpu_seconds(server.pid) if server else 0
    out = tempfile.TemporaryFile()
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.STDOUT, start_new_session=True, **options)
    timer_end = start + timeout
    usage = None
    while usage is None:
        pid, status, usage_now = os.wait4(process.pid, os.WNOHANG)
        if pid:
            usage = usage_now
        elif time.monotonic() > timer_end:
            os.killpg(process.pid, signal.SIGKILL)
            os.wait4(process.pid, 0)
            process.returncode = -9
            raise RuntimeError(f"{command[0]}: no end after {timeout} s")
        else:
            time.sleep(0.001)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    out.seek(0)
    text = out.read().decode("utf-8", "replace")
    out.close()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {process.returncode}: {text.strip()[-300:]}")
    time.sleep(0.1)  # a server's child ends and is counted with its parent
    cpu = usage.ru_utime + usage.ru_stime
    if server:
        cpu += tree_cpu_seconds(server.pid) - before
    run = Run(bytes_, seconds, cpu)
    run.peak = usage.ru_maxrss * 1024
    return run, text


def make_files(where, size, count):
    """Files of random bytes that every server may read -> their names"""
    names = [f"s{i}" for i in range(count)]
    for name in names:
        with open(f"{where}/{name}", "wb") as f:
            f.write(os.urandom(size))
        os.chmod(f"{where}/{name}", 0o644)
    return names


class Peer:
    name = "?"
    programs = ()
    package = "?"

    def __init__(self):
        self.server = None
        self.port = 0
        self.dir = None

    def missing(self):
        return [p for p in self.programs if not shutil.which(p)]

    def start(self, top):
        """`top`: the directory that holds the source and takes the copies."""
        self.top = top
        self.dir = tempfile.mkdtemp(prefix="rftp-peer-")
        os.chmod(self.dir, 0o755)
        for _ in range(5):  # somebody may take the port between our look and the server's bind
            self.port = free_port()
            try:
                self.server = self.launch()
                wait_port(self.port, self.server)
                return
            except RuntimeError as e:
                error = e
                self.kill()
        raise error

    def spawn(self, command, **options):
        with open(f"{self.dir}/output", "wb") as out:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT, start_new_session=True, cwd=self.dir,
                                    **options)

    def write(self, name, text):
        path = f"{self.dir}/{name}"
        with open(path, "w") as f:
            f.write(text)
        return path

    def kill(self):
        if self.server and self.server.poll() is None:
            os.killpg(self.server.pid, signal.SIGTERM)
            try:
                self.server.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self.server.pid, signal.SIGKILL)
                self.server.wait()
        self.server = None

    def stop(self):
        self.kill()
        if self.dir:
            shutil.rmtree(self.dir, ignore_errors=True)
            self.dir = None


class GridFTP(Peer):
    programs = ("globus-gridftp-server", "globus-url-copy")
    package = "globus-gridftp-server-progs globus-gass-copy-progs"

    def __init__(self, streams):
        super().__init__()
        self.streams = streams
        self.name = f"GridFTP -p {streams}"

    def launch(self):
        user = ["-anonymous-user", "nobody"] if ROOT else []
        return self.spawn(["globus-gridftp-server", "-aa", *user, "-p", str(self.port),
                           "-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1",
                           "-log-level", "ERROR"])

    def put_tree(self, source, target, files):
        return timed(["globus-url-copy", "-r", "-cd", "-pp", "-cc", "4", f"file://{source}/",
                      f"ftp://127.0.0.1:{self.port}{target}/"], self.server, files)[0]

    def put(self, source, target):
        return timed(["globus-url-copy", "-p", str(self.streams), f"file://{source}",
                      f"ftp://127.0.0.1:{self.port}{target}"],
                     self.server, os.path.getsize(source))[0]


class Rsync(Peer):
    name = "rsync daemon"
    programs = ("rsync",)
    package = "rsync"

    def launch(self):
        identity = "uid = root\ngid = root\n" if ROOT else ""
        config = self.write("rsyncd.conf", f"""use chroot = no
address = 127.0.0.1
port = {self.port}
{identity}[top]
path = {self.top}
read only = no
""")
        return self.spawn(["rsync", "--daemon", "--no-detach", f"--config={config}"])

    def put_tree(self, source, target, files, port=None, options=()):
        return timed(["rsync", "-a", *options, f"{source}/",
                      f"rsync://127.0.0.1:{port or self.port}/top/{os.path.relpath(target, self.top)}/"],
                     self.server, files)[0]

    def get_tree(self, source, target, files, port=None):
        return timed(["rsync", "-a", f"rsync://127.0.0.1:{port or self.port}/top/"
                      f"{os.path.relpath(source, self.top)}/", f"{target}/"], self.server, files)[0]

    def put(self, source, target):
        return timed(["rsync", "--whole-file", "--inplace", source,
                      f"rsync://127.0.0.1:{self.port}/top/{os.path.relpath(target, self.top)}"],
                     self.server, os.path.getsize(source))[0]


class Vsftpd(Peer):
    name = "lftp, vsftpd"
    programs = ("lftp", "vsftpd")
    package = "lftp vsftpd"

    def missing(self):
        return super().missing() or ([] if ROOT else ["root, for vsftpd's chroot"])

    def launch(self):
        os.makedirs(f"{self.dir}/empty", exist_ok=True)
        os.chmod(self.top, 0o755)  # vsftpd refuses a writable top
        return self.spawn(["vsftpd", self.write("vsftpd.conf", f"""listen=YES
listen_address=127.0.0.1
listen_port={self.port}
background=NO
anonymous_enable=YES
local_enable=NO
write_enable=YES
anon_upload_enable=YES
anon_mkdir_write_enable=YES
anon_other_write_enable=YES
no_anon_password=YES
anon_root={self.top}
ftp_username=ftp
secure_chroot_dir={self.dir}/empty
pasv_address=127.0.0.1
allow_writeable_chroot=YES
seccomp_sandbox=NO
connect_from_port_20=NO
""")])

    def put_tree(self, source, target, files):
        script = ("set ftp:ssl-allow no; set net:max-retries 1; mirror --reverse --parallel=8 "
                  f"{source} {os.path.relpath(target, self.top)}; bye")
        return timed(["lftp", "--norc", "-e", script, f"ftp://127.0.0.1:{self.port}"],
                     self.server, files)[0]

    def put(self, source, target):
        script = ("set ftp:ssl-allow no; set net:max-retries 1; "
                  f"put {source} -o {os.path.relpath(target, self.top)}; bye")
        return timed(["lftp", "--norc", "-e", script, f"ftp://127.0.0.1:{self.port}"],
                     self.server, os.path.getsize(source))[0]


class XRootD(Peer):
    name = "xrdcp, xrootd"
    programs = ("xrdcp", "xrootd")
    package = "xrootd-client xrootd-server"

    def launch(self):
        config = self.write("xrootd.cf", f"""xrd.port {self.port}
xrd.protocol xrootd *
xrd.network nodnr
all.export {self.top}
all.adminpath {self.dir}
all.pidpath {self.dir}
oss.asyncio on
""")
        identity = {}
        if ROOT:  # it refuses to run as root
            os.chown(self.dir, NOBODY, NOBODY)
            identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        return self.spawn(["xrootd", "-c", config, "-l", f"{self.dir}/log", "-n", "bench"],
                          **identity)

    def put_tree(self, source, target, files):
        os.mkdir(target)
        if ROOT:
            os.chown(target, NOBODY, NOBODY)
        return timed(["xrdcp", "-f", "-s", "-np", "-r", "--parallel", "4", source,
                      f"root://127.0.0.1:{self.port}/{target}/"], self.server, files,
                     env=dict(os.environ, XRD_LOGLEVEL="Error"))[0]

    def put(self, source, target):
        return timed(["xrdcp", "-f", "-s", "-np", source, f"root://127.0.0.1:{self.port}/{target}"],
                     self.server, os.path.getsize(source),
                     env=dict(os.environ, XRD_LOGLEVEL="Error"))[0]


class Copy(Peer):
    """cp: no network at all, the floor that the two file systems set."""
    name = "cp"
    programs = ("cp",)
    package = "coreutils"

    def start(self, top):
        pass

    def put_tree(self, source, target, files):
        return timed(["cp", "-a", source, target], None, files)[0]

    def put(self, source, target):
        return timed(["cp", source, target], None, os.path.getsize(source))[0]


class Iperf(Peer):
    """One TCP stream, memory to memory: the limit of the transport beneath."""
    name = "iperf3, one stream"
    programs = ("iperf3",)
    package = "iperf3"

    def launch(self):
        return self.spawn(["iperf3", "-s", "-B", "127.0.0.1", "-p", str(self.port)])

    def stream(self, seconds):
        run, text = timed(["iperf3", "-c", "127.0.0.1", "-p", str(self.port), "-t", str(seconds),
                           "-J"], self.server, 0)
        total = json.loads(text[text.index("{"):])["end"]["sum_received"]
        run.bytes, run.seconds = total["bytes"], total["seconds"]
        return run
