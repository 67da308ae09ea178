# SPDX-License-Identifier: Apache-2.0
"""A file system of its own in a file, for measurements on another one than the directory's: ext4 in memory, say, where
no disk's mood counts."""

import contextlib
import os
import shutil
import subprocess
import tempfile

IMAGE_BYTES = 4 << 30


def cannot(kind):
    """Why none can be mounted here; None: nothing is known against it."""
    if os.geteuid() != 0:
        return "only root may mount a file"
    missing = [p for p in (f"mkfs.{kind}", "mount", "umount") if not shutil.which(p)]
    return f"{', '.join(missing)} not installed" if missing else None


def said(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")


@contextlib.contextmanager
def mounted(kind, directory):
    """-> where a new, empty one is mounted; it and its file in `directory` are gone afterwards.  RuntimeError: no"""
    why = cannot(kind)
    if why:
        raise RuntimeError(why)
    top = tempfile.mkdtemp(prefix="rftp-image-", dir=directory)
    image, where = f"{top}/image", f"{top}/mounted"
    try:
        os.mkdir(where)
        with open(image, "wb") as f:
            f.truncate(IMAGE_BYTES)
        said([f"mkfs.{kind}", "-q", image])
        said(["mount", "-o", "loop", image, where])
        try:
            yield where
        finally:
            said(["umount", where])
    finally:
        shutil.rmtree(top, ignore_errors=True)
