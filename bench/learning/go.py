"""Plans for several devices in the simulator: the learned policy beside HEFT, METIS, the default
and simulated annealing.

    ./dev bench go [--tasks placement joint] [--starts default metis heft] [--policies 2]
                   [--searches 3] [--only gnmt] [--last]

Two policies for each choice of tasks are pre-trained, each on small graphs of three families, and
search plans for large graphs of the three other families, which they have never seen: without
learning, and fine-tuned in 25 steps. A policy that has learned nothing before searches too, and one
that never learns, whose plans show what sampling by clusters brings alone. All searches from one
start have as many evaluations of the simulator as the fine-tuned policy; annealing has 20 times as
many, too, when all others are done. Times of searches are CPU seconds of one thread. What is found
is kept in build/bench/go, so a run that was interrupted goes on, and `--last` tells what there is
by now. A complete run takes about 35 minutes of CPU time.
"""

import argparse
import itertools
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
from heddle_lab.go import (Agent, Episode, Machine, Simulator, Space, anneal, asap, default_fusion,
                           generate, heft, metis, no_fusion, pretrain)
from heddle_lab.go.policy import SAMPLES, network
from heddle.library import UsageError

STORE = tool.RESULTS / ("go-quick" if "--quick" in sys.argv else "go")
TASKS = {"placement": ("placement",), "joint": Space.TASKS}
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
# (family, knobs, devices), as in the paper's Table 1 but for fewer steps of the recurrent ones.
LARGE = [
    ("rnnlm", {"layers": 2}, 2), ("rnnlm", {"layers": 4, "steps": 10}, 4),
    ("rnnlm", {"layers": 8, "steps": 5}, 8),
    ("gnmt", {"layers": 2, "steps": 10}, 2), ("gnmt", {"layers": 4, "steps": 5}, 4),
    ("gnmt", {"layers": 8, "steps": 3}, 8),
    ("transformer_xl", {"layers": 2}, 2), ("transformer_xl", {"layers": 4}, 4),
    ("transformer_xl", {"layers": 8}, 8),
    ("inception", {}, 2), ("inception", {"batch": 64}, 2), ("amoebanet", {}, 4),
    ("wavenet", {}, 2), ("wavenet", {"stacks": 4}, 4),
]
HUGE = ("gnmt", {"layers": 8, "steps": 104}, 8)
TIMES = 20  # as many evaluations for the second annealing


def simulator_of(family, knobs, devices, **machine):
    return Simulator(generate(family, **knobs), Machine(devices, **machine))


def name_of(family, knobs, devices):
    batch = f"b{knobs['batch']}" if "batch" in knobs else ""
    return f"{generate(family, **knobs).name}{batch}x{devices}"


STARTS = {"default": asap, "metis": metis,
          "heft": lambda simulator: heft(simulator, with_links=True)}


def start_of(simulator, start):
    """A plan to begin with; HEFT's where METIS is not installed, or has not the memory."""
    try:
        plan = STARTS[start](simulator)
        if simulator.seconds(plan) < math.inf:
            return plan
    except UsageError as error:
        print(f"{error}; searches begin with HEFT", file=sys.stderr)
    return STARTS["heft"](simulator)


def kept(name, make):
    """Returns what `make` gives, from the last run if it was kept."""
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
                spaces += [Space(simulator, start_of(simulator, start), TASKS[tasks])
                           for start in ("default", "metis")]
    agent = agent_of(tasks, seed)

    def note(step, mean):
        print(f"  {tasks}, {fold}, seed {seed}: step {step}, {mean:.3f} times faster",
              file=sys.stderr, flush=True)

    pretrain(agent, spaces, given.steps, report=note)
    path.parent.mkdir(parents=True, exist_ok=True)
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
    """All searches of one graph for one choice of tasks, from one start."""

    def __init__(self, tasks, start, case, given):
        self.tasks, self.given = tasks, given
        family = case[0]
        self.simulator = simulator_of(*case)
        self.space = Space(self.simulator, start_of(self.simulator, start), TASKS[tasks])
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
        found = {"tuned": self.policy(weights, seed, True)}
        found["annealing"] = self.anneal(seed, found["tuned"]["evaluations"])
        if search == 0:
            found["frozen"] = self.policy(weights, seed, False)
        if seed == 0:
            found["untrained"] = self.policy(None, seed, True, 1e-3)
            found["unlearned"] = self.policy(None, seed, False)
        return found

    def longer(self, found):
        """Annealing with TIMES as many evaluations."""
        return self.anneal(0, TIMES * found["tuned"]["evaluations"])


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
POLICIES = ("tuned", "frozen", "untrained", "unlearned")
OTHERS = {"annealing": "annealing, as many evaluations",
          "annealing20": f"annealing, {TIMES} times as many", "metis": "METIS",
          "metis, all fused": "METIS, all fused", "heft": "HEFT",
          "heft with links": "HEFT with links", "default": "the default",
          "default, no fusion": "the default, no fusion"}


def table_of_searches(found):
    kinds = [kind for kind in KINDS if any(kind in runs[0] for runs in found.values())]
    rows = []
    for name, runs in found.items():
        rows.append([name, f"{runs[0]['tuned']['curve'][0][1] * 1e3:.2f}",
                     *(spread([run[kind]["seconds"] for run in runs if kind in run])
                       for kind in kinds)])
    return report.table(["graph x devices", "start", *(KINDS[kind] for kind in kinds)], rows)


def after_one_step(run):
    """Seconds that a policy which has not seen the graph finds in its first step, unlearned."""
    return min(seconds for count, seconds in run["tuned"]["curve"] if count <= 1 + SAMPLES)


