"""f32 products with constant weights against oneDNN's, one thread.

    ./dev bench matmuls

oneDNN has its weights packed ahead (format any), and is the faster of its primitives matmul and
inner product, with plain sources and results or ones in its own layouts. Both are timed in loops of
C (onednn.c), ours as a session of one group; results are held against each other first.
"""

import statistics

import numpy as np

from bench.kernels import engines, onednn, report, turns
from bench.kernels.layers import model, node, normal

# m, k, n: products of transformers at 1, 8, 32, 128 and more rows, and of images of squares.
SHAPES = [
    (512, 512, 512), (1024, 1024, 1024),
    *((rows, k, n) for rows in (1, 8, 32, 128)
      for k, n in ((768, 768), (768, 3072), (3072, 768))),
    (384, 768, 768), (384, 3072, 768), (197, 768, 3072), (1, 768, 30522)]
GOAL, LEAST = 1.0, 0.9


def compare(shape, given):
    """Times of one shape, after both have given the same."""
    m, k, n = shape
    x, w = normal(m, k), normal(k, n)
    ours = engines.Heddle(model([node("MatMul", ["x", "w"], "y")], {"x": [m, k]}, [m, n], {"w": w}),
                        {"x": x})
    theirs = onednn.best(onednn.matmuls(m, k, n), [x, w], rounds=5, turn_s=given.turn / 2000)
    ours.call()
    theirs.run(1)
    result = engines.aligned((m, n))
    theirs.copy(2, result)
    np.testing.assert_allclose(ours.results[0], result, rtol=1e-3, atol=1e-3)
    times = turns.by_turns({"heddle": onednn.session(ours), "onednn": theirs.run}, given.rounds,
                           given.turn / 1000)
    (group,) = ours.plan["groups"]
    return {"shape": shape, "turns": times, "form": theirs.form, "card": group["card"],
            "knobs": group["knobs"], **turns.ratio(times, "onednn", "heddle")}


def lines(found):
    """The table and the mean."""
    rows = []
    for each in found:
        ours, theirs = (statistics.median(each["turns"][name]) for name in ("heddle", "onednn"))
        work = 2e-9 * np.prod(each["shape"], dtype=float)
        rows.append(("x".join(map(str, each["shape"])), f"{ours * 1e6:.1f}", f"{theirs * 1e6:.1f}",
                     report.spread(each), f"{work / ours:.0f}", each["form"]))
    return [*report.table(["m x k x n", "heddle, us", "oneDNN, us", "oneDNN / heddle [quartiles]",
                           "GFLOP/s", "oneDNN's best form"], rows),
            "", f"{report.summary(found)} (goal: mean {GOAL}, none below {LEAST})."]


def measure(given):
    """Times of all shapes that are asked for."""
    return (compare(shape, given) for shape in SHAPES if given.only in "x".join(map(str, shape)))


def main():
    given = report.arguments(__doc__, rounds=21, turn_ms=10).parse_args()
    report.tell("matmuls", given, measure, lines)


if __name__ == "__main__":
    main()
