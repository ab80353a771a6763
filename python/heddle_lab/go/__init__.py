"""heddle_lab.go: placement, schedule and fusion of whole graphs, searched and learned in a
simulator.

    graph = generate("gnmt", layers=2)               # or from_onnx("model.onnx", {"batch": 8})
    simulator = Simulator(graph, Machine(devices=4))
    space = Space(simulator, start=asap(simulator))
    episode = Episode(space)
    plan = Agent(seed=0).search(episode, steps=50)
    print(episode.first_seconds / episode.seconds)

After GO (Zhou et al., NeurIPS 2020).
SPDX-License-Identifier: Apache-2.0
"""

from .baselines import Space, anneal, asap, default_fusion, heft, metis, no_fusion
from .generators import FAMILIES, generate
from .graph import Builder, Graph
from .onnx_reader import from_onnx
from .simulator import Machine, Plan, Simulator, reward

__all__ = ["FAMILIES", "Agent", "Builder", "Episode", "Graph", "Machine", "Plan", "Simulator",
           "Space", "anneal", "asap", "default_fusion", "from_onnx", "fusion_plan", "generate",
           "heft", "lower_peak", "metis", "no_fusion", "pretrain", "reward", "search_fusion"]


def __getattr__(name):
    """Loads names that need libheddle on demand; all others do without it."""
    if name in ("Agent", "Episode", "pretrain"):
        from . import ppo

        return getattr(ppo, name)
    if name == "lower_peak":
        from .orders import lower_peak

        return lower_peak
    if name in ("fusion_plan", "search_fusion"):
        from . import fusions

        return getattr(fusions, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
