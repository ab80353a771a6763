"""What each layer of the partitioner is worth: kernels, bytes moved and time without it.

    ./dev bench fusion-ablation [--models NAME...] [--batch N...] [--runs N] [--threads N]

For each network of table.py: everything; without what cards claim as a whole (attention); without
Apollo's Layer I (fusion of the rest), II (products stitched to the reductions over their rows) and
III (regions that are launched at once); without the feedback that splits groups again. Bytes are
those that kernels read and write per run, weights apart. Time is the median of runs that are
interleaved, as a ratio to everything: above 1 is slower.
"""

import argparse
import statistics
import time

import heddle
import numpy as np
import onnxruntime

from bench.fusion.plan import plan_of
from bench.networks import fixed as networks

LAYERS = {"cards": "cards", "I": "fusion", "II": "stitch", "siblings": "siblings",
          "III": "regions", "feedback": "feedback"}
VARIANTS = {"everything": None} | {f"without {name}": layer for name, layer in LAYERS.items()} | {
    "without all": ",".join(LAYERS.values())}


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


def session_of(path, without, threads):
    return heddle.Session(heddle.compile(str(path), without=without, threads=threads),
                          threads=threads)


def measure(path, runs, threads):
    """Yields (variant, its layers, median time as a ratio to everything). Two sessions live at a
    time: the weights of a large model are in each."""
    feeds = feeds_of(path)
    everything = session_of(path, None, threads)
    for variant, without in VARIANTS.items():
        sessions = (everything, session_of(path, without, threads) if without else everything)
        times = ([], [])
        for turn in range(runs + 1 if without else 0):
            for session, taken in zip(sessions, times):
                start = time.perf_counter()
                session.run(None, feeds)
                if turn:  # the first is to warm up
                    taken.append(time.perf_counter() - start)
        ratio = statistics.median(times[1]) / statistics.median(times[0]) if without else 1.0
        yield variant, without, ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", choices=networks.NETWORKS,
                        default=["bert", "gpt2", "t5", "vit"])
    parser.add_argument("--batch", nargs="*", type=int, default=[1, 16])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{'model':8}{'batch':>6}  {'variant':18}{'kernels':>8}{'MiB moved':>11}{'time':>7}")
    for name in arguments.models:
        for batch in arguments.batch:
            path = networks.export(name, batch, 17)
            for variant, without, ratio in measure(path, arguments.runs, arguments.threads):
                _, launches, moved = plan_of(path, without, arguments.threads)
                print(f"{name:8}{batch:6}  {variant:18}{launches:8}{moved / 2**20:11.1f}"
                      f"{ratio:7.2f}", flush=True)


if __name__ == "__main__":
    main()
