"""Transformer encoders over batches of texts of different lengths, without padding.

    ./dev bench ragged [--networks layer bert_base] [--sets RACE CoLA] [--batch 32 64 128]
                       [--threads 1 2] [--parts 2 4 8 16] [--add]

`layer` is CoRa's (Fegade et al., MLSys 2022): 512 wide, 8 heads, 2048 between; `bert_base` all 12
layers and the embeddings. Lengths are drawn from the 64-quantiles of eight data sets
(lengths.json), the seed fixed. Beside the ragged artefact, by turns: the padded one, the padded one
over micro-batches (the batch sorted by length and cut into parts; the best count of parts is told),
and the peers of engines.py. `bound` is by how much padding multiplies the arithmetic; `of
bound` is the share of it that the ragged artefact gains over the padded one. Every engine's result
is compared with the padded one's, row by row.

`memory` is that of a run beside its inputs and outputs, which the caller holds, padded in both: the
arena and the scratch of threads, as the session tells them. `prelude` is the share of a ragged run
that passes before its first kernel begins: the call from Python, and lengths read, checked and
summed up in tables.
"""

import statistics
import sys
import time

import numpy as np

from bench.kernels import report, turns
from bench.models.catalogue import Missing
from bench.ragged import engines
from bench.ragged.encoders import NETWORKS
from bench.ragged.lengths import drawn, quantiles

PARTS = (2, 4, 8, 16)
REST = 0.02  # seconds before a turn: threads of the engine before may spin
GOAL_BOUND, GOAL_MICRO, GOAL_PEER, GOAL_MEMORY = 0.92, 1.10, 1.37, 1.7
GOAL_PRELUDE = {"RACE": 0.01, "CoLA": 0.03}


def cut(feeds, rows, lengths):
    """Some rows of a batch, padded to the longest of them."""
    longest = max(lengths[row] for row in rows)
    return {name: np.ascontiguousarray(value[rows, :longest]) for name, value in feeds.items()}


class Engines:
    """Compared engines, for one network and number of threads."""

    def __init__(self, encoder, threads, peers):
        import heddle

        def module(**options):
            return heddle.compile(encoder.model, threads=threads, **options)
        self.encoder = encoder
        self.padded = heddle.Session(module(), threads=threads)
        self.ragged = heddle.Session(module(ragged=encoder.ragged), threads=threads)
        self.groups = []  # (when it was told, nanoseconds) of each group of the profiled artefact
        self.profiled = heddle.Session(
            module(ragged=encoder.ragged, profile=True), threads=threads,
            profile=lambda _, took: self.groups.append((time.perf_counter_ns(), took)))
        self.peers = engines.opened(peers, encoder, threads)

    def calls(self, feeds, lengths, parts):
        """{name: one run of the batch}."""
        order = np.argsort(lengths)[::-1]
        made = {"ragged": lambda: self.ragged.run(None, feeds)[0],
                "padded": lambda: self.padded.run(None, feeds)[0],
                **{name: peer.call(feeds) for name, peer in self.peers.items()}}
        for count in parts:
            if count <= len(lengths):
                pieces = [cut(feeds, rows, lengths) for rows in np.array_split(order, count)]
                made[f"micro {count}"] = lambda pieces=pieces: [
                    self.padded.run(None, piece) for piece in pieces]
        return made

    def memory(self, session):
        """Bytes of the last run."""
        return session.memory["arena_bytes"] + session.memory["scratch_bytes"]

    def prelude(self, feeds, seconds):
        """The share of a run that passes before its first kernel: the median of some runs."""
        shares, end = [], time.perf_counter() + seconds
        while len(shares) < 3 or (time.perf_counter() < end and len(shares) < 200):
            self.groups.clear()
            begin = time.perf_counter_ns()
            self.profiled.run(None, feeds)
            whole = time.perf_counter_ns() - begin
            told, took = self.groups[0]
            shares.append((told - took - begin) / whole)
        return statistics.median(shares)

    def compare(self, lengths, given):
        """Figures of one batch."""
        feeds = self.encoder.inputs(lengths)
        calls = self.calls(feeds, lengths, given.parts)
        check(calls, lengths)
        memory = {"padded": self.memory(self.padded), "ragged": self.memory(self.ragged)}
        times = turns.by_turns({key: turns.timed_calls(call, time.perf_counter)
                                for key, call in calls.items()},
                               given.rounds, given.turn / 1000, REST)
        bound = self.encoder.flops([max(lengths)] * len(lengths)) / self.encoder.flops(lengths)
        padded = turns.ratio(times, "padded", "ragged")["ratio"]
        peers = {name: turns.ratio(times, name, "ragged") for name in self.peers}
        found = {"bound": bound, "turns": times, "padded": padded, "of_bound": padded / bound,
                 "peers": peers, "memory": memory,
                 "prelude": self.prelude(feeds, given.turn / 1000)}
        micro = [key for key in times if key.startswith("micro")]
        if micro:
            best = min(micro, key=lambda key: statistics.median(times[key]))
            found |= {"micro": best, **turns.ratio(times, best, "ragged")}
        return found


