"""Losses of 100 steps of training, each of another batch, held against those of PyTorch.

    ./dev bench training-losses [--only gpt] [--steps 100] [--optimizers adam] [--rate 0.1] [--note]

Heddle and PyTorch begin with the same weights, in f32, and each step has the same batch. All losses
have to agree within a relative difference of 1e-4. What rounding alone does to a network is what
the same steps of PyTorch in f64 show: where f32 and f64 of PyTorch part by more, two engines in f32
agree by chance only. So the steps are held one by one as well: each begins with the weights and
the state of PyTorch in f32. What all of them do is compared with a step in f64 from there: the
greatest difference of the new weights, in the 2-norm, over that of the change.
"""

import json
import sys

import numpy as np

from bench.kernels import report
from bench.models import tool

TOLERANCE = 1e-4
RATE = {"sgd": 5e-2, "momentum": 1e-2, "adam": 1e-3}
# At the rates of the others the order of sums decides its losses (bench/notes).
OWN_RATE = {"resnet18": {"sgd": 5e-3, "momentum": 5e-4, "adam": 5e-5}}
STATE = {"sgd": {}, "momentum": {"velocity": "momentum_buffer"},
         "adam": {"first_moment": "exp_avg", "second_moment": "exp_avg_sq"}}
MODELS = tool.ROOT / "build" / "models" / "training-losses"


def optimizer_of(name, parameters, rate):
    import torch

    if name == "adam":
        return torch.optim.Adam(parameters, rate)
    return torch.optim.SGD(parameters, rate, momentum=0.9 if name == "momentum" else 0)


