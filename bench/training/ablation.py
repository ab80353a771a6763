"""Apollo's layers over whole training steps (Zhao et al., MLSys 2022, section 6.4): kernels,
bytes that they move, and time, with more and more of the partitioner.

    ./dev bench training-ablation [--only gpt] [--threads 2] [--rounds 5]

none: a kernel for each op; I: ops fused, groups with several results; I+II: products stitched to
the reductions over their rows; I+II+III: independent groups launched at once. Each with and without
the feedback that splits groups whose kernel does not pay, which none has nothing to do for. Bytes
are those that kernels read and write in a step, weights apart. Times are medians of steps by turns,
over that of all layers with feedback: above 1 is slower.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.fusion.plan import plan_of
from bench.kernels import report
from bench.networks import trained as networks
from bench.training import worker
from bench.training.bench import exported

LAYERS = {"none": "cards,fusion,siblings,stitch,regions", "I": "stitch,regions", "I+II": "regions",
          "I+II+III": ""}
VARIANTS = {"none": LAYERS["none"]} | {
    f"{name}{said}": ",".join(filter(None, (layers, left)))
    for name, layers in LAYERS.items() if name != "none"
    for said, left in ((", no feedback", "feedback"), ("", ""))}
WHOLE = "I+II+III"


def planned(network, path, without, threads):
    """(kernels, launches, bytes moved) of a step."""
    recipe = {"loss": network.loss, "optimizer": network.optimizer,
              "class_axis": network.class_axis}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recipe.json"
        file.write_text(json.dumps(recipe), encoding="utf-8")
        return plan_of(path, without, threads, "--training", str(file))


def trainer_of(network, path, without, threads):
    from heddle.training import Trainer

    return Trainer(path, network.loss, optimizer=network.optimizer, threads=threads,
                   learning_rate=worker.RATE[network.optimizer], cache=False,
                   recipe={"class_axis": network.class_axis}, without=without or None)


def compare(network, given):
    path = exported(network)
    _, batch = networks.seeded(network)
    feeds = {name: value.numpy() for name, value in batch.items()}
    whole = trainer_of(network, path, VARIANTS[WHOLE], given.threads)
    rows = {}
    for variant, without in VARIANTS.items():
        kernels, launches, moved = planned(network, path, without, given.threads)
        rows[variant] = {"kernels": kernels, "launches": launches, "bytes": moved, "ratio": 1.0}
        if variant == WHOLE:
            continue
        trainers = (whole, trainer_of(network, path, without, given.threads))
        seconds = ([], [])
        for turn in range(given.rounds + 1):
            for trainer, taken in zip(trainers, seconds):
                begin = time.perf_counter()
                trainer.step(feeds)
                if turn:  # the first is to warm up
                    taken.append(time.perf_counter() - begin)
        rows[variant]["ratio"] = statistics.median(seconds[1]) / statistics.median(seconds[0])
    return {"network": network.name, "threads": given.threads, "variants": rows}


def rows_of(found):
    for each in found:
        for variant, row in each["variants"].items():
            yield [each["network"], variant, row["kernels"], row["launches"],
                   f"{row['bytes'] / 2**20:.0f}", f"{row['ratio']:.2f}"]


def summaries(found):
    for variant in VARIANTS:
        if variant != WHOLE:
            ratios = [{"ratio": each["variants"][variant]["ratio"]} for each in found]
            yield f"{variant} over {WHOLE}: {report.summary(ratios)}."


def main():
    options = report.arguments(__doc__, rounds=5, turn_ms=0)
    options.add_argument("--threads", type=int, default=2)
    given = options.parse_args()
    found = report.last("training-ablation") if given.last else []
    if not given.last:
        for network in networks.NETWORKS:
            if given.only in network.name:
                found.append(compare(network, given))
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    heads = ["network", "layers", "kernels", "launches", "MiB moved", "time"]
    report.publish("training-ablation", [*report.table(heads, rows_of(found)), "",
                                         *summaries(found)], found, given)


if __name__ == "__main__":
    main()
