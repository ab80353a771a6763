"""The worth of each layer of the partitioner: kernels, bytes moved and time without it.

    ./dev bench ablation [--only bert] [--batch 1 16] [--threads 2] [--rounds 7] [--note]

Networks are those of `./dev bench fusion` and the steps of `./dev bench training`. Variants leave
out one layer: what cards claim as a whole (attention), Apollo's Layers I (fusion of the rest), II
(products stitched to the reductions over their rows) and III (regions that are launched at once;
Zhao et al., MLSys 2022, section 6.4), siblings, and the feedback that splits groups again; or all
after Apollo's first layers. Bytes are those that kernels read and write per run, weights apart.
Times are medians of runs by turns, over that of everything: above 1 is slower.
"""

import json
import tempfile
import time
from pathlib import Path

import heddle
import numpy as np
import onnxruntime
from heddle.training import Trainer

from bench.fusion.table import plan_of
from bench.kernels import report, turns
from bench.networks import fixed, trained
from bench.training import worker
from bench.training.bench import exported

LAYERS = {"cards": "cards", "I": "fusion", "II": "stitch", "siblings": "siblings",
          "III": "regions", "feedback": "feedback"}
UP_TO = {"none": "cards,fusion,siblings,stitch,regions", "I": "stitch,regions", "I+II": "regions"}
VARIANTS = {"everything": ""} | {f"without {name}": layer for name, layer in LAYERS.items()} | {
    f"{name}{text}": layers + more for name, layers in UP_TO.items()
    for text, more in (("", ""), (", no feedback", ",feedback"))}


def feeds_of(path):
    """Random inputs of the sizes that the model declares."""
    random = np.random.default_rng(5)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {}
    for value in session.get_inputs():
        if "mask" in value.name:
            feeds[value.name] = np.ones(value.shape, np.int64)
        elif value.type == "tensor(int64)":
            feeds[value.name] = random.integers(0, 30000, value.shape)
        else:
            feeds[value.name] = random.standard_normal(value.shape).astype(np.float32)
    return feeds


def run_of(path, without, threads):
    """A run of a network without some layers."""
    module = heddle.compile(str(path), without=without or None, threads=threads)
    session, feeds = heddle.Session(module, threads=threads), feeds_of(path)
    return lambda: session.run(None, feeds)


def step_of(network, path, without, threads):
    """A step of training without some layers."""
    trainer = Trainer(path, network.loss, optimizer=network.optimizer, threads=threads,
                      learning_rate=worker.RATE[network.optimizer], cache=False,
                      recipe={"class_axis": network.class_axis}, without=without or None)
    feeds = {name: value.numpy() for name, value in trained.seeded(network)[1].items()}
    return lambda: trainer.step(feeds)


def cases(given, folder):
    """(name, path, function of layers that gives a call, options of the command) of each."""
    for name in fixed.NETWORKS:
        for batch in given.batch:
            if given.only in f"{name} {batch}":
                path = fixed.export(name, batch, 17)
                yield (f"{name} {batch}", path,
                       lambda without, path=path: run_of(path, without, given.threads), [])
    for network in trained.NETWORKS:
        name = f"step of {network.name}"
        if given.only in name:
            path, recipe = exported(network), Path(folder) / f"{network.name}.json"
            recipe.write_text(json.dumps({"loss": network.loss, "optimizer": network.optimizer,
                                          "class_axis": network.class_axis}), encoding="utf-8")
            yield (name, path, lambda without, network=network, path=path: step_of(
                network, path, without, given.threads), ["--training", recipe])


def compare(given):
    """Figures of each network and variant. Two compiled forms live at a time: the weights of a
    large model are in each."""
    with tempfile.TemporaryDirectory() as folder:
        for name, path, make, options in cases(given, folder):
            everything = turns.timed_calls(make(""), time.perf_counter)
            for variant, without in VARIANTS.items():
                plan, ratio = plan_of(path, without, given.threads, *options), 1.0
                if without:
                    other = turns.timed_calls(make(without), time.perf_counter)
                    times = turns.by_turns({"everything": everything, variant: other},
                                           given.rounds, given.turn / 1000)
                    ratio = turns.ratio(times, variant, "everything")["ratio"]
                yield {"network": name, "variant": variant, **plan, "ratio": ratio}


def lines(found):
    """The table, and a summary of each variant."""
    yield from report.table(["network", "variant", "kernels", "MiB moved", "time"], [
        (each["network"], each["variant"], each["kernels"], f"{each['moved'] / 2**20:.1f}",
         f"{each['ratio']:.2f}") for each in found])
    yield ""
    for variant in list(VARIANTS)[1:]:
        of = [each for each in found if each["variant"] == variant]
        yield f"- {variant} over everything: {report.summary(of)}."


def main():
    options = report.arguments(__doc__, rounds=7, turn_ms=0)
    options.add_argument("--batch", nargs="*", type=int, default=[1, 16])
    options.add_argument("--threads", type=int, default=2)
    report.tell("ablation", options.parse_args(), compare, lines)


if __name__ == "__main__":
    main()
