"""One artefact for all lengths, tuned for all at once, beside one for each length.

    ./dev bench dynamic [--only NT] [--lengths 5 24] [--all]

The work is that of BERT at batch 16, as in DietCode (Zheng et al., MLSys 2022): products by
constants, both batched products of attention, attention as one kernel; and whole models of the
exporter at --batch. `fixed` was compiled and tuned for its length alone, `reused` was tuned at 128
and runs at all lengths, `open` was not tuned; `jointly` is `heddle tune --over` all of them. The
best vendor is the faster one of ONNX Runtime and of the open artefact with oneDNN's products. Each
tuning may take --seconds, those for all lengths --joint-seconds, and ends earlier when it has
nothing left to try. One thread, by turns. The seconds of tuning are those of the whole command, for
the lengths of the table and, jointly, for all from 1 to 128 (--all).
"""

import json
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import heddle
import numpy as np
import onnx

from bench.kernels import engines, report, turns
from bench.kernels.layers import model, node, normal
from bench.kernels.turns import timed_calls
from bench.models import sources, tool

LENGTHS = (5, 24, 43, 62, 81, 100, 119, 128)
BATCH, HEADS, SIZE = 16, 12, 64
GOAL, LESS, LESS_OF_ALL, OVER_VENDOR = 0.97, 5.9, 94, 1.19
OURS = ("fixed", "reused", "open")
VENDORS = {"onnxruntime": "ONNX Runtime", "onednn": "oneDNN", "vendor": "best vendor"}
# Cards whose groups oneDNN's functions can compute.
CALLS = {"matmul": "onednn_matmul", "conv": "onednn_conv", "conv_narrow": "onednn_conv",
         "conv_depthwise": "onednn_conv", "reduce_rows": "onednn_layer_norm"}


@dataclass(frozen=True)
class Case:
    """A model whose length is the size `symbol`; it is `rows` times the length."""

    name: str
    path: Path
    symbol: str
    rows: int = 1
    sizes: dict = field(default_factory=dict)  # its other symbols, which all artefacts know
    is_whole: bool = False


def dense(inputs, outputs):
    """A product by a constant, of all tokens of a batch."""
    return model([node("MatMul", ["x", "w"], "y")], {"x": ["rows", inputs]}, ["rows", outputs],
                 {"w": normal(inputs, outputs)}), BATCH


def transposed():
    """Queries times transposed keys."""
    heads = BATCH * HEADS
    return model([node("Transpose", ["b"], "t", perm=[0, 2, 1]), node("MatMul", ["a", "t"], "y")],
                 {"a": [heads, "rows", SIZE], "b": [heads, "rows", SIZE]},
                 [heads, "rows", "rows"], {}), 1


def plain():
    """Weights times values."""
    heads = BATCH * HEADS
    return model([node("MatMul", ["a", "b"], "y")],
                 {"a": [heads, "rows", "rows"], "b": [heads, "rows", SIZE]},
                 [heads, "rows", SIZE], {}), 1


def attention():
    """Both products with the softmax between them."""
    places = {"q": [BATCH, HEADS, "rows", SIZE], "k": [BATCH, HEADS, SIZE, "rows"],
              "v": [BATCH, HEADS, "rows", SIZE]}
    return model([node("MatMul", ["q", "k"], "s"), node("Softmax", ["s"], "p", axis=-1),
                  node("MatMul", ["p", "v"], "y")], places, places["q"], {}), 1


CASES = {"dense 768x2304": lambda: dense(768, 2304), "dense 768x768": lambda: dense(768, 768),
         "dense 3072x768": lambda: dense(3072, 768), "dense 768x3072": lambda: dense(768, 3072),
         "NT": transposed, "NN": plain, "attention": attention}
MODELS = ("bert_base", "gpt2", "albert_base")


