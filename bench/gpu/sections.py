"""A section of `./dev bench gpu`, in a process of its own: each row is a line of JSON, written as
soon as it is known.

    python -m bench.gpu.sections SECTION FOLDER ROWS.jsonl SETTINGS
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from bench.gpu import cases, peers
from bench.kernels import turns
from bench.networks import seeded, transformers
from bench.ragged.lengths import drawn, quantiles

# Bounds of differences, in parts of the largest result; a peer's bf16 is of all its values.
BOUNDS, PEER_BOUNDS = {"f32": 1e-3, "bf16": 5e-2}, {"f32": 1e-3, "bf16": 0.15}
ALL_ON_DEVICE = {"plan": 1, "thresholds": {"device_elements": 0, "bf16_saving": 0}, "groups": []}
UNFUSED = "cards,fusion,stitch,siblings"


class Run:
    """Things that all sections have: the folder, the settings, the file of rows."""

    def __init__(self, folder, rows, settings):
        self.folder, self.settings = Path(folder), settings
        self.rows = open(rows, "a", encoding="utf-8")
        self.is_tiny, self.chip = settings["tiny"], settings["chip"]
        self.device = "cpu" if settings["emulated"] else "cuda"

    def tell(self, **row):
        print(json.dumps(row), file=self.rows, flush=True)

    def each(self, whats, function):
        """Calls it with each; one that fails is a row that says why, and the others go on."""
        for what in whats:
            try:
                function(*what)
            except Exception as failure:  # noqa: BLE001
                named = " ".join(getattr(part, "name", str(part)) for part in what)
                lines = str(failure).strip().splitlines() or [""]
                self.tell(case=named, error=f"{type(failure).__name__}: {lines[0]}"[:300])

    def sizes(self, name):
        return transformers.sizes_of(name, **cases.tiny(name, self.is_tiny))

    def models(self, name):
        """The folder of a model."""
        return self.folder / "models" / name

    def artefact(self, case, math, kind="", **options):
        """The path of the model compiled for the GPU, and in f32 for the host, too, but for those
        of a kind; and which of its groups are on the device."""
        import heddle
        place = self.models(case.folder)
        path = place / f"{math}{kind}-{self.chip}.so"
        told = path.with_suffix(".groups")
        if not told.exists():
            if self.is_tiny:  # no group is large enough
                options["plan"] = ALL_ON_DEVICE
            is_short = math == "bf16"
            target = self.chip if kind or is_short else f"host+{self.chip}"
            made = heddle.compile(seeded.fill(place), output=path, load=False, target=target,
                                  math="bf16" if is_short else "fast", **options)
            devices = [group.get("device", 0) for group in made.plan["groups"]]
            told.write_text(f"{sum(devices)} of {len(devices)}", encoding="utf-8")
        return path, told.read_text(encoding="utf-8")

    def session(self, path, device="cuda"):
        """A session of the artefact's form for the device, or for the CPU."""
        import heddle
        os.environ["HEDDLE_DEVICE"] = device
        module = heddle.load(path)
        if ("+sm_" in module.info["target"]) != (device == "cuda"):
            raise RuntimeError(f"the form that runs is of {module.info['target']}")
        return heddle.Session(module)

    def timed(self, calls):
        """The seconds of each turn of each call, after a first one."""
        return turns.by_turns({name: turns.timed_calls(call, time.perf_counter)
                               for name, call in calls.items()},
                              self.settings["rounds"], self.settings["turn"] / 1000)


def difference(found, wanted):
    """The greatest difference, in parts of the largest number; infinite where either is none."""
    found, wanted = (np.asarray(x, np.float64) for x in (found, wanted))
    if found.shape != wanted.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - wanted).max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-30))


