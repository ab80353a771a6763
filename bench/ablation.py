"""The worth of each layer of the partitioner: kernels, bytes moved and time without it.

    ./dev bench ablation [--only bert] [--batch 1 16] [--threads 2] [--rounds 7]

Networks are the transformers of PluS's Table 1 (Wu et al., USENIX ATC 2025), beside the kernels
that PluS reports, and the steps of `./dev bench training`. Variants leave out one layer: what cards
claim as a whole (attention), Apollo's Layers I (fusion of the rest), II (products stitched to the
reductions over their rows) and III (regions that are launched at once; Zhao et al., MLSys 2022,
section 6.4), siblings, and the feedback that splits groups again; or all after Apollo's first
layers. Bytes are those that kernels read and write per run, weights apart.
Kernels are groups, but for those of a region, which are one; a kernel may take several launches.
Times are medians of runs by turns, over that of everything: above 1 is slower; no --rounds, no
times.
"""

import json
import tempfile
import time
from pathlib import Path

import heddle
import onnx
from heddle.training import Trainer

from bench.kernels import report, turns
from bench.learning import choosing
from bench.models import tool
from bench.networks import fixed, trained
from bench.training import worker
from bench.training.bench import exported

LAYERS = {"cards": "cards", "I": "fusion", "II": "stitch", "siblings": "siblings",
          "III": "regions", "feedback": "feedback"}
UP_TO = {"none": "cards,fusion,siblings,stitch,regions", "I": "stitch,regions", "I+II": "regions"}
VARIANTS = {"everything": ""} | {f"without {name}": layer for name, layer in LAYERS.items()} | {
    f"{name}{text}": layers + more for name, layers in UP_TO.items()
    for text, more in (("", ""), (", no feedback", ",feedback"))}


PLUS = {"bert": 87, "albert": 88, "gpt2": 87, "t5": 220, "vit": 87}  # kernels, batch 16
NO_OPS = {"Constant", "Identity"}


def node_count(graph):
    """Nodes of the graph and of its subgraphs, but for constants and copies."""
    return sum(node.op_type not in NO_OPS for node in graph.node) + sum(
        node_count(attribute.g) for node in graph.node for attribute in node.attribute)


def plan_of(path, without, threads, *options):
    """Kernels, launches and bytes that kernels move in a run, by a plan without some layers."""
    layers = ("--without", without) if without else ()
    told = json.loads(tool.checked("explain", path, "--json", "--threads", threads, *layers,
                                   *options).output)
    groups = told["groups"]
    regions = [group["region"] for group in groups if group.get("region") is not None]
    return {"kernels": len(groups) - len(regions) + len(set(regions)),
            "launches": told["launches"],
            "moved": sum(group["read_bytes"] + group["written_bytes"] - group["weight_bytes"]
                         for group in groups)}


def run_of(path, without, threads):
    """A run of a network without some layers."""
    module = heddle.compile(str(path), without=without or None, threads=threads)
    session, feeds = heddle.Session(module, threads=threads), choosing.feeds_of(module)
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
                path = fixed.export(name, batch)
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
            ops = node_count(onnx.load(path, load_external_data=False).graph)
            if given.rounds:
                everything = turns.timed_calls(make(""), time.perf_counter)
            for variant, without in VARIANTS.items():
                plan, ratio = plan_of(path, without, given.threads, *options), None
                if without and given.rounds:
                    other = turns.timed_calls(make(without), time.perf_counter)
                    times = turns.by_turns({"everything": everything, variant: other},
                                           given.rounds, given.turn / 1000)
                    ratio = turns.ratio(times, variant, "everything")["ratio"]
                yield {"network": name, "ops": ops, "variant": variant, **plan, "ratio": ratio}


def lines(found):
    """The table, and a summary of each variant."""
    heads = ["network", "ops", "variant", "kernels", "PluS", "launches", "MiB moved", "time"]
    yield from report.table(heads, [
        (each["network"], each["ops"], each["variant"], each["kernels"],
         PLUS.get(each["network"].split()[0], ""), each["launches"],
         f"{each['moved'] / 2**20:.1f}", f"{each['ratio']:.2f}" if each["ratio"] else "")
        for each in found])
    yield ""
    for variant in list(VARIANTS)[1:]:
        of = [each for each in found if each["variant"] == variant and each["ratio"]]
        if of:
            yield f"- {variant} over everything: {report.summary(of)}."


def main():
    options = report.arguments(__doc__, rounds=7, turn_ms=0)
    options.add_argument("--batch", nargs="*", type=int, default=[1, 16])
    options.add_argument("--threads", type=int, default=2)
    report.tell("ablation", options.parse_args(), compare, lines)


if __name__ == "__main__":
    main()
