"""Plans for several devices in the simulator: the learned policy beside HEFT, METIS, the default
and simulated annealing.

    ./dev bench go [--tasks joint placement] [--policies 2] [--searches 3] [--only gnmt] [--last]

Two policies are pre-trained, each on small graphs of three families, and search plans for large
graphs of the three other families, which they have never seen: without learning, and fine-tuned in
50 steps. A policy that has learned nothing before searches too, and one that never learns, whose
plans show what sampling by clusters and merging bring alone. All searches begin with the plan of
METIS and have as many evaluations of the simulator as the fine-tuned policy; annealing also has 20
times as many. Times of searches are CPU seconds of one thread. What is found is kept in
build/bench/go, so a run that was interrupted goes on. One policy with six searches takes about 15
minutes of CPU time for both choices of tasks.
"""

import argparse
import json
import math
import shutil
import statistics
import sys
import time

import numpy as np
from onnx import numpy_helper

from bench.kernels import report
from bench.models import tool
from heddle.go import (
    Agent,
    Episode,
    Machine,
    Simulator,
    Space,
    anneal,
    asap,
    default_fusion,
    generate,
    heft,
    metis,
    no_fusion,
    pretrain,
)
from heddle.go.policy import network
from heddle.library import UsageError

STORE = tool.RESULTS / ("go-quick" if "--quick" in sys.argv else "go")
TASKS = {"joint": Space.TASKS, "placement": ("placement",)}
FOLDS = {"sequences": ("rnnlm", "transformer_xl", "inception"),
         "branches": ("gnmt", "amoebanet", "wavenet")}
SMALL = {
    "rnnlm": [{"layers": 2, "steps": 5}, {"layers": 4, "steps": 3}],
    "transformer_xl": [{"layers": 2}, {"layers": 3, "segments": 1}],
    "inception": [{"modules": 3}, {"modules": 4, "width": 96}],
    "gnmt": [{"layers": 2, "steps": 2}, {"layers": 3, "steps": 2}],
    "amoebanet": [{"cells": 2}, {"cells": 2, "filters": 192}],
    "wavenet": [{"stacks": 1, "layers": 8}, {"stacks": 1, "layers": 6, "channels": 192}],
}
# (family, knobs, devices), as in the paper's Table 1 but for steps of the recurrent ones.
LARGE = [
    ("rnnlm", {"layers": 2}, 2), ("rnnlm", {"layers": 4}, 4),
    ("transformer_xl", {"layers": 4}, 4), ("inception", {}, 2),
    ("gnmt", {"layers": 2, "steps": 10}, 2), ("amoebanet", {}, 4),
    ("wavenet", {}, 2), ("wavenet", {"stacks": 4}, 4),
]
LARGER = [("transformer_xl", {"layers": 8}, 8), ("inception", {"batch": 64, "width": 96}, 4),
          ("gnmt", {"layers": 4, "steps": 20}, 4), ("rnnlm", {"layers": 8}, 8)]
HUGE = ("gnmt", {"layers": 8, "steps": 104}, 8)
TIMES = 20  # as many evaluations for the second annealing


def simulator_of(family, knobs, devices, **machine):
    return Simulator(generate(family, **knobs), Machine(devices, **machine))


def name_of(family, knobs, devices):
    return f"{generate(family, **knobs).name}x{devices}"


def start_of(simulator):
    """METIS's plan; where METIS is not installed, or its plan has not the memory, HEFT's."""
    try:
        plan = metis(simulator)
        if simulator.seconds(plan) < math.inf:
            return plan
    except UsageError as error:
        print(f"{error}; searches begin with HEFT", file=sys.stderr)
    return heft(simulator, with_links=True)


