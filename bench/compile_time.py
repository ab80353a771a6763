"""Compile time against the size of a model: `./dev bench compile-time [FAMILY...] [--most N]`.

Families of models that only differ in a count: of nodes, operands, inputs, outputs, named sizes,
groups that only differ in a number, trees of an isolation forest, or classes of support vectors.
Each row is a count, the seconds of `heddle compile` without its cache, and the growth since the
row before as an exponent: 1 is linear."""

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from bench.ops import trees
from bench.ops.cases import support_vectors
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto

ROOT = Path(__file__).resolve().parents[1]
ML = "ai.onnx.ml"


def model(nodes, inputs, outputs, **more):
    return make_model(nodes, inputs, outputs, opset=18, **more)


def chain(count):
    """count nodes, one after the other."""
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    nodes = [make_node("Sin" if i % 2 else "Neg", [a], [b])
             for i, (a, b) in enumerate(zip(names, names[1:]))]
    return model(nodes, {"x": [4]}, {"y": [4]})


def concat(count):
    """One concat of count operands."""
    return model([make_node("Concat", ["x"] * count, "y", axis=0)], {"x": [4]}, {"y": [4 * count]})


def inputs(count):
    """A sum of count inputs."""
    names = [f"x{i}" for i in range(count)]
    return model([make_node("Sum", names, "y")], {name: [4] for name in names}, {"y": [4]})


def outputs(count):
    """A split in count outputs."""
    names = [f"y{i}" for i in range(count)]
    return model([make_node("Split", "x", names, axis=0, num_outputs=count)],
                 {"x": [4 * count]}, {name: [4] for name in names})


def symbols(count):
    """One concat of inputs, each of a size with its own name."""
    names = [f"x{i}" for i in range(count)]
    return model([make_node("Concat", names, "y", axis=0)],
                 {name: [f"n_{name}"] for name in names}, {"y": None})


def columns(count):
    """As many columns of one matrix, each on its own: groups that differ in a number."""
    nodes, places = [], {"axis": [1]}
    for i in range(count):
        places |= {f"begin{i}": [i], f"end{i}": [i + 1]}
        nodes.append(make_node("Slice", f"x begin{i} end{i} axis", f"y{i}"))
    return model(nodes, {"x": [9, count]}, {f"y{i}": [9, 1] for i in range(count)},
                 constants=places)


def with_learning(nodes, width):
    return model(nodes, {"x": ["n", 8]}, {"y": ["n", width]}, domains={ML: 3})


def forest(count):
    """An isolation forest as scikit-learn's exporter spells it: trees that give the numbers of
    their leaves, whose depths encoders look up, and a sum."""
    leaves, nodes = range(32), []
    for i in range(count):
        tree = trees.regressor(1, 5, 8) | {
            "target_weights": [float((leaf * (2 * i + 1) + i) % 32) for leaf in leaves]}
        nodes += [make_node("TreeEnsembleRegressor", "x", f"f{i}", domain=ML, **tree),
                  make_node("Cast", f"f{i}", f"l{i}", to=TensorProto.INT64)]
        nodes += [make_node("LabelEncoder", f"l{i}", f"{name}{i}", domain=ML, keys_int64s=[*leaves],
                            values_floats=[float(1 + (leaf * step + i) % 9) for leaf in leaves])
                  for name, step in (("a", 3), ("b", 4))]
        nodes += [make_node("Log", f"a{i}", f"g{i}"), make_node("Div", f"g{i} b{i}", f"d{i}")]
    return with_learning([*nodes, make_node("Sum", [f"d{i}" for i in range(count)], "y")], 1)


def classes(count):
    """A support-vector machine with probabilities of count classes."""
    return with_learning([make_node("SVMClassifier", "x", "l y", domain=ML,
                                    **support_vectors(count, 4, 8))],
                         count)


FAMILIES = {"chain": (chain, [1250, 5000, 20000]), "concat": (concat, [1250, 5000, 20000]),
            "inputs": (inputs, [1250, 5000]), "outputs": (outputs, [1250, 5000]),
            "symbols": (symbols, [50, 100, 200, 400]), "columns": (columns, [100, 200, 400, 800]),
            "forest": (forest, [50, 100, 200, 400]), "classes": (classes, [4, 8, 16, 32])}


def seconds(made):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        onnx.save(made, path)
        begin = time.perf_counter()
        subprocess.run([ROOT / "build/release/bin/heddle", "compile", path, "-o",
                        path.with_suffix(".so"), "--no-cache"], check=True,
                       stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--most", type=int, default=1 << 62, help="no larger counts")
    options = parser.parse_args()
    if unknown := set(options.families) - set(FAMILIES):
        parser.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    print(f"{'family':8} {'count':>6} {'seconds':>8} {'exponent':>8}")
    for name in options.families or FAMILIES:
        make, counts = FAMILIES[name]
        before = None
        for count in (count for count in counts if count <= options.most):
            now = seconds(make(count))
            growth = f"{math.log(now / before[1], count / before[0]):8.2f}" if before else ""
            print(f"{name:8} {count:6} {now:8.2f} {growth}", flush=True)
            before = count, now
    return 0


if __name__ == "__main__":
    sys.exit(main())
