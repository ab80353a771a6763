"""Quadratic networks (QuadraLib): how well they learn, what layers are worth, what a step takes.

    ./dev bench quadratic [--seeds 5] [--epochs 30]
    ./dev bench quadratic --networks [--only resnet] [--threads 1 2] [--rounds 5]

On scikit-learn's digits: first-order and quadratic networks of about equal parameters, and a
deeper quadratic one from which the builder takes the layers that are worth least. The network is
that of examples/train-digits; its quadratic form has narrower layers, three convolutions each.

--networks: steps of QuadraLib's VGG, ResNet and MobileNet beside torch.compile and eager PyTorch
with the same layers as modules, as `./dev bench training` measures them; and what lies between
kernels: `hybrid` computes again in the way back what it needs of the quadratic part, `everything`
stores the result of each op.
"""

import statistics
import sys

import numpy as np

from bench.kernels import report
from bench.models import tool

sys.path.insert(0, str(tool.ROOT / "examples" / "train-digits"))
BATCH = 64
PEERS = ("inductor", "eager")
EVERYTHING = "cards,fusion,stitch,siblings,regions,recomputation"


def network(widths, seed):
    """examples/train-digits with other widths."""
    from network import Network

    made = Network((1, 8, 8), seed)
    for i, width in enumerate(widths):
        made.conv(f"conv{i + 1}", width)
        if i == 1:
            made.add("MaxPool", name="pool2", kernel_shape=[2, 2], strides=[2, 2])
    return made.classifier(10)


def quadratic_network(widths, seed):
    from heddle_lab import quadratic

    made = network(widths, seed)
    return quadratic.convert(made, "sum", [f"conv{i + 1}" for i in range(len(widths))], seed)


def parameters(model):
    return sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer)


def digits():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    found = load_digits()
    images = (found.images[:, None] / 16).astype(np.float32)
    return train_test_split(images, found.target.astype(np.int64), test_size=0.5,
                            stratify=found.target, random_state=0)


def trainer_of(model, images, labels, epochs, seed):
    """A trainer that has learned these images."""
    from heddle.training import Trainer, cosine

    random = np.random.default_rng(seed)
    steps = epochs * (len(images) // BATCH)
    trainer = Trainer(model, optimizer="adamw", learning_rate=cosine(4e-3, steps, warmup=30),
                      seed=seed, threads=1)
    for _ in range(epochs):
        order = random.permutation(len(images))
        for first in range(0, len(images) - BATCH + 1, BATCH):
            chosen = order[first:first + BATCH]
            trainer.step({"images": images[chosen], "labels": labels[chosen]})
    return trainer


def accuracy(model, epochs, seed, data):
    """The share of digits that are right, of those that were not learned from."""
    images, asked, labels, wanted = data
    trainer = trainer_of(model, images, labels, epochs, seed)
    _, outputs = trainer.evaluate({"images": asked, "labels": wanted})
    return float((outputs["scores"].argmax(1) == wanted).mean())


def built(widths, epochs, seed, data):
    """The builder on a deeper network."""
    import heddle
    from heddle_lab import quadratic

    images, asked, labels, wanted = data
    held = len(images) // 5  # decides what is taken out; what was asked tells how good that is

    def train(model):
        return trainer_of(model, images[held:], labels[held:], epochs, seed).trained()

    def accuracy(model, images=images[:held], labels=labels[:held]):
        scores, = heddle.compile(model, threads=1).run(None, {"images": images})
        return float((scores.argmax(1) == labels).mean())

    layers = [f"conv{i + 1}" for i in range(len(widths))]
    found = quadratic.build(network(widths, seed), train, accuracy, {"images": (1, 1, 8, 8)},
                            layers=layers, tolerance=0.012, seed=seed)
    return found, accuracy(found.model, asked, wanted)


def need_of(network, threads, without=None):
    """Bytes between the kernels of a step."""
    from heddle.training import Trainer

    from bench.networks import trained as networks
    from bench.training import worker
    from bench.training.bench import exported

    _, batch = networks.seeded(network)
    trainer = Trainer(exported(network), network.loss, optimizer=network.optimizer,
                      threads=threads, learning_rate=worker.RATE[network.optimizer],
                      without=without)
    return trainer.prepare({name: value.numpy() for name, value in batch.items()})[
        "between_kernels"]


def compare_networks(given):
    from bench.networks import quadralib
    from bench.networks import trained as networks
    from bench.training import bench

    for threads in given.threads:
        for network in quadralib.NETWORKS:
            if given.only not in network.name:
                continue
            each = bench.compare(network, threads, given)
            module, _ = networks.seeded(network)
            each["parameters"] = sum(weight.numel() for weight in module.parameters())
            each["hybrid"] = need_of(network, threads)
            each["everything"] = need_of(network, threads, EVERYTHING)
            yield each


def rows_of(found):
    for each in found:
        ours, losses = each["seconds"]["heddle"], each["losses"]
        yield [each["network"], each["threads"], each["parameters"], f"{ours * 1e3:.1f}",
               *(f"{each['seconds'][name] / ours:.2f}" for name in PEERS),
               *(f"{each['bytes'][name] / 2**20:.0f}" for name in ("heddle", *PEERS)),
               *(f"{each[name] / 2**20:.1f}" for name in ("hybrid", "everything")),
               f"{max(abs(losses[name][0] / losses['heddle'][0] - 1) for name in PEERS):.0e}"]


def compare_accuracy(given):
    makers = {"first order": lambda seed: network((16, 16, 32, 32), seed),
              "quadratic": lambda seed: quadratic_network((9, 9, 18, 19), seed)}
    data, rows = digits(), []
    for name, make in makers.items():
        figures = [accuracy(make(seed), given.epochs, seed, data) for seed in range(given.seeds)]
        spread = statistics.stdev(figures) if len(figures) > 1 else 0.0
        rows.append([name, parameters(make(0)), f"{statistics.mean(figures):.4f}",
                     f"{spread:.4f}"])
    print("\n".join(report.table(["form", "parameters", "accuracy", "deviation"], rows)))
    found, figure = built((16,) * 6, given.epochs, 0, data)
    rows = [[each.indicator.layer, f"{each.indicator.value:.3g}", f"{each.accuracy:.4f}",
             "yes" if each in found.removals else "no"] for each in found.tried]
    print("\n".join(["", *report.table(["without", "RI", "accuracy after training", "taken out"],
                                        rows), "",
                     f"{parameters(found.model)} parameters are left; {figure:.4f} of the digits "
                     "that decided nothing are right."]))


def main():
    options = report.arguments(__doc__, rounds=5, turn_ms=0)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--epochs", type=int, default=30)
    options.add_argument("--networks", action="store_true")
    options.add_argument("--threads", type=int, nargs="+", default=[1])
    options.add_argument("--steps", type=int, default=3, help="whose losses are compared")
    options.add_argument("--runs", type=int, default=5, help="steps of a turn")
    options.set_defaults(engines=("heddle", *PEERS))
    given = options.parse_args()
    if not given.networks:
        return compare_accuracy(given)
    sys.modules["torchvision"] = None  # the networks need none
    heads = ["network", "threads", "parameters", "Heddle, ms", "Inductor / Heddle",
             "eager / Heddle", "Heddle, MiB", "Inductor, MiB", "eager, MiB", "hybrid, MiB",
             "everything, MiB", "first losses differ by"]
    return report.tell("quadratic", given, compare_networks,
                       lambda found: report.table(heads, rows_of(found)))


if __name__ == "__main__":
    main()
