"""ranker: a trained network as a file, and what of it may be trusted.

The file is an ONNX model that says in its metadata which features it has learned and from what. Its
second output counts, for each candidate, the features that are outside of what was trained with.
SPDX-License-Identifier: Apache-2.0
"""

import json
import os

import numpy as np
import onnx

from heddle import Session, UsageError, check_file, compile

from .corpus import FEATURES_VERSION
from .network import LISTED, MOST_NODES, feeds_of_one

ABOUT = "heddle.cost"  # of the metadata


def save(network, groups, corpus, path):
    """Writes what `network` has learned from these groups of the corpus."""
    model = network.model()
    about = {"features": FEATURES_VERSION, "op_names": corpus.op_names,
             "node_names": corpus.node_names, "candidate_names": corpus.candidate_names,
             "keys": sorted({group.key for group in groups}),
             **{name: corpus.about[name] for name in ("target", "threads", "machine")}}
    entry = model.metadata_props.add()
    entry.key, entry.value = ABOUT, json.dumps(about)
    onnx.save(model, path)


class Ranker:
    """A cost model from a file, compiled by Heddle."""

    name = "ranker"

    def __init__(self, path, threads=1):
        self.about, model = _read(path)
        self.threads = threads
        module = compile(model, threads=threads, cache=False,
                         typical={"count": 16, "listed": LISTED})
        self._session = Session(module, threads=threads)

    def check(self, corpus):
        """An error unless the corpus has the features that were learned, of this machine. Ops that
        came later are unknown ones; features of candidates that did are the last of the corpus."""
        for name, what in (("node_names", "nodes"), ("candidate_names", "candidates")):
            learned, added = self.about[name], name == "candidate_names"
            names = getattr(corpus, name)
            if learned != (names[:len(learned)] if added else names):
                raise UsageError(f"the cost model has learned other features of {what} than the "
                                 "corpus has\nnote: 'heddle cost train' makes it anew")
        for name in ("target", "threads"):
            if self.about[name] != corpus.about[name]:
                raise UsageError(f"the cost model was trained for {name} '{self.about[name]}', the "
                                 f"corpus is of '{corpus.about[name]}'")

    def scores(self, group):
        """(logarithms of seconds up to a per-group constant, the number of each candidate's
        features that are outside of the training data)."""
        if len(group.ops) > MOST_NODES:
            count = len(group.seconds)
            return np.zeros(count, np.float32), np.full(count, len(self.about["candidate_names"]))
        feeds = feeds_of_one(group, len(self.about["op_names"]))
        feeds["candidates"], added = np.split(
            feeds["candidates"], [len(self.about["candidate_names"])], axis=-1)
        feeds["candidates"] = np.ascontiguousarray(feeds["candidates"])
        scores, outside, _ = self._session.run(None, feeds)
        return (np.asarray(scores)[0], np.asarray(outside)[0].astype(np.int64)
                + np.count_nonzero(added[0], axis=-1))

    def predict(self, group):
        return self.scores(group)[0]


def _read(path):
    """(metadata, model) of a file that `save` wrote."""
    check_file(path, "cost model", 2 << 30)
    if not os.path.exists(path):
        raise UsageError(f"'{path}': no such file")
    way_out = "\nnote: 'heddle cost train CORPUS -o FILE.onnx' makes one"
    try:
        model = onnx.load(path)
        onnx.checker.check_model(model)
    except Exception as error:  # noqa: BLE001: protobuf and the checker raise what they like
        first = (str(error).strip().splitlines() or ["it cannot be parsed"])[0]
        raise UsageError(f"'{path}' is no ONNX model, or a damaged one: {first}{way_out}") from None
    text = next((entry.value for entry in model.metadata_props if entry.key == ABOUT), None)
    if text is None:
        raise UsageError(f"'{path}' is a model, but not one of costs{way_out}")
    try:
        about = dict(json.loads(text))
        version = about["features"]
        missing = {"op_names", "node_names", "candidate_names", "keys", "target",
                   "threads"} - set(about)
    except (ValueError, KeyError, TypeError):
        version, missing = None, {"features"}
    if missing:
        raise UsageError(f"'{path}': its metadata '{ABOUT}' lacks {', '.join(sorted(missing))}"
                         f"{way_out}")
    if version != FEATURES_VERSION:
        raise UsageError(f"'{path}' has learned features of version {version}, this heddle has "
                         f"{FEATURES_VERSION}{way_out}")
    return about, model
