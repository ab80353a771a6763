"""The engines, a module each. What a module may have:

    version()       which one it is, cheap: an import of the engine itself would be slow
    prepare(job)    compiles ahead of time into job.folder, in a process of its own
    start(job)      imports the engine's packages and sets its threads
    load(job)       a Loaded, ready to run
    KEPT            False when what `prepare` leaves is not kept for later contests (prepared.py)
    SETTINGS        what that depends on beside the version and the options, such as flags
    any_threads()   whether that is the same for any number of threads

`start` and `load` share a process that does nothing else.
"""

import importlib
import importlib.metadata
from dataclasses import dataclass
from typing import Any, Callable


@dataclass(frozen=True)
class Loaded:
    """A model that is ready: inputs are in place, and `run` leaves outputs in memory."""

    run: Callable[[], Any]
    arrays: Callable[[Any], list] = list  # NumPy's, of what run gave
    caller: Callable[[], Callable] = None  # a `run` with outputs of its own, for a thread of many


@dataclass(frozen=True)
class Engine:
    """A module of this folder with options."""

    name: str
    module: str
    options: dict

    def version(self):
        """The engine's version, of which a result is."""
        return importlib.import_module(self.module).version()


def package_version(*packages):
    """The versions of installed packages, without an import of them."""
    try:
        return " ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    except importlib.metadata.PackageNotFoundError as missing:
        return f"{missing.name} is not installed"


def engines():
    """All engines by name, in the order of the table."""
    names = ("heddle", "onnxruntime", "openvino", "inductor", "iree", "tvm")
    return {name: Engine(name, f"{__name__}.{name}", {}) for name in names}