def kept(name, make):
    """What `make` returns, from the last run if it was kept."""
    path = STORE / f"{name}.json"
    if not path.exists():
        found = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def trained(tasks, fold, seed, given):
    """The weights of a policy that is pre-trained on half of the families."""
    path = STORE / f"policy-{tasks}-{fold}-{seed}-{given.steps}.npz"
    if path.exists():
        return {name: array for name, array in np.load(path).items()}
    spaces = []
    for family in FOLDS[fold]:
        for knobs in SMALL[family][:given.graphs]:
            for devices in (2, 4):
                simulator = simulator_of(family, knobs, devices)
                spaces.append(Space(simulator, start_of(simulator), TASKS[tasks]))
    agent, curve, begin = agent_of(tasks, seed), [], time.process_time()

    def note(step, mean):
        curve.append((step, mean, time.process_time() - begin))
        print(f"  {tasks}, {fold}, seed {seed}: step {step}, {mean:.3f} times faster",
              file=sys.stderr, flush=True)

    pretrain(agent, spaces, given.steps, report=note)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps(curve) + "\n", encoding="utf-8")
    np.savez(path, **agent.weights())
    return agent.weights()


AGENTS = {}


def agent_of(tasks, seed, rate=1e-3):
    """A policy that has learned nothing: that of a choice of tasks is compiled once."""
    agent = AGENTS.setdefault(tasks, Agent(TASKS[tasks]))
    names = agent.trainer.weights
    begun = network(agent.tasks, True, seed).graph.initializer
    agent.load({tensor.name: numpy_helper.to_array(tensor) for tensor in begun
                if tensor.name in names})
    agent.random, agent.trainer.learning_rate = np.random.default_rng(seed), lambda _: rate
    return agent


class Searches:
    """All searches of one graph for one choice of tasks."""

    def __init__(self, tasks, case, given):
        self.tasks, self.given = tasks, given
        family = case[0]
        self.simulator = simulator_of(*case)
        self.space = Space(self.simulator, start_of(self.simulator), TASKS[tasks])
        self.fold = next(fold for fold, families in FOLDS.items() if family not in families)

    def policy(self, weights, seed, learn, rate=1e-4):
        """A search by the policy: the seconds of the plan, and how it was found."""
        agent = agent_of(self.tasks, 100 + seed, rate)
        if weights is not None:
            agent.load(weights)
        agent.random = np.random.default_rng(1000 + seed)
        agent.logs(Episode(self.space))  # compiles the policy
        begin = time.process_time()
        episode = Episode(self.space)
        agent.search(episode, self.given.fine_tune, learn)
        return {"seconds": episode.seconds, "evaluations": episode.evaluations,
                "curve": episode.curve, "cpu": time.process_time() - begin}

    def anneal(self, seed, evaluations):
        begin, curve = time.process_time(), []
        _, seconds = anneal(self.space, evaluations, seed, curve=curve)
        return {"seconds": seconds, "evaluations": evaluations, "curve": curve,
                "cpu": time.process_time() - begin}

    def run(self, policy, search):
        weights = trained(self.tasks, self.fold, policy, self.given)
        seed = policy * 100 + search
        found = {"tuned": self.policy(weights, seed, True),
                 "frozen": self.policy(weights, seed, False)}
        count = found["tuned"]["evaluations"]
        found["annealing"] = self.anneal(seed, count)
        if search == 0:  # what takes longest, once per policy
            found["untrained"] = self.policy(None, seed, True, 1e-3)
            found["unlearned"] = self.policy(None, seed, False)
            found["annealing20"] = self.anneal(seed, TIMES * count)
        return found


def baselines(case):
    """Seconds of plans that are not searched, and of one without fusion on one device."""
    simulator = simulator_of(*case)
    graph, fuse = simulator.graph, default_fusion(simulator.graph)
    found = {"nodes": len(graph), "bound": simulator.lower_bound(fuse)}
    makers = {"default": lambda: asap(simulator), "default, no fusion":
              lambda: asap(simulator, no_fusion(graph)), "heft": lambda: heft(simulator),
              "heft with links": lambda: heft(simulator, with_links=True),
              "metis": lambda: metis(simulator),
              "metis, all fused": lambda: metis(simulator, np.ones(len(graph)))}
    for name, make in makers.items():
        try:
            found[name] = simulator.seconds(make())
        except UsageError:
            found[name] = None
    return found


