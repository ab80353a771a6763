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
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[1]
ML = "ai.onnx.ml"


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "compile_time", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def chain(count):
    """count nodes, one after the other."""
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    nodes = [helper.make_node("Sin" if i % 2 else "Neg", [a], [b])
             for i, (a, b) in enumerate(zip(names, names[1:]))]
    return model(nodes, [value("x", [4])], [value("y", [4])])


def concat(count):
    """One concat of count operands."""
    return model([helper.make_node("Concat", ["x"] * count, ["y"], axis=0)],
                 [value("x", [4])], [value("y", [4 * count])])


def inputs(count):
    """A sum of count inputs."""
    names = [f"x{i}" for i in range(count)]
    return model([helper.make_node("Sum", names, ["y"])],
                 [value(name, [4]) for name in names], [value("y", [4])])


def outputs(count):
    """A split in count outputs."""
    names = [f"y{i}" for i in range(count)]
    return model([helper.make_node("Split", ["x"], names, axis=0, num_outputs=count)],
                 [value("x", [4 * count])], [value(name, [4]) for name in names])


def symbols(count):
    """One concat of inputs, each of a size with its own name."""
    names = [f"x{i}" for i in range(count)]
    return model([helper.make_node("Concat", names, ["y"], axis=0)],
                 [value(name, [f"n_{name}"]) for name in names], [value("y", None)])


def columns(count):
    """As many columns of one matrix, each on its own: groups that differ in a number."""
    nodes, places = [], []
    for i in range(count):
        places += [helper.make_tensor(f"{side}{i}", TensorProto.INT64, [1], [at])
                   for side, at in (("begin", i), ("end", i + 1))]
        nodes.append(helper.make_node("Slice", ["x", f"begin{i}", f"end{i}", "axis"], [f"y{i}"]))
    made = model(nodes, [value("x", [9, count])], [value(f"y{i}", [9, 1]) for i in range(count)])
    made.graph.initializer.extend(
        [*places, helper.make_tensor("axis", TensorProto.INT64, [1], [1])])
    return made


def with_learning(nodes, width):
    made = model(nodes, [value("x", ["n", 8])], [value("y", ["n", width])])
    made.opset_import.append(helper.make_opsetid(ML, 3))
    return made


def forest(count):
    """An isolation forest as scikit-learn's exporter spells it: trees that give the numbers of
    their leaves, whose depths encoders look up, and a sum."""
    leaves, nodes = range(32), []
    for i in range(count):
        tree = trees.regressor(1, 5, 8) | {
            "target_weights": [float((leaf * (2 * i + 1) + i) % 32) for leaf in leaves]}
        nodes += [helper.make_node("TreeEnsembleRegressor", ["x"], [f"f{i}"], domain=ML, **tree),
                  helper.make_node("Cast", [f"f{i}"], [f"l{i}"], to=TensorProto.INT64)]
        nodes += [helper.make_node(
            "LabelEncoder", [f"l{i}"], [f"{name}{i}"], domain=ML, keys_int64s=[*leaves],
            values_floats=[float(1 + (leaf * step + i) % 9) for leaf in leaves])
            for name, step in (("a", 3), ("b", 4))]
        nodes += [helper.make_node("Log", [f"a{i}"], [f"g{i}"]),
                  helper.make_node("Div", [f"g{i}", f"b{i}"], [f"d{i}"])]
    return with_learning([*nodes, helper.make_node("Sum", [f"d{i}" for i in range(count)], ["y"])],
                         1)


def classes(count):
    """A support-vector machine with probabilities of count classes."""
    return with_learning([helper.make_node("SVMClassifier", ["x"], ["l", "y"], domain=ML,
                                           **support_vectors(count, 4, 8))], count)


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
