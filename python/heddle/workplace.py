"""workplace: hidden folders for files that are being made, as compiler/support/Files.h has them.

A folder is locked while its process lives, so that the next one removes what a killed process has
left. SPDX-License-Identifier: Apache-2.0
"""

import atexit
import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time

PREFIX = ".heddle-writing-"
MADE = set()  # (process, path) of folders that are not removed yet
YOUNG = 60  # seconds in which a process may have made a folder and not locked it yet


@contextlib.contextmanager
def folder(parent=None):
    """A new folder in `parent` (default: where temporary files are), removed at the end."""
    parent = parent or tempfile.gettempdir()
    _remove_abandoned(parent)
    place = os.path.join(os.path.abspath(parent), PREFIX + secrets.token_hex(8))
    MADE.add(made := (os.getpid(), place))  # before it is: a signal may raise at any point
    os.mkdir(place, 0o700)
    lock = _lock(place)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        MADE.discard(made)
        if lock is not None:
            os.close(lock)


@atexit.register
def remove_made():
    """Removes folders that a signal has kept from being removed."""
    for process, place in MADE:
        if process == os.getpid():
            shutil.rmtree(place, ignore_errors=True)


def _lock(place):
    """A descriptor of the folder, locked; None where another process has locked it."""
    try:
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _remove_abandoned(parent):
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX):
                continue
            status = entry.stat(follow_symlinks=False)
            if status.st_uid != os.geteuid() or time.time() - status.st_mtime < YOUNG:
                continue
            lock = _lock(entry.path)
            if lock is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(lock)
