"""Training steps beside JAX (XLA), torch.compile (Inductor) and PyTorch's eager mode.

    ./dev bench training [--only bert] [--threads 1 2] [--rounds 5]

Every engine has the same first weights, batch and optimiser (bench/networks/trained.py), in a
process of its own; only one of them runs at a time, in an order drawn anew each round. First all
have to agree on the losses of --steps steps, relative difference 1e-3; 1e-2 of `heddle-bf16`,
whose products are of bf16 (emulated, and slow, where the CPU has none). The figure is the median of
the seconds of a step over Heddle's; memory is the highest resident size that the training added to
the process. XLA's form is the exported ONNX graph, op by op, in one jitted step.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time

from bench.kernels import report
from bench.models import tool
from bench.networks import trained as networks

ENGINES = ("heddle", "xla", "inductor", "eager")
SHORT = "heddle-bf16"
OVER = {"xla": 1.37, "inductor": 1.25}
MODELS = tool.ROOT / "build" / "models" / "training"
TOLERANCE = {SHORT: 1e-2}  # else 1e-3


def exported(network, *count, folder=MODELS):
    """The network as an ONNX file that can be trained, for batches of `count`."""
    import torch

    path = folder / ("-".join([network.name, *map(str, count)]) + ".onnx")
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        module, batch = networks.seeded(network, *count)
        batch.pop("labels")
        written = path.with_suffix(".part")
        torch.onnx.export(module, tuple(batch.values()), str(written), dynamo=False,
                          input_names=list(batch), output_names=["output"], opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        os.replace(written, path)
    return path


class Engine:
    def __init__(self, name, network, threads, path):
        self.name = name
        flags = (f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} "
                 f"intra_op_parallelism_threads={threads}")
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "XLA_FLAGS": flags,
                       "PYTHONPATH": os.pathsep.join([str(tool.ROOT), str(tool.ROOT / "python")])}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.training.worker", name, network.name, str(threads),
             str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment, cwd=tool.ROOT)

    def ask(self, **what):
        print(json.dumps(what), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "it ended"}

    def end(self):
        self.process.kill()
        self.process.wait()


def compare(network, threads, options):
    """Losses, seconds and bytes of one network."""
    path = exported(network)
    engines = [Engine(name, network, threads, path) for name in options.engines]
    found = {"network": network.name, "threads": threads, "errors": {}}
    try:
        losses = {}
        for engine in list(engines):
            told = engine.ask(do="losses", steps=options.steps)
            if "error" in told:
                found["errors"][engine.name] = told["error"]
                engines.remove(engine)
                engine.end()
                continue
            losses[engine.name] = told["losses"]
            found.setdefault("first", {})[engine.name] = told["first"]
        found["losses"] = losses
        found["agree"] = agree(losses)
        turns = by_turns(engines, options)
        found["seconds"] = {name: statistics.median(times) for name, times in turns.items()}
        found["bytes"] = {engine.name: engine.ask(do="memory").get("bytes") for engine in engines}
    finally:
        for engine in engines:
            engine.end()
    return found


def agree(losses):
    """Tells if all losses are near those of the first engine."""
    first = next(iter(losses.values()))
    return all(abs(a - b) <= TOLERANCE.get(name, 1e-3) * abs(a) for name, other in losses.items()
               for a, b in zip(first, other))


def by_turns(engines, options):
    turns, shuffle = {engine.name: [] for engine in engines}, random.Random(options.rounds)
    for _ in range(options.rounds):
        order = list(engines)
        shuffle.shuffle(order)
        for engine in order:
            time.sleep(0.2)  # idle threads of the one before may spin for a while
            engine.ask(do="time", steps=1)
            turns[engine.name] += engine.ask(do="time", steps=options.runs)["seconds"]
    return turns


def rows_of(found):
    for each in found:
        ours, memory = each["seconds"].get("heddle"), each["bytes"].get("heddle")
        row = [each["network"], each["threads"],
               f"{ours * 1e3:.0f}" if ours else each["errors"].get("heddle", "none")]
        for name in (*ENGINES[1:], SHORT):
            seconds = each["seconds"].get(name)
            row.append(f"{seconds / ours:.2f}" if seconds and ours else
                       each["errors"].get(name, "none")[:60])
        for name in (*ENGINES, SHORT):
            held = each["bytes"].get(name)
            row.append(f"{held / 2**20:.0f}" if held else "none")
        yield [*row, "yes" if each["agree"] else "NO"]


def summaries(found):
    for name in ENGINES[1:]:
        ratios = [{"ratio": each["seconds"][name] / each["seconds"]["heddle"]} for each in found
                  if name in each["seconds"] and "heddle" in each["seconds"] and each["agree"]]
        goal = f" (goal: {OVER[name]})" if name in OVER else ""
        yield f"{name} / Heddle{goal}: {report.summary(ratios)}."


def lines(found):
    heads = ["network", "threads", "Heddle, ms",
             *(f"{name} / Heddle" for name in (*ENGINES[1:], SHORT)),
             *(f"{name}, MiB" for name in (*ENGINES, SHORT)), "losses agree"]
    return [*report.table(heads, rows_of(found)), "", *summaries(found)]


def measure(given):
    for threads in given.threads:
        for network in networks.NETWORKS:
            if given.only in network.name:
                found = compare(network, threads, given)
                print(json.dumps(found), file=sys.stderr, flush=True)
                yield found


def main():
    options = report.arguments(__doc__, rounds=5, turn_ms=0)
    options.add_argument("--threads", type=int, nargs="+", default=[1])
    options.add_argument("--steps", type=int, default=4, help="whose losses have to agree")
    options.add_argument("--runs", type=int, default=3, help="steps of a turn")
    options.add_argument("--engines", nargs="+", default=ENGINES, choices=(*ENGINES, SHORT))
    report.tell("training", options.parse_args(), measure, lines)


if __name__ == "__main__":
    main()