def cases(given):
    """Those that are asked for and there; lengths are the last symbol of whole models."""
    folder = Path(tempfile.mkdtemp())
    for name, make in CASES.items():
        if given.only in name:
            network, rows = make()
            path = folder / f"{name.replace(' ', '_')}.onnx"
            onnx.save(network, path)
            yield Case(name, path, "rows", rows)
    for name in MODELS:
        if given.only not in name:
            continue
        try:
            path = sources.exported(name)
        except sources.Missing as why:
            print(why, file=sys.stderr)
            continue
        symbols = [dim.dim_param for place in onnx.load(path, load_external_data=False).graph.input
                   for dim in place.type.tensor_type.shape.dim if dim.dim_param]
        others = dict.fromkeys(symbols[:-1], given.batch)
        others.pop(symbols[-1], None)
        yield Case(name, path, symbols[-1], sizes=others, is_whole=True)


def known_of(case):
    """Options of the command for the sizes that all artefacts know."""
    return [word for size in case.sizes.items() for word in ("--dim", "{}={}".format(*size))]


def tuned(case, records, seconds, *more):
    """Seconds of a tuning into these records."""
    done = tool.checked("tune", case.path, "--records", records, "--threads", 1, "--time", seconds,
                        "--json", *known_of(case), *more)
    return json.loads(done.output)["seconds"]