def numbers(run):
    """Results of the device beside those of the CPU's form of the artefact."""
    def one(case):
        feeds, wanted = case.feeds(), None
        for math, bound in BOUNDS.items():
            path, groups = run.artefact(case, math)
            if wanted is None:
                wanted = [run.session(path, "cpu").run(None, each)[0] for each in feeds]
            session = run.session(path)
            error = max(difference(session.run(None, each)[0], right)
                        for each, right in zip(feeds, wanted))
            run.tell(**{"case": case.name, "math": math, "groups on the device": groups,
                        "difference": error, "agrees": agrees(error, bound)})
    run.each([(case,) for case in (*cases.small(run.is_tiny), *cases.networks(run.is_tiny))], one)


def agrees(error, bound):
    return "yes" if error <= bound else f"NO: above {bound:g}"


def ratios(times, **row):
    """The row with the milliseconds of heddle, and how many times longer the others take."""
    row["heddle, ms"] = 1e3 * statistics.median(times["heddle"])
    return row | {f"{name} / heddle": turns.ratio(times, name, "heddle")
                  for name in times if name != "heddle"}


def attempt(function):
    """(what it gives, ""), or (None, why it fails): a peer may fail in any way."""
    try:
        return function(), ""
    except Exception as failure:  # noqa: BLE001
        return None, f"{type(failure).__name__}: {(str(failure).splitlines() or [''])[0]}"[:120]


def compared(run, engine):
    """Each network in bf16 and in f32, at batch 1 and 16, beside the engine."""
    missing = peers.missing(engine, run.device)

    def one(name, math):
        session = run.session(run.artefact(cases.network(name, run.is_tiny), math)[0])
        given = engine, name, run.models(name), math, run.device, cases.tiny(name, run.is_tiny)
        peer, reason = (None, missing) if missing else attempt(lambda: peers.opened(*given))
        for batch, length in ((1, 9), (2, 9)) if run.is_tiny else ((1, 128), (16, 128)):
            feeds = transformers.feeds(name, run.sizes(name), batch, length)
            calls, why = {"heddle": lambda feeds=feeds: session.run(None, feeds)}, reason
            wanted = calls["heddle"]()[0]
            if peer:
                call = peer.call(feeds)
                found, why = attempt(call)
                error = 0 if why else difference(found, wanted)
                if error > PEER_BOUNDS[math]:
                    why = f"differs by {error:.2g}"
                elif not why:
                    calls[engine] = call
            row = ratios(run.timed(calls), case=name, batch=batch, math=math)
            run.tell(**row, **({f"{engine} / heddle": why} if why else {}))
    if missing and engine != "eager":
        run.tell(case=engine, **{f"{engine} / heddle": missing})
    else:
        run.each([(name, math) for name in cases.names(run.is_tiny)
                  for math in ("bf16", "f32")], one)


def kernels(run):
    """Time of a step of a chain, and of torch's matmul, attention or copy of the same sizes."""
    missing = peers.missing("eager", run.device)

    def one(few, many, math):
        is_copy, calls = few.name.startswith("copies"), {}
        for case in (few, many):
            path, _ = run.artefact(case, math, "-chain", **{"without": UNFUSED} if is_copy else {})
            session, feeds = run.session(path), case.feeds()[0]
            calls["heddle", case] = lambda session=session, feeds=feeds: session.run(None, feeds)
            if not missing:
                steps = cases.MANY if case is many else cases.FEW
                calls["torch", case] = peers.torch_steps(case, math, run.device, steps)
        times = run.timed(calls)
        step = {engine: statistics.median(long - short for long, short in zip(
            times[engine, many], times[engine, few])) / (cases.MANY - cases.FEW)
            for engine, _ in times}
        unit, scale = ("GB/s", 1e9) if is_copy else ("TFLOP/s", 1e12)
        run.tell(**{"case": few.name.rsplit(" ", 1)[0], "math": math,
                    "heddle, us": 1e6 * step["heddle"],
                    "rate": f"{few.work / step['heddle'] / scale:.3g} {unit}",
                    "torch / heddle": missing or step["torch"] / step["heddle"]})
    run.each([(*pair, math) for pair in cases.chains(run.is_tiny) for math in ("bf16", "f32")
              if math == "f32" or not pair[0].name.startswith("copies")], one)


