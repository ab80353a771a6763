"""PluS's Table 1 (Wu et al., USENIX ATC 2025): ops of the graph -> kernels that are run.

    ./dev bench fusion [--models NAME...] [--opset N...] [--batch N] [--inductor]

A line a model and opset: the nodes of the ONNX graph that compute something; Heddle's groups; its
kernels, which are groups, but for those of a region, which are one; its launches, since a kernel
may take several (checks of indices, packing of an operand that is computed); and what PluS reports.
`--inductor` adds the kernels that TorchInductor makes of the same module: generated ones and calls
of libraries.
"""

import argparse
import json
import re
import sys

import onnx

from bench.models import tool
from bench.networks import fixed as networks

PLUS = {"bert": (635, 87), "albert": (637, 88), "gpt2": (630, 87), "t5": (1460, 220),
        "vit": (655, 87)}
SHAPE_OPS = {"Constant", "Identity"}


def node_count(path):
    """Nodes of the graph and of its subgraphs, but for constants and copies."""
    def count(graph):
        return sum(node.op_type not in SHAPE_OPS for node in graph.node) + sum(
            count(attribute.g) for node in graph.node for attribute in node.attribute)

    return count(onnx.load(path, load_external_data=False).graph)


def plan_of(path, without, threads, *options):
    """Counts of a model's plan without some layers of the partitioner: groups, kernels, which are
    groups, but for those of a region, which are one, launches, and the bytes that kernels read and
    write in a run, weights apart."""
    layers = ("--without", without) if without else ()
    done = tool.run_heddle("explain", path, "--json", "--threads", threads, *layers, *options)
    if done.status:
        sys.exit(done.errors.strip())
    told = json.loads(done.output)
    groups = told["groups"]
    regions = [group["region"] for group in groups if group.get("region") is not None]
    return {"groups": len(groups), "kernels": len(groups) - len(regions) + len(set(regions)),
            "launches": told["launches"],
            "moved": sum(group["read_bytes"] + group["written_bytes"] - group["weight_bytes"]
                         for group in groups)}


def inductor_kernels(name, batch):
    """Kernels that TorchInductor's program calls in one forward pass: generated ones and those of
    libraries."""
    import torch
    from torch._inductor.utils import run_and_get_code

    network, inputs, _ = networks.make(name, batch)
    torch._dynamo.reset()
    with torch.no_grad():
        _, sources = run_and_get_code(torch.compile(network, backend="inductor"), *inputs)
    kernel = re.compile(r"\s+(?:\w+ = )?(?:cpp_fused|extern_kernels\.|torch\.ops\.mkldnn)[\w.]*\(")
    return sum(bool(kernel.match(line)) for source in sources
               for line in source[source.index("def call("):].splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", choices=networks.NETWORKS,
                        default=list(networks.NETWORKS))
    parser.add_argument("--opset", nargs="*", type=int, default=[17, 20])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--inductor", action="store_true", help="count TorchInductor's kernels too")
    arguments = parser.parse_args()
    print(f"{'model':8}{'opset':>6}{'ops':>7}{'groups':>8}{'kernels':>9}{'launches':>10}"
          f"{'PluS':>6}{'Inductor':>10}")
    for name in arguments.models:
        counted = inductor_kernels(name, arguments.batch) if arguments.inductor else "-"
        for opset in arguments.opset:
            path = networks.export(name, arguments.batch, opset)
            plan = plan_of(path, "", 1)
            print(f"{name:8}{opset:6}{node_count(path):7}{plan['groups']:8}"
                  f"{plan['kernels']:9}{plan['launches']:10}{PLUS[name][1]:6}"
                  f"{counted:>10}", flush=True)


if __name__ == "__main__":
    main()
