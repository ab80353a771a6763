"""Tokens of a decoder beside other engines: one more after so many, and a prompt.

    ./dev bench llm [--sizes 100m 500m] [--kinds f32 int4] [--pasts 128 2000 8000] [--threads 1 2]

Weights are random, layers are Llama's (network.py). Engines take turns. `bound` is the time that
reading a token's weights, keys and values takes at the bandwidth that `heddle explain` tells; `of
best` how many times longer the best other engine takes. Logits are compared with ONNX Runtime's.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.kernels import report
from bench.kernels.turns import by_turns, ratio, timed_calls
from bench.llm import network
from bench.llm.engines import ENGINES

ROOM = 64  # tokens beyond the past


def bandwidth(folder, threads):
    """Bytes a second, as `heddle explain` measured them."""
    told = subprocess.run(["heddle", "explain", folder / "model.onnx", "--json", "--threads",
                           str(threads)], capture_output=True, text=True, check=True).stdout
    return json.loads(told)["machine"]["bytes_per_second"]


def cache_bytes(size, past):
    settings = network.SIZES[size]
    width = settings["hidden_size"] // settings["num_attention_heads"]
    return 8 * settings["num_hidden_layers"] * settings["num_key_value_heads"] * width * past


def timed(engines, call, given):
    """Turns of {name: engine}."""
    return by_turns({name: timed_calls(lambda each=each: call(each), time.perf_counter)
                     for name, each in engines.items()}, given.rounds, given.turn / 1e3)


def row_of(turns, **more):
    """A line's figures, with Heddle beside the best of the others."""
    medians = {name: float(np.median(each)) for name, each in turns.items()}
    others = {name: each for name, each in medians.items() if name != "heddle"}
    best = min(others, key=others.get) if others else None
    beside = ratio(turns, best, "heddle") if best else {}
    return {**more, "seconds": medians, "best": best, **beside}


def distance(engines, past):
    """The greatest difference of logits, relative to their largest."""
    logits = {name: each.token() for name, each in engines.items() if name != "genai"}
    if "onnxruntime" not in logits or "heddle" not in logits:
        return None
    wanted = logits["onnxruntime"]
    return float(np.abs(logits["heddle"] - wanted).max() / np.abs(wanted).max())


def measure(given):
    for size in given.sizes:
        for kind in given.kinds:
            folder = Path(tempfile.mkdtemp(prefix="heddle-llm-"))
            try:
                yield from measure_model(folder, size, kind, given)
            finally:
                shutil.rmtree(folder)


def measure_model(folder, size, kind, given):
    context = max([*given.pasts, *given.prompts]) + ROOM + 256
    weights = network.write(folder, size, kind, context)
    for threads in given.threads:
        reads = bandwidth(folder, threads)
        engines = {name: ENGINES[name](folder, threads, context) for name in given.engines}
        for past in given.pasts:
            for each in engines.values():
                each.start(past)
            far = distance(engines, past)
            turns = timed(engines, lambda each: each.token(), given)
            yield row_of(turns, what=f"{size} {kind}", threads=threads, past=past, prompt=1,
                         bound=(weights + cache_bytes(size, past)) / reads, distance=far,
                         load=os.getloadavg()[0])
        for prompt in given.prompts:
            turns = timed(engines, lambda each, n=prompt: each.prefill(n), given)
            yield row_of(turns, what=f"{size} {kind}", threads=threads, past=0, prompt=prompt,
                         bound=None, distance=None, load=os.getloadavg()[0])


def lines(found):
    names = list(dict.fromkeys(name for each in found for name in each["seconds"]))
    rows = [(each["what"], each["threads"], each["past"], each["prompt"],
             *(f"{1e3 * each['seconds'][name]:.1f}" if name in each["seconds"] else ""
               for name in names),
             f"{1e3 * each['bound']:.1f}" if each["bound"] else "",
             report.spread(each) if "ratio" in each else "",
             f"{each['distance']:.0e}" if each["distance"] is not None else "") for each in found]
    yield from report.table(
        ("model", "threads", "past", "tokens", *(f"{name}, ms" for name in names), "bound, ms",
         "of best", "distance"), rows)
    yield ""
    for what, chosen in (("a token", lambda each: each["prompt"] == 1),
                         ("prompts", lambda each: each["prompt"] > 1)):
        those = [each for each in found if "ratio" in each and chosen(each)]
        yield f"{what}: {report.summary(those)}"


def main():
    options = report.arguments(__doc__, 9, 400)
    options.add_argument("--sizes", nargs="+", choices=network.SIZES, default=["100m", "500m"])
    options.add_argument("--kinds", nargs="+", choices=network.BITS, default=list(network.BITS))
    options.add_argument("--pasts", nargs="+", type=int, default=[128, 2000, 8000])
    options.add_argument("--prompts", nargs="*", type=int, default=[128, 2000])
    options.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    options.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    report.tell("llm", options.parse_args(), measure, lines)


if __name__ == "__main__":
    main()
