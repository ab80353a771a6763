"""corpus: measured groups and candidates as arrays, from tuning records or a .npz of them.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import zipfile
from dataclasses import dataclass, field

import numpy as np

from heddle import UsageError, check_file, cost_features

FEATURES_VERSION = 1  # compiler/learn/Features.h has the same one


def _joined(parts, width, dtype):
    """Lists of rows, one after the other, and where each list begins."""
    starts = np.cumsum([0] + [len(part) for part in parts])
    rows = [np.asarray(part, dtype).reshape(len(part), *width) for part in parts]
    return (np.concatenate(rows) if rows else np.zeros((0, *width), dtype)), starts


@dataclass
class Group:
    """One group with the candidates that were measured for it. `seconds` are comparable among
    these: the default's seconds by each one's speedup, both timed by turns."""

    key: str
    kind: str
    models: tuple
    ops: np.ndarray  # [nodes]
    nodes: np.ndarray  # [nodes, node features]
    edges: np.ndarray  # [edges, 2]
    candidates: np.ndarray  # [candidates, candidate features]
    seconds: np.ndarray  # [candidates]
    is_default: np.ndarray  # [candidates]


@dataclass
class Corpus:
    groups: list
    op_names: list
    node_names: list
    candidate_names: list
    about: dict = field(default_factory=dict)  # target, threads, machine, left_out

    @classmethod
    def read(cls, path, target=None, threads=None):
        """A .npz that `save` wrote, or a file of tuning records."""
        if not os.path.exists(path):
            raise UsageError(f"'{path}': no such file")
        check_file(path, "records")
        if zipfile.is_zipfile(path):
            return cls.load(path)
        return cls.from_json(cost_features(path, target, threads))

    @classmethod
    def from_json(cls, found):
        if found["version"] != FEATURES_VERSION:
            raise UsageError(f"the library computes features of version {found['version']}, this "
                             f"package reads {FEATURES_VERSION}: they are of different builds")
        nodes, names = len(found["node_features"]), found["candidate_features"]
        groups = []
        for each in found["groups"]:
            some = each["candidates"]
            seconds = np.array([one["seconds"] for one in some])
            speedup = np.array([one["speedup"] for one in some])
            is_default = np.array([_is_base(one, each["base"]) for one in some])
            base = seconds[is_default][0] if is_default.any() else np.median(seconds * speedup)
            groups.append(Group(
                each["key"], each["kind"], tuple(sorted(set(each["models"]))),
                np.array(each["ops"], np.int32),
                np.array(each["nodes"], np.float32).reshape(-1, nodes),
                np.array(each["edges"], np.int32).reshape(-1, 2),
                np.array([one["features"] for one in some], np.float32).reshape(-1, len(names)),
                np.where(is_default, seconds, base / speedup), is_default))
        about = {name: found[name] for name in ("target", "threads", "machine", "left_out")}
        return cls(groups, found["ops"], found["node_features"], names, about)

    def save(self, path):
        groups = self.groups
        ops, node_starts = _joined([g.ops for g in groups], (), np.int32)
        nodes, _ = _joined([g.nodes for g in groups], (len(self.node_names),), np.float32)
        edges, edge_starts = _joined([g.edges for g in groups], (2,), np.int32)
        candidates, starts = _joined([g.candidates for g in groups],
                                     (len(self.candidate_names),), np.float32)
        seconds, _ = _joined([g.seconds for g in groups], (), np.float64)
        is_default, _ = _joined([g.is_default for g in groups], (), bool)
        about = {"version": FEATURES_VERSION, "op_names": self.op_names,
                 "node_names": self.node_names, "candidate_names": self.candidate_names,
                 "groups": [{"key": g.key, "kind": g.kind, "models": g.models} for g in groups],
                 **self.about}
        with open(path, "wb") as file:  # savez would add a suffix to a path
            np.savez_compressed(
                file, about=np.frombuffer(json.dumps(about).encode(), np.uint8), ops=ops,
                nodes=nodes, node_starts=node_starts, edges=edges, edge_starts=edge_starts,
                candidates=candidates, candidate_starts=starts, seconds=seconds,
                is_default=is_default)

    @classmethod
    def load(cls, path):
        try:
            with np.load(path, allow_pickle=False) as file:
                held = {name: file[name] for name in file.files}
            about = json.loads(held["about"].tobytes())
            version = about.pop("version")
        except (KeyError, ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
            raise UsageError(f"'{path}' is no file of features, or a damaged one: {error}"
                             "\nnote: 'heddle cost features RECORDS -o FILE.npz' makes one"
                             ) from None
        if version != FEATURES_VERSION:
            raise UsageError(f"'{path}' has features of version {version}, this heddle reads "
                             f"{FEATURES_VERSION}\nnote: 'heddle cost features RECORDS -o "
                             "FILE.npz' makes it anew")
        parts = {"node": ("ops", "nodes"), "edge": ("edges",),
                 "candidate": ("candidates", "seconds", "is_default")}
        of = {name: np.split(held[name], held[f"{kind}_starts"][1:-1])
              for kind, names in parts.items() for name in names}
        groups = [Group(each["key"], each["kind"], tuple(each["models"]),
                        *(of[name][i] for name in ("ops", "nodes", "edges", "candidates",
                                                   "seconds", "is_default")))
                  for i, each in enumerate(about.pop("groups"))]
        names = [about.pop(name) for name in ("op_names", "node_names", "candidate_names")]
        return cls(groups, *names, about)

    @property
    def models(self):
        return sorted({model for group in self.groups for model in group.models})

    def __len__(self):
        """The number of candidates."""
        return sum(len(group.seconds) for group in self.groups)


def _is_base(candidate, base):
    """Tells whether a candidate is the default that others were measured beside; `base` is
    "matmul@HASH m=8 n=48; ..." or "none"."""
    if not candidate["card"]:
        return base == "none"
    name, *knobs = base.split(";")[0].split()
    return (name.split("@")[0] == candidate["card"] and
            dict(each.split("=") for each in knobs) ==
            {name: str(value) for name, value in candidate["knobs"].items()})
