"""One artefact for all lengths, tuned for all at once, beside one for each length.

    ./dev bench dynamic [--only NT] [--lengths 5 24] [--note]

The work is that of BERT at batch 16, as in DietCode (Zheng et al., MLSys 2022): three products by
constants, both batched products of attention, attention as one kernel, and whole models where
`./dev bench` has exported them. `fixed` was compiled and tuned for its length alone, `reused` was
tuned at 128 and runs at all lengths, `open` was not tuned; `jointly` is `heddle tune --over` all of
them. Each tuning may take --seconds and ends earlier when it has nothing left to try. One thread,
by turns. The seconds of tuning are those of the whole command, for the lengths of the table and,
jointly, for all from 1 to 128 (--all).
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

from bench.kernels import engines, report, turns
from bench.kernels.layers import model, node, normal
from bench.kernels.libraries import CALLS
from bench.kernels.turns import timed_calls
from bench.models import tool

LENGTHS = (5, 24, 43, 62, 81, 100, 119, 128)
BATCH, HEADS, SIZE = 16, 12, 64
EXPORTED = tool.ROOT / "build" / "models"
GOAL, LESS, LESS_OF_ALL = 0.97, 5.9, 94


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
MODELS = ("bert_base", "gpt2", "albert_base")  # lengths are their last symbol


def cases(only):
    """(name, path of a model, the symbol, rows of a length) of those that are there."""
    folder = Path(tempfile.mkdtemp())
    for name, make in CASES.items():
        if only in name:
            network, rows = make()
            path = folder / f"{name.replace(' ', '_')}.onnx"
            onnx.save(network, path)
            yield name, path, "rows", rows
    for name in MODELS:
        path = EXPORTED / f"{name}.onnx"
        if only in name and path.exists():
            network = onnx.load(path, load_external_data=False)
            symbols = [dim.dim_param for place in network.graph.input
                       for dim in place.type.tensor_type.shape.dim if dim.dim_param]
            yield name, path, symbols[-1], 1


def package():
    """The Python package of this checkout."""
    sys.path.insert(0, str(tool.ROOT / "python"))
    import heddle
    return heddle


def tuned(path, records, given, *more):
    """Seconds of a tuning into these records."""
    found = json.loads(engines.heddle("tune", path, "--records", records, "--threads", 1, "--time",
                                      given.seconds, "--json", *more))
    return found["seconds"]


def feeds_of(path, symbol, size):
    """Numbers for each input; other dynamic sizes are 1."""
    feeds, random = {}, np.random.default_rng(0)
    network = onnx.load(path, load_external_data=False)
    constants = {each.name for each in network.graph.initializer}
    for place in network.graph.input:
        if place.name in constants:
            continue
        shape = [dim.dim_value or (size if dim.dim_param == symbol else 1)
                 for dim in place.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(place.type.tensor_type.elem_type)
        feeds[place.name] = (random.standard_normal(shape).astype(kind) / 8
                             if np.issubdtype(kind, np.floating) else np.ones(shape, kind))
    return feeds


def session(path, **options):
    """Compiled into this process, for one thread."""
    module = package().compile(str(path), threads=1, **options)
    return package().Session(module, threads=1)


def with_library(path):
    """The products by oneDNN's functions, or None where it takes none of them."""
    plan = package().compile(str(path), threads=1, load=False).plan
    for group in plan["groups"]:
        if group["card"] in CALLS:
            group.update(card=CALLS[group["card"]], knobs={}, versions=[], card_hash="")
    try:
        return session(path, plan=plan)
    except Exception as error:  # the library is not there, or refuses the group
        print(f"oneDNN: {error}", file=sys.stderr)
        return None


