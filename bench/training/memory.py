"""How long a training step takes in less memory: results that are computed twice, by --memory.

    ./dev bench memory [--only bert_base] [--rounds 5] [--picture docs/guide/memory.png]

Of each network a step without a limit and steps with less between the kernels, by turns in one
process: the ratio of median times, what the report says lies between kernels, and the difference of
the losses of the first steps. The time of a compilation is told, too.
"""

import json
import statistics
import sys
import time

from bench.kernels import report
from bench.training import networks, worker
from bench.training.bench import exported

SHARES = (0.75, 0.5, 0.35, 0.25)
STEPS = 3


class Limited:
    """A step with a share of what lies between kernels; 1: without a limit."""

    def __init__(self, network, path, threads, share, need):
        from heddle.training import Trainer

        _, batch = networks.seeded(network)
        self.feeds = {name: value.numpy() for name, value in batch.items()}
        limit = 0 if share == 1 else need["total"] - int((1 - share) * need["between_kernels"])
        begin = time.perf_counter()
        self.trainer = Trainer(path, network.loss, optimizer=network.optimizer, threads=threads,
                               learning_rate=worker.RATE[network.optimizer], cache=False,
                               recipe={"class_axis": network.class_axis}, memory=limit)
        self.need = self.trainer.prepare(self.feeds)
        self.compiling = time.perf_counter() - begin
        self.share, self.seconds, self.losses = share, [], []

    def run(self):
        begin = time.perf_counter()
        self.losses.append(self.trainer.step(self.feeds))
        self.seconds.append(time.perf_counter() - begin)


def compare(network, given):
    import heddle

    path = exported(network)
    steps, refused = [Limited(network, path, given.threads, 1, None)], []
    whole = steps[0]
    for share in given.shares:
        try:
            steps.append(Limited(network, path, given.threads, share, whole.need))
        except heddle.RefusedError as error:
            refused.append({"share": share, "why": str(error)})
    for _ in range(given.rounds + STEPS):
        for step in steps:
            step.run()
    time_of = {step.share: statistics.median(step.seconds[STEPS:]) for step in steps}
    return {"network": network.name, "threads": given.threads, "refused": refused, "steps": [
        {"share": step.share, "need": step.need, "ratio": time_of[step.share] / time_of[1],
         "compiling": step.compiling,
         "difference": max(abs(a - b) / abs(a) for a, b in zip(whole.losses[:STEPS], step.losses))}
        for step in steps]}


def rows_of(found):
    for each in found:
        base = each["steps"][0]["need"]
        for step in each["steps"]:
            need = step["need"]
            yield [each["network"], f"{need['between_kernels'] / 2**20:.0f}",
                   f"{need['between_kernels'] / base['between_kernels']:.2f}",
                   f"{need['total'] / 2**20:.0f}", f"{step['ratio']:.3f}",
                   f"{step['difference']:.0e}", f"{step['compiling']:.1f}"]
        for refusal in each["refused"]:
            yield [each["network"], "refused", refusal["share"], "", "", "", ""]


def draw(found, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    for each in found:
        base = each["steps"][0]["need"]["between_kernels"]
        points = sorted((step["need"]["between_kernels"] / base, step["ratio"])
                        for step in each["steps"])
        axes.plot(*zip(*points), marker="o", label=f"{each['network']} ({base / 2**20:.0f} MiB)")
    axes.axhline(1.25, color="#999999", linewidth=1, linestyle="--")
    axes.axvline(0.5, color="#999999", linewidth=1, linestyle="--")
    axes.set(xlabel="bytes between kernels, over those without a limit", ylim=(0.9, None),
             ylabel="time of a step, over that\nwithout a limit", xlim=(0, 1.05))
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    options = report.arguments(__doc__, rounds=7, turn_ms=0)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--shares", type=float, nargs="+", default=SHARES)
    options.add_argument("--picture", help="a file to draw the curve into")
    given = options.parse_args()
    found = report.last("memory") if given.last else []
    if not given.last:
        for network in networks.NETWORKS:
            if given.only in network.name and (given.only or network.name in
                                               ("bert_base", "resnet50")):
                found.append(compare(network, given))
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    heads = ["network", "between kernels, MiB", "of those without a limit", "in all, MiB",
             "time, over that without a limit", "losses differ by", "compiling, s"]
    report.publish("memory", report.table(heads, rows_of(found)), found, given)
    if given.picture:
        draw(found, given.picture)


if __name__ == "__main__":
    main()
