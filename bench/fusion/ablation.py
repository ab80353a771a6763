"""What each layer of the partitioner is worth: kernels, launches and time without it.

    python -m bench.fusion.ablation [--models NAME...] [--batch N...] [--runs N] [--threads N]

For each network of table.py: everything; without what cards claim as a whole (attention); without
fusion of the rest (Apollo's Layer I); without regions (Layer III). Time is the median of runs that
are interleaved, as a ratio to everything: above 1 is slower.
"""

import argparse
import statistics
import time

import heddle
import numpy as np
import onnxruntime

from bench.fusion import networks

VARIANTS = {"everything": None, "without cards": "cards", "without fusion": "fusion",
            "without regions": "regions", "without all": "cards,fusion,regions"}


def feeds_of(path):
    """Random inputs of the sizes that the model declares."""
    random = np.random.default_rng(5)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {}
    for value in session.get_inputs():
        if value.type == "tensor(int64)":
            ones = "mask" in value.name
            feeds[value.name] = (np.ones if ones else lambda shape, _: random.integers(
                0, 30000, shape))(value.shape, np.int64)
        else:
            feeds[value.name] = random.standard_normal(value.shape).astype(np.float32)
    return feeds


def measure(path, runs, threads):
    """{variant: (groups, launches, median seconds)}"""
    feeds = feeds_of(path)
    modules = {name: heddle.compile(str(path), without=without, threads=threads)
               for name, without in VARIANTS.items()}
    sessions = {name: heddle.Session(module, threads=threads) for name, module in modules.items()}
    times = {name: [] for name in modules}
    for turn in range(runs + 1):
        for name, session in sessions.items():
            start = time.perf_counter()
            session.run(None, feeds)
            if turn:  # the first is to warm up
                times[name].append(time.perf_counter() - start)
    reports = {name: module.compiled.report for name, module in modules.items()}
    return {name: (reports[name]["groups"], reports[name]["launches"],
                   statistics.median(times[name])) for name in modules}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", choices=networks.NETWORKS,
                        default=["bert", "gpt2", "t5", "vit"])
    parser.add_argument("--batch", nargs="*", type=int, default=[1, 16])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{'model':8}{'batch':>6}  {'variant':18}{'groups':>8}{'launches':>10}{'time':>7}")
    for name in arguments.models:
        for batch in arguments.batch:
            rows = measure(networks.export(name, batch, 17), arguments.runs, arguments.threads)
            best = rows["everything"][2]
            for variant, (groups, launches, seconds) in rows.items():
                ratio = seconds / best
                print(f"{name:8}{batch:6}  {variant:18}{groups:8}{launches:10}{ratio:7.2f}",
                      flush=True)


if __name__ == "__main__":
    main()
