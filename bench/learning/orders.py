"""Orders of kernels that heddle_lab.go searched for a low peak of memory: bytes between kernels and
milliseconds, beside the compiler's own order.

    ./dev bench orders [--only shufflenet] [--rounds 5] [--fusion]

The networks are those in the Python package onnx, and steps of training of a residual MLP, plain
and with the norm of all gradients clipped. Ours and theirs run by turns, on one thread. `--fusion`
carries out fusion bits instead: none, GO's default and those of a search in the simulator.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnx
from bench.kernels import report
from bench.learning import choosing
from heddle.onnx_graph import make_model, make_node, make_value

import heddle
from heddle_lab.go import default_fusion, from_onnx, fusion_plan, no_fusion, search_fusion
from heddle_lab.go.orders import lower_peak

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
ADAM = {"loss": "cross_entropy", "optimizer": "adam"}


def residual(depth=8, width=256, batch=64):
    """Layers x + relu(W x + b) after the second."""
    random, nodes, weights, x = np.random.default_rng(0), [], {}, "x"
    for layer in range(depth):
        for name, shape in ((f"w{layer}", (width, width)), (f"b{layer}", (width,))):
            weights[name] = (random.standard_normal(shape) / 16).astype(np.float32)
        nodes += [make_node("Gemm", [x, f"w{layer}", f"b{layer}"], f"h{layer}", f"dense{layer}"),
                  make_node("Relu", f"h{layer}", f"r{layer}", f"relu{layer}")]
        x = f"r{layer}"
        if layer > 1:
            nodes.append(make_node("Add", [x, f"r{layer - 2}"], f"s{layer}", f"skip{layer}"))
            x = f"s{layer}"
    values = [make_value(name, [batch, width]) for name in ("x", x)]
    return make_model(nodes, values[:1], values[1:], weights)


def cases():
    """name -> model, options."""
    found = {path.stem.removeprefix("light_"): (str(path), {})
             for path in sorted(LIGHT.glob("light_*.onnx")) if "vgg" not in path.stem}
    found["residual-step"] = residual(), {"training": ADAM}
    found["residual-step-clipped"] = residual(), {"training": {**ADAM, "clip_norm": 1.0}}
    return found


def milliseconds(modules, rounds):
    """Medians of modules that run by turns."""
    times = choosing.by_turns(modules, choosing.feeds_of(modules[0]), rounds)
    return (1e3 * np.median(times, axis=1)).tolist()


def measure(model, options, rounds):
    options = {**options, "threads": 1, "cache": False}
    plan, before, after = lower_peak(model, **options)
    modules = [heddle.compile(model, plan=each, **options) for each in (None, plan)]
    times = milliseconds(modules, rounds)
    return {"groups": len(plan["groups"]), "before": before, "after": after, "times": times}


def measure_fusion(model, rounds):
    """Milliseconds by the compiler's own groups and by those of fusion bits."""
    graph = from_onnx(model, {"N": 1})
    bits = {"none": no_fusion(graph), "default": default_fusion(graph),
            "searched": search_fusion(graph)[0]}
    options = {"threads": 1, "cache": False}
    plans = [None, *(fusion_plan(model, graph, each, **options) for each in bits.values())]
    modules = [heddle.compile(model, plan=plan, **options) for plan in plans]
    times = milliseconds(modules, rounds)
    return dict(zip(("rules", *bits), times)) | {
        "kernels": [len(module.compiled.plan["groups"]) for module in modules]}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="networks whose name has this in it")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--fusion", action="store_true")
    given = options.parse_args()
    found = {}
    for name, (model, more) in cases().items():
        if given.only in name and given.fusion:
            if not more:  # steps of training have nodes that no model has
                print(json.dumps({name: measure_fusion(model, given.rounds)}), flush=True)
        elif given.only in name:
            found[name] = measure(model, more, given.rounds)
            print(json.dumps({name: found[name]}), flush=True)
    if given.fusion:
        return
    rows = [[name, each["groups"], each["before"], each["after"],
             f"{100 * (1 - each['after'] / each['before']):.1f} %",
             *(f"{value:.2f}" for value in each["times"])] for name, each in found.items()]
    print("\n".join([f"`./dev bench orders`; {report.machine()}.", "", *report.table(
        ["network", "kernels", "bytes between kernels", "with the order", "less", "ms",
         "with the order"], rows)]))


if __name__ == "__main__":
    main()
