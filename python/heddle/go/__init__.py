"""heddle.go: placement, schedule and fusion of whole graphs, searched in a simulator.

    graph = generate("gnmt", layers=2)               # or from_onnx("model.onnx", {"batch": 8})
    simulator = Simulator(graph, Machine(devices=4))
    space = Space(simulator, start=asap(simulator))
    plan, seconds = anneal(space, evaluations=1000)

After GO (Zhou et al., NeurIPS 2020).
SPDX-License-Identifier: Apache-2.0
"""

from .baselines import Space, anneal, asap, default_fusion, heft, metis, no_fusion
from .generators import FAMILIES, generate
from .graph import Builder, Graph
from .onnx_reader import from_onnx
from .simulator import Machine, Plan, Simulator, reward

__all__ = ["FAMILIES", "Builder", "Graph", "Machine", "Plan", "Simulator",
           "Space", "anneal", "asap", "default_fusion", "from_onnx", "generate", "heft", "metis",
           "no_fusion", "reward"]