def huge(given):
    """Segments of a graph of 80,000 nodes: seconds of a step of training, and memory."""
    import resource

    family, knobs, devices = HUGE if not given.quick else ("gnmt", {"layers": 2, "steps": 10}, 8)
    simulator = simulator_of(family, knobs, devices, memory_bytes=64 * 2**30)
    space = Space(simulator, heft(simulator, with_links=True))
    begin = time.process_time()
    episode = Episode(space)
    prepared = time.process_time() - begin
    agent = agent_of("joint", 0)
    agent.logs(episode)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    agent.search(episode, given.huge_steps)
    step = (time.process_time() - begin) / given.huge_steps
    begin = time.process_time()
    simulator.seconds(space.start)
    return {"graph": simulator.graph.name, "nodes": len(simulator.graph),
            "chunks": len(episode.chunks), "prepare": prepared, "step": step,
            "simulation": time.process_time() - begin,
            "start": episode.first_seconds, "found": episode.seconds,
            "evaluations": episode.evaluations, "model_bytes": agent.trainer.memory,
            "growth_bytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024}


# Tables.


def spread(values, unit=1e3, digits=2):
    """Mean, and the least and the greatest."""
    values = [value * unit for value in values]
    if not values:
        return "-"
    mean = statistics.mean(values)
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} [{min(values):.{digits}f}..{max(values):.{digits}f}]"


def gain(ours, theirs):
    """How much less time ours takes, in per cent of theirs, as the paper counts."""
    return f"{100 * (1 - ours / theirs):.1f} %"


def first_within(curve, seconds):
    """Evaluations until a search found a plan that is as fast, or None."""
    return next((count for count, found in curve if found <= seconds * (1 + 1e-9)), None)


def table_of_baselines(cases):
    names = ["default, no fusion", "default", "heft", "heft with links", "metis",
             "metis, all fused"]
    rows = [[name, each["nodes"], f"{each['bound'] * 1e3:.2f}",
             *(f"{each[key] * 1e3:.2f}" if each[key] and each[key] < math.inf else
               "not installed" if each[key] is None else "out of memory" for key in names)]
            for name, each in cases.items()]
    return report.table(["graph x devices", "nodes", "lower bound", *names], rows)


KINDS = {"tuned": "policy, fine-tuned", "frozen": "policy, held out", "untrained": "policy, new",
         "unlearned": "policy, never learns",
         "annealing": "annealing", "annealing20": f"annealing, {TIMES} times"}


def table_of_searches(found):
    rows = []
    for name, runs in found.items():
        rows.append([name, f"{runs[0]['tuned']['curve'][0][1] * 1e3:.2f}",
                     *(spread([run[kind]["seconds"] for run in runs if kind in run])
                       for kind in KINDS)])
    return report.table(["graph x devices", "start", *KINDS.values()], rows)


def summary(tasks, found, base):
    """Geometric means over graphs of how much less time the policies' plans take."""
    def mean(kind, name):
        values = [run[kind]["seconds"] for run in found[name] if kind in run]
        return statistics.mean(values) if values else None

    def against(kind, other):
        ratios = []
        for name in found:
            ours = mean(kind, name)
            value = base[name][other] if other in base[name] else mean(other, name)
            if ours and value and value < math.inf:
                ratios.append(ours / value)
        return gain(report.geometric_mean(ratios), 1) if ratios else "-"

    others = {"annealing": "annealing, as many evaluations",
              "annealing20": f"annealing, {TIMES} times as many", "metis": "METIS",
              "metis, all fused": "METIS, all fused", "heft": "HEFT",
              "heft with links": "HEFT with links", "default": "the default",
              "default, no fusion": "the default, no fusion"}
    kinds = ("tuned", "frozen", "untrained", "unlearned")
    rows = [[text, *(against(kind, other) for kind in kinds)] for other, text in others.items()]
    lines = report.table([f"{tasks}: less time than", *(KINDS[kind] for kind in kinds)], rows)
    evaluations, cpu, never = [], [], 0
    for runs in found.values():
        for run in runs:
            target = run["annealing"]["seconds"]
            ours = first_within(run["tuned"]["curve"], target)
            if ours is None:
                never += 1
                continue
            evaluations.append(run["annealing"]["evaluations"] / ours)
            cpu.append(run["annealing"]["cpu"] / (run["tuned"]["cpu"] * ours
                                                  / run["tuned"]["evaluations"]))
    if evaluations:
        lines += ["", "To be as good as annealing with as many evaluations, the fine-tuned policy "
                  f"needs {report.geometric_mean(evaluations):.1f} times fewer evaluations and "
                  f"{report.geometric_mean(cpu):.2f} times less CPU time of this simulator "
                  f"(geometric means of {len(cpu)} searches; {never} never were)."]
    longer = [run for runs in found.values() for run in runs if "annealing20" in run]
    reached = [first_within(run["annealing20"]["curve"], run["tuned"]["seconds"])
               for run in longer]
    ratios = [count / run["tuned"]["evaluations"] for count, run in zip(reached, longer) if count]
    lines += ["", f"Annealing reaches what the fine-tuned policy found in {len(ratios)} of "
              f"{len(reached)} searches of {TIMES} times as many evaluations"
              + (f", there after {statistics.median(ratios):.1f} times as many (median)."
                 if ratios else ".")]
    return lines


