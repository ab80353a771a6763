"""torch.compile with Heddle beside eager PyTorch and TorchInductor.

    ./dev bench torch [--only bert] [--of forward step call] [--engines eager inductor]
    ./dev bench torch --of forward --models qwen2 convnext     # those of bench/torch/models.py

Models have random weights. Every engine gives eager's results before anything is timed; Heddle and
Inductor freeze weights of a forward pass. The first call holds all that compiling takes, and no
cache answers. A call is that of two layers of 16, beside Dynamo's own, which runs the graph.
"""

import contextlib
import os
import statistics
import tempfile
import time

os.environ["HEDDLE_CACHE"] = ""  # read when the package is loaded
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch  # noqa: E402
from torch import nn  # noqa: E402

import heddle.torch  # noqa: E402, F401
from bench.kernels import report, turns  # noqa: E402
from bench.networks import published  # noqa: E402
from bench.torch import models  # noqa: E402

SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
         "intermediate_size": 1024, "vocab_size": 1000}
GPT2 = {"n_embd": 256, "n_layer": 4, "n_head": 4, "vocab_size": 1000}
CALLS = 50  # between two looks at the clock
TOLERANCE = 1e-3  # of the largest result


def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                         nn.Linear(256, 10))


def language(kind, configuration, **sizes):
    def make():
        import transformers

        return getattr(transformers, kind)(getattr(transformers, configuration)(**sizes))
    return make


def vision(name):
    def make():
        return published.vision(name)
    return make


def rows_of(size):
    return lambda batch: (torch.randn(batch, size),)


def tokens(batch):
    return (torch.randint(0, 1000, (batch, 64)),)


NETWORKS = {  # what makes the model, its arguments, and whether a step of it is timed
    "mlp": (mlp, rows_of(64), True),
    "resnet18": (vision("resnet18"), models.images(), True),
    "mobilenet_v2": (vision("mobilenet_v2"), models.images(), False),
    "bert": (language("BertModel", "BertConfig", **SMALL), tokens, True),
    "gpt2": (language("GPT2LMHeadModel", "GPT2Config", **GPT2), tokens, False),
    "llama": (language("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, **SMALL), tokens,
              True),
}
CALL = {"call": (lambda: nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16)), rows_of(16), False)}


def listed(names):
    """Networks of the list of bench/torch/models.py."""
    return {name: (lambda name=name: models.made(name), models.MODELS[name].given, True)
            for name in models.chosen(names)}


def first_result(found):
    """The first tensor of what a model gives."""
    return next(x for x in torch.utils._pytree.tree_leaves(found) if isinstance(x, torch.Tensor))


def own_code(model):
    """The model as a function whose code is its own: Dynamo keeps what it has compiled by the code,
    and engines that share one look through each other's."""
    names = {"model": model}
    exec("def run(*given, **named):\n    return model(*given, **named)", names)
    return names["run"]


def compiled(model, engine, is_forward):
    if engine == "eager":
        return model
    model = own_code(model)
    options = {"heddle": {"freeze": is_forward, "fallback": "raise"},
               "inductor": {"freezing": is_forward}, "dynamo": None}[engine]
    return torch.compile(model, backend={"dynamo": "eager"}.get(engine, engine), options=options)


def caller(model, run, given, of):
    """A function without arguments that does one call, and gives what is compared."""
    def forward():
        with torch.no_grad():
            return first_result(models.call(run, given))

    def step():
        model.zero_grad(set_to_none=True)
        loss = first_result(models.call(run, given)).square().mean()
        loss.backward()
        return loss.detach()

    return step if of == "step" else forward


def many_calls(call):
    """A timed thing of a function that takes little more than two looks at the clock."""
    def batch():
        for _ in range(CALLS):
            call()

    run = turns.timed_calls(batch)
    return lambda runs: [seconds / CALLS for seconds in run(runs)]


def case(network, of, batch, engines):
    """Timed calls by engine, after they have given the same, and seconds of the first calls."""
    make, given, _ = network
    torch.manual_seed(0)
    model, x = make().eval(), given(batch)  # without dropout, so that results compare
    wanted = caller(model, model, x, of)()
    timed, firsts = {}, {}
    torch._dynamo.reset()
    for engine in engines:
        call = caller(model, compiled(model, engine, of != "step"), x, of)
        begin = time.perf_counter()
        found = call()
        firsts[engine] = time.perf_counter() - begin
        error = float((found - wanted).abs().max() / wanted.abs().max())
        assert error < TOLERANCE, f"{engine}: results differ by {error}"
        timed[engine] = turns.timed_calls(call) if of != "call" else many_calls(call)
    return timed, firsts


def measure(given):
    torch.set_num_threads(1)
    networks = listed(given.models) if given.models else {**NETWORKS, **CALL}
    for of in given.of:
        for name, network in networks.items():
            is_call = name in CALL
            is_other = is_call != (of == "call") or (of == "step" and not network[2])
            if given.only not in name or is_other:
                continue
            for batch in [1] if is_call else given.batches:
                engines = ["heddle", *given.engines, *["dynamo"] * is_call]
                timed, firsts = case(network, of, batch, engines)
                turn_s = given.turn / 1000 / (CALLS if is_call else 1)
                times = turns.by_turns(timed, given.rounds, turn_s)
                found = {"model": name, "of": of, "batch": batch, "firsts": firsts, "turns": times,
                         "ratios": {engine: turns.ratio(times, engine, "heddle")
                                    for engine in engines[1:]}}
                print(name, of, batch, *(f"{engine}: {report.spread(each)}" for engine, each in
                                         found["ratios"].items()), flush=True)
                yield found


def rows(found, engines):
    for each in found:
        ratios, firsts = each["ratios"], each["firsts"]
        yield (each["model"], each["of"], each["batch"],
               f"{1e3 * statistics.median(each['turns']['heddle']):.3f}",
               *(report.spread(ratios[engine]) if engine in ratios else "" for engine in engines),
               f"{firsts['heddle']:.1f}",
               f"{firsts['inductor']:.1f}" if "inductor" in firsts else "")


def lines(found):
    engines = list(dict.fromkeys(engine for each in found for engine in each["ratios"]))
    yield from report.table(
        ["model", "of", "batch", "heddle, ms", *(f"{engine} / heddle" for engine in engines),
         "first call, s", "Inductor's"], rows(found, engines))
    for of in ("forward", "step"):
        for engine in engines:
            ratios = [{"ratio": each["ratios"][engine]["ratio"]} for each in found
                      if each["of"] == of and engine in each["ratios"]]
            if ratios:
                yield f"- {of}, {engine} / heddle: {report.summary(ratios)}"


def main():
    options = report.arguments(__doc__, rounds=11, turn_ms=100)
    options.add_argument("--of", nargs="+", default=["forward", "step", "call"],
                         choices=["forward", "step", "call"])
    options.add_argument("--engines", nargs="+", default=["eager", "inductor"],
                         choices=["eager", "inductor"])
    options.add_argument("--models", nargs="+", help="names in bench/torch/models.py instead")
    options.add_argument("--batches", nargs="+", type=int, default=[1, 16])
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(BrokenPipeError):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        report.tell("torch", given, measure, lines)


if __name__ == "__main__":
    main()
