"""fusions: fusion bits of an ONNX model's graph as a plan that heddle.compile carries out.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from heddle import UsageError, compile

from .baselines import Space, anneal, no_fusion
from .graph import FUSIBLE, TRAITS
from .simulator import Machine, Plan, Simulator


def fusion_plan(model, graph, fuse, **options):
    """A plan with the fusion bits `fuse`, one for each node of from_onnx(model): a node whose bit
    is set is "joined" to all that read it, any other that could be fused stays "apart". Nodes that
    the compiler folds, or that nothing reads, are left to it. `options` are those of
    heddle.compile."""
    if graph.names is None:
        raise UsageError("the graph has no names of nodes; heddle_lab.go.from_onnx gives them")
    if len(fuse) != len(graph):
        raise UsageError(f"there are {len(fuse)} fusion bits, but the graph has {len(graph)} nodes")
    made = compile(model, load=False, **options).plan
    computed = {name for group in made["groups"] for name in group["ops"]}
    first, _ = graph.readers()
    fusion = {graph.names[node]: "joined" if fuse[node] else "apart"
              for node in range(len(graph))
              if TRAITS[graph.kind[node]] & FUSIBLE and first[node + 1] > first[node]
              and graph.names[node] in computed}
    return {"plan": 1, "model": made["model"], "fusion": fusion, "groups": []}


def search_fusion(graph, evaluations=4000, seed=0, machine=None):
    """Fusion bits that annealing finds for one device, and how much faster they are in the
    simulator than without any."""
    simulator = Simulator(graph, machine or Machine(1, memory_bytes=2.0**60))
    count = len(graph)
    start = Plan(np.zeros(count, np.int32), -np.arange(count, dtype=float), no_fusion(graph))
    space = Space(simulator, start, ("fusion",))
    plan, _ = anneal(space, evaluations, seed)
    return plan.fuse, simulator.seconds(start) / simulator.seconds(plan)
