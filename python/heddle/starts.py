"""starts: modules of what was compiled before, without the compiler.

The key under which the cache has an artefact is made of the model's bytes, the options, the machine
and the compiler's own code: to find it takes the compiler, which is 65 MB to load. A note in the
folder `starts` of the cache says where the artefact is, under a key that costs next to nothing: it
has the place, size and times of the model's file in place of its bytes, as Make and Git go by them.
SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

from . import library, workplace
from .session import load

UNKEYED = ("plan", "schedules", "records", "cost_model", "chooser", "functions", "output",
           "progress")  # options that name other files, or want more than the module
ENVIRONMENT = ("HEDDLE_SCHEDULES", "HEDDLE_RECORDS", "HEDDLE_COST_MODEL")
OWN_WRITES = 0o022  # bits of a mode with which others may write
SMALL = 64 << 20  # bytes of an artefact that is read whole before it is trusted
SETTLED = 10**8  # nanoseconds after which another write gives a file another time
MOST_NOTES = 1000


class Start:
    """The note of a model's file and options; without a folder where there can be none. `files` are
    those that the model is made of, where it is not compiled as it is."""

    def __init__(self, model, given, files=()):
        self.folder = self.name = None
        self.files = [os.path.realpath(path) for path in files]
        with contextlib.suppress(OSError, TypeError, ValueError):
            self._key(model, given)

    def _key(self, model, given):
        folder = _cache_folder(given["cache"])
        if (not folder or not isinstance(model, (str, os.PathLike)) or not given["load"]
                or library.has_own_ops() or any(os.environ.get(name) for name in ENVIRONMENT)
                or any(given[name] is not None for name in UNKEYED)):
            return
        self.model = os.path.realpath(model)
        options = {name: value for name, value in given.items() if name not in ("model", "cache")}
        whole = next((path for path in library.candidates() if os.path.exists(path)), None)
        if whole is None:
            return
        parts = [os.fsdecode(model), self.model, _state(self.model), options, str(whole),
                 _state(whole), _machine(), *([path, _state(path)] for path in self.files)]
        self.name = hashlib.blake2b(json.dumps(parts).encode(), digest_size=20).hexdigest()
        self.folder = Path(os.fsdecode(folder))

    def find(self):
        """The module, or None where the compiler has to be asked."""
        if self.folder is None:
            return None
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, library.Error):
            _check_own(os.stat(self.folder))
            note = json.loads(_read(self.folder / "starts" / self.name))
            artefact = self.folder / note["artefact"]
            about = os.lstat(artefact)
            if ([about.st_ino, about.st_size] != note["state"]
                    or any(_state(path) != state for path, state in note["files"].items())
                    or (note["digest"] and _digest(artefact) != note["digest"])):
                return None
            _check_own(about)
            module = load(artefact)
            os.utime(artefact)  # what nobody uses goes first
            return module
        return None

    def keep(self, compiled):
        """Notes where the cache has what was compiled."""
        kept = compiled.kept if self.folder is not None else None
        if kept is None:
            return
        with contextlib.suppress(OSError):
            states = {path: _state(path) for path in self.files or kept["files"]}
            newest = max(time for state in [_state(self.model), *states.values()]
                         for time in state[3:])
            if time.time_ns() - newest < SETTLED:
                return
            about = os.stat(kept["path"])
            digest = _digest(kept["path"]) if about.st_size <= SMALL else None
            note = {"artefact": os.path.basename(kept["path"]), "digest": digest,
                    "state": [about.st_ino, about.st_size], "files": states}
            starts = self.folder / "starts"
            starts.mkdir(mode=0o700, exist_ok=True)
            with workplace.folder(starts) as place:
                new = Path(place) / self.name
                new.write_text(json.dumps(note), encoding="utf-8")
                new.replace(starts / self.name)
            notes = [path for path in starts.iterdir() if path.is_file()]
            if len(notes) > MOST_NOTES:
                for path in sorted(notes, key=os.path.getmtime)[:-MOST_NOTES // 2]:
                    path.unlink()


def _cache_folder(given):
    """As the compiler finds it; "" for none."""
    if given is False:
        return ""
    if given is not None and given is not True:
        return given
    if "HEDDLE_CACHE" in os.environ:
        return os.environ["HEDDLE_CACHE"]
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "heddle", "compiled") if os.path.isabs(base) else ""


def _state(path):
    """State of the file, which changes if it is written to or replaced."""
    about = os.stat(path)
    return [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]


def _machine():
    """Identity of the machine: the meaning of "host" and of all threads."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first = file.read().split("\n\n", 1)[0].splitlines()
    return [[line for line in first if not line.startswith(("cpu MHz", "bogomips", "BogoMIPS"))],
            len(os.sched_getaffinity(0))]


def _check_own(about):
    if about.st_uid != os.geteuid() or about.st_mode & OWN_WRITES:
        raise PermissionError("others may write to it")


def _read(path):
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        _check_own(os.fstat(file.fileno()))
        return file.read()


def _digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest() if hasattr(
            hashlib, "file_digest") else hashlib.blake2b(file.read()).hexdigest()
