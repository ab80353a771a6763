"""sources: the models of the corpus: networks that are drawn, blocks of published ones, the
catalogue, and the fuzzer's.

They are interleaved, so that a corpus that was ended early has some of each.
"""

import itertools
import sys
from pathlib import Path

import onnx

from bench.models import catalogue
from bench.networks import blocks, drawn

PACE = {"drawn": 4, "published": 2, "catalogue": 1, "fuzz": 1}  # models of each kind in a row


def saved(folder, name, model):
    """The model as a file of the folder."""
    path = Path(folder) / f"{name}.onnx"
    onnx.save(model, path)
    return path


def drawn_from(first, count, folder):
    """(name, path) of networks of so many seeds, from the first one on."""
    for seed in range(first, first + count):
        name, model = drawn.network(seed)
        yield name, saved(folder, name, model)


def real(count):
    """(name, path) of the first models of the catalogue; those that are missing are named."""
    for model in catalogue.models()[:count]:
        try:
            yield model.name, Path(model.path())
        except catalogue.Missing as missing:
            print(f"{model.name}: left out: {missing}", file=sys.stderr)


def _drawn(folder, count):
    for seed in range(count):
        name, model = drawn.network(seed)
        yield name, lambda name=name, model=model: saved(folder, name, model)


def _published(folder, count):
    for name in [name for name in blocks.NAMES if not name.endswith("dynamic")][:count]:
        yield name, lambda name=name: saved(folder, name, blocks.network(name))


def _catalogue(_, count):
    for model in catalogue.models()[:count]:
        yield model.name, model.path


def _fuzz(folder, count):
    from heddle_lab.fuzz import generate  # imports ONNX's evaluator, which takes seconds

    for index in range(count):
        yield f"fuzz_{index:03}", lambda index=index: saved(
            folder, f"fuzz_{index:03}", generate.generate(1, index)[0])


MAKERS = {"drawn": _drawn, "published": _published, "catalogue": _catalogue, "fuzz": _fuzz}


def models(counts, folder):
    """(name, function that gives a path) of so many models of each kind. `folder` is for those
    that are made; the function may raise catalogue.Missing."""
    streams = {kind: MAKERS[kind](folder, count) for kind, count in counts.items() if count}
    while streams:
        for kind in list(streams):
            some = list(itertools.islice(streams[kind], PACE[kind]))
            yield from some
            if not some:
                del streams[kind]
