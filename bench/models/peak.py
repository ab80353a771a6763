"""Which kernels of all models take the time, and how far are they from the machine's limits?

    ./dev bench peak

`heddle explain --measure` times each kernel of each model (batch 1, one thread) and bounds it by
the machine's measured peaks: of multiply-adds or of memory, whichever takes longer. A kernel's
weight is its part of its own model's time, so that a large model counts no more than a small one;
kernels of equal loops and sizes are one, and their weights are added, in one model and in several.
The loss is the weight times the time above the bound. Kernels whose data stays in a cache may
be faster than the bound of memory: they count as 1.
"""

import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from bench.kernels import report
from bench.models import tool
from bench.peers import cases, shapes
from bench.peers.job import Job

EXPLAINED = report.STORE / "explained"
SHOWN, NEAR = 10, 0.8


@dataclass
class Kernel:
    """Kernels of one form and size."""

    card: str
    knobs: dict
    shapes: str
    ops: str
    weight: float = 0.0  # sum of the parts of models' times
    seconds: float = 0.0  # of one run of it, the median group's
    bound: str = ""
    of_bound: float = 0.0  # weighted
    models: set = field(default_factory=set)

    @property
    def lost(self):
        return self.weight * (1 - min(1.0, self.of_bound))


def fixed(case, feeds, folder):
    """The case's model with all sizes fixed, and inputs that choose branches made constant."""
    np.savez(folder / "feeds.npz", **feeds)
    job = Job("", str(case.path()), str(folder / "feeds.npz"), str(folder),
              constants=case.constants)
    if case.constants:
        shapes.write(job)
        return job.path("static.onnx")
    model = onnx.load(job.model)
    shapes.fix_sizes(model, job)
    onnx.save(model, job.path("static.onnx"))
    return job.path("static.onnx")


def explain(case, seconds):
    """Asks the command about a case's groups: bounds need sizes that are numbers."""
    with tempfile.TemporaryDirectory() as name:
        folder, feeds = Path(name), case.make_feeds(1)
        model = fixed(case, feeds, folder)
        feeds = {key: value for key, value in feeds.items() if key not in case.constants}
        return tool.checked("explain", model, "--measure", "--json", "--threads", 1, "--time",
                            seconds, *tool.input_options(feeds, folder / "inputs")).output


def signature(group):
    """The key by which two groups are the same kernel."""
    inputs = [each.get("type", "") for each in group["inputs"]]
    outputs = [each.get("type", "") for each in group["outputs"]]
    return json.dumps([group["card"], group["knobs"], group["key"], inputs, outputs])


def shapes_of(group):
    """The sizes that say most, short: the first two operands of two or more dimensions, or however
    many there are, and the first result. Open sizes are told by their symbols."""
    texts = [each["type"].replace(" ", "") for each in group["inputs"] if each.get("type")]
    large = [text for text in texts if text.count("x") > 1] or texts
    return ", ".join(large[:2]) + " -> " + group["outputs"][0]["type"].replace(" ", "")


def ops_of(group):
    """Its ops, in their order, each once."""
    found = dict.fromkeys(op for each in group["ops"] for op in each["graph_ops"])
    return " ".join(found) if len(found) <= 6 else f"{len(found)} kinds of ops"


def merged(explained):
    """Kernels by signature, of {model: groups that were measured}."""
    kernels = {}
    for model, groups in explained.items():
        total = sum(group["seconds"] for group in groups)
        for group in groups:
            if not group["seconds"]:
                continue
            kernel = kernels.setdefault(signature(group), Kernel(
                group["card"], group["knobs"], shapes_of(group), ops_of(group)))
            weight = group["seconds"] / total
            near = min(1.0, group.get("of_bound") or 0.0)
            kernel.of_bound = ((kernel.of_bound * kernel.weight + near * weight) /
                               (kernel.weight + weight))
            kernel.weight += weight
            kernel.seconds = max(kernel.seconds, group["seconds"])
            kernel.models.add(model)
    return list(kernels.values())


def rows(kernels, total):
    """Lines of a table."""
    for each in kernels:
        knobs = " ".join(f"{key}={value}" for key, value in each.knobs.items() if value)
        yield (f"{100 * each.weight / total:.2f}", f"{100 * each.lost / total:.2f}",
               f"{each.of_bound:.2f}", f"{each.seconds * 1e6:.0f}", f"{each.card} {knobs}",
               each.shapes, each.ops, ", ".join(sorted(each.models)))


HEADS = ["% of time", "% lost", "of bound", "us", "card", "sizes", "ops", "models"]


def by_card(kernels, total):
    """Lines of a table: what each card takes of the time, and how near it is to the bound."""
    sums = defaultdict(lambda: [0.0, 0.0])
    for each in kernels:
        sums[each.card][0] += each.weight
        sums[each.card][1] += each.weight * each.of_bound
    for card, (weight, near) in sorted(sums.items(), key=lambda item: -item[1][0]):
        yield (card, f"{100 * weight / total:.1f}", f"{near / weight:.2f}",
               f"{100 * (weight - near) / total:.1f}")


def figures(explained):
    """Lines of the note."""
    kernels = merged({model: [group for group in each["groups"] if "seconds" in group]
                      for model, each in explained.items()})
    total = sum(each.weight for each in kernels)
    first = sorted(kernels, key=lambda each: -each.weight)[:SHOWN]
    lost = sorted(kernels, key=lambda each: -each.lost)[:SHOWN]
    limits = next(iter(explained.values()))["machine"]
    return kernels, [
        f"{len(explained)} models, {len(kernels)} kernels; peaks: "
        f"{limits['flops_per_second'] / 1e9:.0f} GFLOP/s, "
        f"{limits['bytes_per_second'] / 1e9:.1f} GB/s.", "",
        "The most time:", "", *report.table(HEADS, rows(first, total)), "",
        f"The most time above the bound ({sum(each.of_bound < NEAR for each in kernels)} kernels "
        f"are below {NEAR} of it):", "", *report.table(HEADS, rows(lost, total)), "",
        "By card:", "", *report.table(["card", "% of time", "of bound", "% lost"],
                                      by_card(kernels, total))]


def main():
    given = report.arguments(__doc__, rounds=1, turn_ms=400).parse_args()
    explained = {}
    EXPLAINED.mkdir(parents=True, exist_ok=True)
    for case in cases.cases():
        if given.only not in case.name:
            continue
        try:
            kept = EXPLAINED / f"{case.name}.json"
            if not given.last:
                kept.write_text(explain(case, given.turn / 1000), encoding="utf-8")
            if kept.exists():
                explained[case.name] = json.loads(kept.read_text(encoding="utf-8"))
        except (cases.Missing, RuntimeError) as reason:
            print(f"{case.name} left out: {reason}", flush=True)
    if not explained:
        raise SystemExit("there is no model to measure; see the reasons above")
    kernels, lines = figures(explained)
    report.publish("peak", lines, [vars(each) | {"models": sorted(each.models)}
                                   for each in kernels], given)


if __name__ == "__main__":
    main()