def ragged(run):
    """BERT over batches of texts of different lengths: padded, and with --ragged."""
    name, batch = "bert_base", 4 if run.is_tiny else 32
    case, sizes = cases.network(name, run.is_tiny), run.sizes(name)
    padded = run.session(run.artefact(case, "f32")[0])
    path, groups = run.artefact(case, "f32", "-ragged", ragged="batch:seq=attention_mask")
    own = run.session(path)

    def one(texts):
        lengths = np.minimum(drawn(texts, batch), 9 if run.is_tiny else sizes.places)
        longest = int(max(lengths))
        words = np.random.default_rng(3).integers(0, sizes.words, (batch, longest))
        feeds = {"input_ids": words,
                 "attention_mask": np.int64(np.arange(longest) < lengths[:, None])}
        calls = {"heddle": lambda: own.run(None, feeds), "padded": lambda: padded.run(None, feeds)}
        error = difference(calls["heddle"]()[0], calls["padded"]()[0])
        padding = longest * batch / int(sum(lengths))
        run.tell(**ratios(run.timed(calls), case=texts, batch=batch, padding=padding),
                 agrees=agrees(error, BOUNDS["f32"]), **{"groups on the device": groups})
    run.each([(texts,) for texts in list(quantiles())[:2 if run.is_tiny else None]], one)


def torch_trainer(run, name, feeds, labels):
    """A step of torch's: Adam, the mean of squares."""
    import torch
    module = peers.seeded_module(name, run.models(name), cases.tiny(name, run.is_tiny))
    module = module.to(run.device).train(name == "resnet50")  # norms of the batch; no dropout
    optimizer = torch.optim.Adam(module.parameters(), 1e-4, fused=True)
    given, labels = [torch.from_numpy(value) for value in feeds.values()], torch.from_numpy(labels)

    def step():
        optimizer.zero_grad(set_to_none=True)
        found = module(*(x.to(run.device) for x in given))
        loss = torch.nn.functional.mse_loss(found, labels.to(run.device))
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def training(run):
    """Steps of Adam beside PyTorch's; the first losses have to agree."""
    from heddle.training import Trainer
    os.environ["HEDDLE_DEVICE"] = "cuda"

    def one(name, batch):
        sizes, missing = run.sizes(name), peers.missing("eager", run.device)
        feeds = transformers.feeds(name, sizes, batch, 9 if run.is_tiny else 128)
        columns = sizes.words if name == "resnet50" else sizes.width
        labels = cases.normal(labels=(batch, columns))["labels"]
        trainer = Trainer(seeded.fill(run.models(name)), "mse", learning_rate=1e-4,
                          target=run.chip, **({"plan": ALL_ON_DEVICE} if run.is_tiny else {}))
        calls = {"heddle": lambda: trainer.step({**feeds, "labels": labels})}
        step, why = (None, missing) if missing else attempt(
            lambda: torch_trainer(run, name, feeds, labels))
        if step:
            calls["eager"] = step
        losses = {engine: [call() for _ in range(3)] for engine, call in calls.items()}
        row = ratios(run.timed(calls), case=name, batch=batch)
        if step:
            row["agrees"] = agrees(difference(losses["heddle"], losses["eager"]), 1e-3)
        run.tell(**row, **({"eager / heddle": why} if why else {}))
    run.each([("bert_base", 2)] if run.is_tiny else [("bert_base", 16), ("resnet50", 32)], one)


def models(run):
    compared(run, "eager")


def inductor(run):
    compared(run, "inductor")


def jax(run):
    compared(run, "jax")


SECTIONS = {function.__name__: function
            for function in (numbers, models, kernels, ragged, training, inductor, jax)}


def main():
    section, folder, rows, settings = sys.argv[1:]
    sys.setrecursionlimit(10000)  # of tracers
    SECTIONS[section](Run(folder, rows, json.loads(settings)))


if __name__ == "__main__":
    main()
