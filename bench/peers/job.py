"""Jobs of workers: which engine runs which model, with which inputs, threads and cores."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Job:
    """One engine on one model at one batch. All paths are absolute."""

    engine: str  # a module with the functions that engines/__init__.py describes
    model: str  # the ONNX file
    feeds: str  # .npz of the inputs
    folder: str  # the engine's own: artefacts and logs
    threads: int = 1
    cores: list = field(default_factory=list)
    network: str = ""  # of networks.py, or "" where the model has no torch form of ours
    constants: list = field(default_factory=list)  # inputs that say what the model is, as a rate
    options: dict = field(default_factory=dict)

    def inputs(self):
        """The inputs by name, in the model's order."""
        with np.load(self.feeds) as stored:
            return {name: np.asarray(stored[name], order="C") for name in stored.files}

    def static_inputs(self):
        """Those that `shapes.static_model` leaves open."""
        return {k: v for k, v in self.inputs().items() if k not in self.constants}

    def path(self, name):
        """A file of the engine's own folder."""
        return Path(self.folder, name)

    def write(self):
        """Path of the job as a file."""
        path = self.path("job.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        return path


def read(path):
    """The job that `write` wrote."""
    return Job(**json.loads(Path(path).read_text(encoding="utf-8")))