def onnxruntime_of(path):
    """ONNX Runtime's session for one thread."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def compare(case, given):
    """What was found of one case: seconds of tuning, and turns at each length."""
    name, path, symbol, rows = case
    sizes = {length: rows * length for length in given.lengths}
    folder = Path(tempfile.mkdtemp())
    spent = {"jointly": tuned(path, folder / "joint.db", given, "--over",
                              f"{symbol}={','.join(map(str, sizes.values()))}")}
    spent["of 128"] = None
    if given.all:
        whole = ",".join(str(rows * length) for length in range(1, 129))
        spent["of 128"] = tuned(path, folder / "all.db", given, "--over", f"{symbol}={whole}")
    tuned(path, folder / "reused.db", given, "--at", f"{symbol}={rows * 128}")
    runs = {"open": session(path), "onnxruntime": onnxruntime_of(path),
            "jointly": session(path, records=str(folder / "joint.db")),
            "reused": session(path, records=str(folder / "reused.db")),
            "onednn": with_library(path)}
    spent["each"], found = [], []
    for length, size in sizes.items():
        records = folder / f"{length}.db"
        spent["each"].append(tuned(path, records, given, "--dim", f"{symbol}={size}"))
        runs["fixed"] = session(path, records=str(records), shapes={symbol: size})
        feeds = feeds_of(path, symbol, size)
        expected = runs["onnxruntime"].run(None, feeds)[0]
        for engine, run in runs.items():
            if run:
                np.testing.assert_allclose(run.run(None, feeds)[0], expected, rtol=2e-3, atol=2e-3,
                                           err_msg=engine)
        times = turns.by_turns(
            {engine: timed_calls(lambda run=run: run.run(None, feeds))
             for engine, run in runs.items() if run}, given.rounds, given.turn / 1000)
        found.append({"length": length, "turns": times,
                      **{f"{engine} / jointly": turns.ratio(times, engine, "jointly")
                         for engine in times if engine != "jointly"}})
    return {"name": name, "spent": spent, "lengths": found}


def rows_of(found):
    """Lines of the table."""
    for case in found:
        for each in case["lengths"]:
            ratios = (each.get(f"{engine} / jointly")
                      for engine in ("fixed", "reused", "open", "onnxruntime", "onednn"))
            yield (case["name"], each["length"],
                   f"{1e6 * statistics.median(each['turns']['jointly']):.0f}",
                   *(report.spread(ratio) if ratio else "" for ratio in ratios))


def spent_of(found):
    """Lines of the table of tuning."""
    for case in found:
        spent, count = case["spent"], len(case["lengths"])
        each, whole = sum(spent["each"]), spent["of 128"]
        yield (case["name"], f"{each:.0f}", f"{spent['jointly']:.0f}",
               f"{each / spent['jointly']:.1f}", f"{whole:.0f}" if whole else "",
               f"{128 * each / count / whole:.0f}" if whole else "")


def main():
    options = report.arguments(__doc__, rounds=9, turn_ms=10)
    options.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    options.add_argument("--seconds", type=float, default=60, help="of each tuning, at most")
    options.add_argument("--all", action="store_true", help="tune for all of 1 to 128, too")
    given = options.parse_args()
    found = report.last("dynamic") if given.last else [
        compare(case, given) for case in cases(given.only)]
    lines = report.table(["work", "length", "jointly, us", "fixed / jointly", "reused / jointly",
                          "open / jointly", "ONNX Runtime / jointly", "oneDNN / jointly"],
                         rows_of(found))
    spent = report.table(["work", "each length, s", "jointly, s", "times less", "1 to 128, s",
                          "times less"], spent_of(found))
    ratios = [each["fixed / jointly"] for case in found for each in case["lengths"]]
    report.publish("dynamic", [
        *lines, "", f"Against one artefact for each length: {report.summary(ratios)} (goal: mean "
        f"{GOAL}).", "", *spent, "", f"Goals: {LESS} times less for 8 lengths, {LESS_OF_ALL} for "
        "128, of which each would take the mean of those that were tuned."], found, given)


if __name__ == "__main__":
    main()