def table_of_gains(title, found, base):
    """Geometric means over graphs of how much less time the policies' plans take. A policy is
    compared with annealing in the searches that both ran."""
    def against(kind, other):
        ratios = []
        for name, runs in found.items():
            runs = [run for run in runs if kind in run or kind == "zero-shot"]
            if other in KINDS:
                runs = [run for run in runs if other in run]
            ours = [after_one_step(run) if kind == "zero-shot" else run[kind]["seconds"]
                    for run in runs]
            theirs = [run[other]["seconds"] for run in runs] if other in KINDS else \
                [base[name][other] or math.inf]
            if ours and statistics.mean(theirs) < math.inf:
                ratios.append(statistics.mean(ours) / statistics.mean(theirs))
        return gain(report.geometric_mean(ratios), 1) if ratios else "-"

    rows = [[text, *(against(kind, other) for kind in (*POLICIES, "zero-shot"))]
            for other, text in OTHERS.items()]
    rows = [row for row in rows if set(row[1:]) != {"-"}]
    rows += [[text, *(needed(found, kind, what) for kind in POLICIES), ""] for what, text in (
        ("evaluations", "evaluations until annealing's quality"),
        ("cpu", "CPU time until annealing's quality"))]
    return report.table([title, *(KINDS[kind] for kind in POLICIES), "policy, first step"], rows)


def needed(found, kind, what):
    """How many times less of something a policy needs to be as good as annealing with as many
    evaluations: the geometric mean of all searches that were."""
    ratios, never = [], 0
    for run in (run for runs in found.values() for run in runs if kind in run):
        ours, theirs = run[kind], run["annealing"]
        count = first_within(ours["curve"], theirs["seconds"])
        if count is None:
            never += 1
        else:
            ratios.append(theirs[what] / (ours[what] * count / ours["evaluations"]))
    if not ratios:
        return "-"
    return (f"{report.geometric_mean(ratios):.1f} times less"
            + f" ({never} of {never + len(ratios)} never)" * (never > 0))


def longer(found):
    """A line on annealing with many more evaluations."""
    runs = [run for runs in found.values() for run in runs if "annealing20" in run]
    if not runs:
        return "Annealing with more evaluations was not run."
    reached = [first_within(run["annealing20"]["curve"], run["tuned"]["seconds"]) for run in runs]
    ratios = [count / run["tuned"]["evaluations"] for count, run in zip(reached, runs) if count]
    return (f"Annealing reaches what the fine-tuned policy found in {len(ratios)} of "
            f"{len(reached)} searches of {TIMES} times as many evaluations"
            + (f", there after {statistics.median(ratios):.1f} times as many (median)." if ratios
               else "."))


def arguments():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    options.add_argument("--starts", nargs="+", default=["default", "metis"], choices=list(STARTS),
                         help="plans that searches begin with")
    options.add_argument("--only", default="", help="graphs whose name has this in it")
    options.add_argument("--policies", type=int, default=2, help="that are pre-trained")
    options.add_argument("--searches", type=int, default=3, help="with each policy")
    options.add_argument("--steps", type=int, default=1200, help="of pre-training")
    options.add_argument("--graphs", type=int, default=2, help="of a family to train on")
    options.add_argument("--fine-tune", type=int, default=25, help="steps of a search")
    options.add_argument("--huge-steps", type=int, default=3, help="for the graph of 80,000 nodes")
    options.add_argument("--last", action="store_true", help="only tell what was kept")
    options.add_argument("--quick", action="store_true", help="the smallest run; says nothing")
    given = options.parse_args()
    if given.quick:
        given.tasks, given.only = ["joint"], "wavenet-2x9x2"
        given.policies = given.searches = given.graphs = given.huge_steps = 1
        given.steps, given.fine_tune = 6, 2
    return given


def found_searches(cases, given):
    """Runs by tasks and start, and by graph; the longer searches last."""
    found, seeds = {}, list(itertools.product(range(given.searches), range(given.policies)))
    combinations = list(itertools.product(given.tasks, given.starts))
    for (tasks, start), (search, policy), name in itertools.product(combinations, seeds, cases):
        key = f"{tasks}-{start}-{name}-{policy}-{search}-{given.steps}-{given.fine_tune}"
        if given.last and not (STORE / f"{key}.json").exists():
            continue
        run = kept(key, lambda: Searches(tasks, start, cases[name], given).run(policy, search))
        found.setdefault((tasks, start), {}).setdefault(name, []).append(run)
        print(key, {kind: round(run[kind]["seconds"] * 1e3, 2) for kind in run},
              file=sys.stderr, flush=True)
    for (tasks, start), graphs in found.items():
        for name, runs in graphs.items():
            key = f"{tasks}-{start}-{name}-longer-{given.fine_tune}"
            if not given.last or (STORE / f"{key}.json").exists():
                runs[0]["annealing20"] = kept(key, lambda: Searches(
                    tasks, start, cases[name], given).longer(runs[0]))
    return found


def main():
    given = arguments()
    if given.quick:
        shutil.rmtree(STORE, ignore_errors=True)
    cases = {name_of(*case): case for case in LARGE if given.only in name_of(*case)}
    base = {name: kept(f"baselines-{name}", lambda: baselines(case))
            for name, case in cases.items()}
    lines = [f"`./dev bench go`, {given.policies} policies pre-trained in {given.steps} steps, "
             f"{given.searches} searches with each; {report.machine()}.", "",
             "Simulated milliseconds of a step of training:", "", *table_of_baselines(base)]
    for (tasks, start), found in found_searches(cases, given).items():
        title = f"{tasks}, from {start}"
        lines += ["", f"Search of {title}, mean [least..greatest]:", "",
                  *table_of_searches(found), "",
                  *table_of_gains(f"{title}: less time than", found, base), "", longer(found)]
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