class Torch:
    """Training by PyTorch in one precision."""

    def __init__(self, network, optimizer, rate, dtype):
        from bench.networks import trained as networks

        self.network, self.dtype = network, dtype
        self.module = networks.seeded(network)[0].to(dtype)
        self.optimizer = optimizer_of(optimizer, self.module.parameters(), rate)
        self.kinds = STATE[optimizer]

    def step(self, batch):
        from bench.training.worker import torch_loss

        def given(value):
            return value.to(self.dtype) if value.is_floating_point() else value

        batch = {name: given(value) for name, value in batch.items()}
        labels = batch.pop("labels")
        self.optimizer.zero_grad()
        loss = torch_loss(self.network, self.module(*batch.values()), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def tensors(self):
        """name -> tensor, with what the optimiser remembers as Heddle names it."""
        found = {}
        for name, parameter in self.module.named_parameters():
            held = self.optimizer.state.get(parameter, {})
            found[name] = parameter.detach()
            found.update({f"{name}/{ours}": held[theirs] for ours, theirs in self.kinds.items()
                          if theirs in held})
        return found

    def state(self):
        return {name: tensor.numpy().copy() for name, tensor in self.tensors().items()}

    def load(self, state):
        import torch

        for name, tensor in self.tensors().items():
            tensor.copy_(torch.from_numpy(state[name]))


def trainer_of(network, optimizer, rate):
    from bench.training.bench import exported
    from heddle.training import Trainer

    return Trainer(exported(network, folder=MODELS), network.loss, optimizer=optimizer, threads=1,
                   learning_rate=rate, cache=False, recipe={"class_axis": network.class_axis})


def arrays(batch):
    return {name: value.numpy() for name, value in batch.items()}


def compare(network, optimizer, given):
    """Losses of all engines, and how far weights are from those of steps in f64."""
    import torch

    rate = OWN_RATE.get(network.name, RATE)[optimizer] * given.rate
    peer, exact, ideal = (Torch(network, optimizer, rate, dtype)
                          for dtype in (torch.float32, torch.float64, torch.float64))
    alone, beside = (trainer_of(network, optimizer, rate) for _ in range(2))
    if missing := set(peer.state()) - set(beside.state):
        raise SystemExit(f"'{network.name}': weights that the exported model lacks: {missing}")
    losses = {"heddle": [], "beside": [], "torch": [], "torch_f64": []}
    changes = {"heddle": [], "torch": []}
    for step in range(given.steps):
        torch.manual_seed(1000 + step)
        batch = network.batch()
        before = peer.state()
        ideal.load(before)
        for name, array in before.items():
            beside.state[name][...] = array
        losses["heddle"].append(alone.step(arrays(batch)))
        losses["beside"].append(beside.step(arrays(batch)))
        losses["torch"].append(peer.step(batch))
        losses["torch_f64"].append(exact.step(batch))
        ideal.step(batch)
        after = ideal.state()
        changes["heddle"].append(distance(before, after, beside.weights))
        changes["torch"].append(distance(before, after, peer.state()))
    return {"network": network.name, "optimizer": optimizer, "rate": rate, "losses": losses,
            "changes": changes}


def distance(before, after, found):
    """How far weights are from those after a step, over how far that moved them."""
    names = [name for name in before if "/" not in name]

    def norm(left, right):
        return np.sqrt(sum(np.sum((np.float64(left[name]) - right[name]) ** 2) for name in names))

    return float(norm(found, after) / norm(after, before))


def apart(left, right):
    """The greatest relative difference of two lists of losses."""
    return max(abs(a - b) / abs(b) for a, b in zip(left, right))


def beyond(left, right):
    """The first step whose losses are further apart than allowed, or None."""
    return next((step for step, (a, b) in enumerate(zip(left, right))
                 if not abs(a - b) <= TOLERANCE * abs(b)), None)


def rows_of(found):
    for each in found:
        losses = each["losses"]
        first = beyond(losses["heddle"], losses["torch"])
        own = beyond(losses["torch"], losses["torch_f64"])
        yield [each["network"], f"{each['optimizer']}, {each['rate']:g}",
               f"{losses['torch'][0]:.4f}", f"{losses['torch'][-1]:.4f}",
               f"{apart(losses['heddle'], losses['torch']):.1e}",
               "yes" if first is None else f"until step {first}",
               f"{apart(losses['torch'], losses['torch_f64']):.1e}",
               "yes" if own is None else f"until step {own}",
               f"{apart(losses['beside'], losses['torch']):.1e}",
               f"{max(each['changes']['heddle']):.1e}", f"{max(each['changes']['torch']):.1e}"]


def summary(found):
    agree = [beyond(each["losses"]["heddle"], each["losses"]["torch"]) is None for each in found]
    beside = [apart(each["losses"]["beside"], each["losses"]["torch"]) for each in found]
    return (f"Within {TOLERANCE:g} at each step: {sum(agree)} of {len(agree)}; of steps that each "
            f"begin as PyTorch's: {sum(value <= TOLERANCE for value in beside)}; the largest "
            f"difference of these: {max(beside, default=0):.1e}.")


def main():
    options = report.arguments(__doc__, rounds=1, turn_ms=0)
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--optimizers", nargs="+", default=list(RATE), choices=list(RATE))
    options.add_argument("--rate", type=float, default=1, help="a factor of the learning rates")
    given = options.parse_args()
    found = report.last("training-losses") if given.last else []
    if not given.last:
        sys.modules["torchvision"] = None  # the networks need none
        import torch

        from bench.networks import small

        torch.set_num_threads(1)
        for network in small.NETWORKS:
            for optimizer in given.optimizers if given.only in network.name else []:
                found.append(compare(network, optimizer, given))
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    within = f"within {TOLERANCE:g}"
    heads = ["network", "optimiser, rate", "first loss", "last loss", "Heddle and PyTorch", within,
             "PyTorch f32 and f64", within, "step by step", "weights, Heddle and f64",
             "weights, PyTorch and f64"]
    report.publish("training-losses",
                   [*report.table(heads, rows_of(found)), "", summary(found)], found, given)


if __name__ == "__main__":
    main()
