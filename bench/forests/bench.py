"""Times trained ensembles of trees beside ONNX Runtime, lleaves and treelite, with one thread.

    python3 -m venv build/forests && build/forests/bin/pip install -r bench/forests/requirements.txt
    ./dev bench forests [--rounds 5] [--turn 20]

LightGBM trains them on random rows of 30 features. All run by turns in one process; results are
compared first.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

import heddle
import lightgbm
import lleaves
import numpy as np
import treelite
from bench.kernels import report, turns
from bench.kernels.engines import runtime_session
from onnxmltools.convert import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType

FEATURES, TRAINED_ROWS = 30, 20000
FORESTS = [("100 trees of 31 leaves", 100, 31, "regression"),
           ("300 trees of 15 leaves", 300, 15, "regression"),
           ("100 trees of 31 leaves, binary", 100, 31, "binary")]
ROWS = (1, 100, 10000)


def train(count, leaves, objective):
    random = np.random.default_rng(count)
    x = random.standard_normal((TRAINED_ROWS, FEATURES)).astype(np.float32)
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * random.standard_normal(TRAINED_ROWS)
    if objective == "binary":
        y = y > 0
    return lightgbm.train({"objective": objective, "num_leaves": leaves, "verbose": -1, "seed": 1},
                          lightgbm.Dataset(x, y), count)


def engines_of(booster, objective, folder):
    """{name: function of rows that gives one number a row}."""
    path = Path(folder) / "model.txt"
    booster.save_model(path)
    known = {"zipmap": False} if objective == "binary" else {}
    model = convert_lightgbm(booster, initial_types=[("x", FloatTensorType([None, FEATURES]))],
                             target_opset=15, **known)
    ours = heddle.Session(heddle.compile(model, threads=1, cache=False), threads=1)
    theirs = runtime_session(model)
    compiled = lleaves.Model(model_file=str(path))
    compiled.compile()
    walked = treelite.frontend.load_lightgbm_model(str(path))
    last = -1 if objective == "binary" else 0
    return {
        "heddle": lambda x: ours.run(None, {"x": x})[last],
        "onnxruntime": lambda x: theirs.run(None, {"x": x})[last],
        "lleaves": lambda x: compiled.predict(x, n_jobs=1),
        "treelite": lambda x: treelite.gtil.predict(walked, x, nthread=1)}


def number_a_row(values):
    """The last column: of a classifier the probability of its second class."""
    return np.asarray(values, np.float64).reshape(len(values), -1)[:, -1]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--turn", type=float, default=20, help="milliseconds of a turn")
    given = options.parse_args()
    lines = []
    for name, count, leaves, objective in FORESTS:
        with tempfile.TemporaryDirectory() as folder:
            engines = engines_of(train(count, leaves, objective), objective, folder)
            for rows in ROWS:
                x = np.random.default_rng(rows).standard_normal((rows, FEATURES)).astype(np.float32)
                expected = number_a_row(engines["onnxruntime"](x))
                for other, predict in engines.items():
                    # lleaves and treelite compare features in other precisions
                    wrong = ~np.isclose(number_a_row(predict(x)), expected, rtol=1e-3, atol=1e-3)
                    if wrong.mean() > 1e-3:
                        raise SystemExit(f"{name}: {other} differs in {wrong.sum()} of {rows} rows")
                times = turns.by_turns(
                    {other: turns.timed_calls(lambda predict=predict: predict(x))
                     for other, predict in engines.items()}, given.rounds, given.turn / 1000)
                own = f"{1e6 * statistics.median(times['heddle']):.1f} us"
                lines.append((name, str(rows), own, *(
                    report.spread(turns.ratio(times, other, "heddle"))
                    for other in engines if other != "heddle")))
    print("\n".join(report.table(["forest", "rows", "heddle", "ONNX Runtime", "lleaves",
                                  "treelite"], lines)))


if __name__ == "__main__":
    main()
