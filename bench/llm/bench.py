"""Tokens of a decoder beside other engines: one more after so many, and a prompt.

    ./dev bench llm [--sizes 100m 500m] [--kinds f32 int4] [--pasts 128 2000 8000] [--threads 1 2]

Weights are random, layers are Llama's (network.py). Each engine has a process of its own and takes
turns; one that is not installed, or fails, is told and left out. `bound` is the time that reading a
token's weights, keys and values takes at the bandwidth that `heddle explain` tells; `of best` how
many times longer the best other engine takes. Distances are those of the engines' logits from
Heddle's. A second table has the peaks of the processes' resident memory.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.kernels import report
from bench.kernels.turns import by_turns, ratio
from bench.llm import network
from bench.llm.engines import ENGINES
from bench.peers.job import Job
from bench.peers.member import Failed, Member

ROOM = 832  # tokens beyond the past, for engines whose tokens are further and further
REST = 0.1  # seconds before a turn, in which idle threads of the one before fall asleep
LIMIT = 1800  # seconds for an answer


def bandwidth(folder, threads):
    """Bytes a second, as `heddle explain` measured them."""
    told = subprocess.run(["heddle", "explain", folder / "model.onnx", "--json", "--threads",
                           str(threads), "--measure-machine"], capture_output=True, text=True,
                          check=True).stdout
    return json.loads(told)["machine"]["bytes_per_second"]


def cache_bytes(size, past):
    settings = network.SIZES[size]
    width = settings["hidden_size"] // settings["num_attention_heads"]
    return 8 * settings["num_hidden_layers"] * settings["num_key_value_heads"] * width * past


class Engines:
    """Processes of the engines that are there, by name."""

    def __init__(self, folder, kind, threads, context, given):
        self.members, self.folder = {}, folder
        for name in given.engines:
            if kind not in ENGINES[name].kinds:
                continue
            job = Job(name, str(folder / "model.onnx"), "", str(folder / f"{name}-{threads}"),
                      threads, options={"kind": kind, "context": context,
                                       "kv_cache_type": given.kv_cache_type})
            try:
                with Member(job, "bench.llm.worker") as first:
                    first.ask("prepare", LIMIT)
                self.members[name] = Member(job, "bench.llm.worker")
                self.members[name].ask("load", LIMIT)
            except Failed as failure:
                self.leave(name, failure)

    def leave(self, name, failure):
        """Goes on without an engine."""
        print(f"{name} is left out: {failure}", file=sys.stderr, flush=True)
        if name in self.members:
            self.members.pop(name).close()

    def each(self, do, **details):
        """{name: answer}"""
        found = {}
        for name, member in list(self.members.items()):
            try:
                found[name] = member.ask(do, LIMIT, **details)
            except Failed as failure:
                self.leave(name, failure)
        return found

    def turns(self, given, length):
        def timed(member):
            return lambda runs: member.ask("run", LIMIT, times=runs, length=length)["seconds"]
        return by_turns({name: timed(member) for name, member in self.members.items()},
                        given.rounds, given.turn / 1e3, REST)

    def distances(self, length):
        """{name: the greatest difference of logits from Heddle's, relative to their largest}"""
        found = {}
        for name in list(self.members):
            if length or ENGINES[name].compares:
                path = self.folder / f"{name}.npy"
                self.members[name].ask("logits", LIMIT, path=str(path), length=length)
                found[name] = np.load(path)
        wanted = found.pop("heddle", None)
        return {} if wanted is None else {
            name: float(np.abs(wanted - each).max() / np.abs(each).max())
            for name, each in found.items()}

    def close(self):
        for member in self.members.values():
            member.close()


def row_of(turns, **more):
    """A line's figures, with Heddle beside the best of the others."""
    medians = {name: float(np.median(each)) for name, each in turns.items()}
    others = {name: each for name, each in medians.items() if name != "heddle"}
    best = min(others, key=others.get) if others and "heddle" in medians else None
    beside = ratio(turns, best, "heddle") if best else {}
    return {**more, "seconds": medians, "best": best, "load": os.getloadavg()[0], **beside}


def measure(given):
    for size in given.sizes:
        for kind in given.kinds:
            folder = Path(tempfile.mkdtemp(prefix="heddle-llm-"))
            try:
                for row in measure_model(folder, size, kind, given):
                    print(json.dumps(row), file=sys.stderr, flush=True)
                    yield row
            finally:
                shutil.rmtree(folder)


def measure_model(folder, size, kind, given):
    context = max([*given.pasts, *given.prompts]) + ROOM
    context += -context % 256  # as llama.cpp rounds it
    weights = network.write(folder, size, kind, context)
    for threads in given.threads:
        reads = bandwidth(folder, threads)
        engines = Engines(folder, kind, threads, context, given)
        try:
            what = {"what": f"{size} {kind}", "threads": threads}
            for past in given.pasts:
                engines.each("start", past=past)
                yield row_of(engines.turns(given, 0), **what, past=past, prompt=1,
                             bound=(weights + cache_bytes(size, past)) / reads,
                             distance=engines.distances(0))
            for prompt in given.prompts:
                yield row_of(engines.turns(given, prompt), **what, past=0, prompt=prompt,
                             bound=None, distance=engines.distances(prompt))
            yield {**what, "peaks": {name: answer["bytes"]
                                     for name, answer in engines.each("peak").items()}}
        finally:
            engines.close()


def lines(found):
    rows = [each for each in found if "seconds" in each]
    names = list(dict.fromkeys(name for each in rows for name in each["seconds"]))
    yield from report.table(
        ("model", "threads", "past", "tokens", *(f"{name}, ms" for name in names), "bound, ms",
         "of best", "distance"),
        [(each["what"], each["threads"], each["past"], each["prompt"],
          *(f"{1e3 * each['seconds'][name]:.1f}" if name in each["seconds"] else "-"
            for name in names),
          f"{1e3 * each['bound']:.1f}" if each["bound"] else "",
          report.spread(each) if "ratio" in each else "",
          ", ".join(f"{name} {far:.0e}" for name, far in each["distance"].items()))
         for each in rows])
    yield ""
    for what, chosen in (("a token", lambda each: each["prompt"] == 1),
                         ("prompts", lambda each: each["prompt"] > 1)):
        yield f"{what}: {report.summary([e for e in rows if 'ratio' in e and chosen(e)])}"
    yield ""
    yield from report.table(
        ("model", "threads", *(f"{name}, MiB" for name in names), "of the least other"),
        [(each["what"], each["threads"],
          *(f"{each['peaks'][name] / 2**20:.0f}" if name in each["peaks"] else "-"
            for name in names), of_least(each["peaks"]))
         for each in found if "peaks" in each])


def of_least(peaks):
    """How many times the memory of the least other engine Heddle has."""
    others = [each for name, each in peaks.items() if name != "heddle"]
    return f"{peaks['heddle'] / min(others):.2f}" if others and "heddle" in peaks else ""


def main():
    options = report.arguments(__doc__, 9, 400)
    options.add_argument("--sizes", nargs="+", choices=network.SIZES, default=["100m", "500m"])
    options.add_argument("--kinds", nargs="+", choices=network.BITS, default=list(network.BITS))
    options.add_argument("--pasts", nargs="+", type=int, default=[128, 2000, 8000])
    options.add_argument("--prompts", nargs="*", type=int, default=[128, 2000])
    options.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    options.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    options.add_argument("--kv-cache-type", choices=("f32", "bf16", "f16", "int8"),
                         help="numbers of Heddle's keys and values (default: f32)")
    report.tell("llm", options.parse_args(), measure, lines)


if __name__ == "__main__":
    main()
