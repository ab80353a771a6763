"""worker: one engine that trains one network, in a process of its own, told by lines of JSON what
to do: {"do": "losses", "steps": 3}, {"do": "time", "steps": 5}, {"do": "memory"}.

    python -m bench.training.worker ENGINE NETWORK THREADS MODEL.onnx
"""

import json
import os
import sys
import time

from bench.peers.worker import memory_of

RATE = {"adam": 1e-4, "momentum": 1e-4, "adagrad": 1e-3, "sgd": 1e-1}


def heddle_steps(network, threads, path, math=None):
    from bench.networks import trained as networks

    _, batch = networks.seeded(network)
    from heddle.training import Trainer

    trainer = Trainer(path, network.loss, optimizer=network.optimizer, threads=threads,
                      learning_rate=RATE[network.optimizer], cache=False, math=math,
                      recipe={"class_axis": network.class_axis})
    feeds = {name: value.numpy() for name, value in batch.items()}
    return lambda: trainer.step(feeds)


def torch_loss(network, output, labels):
    from torch.nn import functional

    if network.loss == "cross_entropy":
        return functional.cross_entropy(output.flatten(0, -2), labels.flatten())
    if network.loss == "mse":
        return functional.mse_loss(output, labels)
    return functional.binary_cross_entropy_with_logits(output, labels)


def torch_optimizer(network, parameters):
    import torch

    rate = RATE[network.optimizer]
    if network.optimizer == "adam":
        return torch.optim.Adam(parameters, rate, fused=True)
    if network.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, rate, fused=True)
    momentum = 0.9 if network.optimizer == "momentum" else 0
    return torch.optim.SGD(parameters, rate, momentum=momentum, fused=True)


def torch_steps(network, threads, path, compiles):
    import torch

    from bench.networks import trained as networks

    torch.set_num_threads(threads)
    module, batch = networks.seeded(network)
    labels, inputs = batch.pop("labels"), list(batch.values())
    if any(value.ndim == 4 for value in inputs):  # what PyTorch recommends for images
        module = module.to(memory_format=torch.channels_last)
        inputs = [value.contiguous(memory_format=torch.channels_last) if value.ndim == 4 else value
                  for value in inputs]
    optimizer = torch_optimizer(network, module.parameters())

    def forward(*inputs):
        return torch_loss(network, module(*inputs), labels)

    if compiles:
        forward = torch.compile(forward)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward(*inputs)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def jax_optimizer(network):
    from jax import numpy as jnp

    rate = RATE[network.optimizer]

    def sgd(w, g, state, count):
        return w - rate * g, state

    def momentum(w, g, state, count):
        speed = 0.9 * state[0] + g
        return w - rate * speed, (speed,)

    def adam(w, g, state, count):
        first, second = 0.9 * state[0] + 0.1 * g, 0.999 * state[1] + 0.001 * g * g
        mean, square = first / (1 - 0.9 ** count), second / (1 - 0.999 ** count)
        return w - rate * mean / (jnp.sqrt(square) + 1e-8), (first, second)

    def adagrad(w, g, state, count):
        squares = state[0] + g * g
        return w - rate * g / (jnp.sqrt(squares) + 1e-10), (squares,)

    rule = {"sgd": sgd, "momentum": momentum, "adam": adam, "adagrad": adagrad}[network.optimizer]
    return rule, {"sgd": 0, "momentum": 1, "adam": 2, "adagrad": 1}[network.optimizer]


def jax_steps(network, threads, path):
    import jax
    import numpy as np
    import onnx
    from jax import numpy as jnp

    from bench.networks import trained as networks
    from bench.training import jax_onnx

    _, batch = networks.seeded(network)
    model = onnx.load(path)
    labels = batch.pop("labels").numpy()
    feeds = {name: value.numpy() for name, value in batch.items()}
    function = jax_onnx.function_of(model)
    weights = {tensor.name: jnp.asarray(onnx.numpy_helper.to_array(tensor))
               for tensor in model.graph.initializer
               if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) > 0}
    rule, count = jax_optimizer(network)
    state = {name: tuple(jnp.zeros_like(w) for _ in range(count)) for name, w in weights.items()}

    def loss_of(weights, feeds, labels):
        output = function(weights, feeds)
        if network.loss == "cross_entropy":
            logs = jax.nn.log_softmax(output)
            return -jnp.take_along_axis(logs, labels[..., None], -1).mean()
        if network.loss == "mse":
            return ((output - labels) ** 2).mean()
        return (jnp.maximum(output, 0) - output * labels
                + jnp.log1p(jnp.exp(-jnp.abs(output)))).mean()

    def step(weights, state, count, feeds, labels):
        loss, slopes = jax.value_and_grad(loss_of)(weights, feeds, labels)
        made = {name: rule(w, slopes[name], state[name], count) for name, w in weights.items()}
        return (loss, {name: w for name, (w, _) in made.items()},
                {name: s for name, (_, s) in made.items()})

    compiled = jax.jit(step, donate_argnums=(0, 1))
    held = {"weights": weights, "state": state, "count": 0}

    def run():
        held["count"] += 1
        loss, held["weights"], held["state"] = compiled(
            held["weights"], held["state"], np.float32(held["count"]), feeds, labels)
        loss = float(loss)
        jax.block_until_ready(held["weights"])
        return loss

    return run


def short():
    """Products of bf16, emulated where the CPU has none."""
    with open("/proc/cpuinfo", encoding="utf-8") as cpu:
        return "bf16" if "avx512_bf16" in cpu.read() else "bf16-emulated"


ENGINES = {"heddle": heddle_steps,
           "heddle-bf16": lambda *given: heddle_steps(*given, math=short()),
           "eager": lambda *given: torch_steps(*given, compiles=False),
           "inductor": lambda *given: torch_steps(*given, compiles=True),
           "xla": jax_steps}


def main():
    engine, name, threads, path = sys.argv[1:5]
    sys.modules["torchvision"] = None  # the networks need none
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(threads)])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    from bench.networks import trained as networks

    network = networks.find(name)
    step, tell = None, lambda answer: print(json.dumps(answer), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if step is None:
                before = memory_of("VmRSS")
                step = ENGINES[engine](network, int(threads), path)
            if asked["do"] == "losses":
                begin = time.perf_counter()
                losses = [step()]
                first = time.perf_counter() - begin
                losses += [step() for _ in range(asked["steps"] - 1)]
                tell({"losses": losses, "first": first})
            elif asked["do"] == "time":
                seconds = []
                for _ in range(asked["steps"]):
                    begin = time.perf_counter()
                    step()
                    seconds.append(time.perf_counter() - begin)
                tell({"seconds": seconds})
            else:
                tell({"bytes": memory_of("VmHWM") - before})
        except Exception as error:  # an engine that cannot is told of, and the others go on
            tell({"error": f"{type(error).__name__}: {error}"[:500]})


if __name__ == "__main__":
    main()