def feeds_of(case, size):
    """Numbers for each input."""
    feeds, random = {}, np.random.default_rng(0)
    network = onnx.load(case.path, load_external_data=False)
    constants, sizes = {each.name for each in network.graph.initializer}, {case.symbol: size}
    for place in network.graph.input:
        if place.name in constants:
            continue
        shape = [dim.dim_value or (sizes | case.sizes)[dim.dim_param]
                 for dim in place.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(place.type.tensor_type.elem_type)
        feeds[place.name] = (random.standard_normal(shape).astype(kind) / 8
                             if np.issubdtype(kind, np.floating) else np.ones(shape, kind))
    return feeds


def session(case, sizes=None, **options):
    """Compiled into this process, for one thread."""
    module = heddle.compile(str(case.path), threads=1, shapes={**case.sizes, **(sizes or {})},
                            **options)
    return heddle.Session(module, threads=1)


def with_library(case):
    """The products by oneDNN's functions, or None where it takes none of them."""
    plan = heddle.compile(str(case.path), threads=1, shapes=case.sizes, load=False).plan
    told = json.loads(tool.checked("explain", case.path, "--json", *known_of(case)).output)
    offered = {(group["name"], offer["card"]) for group in told["groups"]
               for offer in group["offers"] if offer["refusal"] is None}
    taken = [group for group in plan["groups"]
             if (group["name"], CALLS.get(group["card"])) in offered]
    for group in taken:
        group.update(card=CALLS[group["card"]], knobs={}, versions=[], card_hash="")
    try:
        return session(case, plan=plan) if taken else None
    except Exception as error:  # the library is not there, or refuses the group
        print(f"oneDNN: {error}", file=sys.stderr)
        return None


def into_place(run, feeds, expected):
    """A run of a session whose results are where they were before."""
    names = [place.name for place in run.get_outputs()]
    places = dict(zip(names, run.run(None, feeds)))
    for name, value in zip(names, expected):
        np.testing.assert_allclose(places[name], value, rtol=2e-3, atol=2e-3)
    return lambda: run.run(None, feeds, out=places)


def at_length(case, size, runs, given):
    """Turns of all engines at a length."""
    feeds = feeds_of(case, size)
    theirs, expected = engines.onnxruntime_call(str(case.path), feeds)
    timed = {engine: timed_calls(into_place(run, feeds, expected))
             for engine, run in runs.items() if run}
    timed["onnxruntime"] = timed_calls(theirs)
    rounds = given.rounds if not case.is_whole else min(given.rounds, 5)
    found = turns.by_turns(timed, rounds, given.turn / 1000)
    found["vendor"] = min((found[name] for name in ("onnxruntime", "onednn") if name in found),
                          key=statistics.median)
    return found


def compare(case, given):
    """Seconds of tuning of one case, and turns at each length."""
    sizes = {length: case.rows * length for length in given.lengths}
    folder, symbol = Path(tempfile.mkdtemp()), case.symbol
    together = given.joint_seconds or given.seconds
    spent = {"jointly": tuned(case, folder / "joint.db", together, "--over",
                              f"{symbol}={','.join(map(str, sizes.values()))}")}
    spent["of 128"] = None
    if given.all:
        whole = ",".join(str(case.rows * length) for length in range(1, 129))
        spent["of 128"] = tuned(case, folder / "all.db", together, "--over", f"{symbol}={whole}")
    tuned(case, folder / "reused.db", given.seconds, "--at", f"{symbol}={case.rows * 128}")
    runs = {"open": session(case), "jointly": session(case, records=str(folder / "joint.db")),
            "reused": session(case, records=str(folder / "reused.db")),
            "onednn": with_library(case)}
    spent["each"], found = [], []
    for length, size in sizes.items():
        records = folder / f"{length}.db"
        spent["each"].append(tuned(case, records, given.seconds, "--dim", f"{symbol}={size}"))
        runs["fixed"] = session(case, {symbol: size}, records=str(records))
        times = at_length(case, size, runs, given)
        found.append({"length": length, "turns": times,
                      **{f"{engine} / jointly": turns.ratio(times, engine, "jointly")
                         for engine in times if engine != "jointly"}})
        print(f"{case.name} at {length}:", {name: round(1e6 * statistics.median(each))
                                            for name, each in times.items()}, file=sys.stderr)
    return {"name": case.name, "is_whole": case.is_whole, "spent": spent, "lengths": found}


def rows_of(found):
    """Lines of the table."""
    for case in found:
        for each in case["lengths"]:
            ratios = (each.get(f"{engine} / jointly") for engine in (*OURS, *VENDORS))
            yield (case["name"], each["length"],
                   f"{1e6 * statistics.median(each['turns']['jointly']):.0f}",
                   *(report.spread(ratio) if ratio else "" for ratio in ratios))


def spent_of(found):
    """Lines of the table of tuning."""
    for case in found:
        spent, count = case["spent"], len(case["lengths"])
        each, whole = sum(spent["each"]), spent["of 128"]
        speed = report.geometric_mean(of["fixed / jointly"]["ratio"] for of in case["lengths"])
        vendor = report.geometric_mean(of["vendor / jointly"]["ratio"] for of in case["lengths"])
        yield (case["name"], f"{speed:.3f}", f"{vendor:.2f}", f"{each:.0f}",
               f"{spent['jointly']:.0f}", f"{each / spent['jointly']:.1f}",
               f"{whole:.0f}" if whole else "",
               f"{128 * each / count / whole:.0f}" if whole else "")


def summary_of(found, engine, is_whole):
    """The ratios of an engine's time to that of the joint artefact, of models or of parts."""
    return report.summary([each[f"{engine} / jointly"] for case in found for each in case["lengths"]
                           if case["is_whole"] == is_whole and f"{engine} / jointly" in each])


def lines_of(found):
    """The tables and the means."""
    heads = [*OURS, *VENDORS.values()]
    lines = report.table(["work", "length", "jointly, us", *(f"{h} / jointly" for h in heads)],
                         rows_of(found))
    spent = report.table(["work", "fixed / jointly", "best vendor / jointly", "each length, s",
                          "jointly, s", "times less", "1 to 128, s", "times less"],
                         spent_of(found))
    return [
        *lines, "", *spent, "", f"Against one artefact for each length (goal: {GOAL}), kernels: "
        f"{summary_of(found, 'fixed', False)}; models: {summary_of(found, 'fixed', True)}.",
        f"Against the best vendor, kernels: {summary_of(found, 'vendor', False)}; models (goal: "
        f"{OVER_VENDOR}): {summary_of(found, 'vendor', True)}.",
        f"Tuning, goals: {LESS} times less for 8 lengths, {LESS_OF_ALL} for 128, of which each "
        "would take the mean of those that were tuned."]


def main():
    options = report.arguments(__doc__, rounds=9, turn_ms=10)
    options.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    options.add_argument("--seconds", type=float, default=60, help="of each tuning, at most")
    options.add_argument("--joint-seconds", type=float, help="of those for all lengths, if others")
    options.add_argument("--batch", type=int, default=4, help="of whole models")
    options.add_argument("--all", action="store_true", help="tune for all of 1 to 128, too")
    report.tell("dynamic", options.parse_args(),
                lambda given: (compare(case, given) for case in cases(given)), lines_of)


if __name__ == "__main__":
    main()