def check(calls, lengths):
    """The result of each engine that has a whole batch, row by row, against the padded one's."""
    wanted = calls["padded"]()
    for name, call in calls.items():
        if name.startswith("micro") or name == "padded":
            continue
        found = call()
        for row, length in enumerate(lengths):
            np.testing.assert_allclose(found[row, :length], wanted[row, :length], rtol=1e-3,
                                       atol=1e-3, err_msg=f"{name}, row {row}")
            assert name != "ragged" or not found[row, length:].any(), (
                f"row {row} is not 0 beyond its length")


def best_peer(each):
    """The name of the fastest peer."""
    return min(each["peers"], key=lambda name: each["peers"][name]["ratio"])


def times(found):
    """The table of times."""
    heads = ["network", "set", "batch", "threads", "ragged, ms", "bound", "padded / ragged",
             "of bound", "micro-batched / ragged", *(f"{name} / ragged" for name in
                                                     engines.PEERS)]
    return report.table(heads, [
        (each["network"], each["set"], each["batch"], each["threads"],
         f"{1e3 * statistics.median(each['turns']['ragged']):.1f}", f"{each['bound']:.2f}",
         f"{each['padded']:.2f}", f"{each['of_bound']:.2f}",
         f"{report.spread(each)} ({each['micro']})" if "micro" in each else "",
         *(report.spread(each["peers"][name]) if name in each["peers"] else ""
           for name in engines.PEERS)) for each in found])


def costs(found):
    """The table of memory and preludes."""
    return report.table(["network", "set", "batch", "threads", "padded, MiB", "ragged, MiB",
                         "padded / ragged", "prelude"], [
        (each["network"], each["set"], each["batch"], each["threads"],
         *(f"{each['memory'][key] / 2**20:.1f}" for key in ("padded", "ragged")),
         f"{each['memory']['padded'] / each['memory']['ragged']:.2f}", f"{each['prelude']:.2%}")
        for each in found])


def goals(found):
    """Goals that each network reaches, a line each."""
    for network in dict.fromkeys(each["network"] for each in found):
        own = [each for each in found if each["network"] == network]
        mean = report.geometric_mean
        best = [each["peers"][best_peer(each)]["ratio"] for each in own if each["peers"]]
        micro = [each["ratio"] for each in own if "micro" in each]
        memory = [each["memory"]["padded"] / each["memory"]["ragged"] for each in own]
        preludes = [f"{name} {max(shares):.2%} (goal {goal:.0%})"
                    for name, goal in GOAL_PRELUDE.items()
                    if (shares := [each["prelude"] for each in own if each["set"] == name])]
        yield (f"{network}, geometric means: of the bound "
               f"{mean(each['of_bound'] for each in own):.3f} (goal {GOAL_BOUND}), micro-batched / "
               f"ragged {mean(micro):.3f} (goal {GOAL_MICRO}), best peer / ragged "
               f"{mean(best):.3f} (goal {GOAL_PEER}), memory padded / ragged {mean(memory):.2f} "
               f"(goal {GOAL_MEMORY}). Largest prelude: {', '.join(preludes) or 'not measured'}.")


def measured(given):
    """Figures of each network, number of threads, batch and data set."""
    for network in given.networks:
        try:
            encoder = NETWORKS[network]()
        except Missing as reason:
            print(f"{network}: left out, {reason}", file=sys.stderr)
            continue
        for threads in given.threads:
            engines = Engines(encoder, threads, given.peers)
            for batch in given.batch:
                for name in given.sets:
                    if given.only in name:
                        yield {"network": network, "set": name, "batch": batch, "threads": threads,
                               **engines.compare(drawn(name, batch), given)}
                        print(".", end="", file=sys.stderr, flush=True)


def place(each):
    """The key of a row, in the order of the tables."""
    return (list(NETWORKS).index(each["network"]), each["threads"], each["batch"],
            list(quantiles()).index(each["set"]))


def main():
    options = report.arguments(__doc__, rounds=7, turn_ms=100)
    options.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    options.add_argument("--sets", nargs="+", default=list(quantiles()), choices=quantiles())
    options.add_argument("--batch", nargs="+", type=int, default=[32, 64, 128])
    options.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    options.add_argument("--parts", nargs="*", type=int, default=PARTS, help="of micro-batches")
    options.add_argument("--peers", nargs="*", default=list(engines.PEERS),
                         choices=engines.PEERS)
    options.add_argument("--add", action="store_true", help="to what earlier runs measured")
    given = options.parse_args()
    kept = report.last("ragged") if given.last or given.add else []
    found = {place(each): each for each in kept}
    if not given.last:
        for line in engines.missing(given.peers):
            print(line, file=sys.stderr)
        found |= {place(each): each for each in measured(given)}
    found = [found[key] for key in sorted(found)]
    report.publish("ragged", [*times(found), "", *costs(found), "", *goals(found)], found, given)


if __name__ == "__main__":
    main()