def arguments():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    options.add_argument("--only", default="", help="graphs whose name has this in it")
    options.add_argument("--policies", type=int, default=2, help="that are pre-trained")
    options.add_argument("--searches", type=int, default=3, help="with each policy")
    options.add_argument("--steps", type=int, default=1200, help="of pre-training")
    options.add_argument("--graphs", type=int, default=2, help="of a family to train on")
    options.add_argument("--fine-tune", type=int, default=50, help="steps of a search")
    options.add_argument("--huge-steps", type=int, default=3, help="for the graph of 80,000 nodes")
    options.add_argument("--larger", action="store_true", help="four larger graphs, too")
    options.add_argument("--last", action="store_true", help="only tell what was kept")
    options.add_argument("--quick", action="store_true", help="the smallest run; says nothing")
    given = options.parse_args()
    if given.quick:
        given.tasks, given.only = ["joint"], "wavenet-2x9x2"
        given.policies = given.searches = given.graphs = given.huge_steps = 1
        given.steps, given.fine_tune = 6, 2
    return given


def found_searches(tasks, cases, given):
    """Runs of each graph: first one of every graph, then the next."""
    found = {}
    for policy in range(given.policies):
        for search in range(given.searches):
            for name, case in cases.items():
                key = f"{tasks}-{name}-{policy}-{search}-{given.steps}-{given.fine_tune}"
                if given.last and not (STORE / f"{key}.json").exists():
                    continue
                run = kept(key, lambda: Searches(tasks, case, given).run(policy, search))
                found.setdefault(name, []).append(run)
                print(key, {kind: round(run[kind]["seconds"] * 1e3, 2) for kind in run},
                      file=sys.stderr, flush=True)
    return found


def main():
    given = arguments()
    if given.quick:
        shutil.rmtree(STORE, ignore_errors=True)
    cases = {name_of(*case): case for case in LARGE + LARGER * given.larger
             if given.only in name_of(*case)}
    base = {name: kept(f"baselines-{name}", lambda: baselines(case))
            for name, case in cases.items()}
    lines = [f"`./dev bench go`, {given.policies} policies pre-trained in {given.steps} steps, "
             f"{given.searches} searches with each; {report.machine()}.", "",
             "Simulated milliseconds of a step of training:", "", *table_of_baselines(base)]
    for tasks in given.tasks:
        found = found_searches(tasks, cases, given)
        if found:
            lines += ["", f"Search of {tasks}, mean [least..greatest]:", "",
                      *table_of_searches(found), "", *summary(tasks, found, base)]
    if given.quick or not given.only:
        each = kept("huge" + "-quick" * given.quick, lambda: huge(given))
        lines += ["", f"{each['graph']}, {each['nodes']} nodes in {each['chunks']} chunks: "
                  f"{each['prepare']:.1f} s to prepare, {each['step']:.1f} s a step, of which an "
                  f"evaluation takes {each['simulation'] * 1e3:.0f} ms; memory grows by "
                  f"{each['growth_bytes'] / 2**20:.0f} MiB over the first forward pass. "
                  f"{each['evaluations']} evaluations: {each['start'] * 1e3:.0f} ms become "
                  f"{each['found'] * 1e3:.0f} ms."]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
