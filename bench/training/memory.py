"""How long a training step takes in less memory: results that are computed twice, by --memory.

    ./dev bench memory [--only bert_base] [--batch 8] [--rounds 5]

Each network has a step that keeps all (--without recomputation), one as it comes, and steps with
shares of all that the first takes: weights, what the optimiser remembers, and what lies between
kernels. Each is held against the first by turns in one process: the ratio of median times, what the
report says of its memory, and the difference of the losses of the first steps. The time of a
compilation is told, too.
"""

import json
import statistics
import sys
import time

from bench.kernels import report
from bench.networks import trained as networks
from bench.training import worker
from bench.training.bench import exported

SHARES = (0.65, 0.5, 0.4)
BATCH = {"bert_base": 32}  # with 8 examples most of it are weights and what Adam remembers
STEPS = 3
BOTH = ("bert_base", "resnet50")  # the networks of a run that names none


def batch_of(network, given):
    """Examples of a step; None: the network's own number."""
    return given.batch or BATCH.get(network.name)


class Limited:
    """A step with a share of all that it takes; 1: all is kept, None: as it comes."""

    def __init__(self, network, given, share, need=None):
        from heddle.training import Trainer

        count = [batch_of(network, given)] if batch_of(network, given) else []
        _, batch = networks.seeded(network, *count)
        self.feeds = {name: value.numpy() for name, value in batch.items()}
        limit = int(share * need["total"]) if need else 0
        begin = time.perf_counter()
        self.trainer = Trainer(exported(network, *count), network.loss,
                               optimizer=network.optimizer, threads=given.threads,
                               learning_rate=worker.RATE[network.optimizer], cache=False,
                               recipe={"class_axis": network.class_axis}, memory=limit,
                               without="recomputation" if share == 1 else None)
        self.need = self.trainer.prepare(self.feeds)
        self.compiling = time.perf_counter() - begin
        self.share, self.seconds, self.losses = share, [], []
        # One thread's time is the processor's: other work on the machine is none of it.
        self.clock = time.process_time if given.threads == 1 else time.perf_counter

    def run(self):
        begin = self.clock()
        self.losses.append(self.trainer.step(self.feeds))
        self.seconds.append(self.clock() - begin)

    def row(self, ratio, difference):
        return {"share": self.share, "need": self.need, "ratio": ratio,
                "compiling": self.compiling, "difference": difference}


def compare(network, given):
    import heddle

    whole, refused = Limited(network, given, 1), []
    rows = [whole.row(1, 0)]
    for share in (None, *given.shares):
        try:
            step = Limited(network, given, share, whole.need if share else None)
        except heddle.RefusedError as error:
            refused.append({"share": share, "why": str(error)})
            continue
        first = len(whole.seconds)
        for _ in range(given.rounds + 1):  # the first is to warm up
            whole.run()
            step.run()
        times = [statistics.median(seconds) for seconds in (step.seconds[1:],
                                                            whole.seconds[first + 1:])]
        rows.append(step.row(times[0] / times[1],
                             max(abs(a - b) / abs(a)
                                 for a, b in zip(whole.losses[:STEPS], step.losses))))
    return {"network": network.name, "batch": batch_of(network, given), "threads": given.threads,
            "refused": refused, "steps": rows}


def rows_of(found):
    for each in found:
        base = each["steps"][0]["need"]
        for step in each["steps"]:
            need = step["need"]
            yield [each["network"], *(text for part in ("between_kernels", "total")
                                      for text in (f"{need[part] / 2**20:.0f}",
                                                   f"{need[part] / base[part]:.2f}")),
                   f"{step['ratio']:.3f}",
                   f"{step['difference']:.0e}", f"{step['compiling']:.1f}"]
        for refusal in each["refused"]:
            yield [each["network"], "refused", refusal["share"], "", "", "", "", ""]


def measure(given):
    for network in networks.NETWORKS:
        if given.only in network.name and (given.only or network.name in BOTH):
            found = compare(network, given)
            print(json.dumps(found), file=sys.stderr, flush=True)
            yield found


def main():
    options = report.arguments(__doc__, rounds=7, turn_ms=0)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--batch", type=int, help="examples of a step, if not the network's own")
    options.add_argument("--shares", type=float, nargs="+", default=SHARES)
    heads = ["network", "between kernels, MiB", "share", "in all, MiB", "share",
             "time, over that where all is kept", "losses differ by", "compiling, s"]
    report.tell("memory", options.parse_args(), measure,
                lambda found: report.table(heads, rows_of(found)))


if __name__ == "__main__":
    main()
