"""Times Heddle beside its peers: `./dev bench peers`.

Each engine lives in a process of its own (worker.py), bound to the same cores with as many threads.
Outputs are first compared with ONNX Runtime's (agreement.py): what differs is not timed. Then the
engines run turn by turn (rounds.py). Ratios are a peer's time over Heddle's: above 1, Heddle is
faster. Results are kept in build/bench/peers/MODEL-bBATCH-tTHREADS.json; those that are there, of
the same model, versions and options, are not made again. table.py writes them as Markdown. What
peers compile is kept too (prepared.py), and with --prepare-only nothing else is done. With
--callers several threads call one session of an engine without a pause (callers.py), on all cores.
"""

import argparse
import contextlib
import datetime
import hashlib
import json
import os
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.models import tool
from bench.models.sources import Missing
from bench.peers import agreement, cases, rounds
from bench.peers.engines import engines
from bench.peers.job import Job
from bench.peers.member import Failed, Member
from bench.peers.prepared import Shelf, keeps

STORE = tool.RESULTS / "peers"
BASE, REFERENCE = "heddle", "onnxruntime"
SERVED_S, SERVED_TURNS = 2.0, 7  # of a turn of several callers; the first turn is not counted
HEADER = (f"  {'engine':20}{'ms':>10}{'q1..q3':>19}{'ratio':>8}{'q1..q3':>14}{'compile s':>11}"
          f"{'load s':>8}{'peak MiB':>10}{'idle':>7}{'served/s':>10}{'p99 ms':>9}")


@dataclass(frozen=True)
class Setting:
    """Settings of all engines of one table."""

    threads: int
    cores: list
    limit_s: float
    pace: rounds.Pace
    fresh: bool = False  # whether peers compile anew what they have compiled before
    callers: int = 0  # threads that call an engine at once, after all else


def digest(path):
    """A digest that tells one model from another."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


class Contest:
    """The engines on one model at one batch; a context, since it holds their processes."""

    def __init__(self, case, batch, setting):
        self.case, self.setting, self.name = case, setting, f"{case.name}-b{batch}"
        self.shelf = Shelf(STORE / "prepared", setting.fresh)
        # Others may prepare the same while this one is timed.
        self.folder = STORE / "work" / f"{self.name}-t{setting.threads}-{os.getpid()}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.model, self.feeds = str(case.path()), self.folder / "feeds.npz"
        self.digest = digest(self.model)
        np.savez(self.feeds, **case.make_feeds(batch))
        self.members, self.report = {}, {}
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def job_of(self, engine):
        return Job(engine.module, self.model, str(self.feeds), str(self.folder / engine.name),
                   self.setting.threads, self.setting.cores, self.case.network,
                   list(self.case.constants), engine.options)

    def prepare(self, engine, job, limit):
        """Has the engine compile; what its report says of that."""
        done = self.shelf.prepare(engine, job, self.name, self.digest, limit)
        return {"compile_s": done.pop("seconds")} | done

    def admit(self, engine):
        """Starts an engine; its outputs, or None when it cannot: the report then says why."""
        print(f"  {engine.name}...", end="\r", file=sys.stderr, flush=True)
        report = self.report[engine.name] = {"version": engine.version(), "status": "failed"}
        job, limit = self.job_of(engine), self.setting.limit_s
        try:
            report |= self.prepare(engine, job, limit)
            member = self.stack.enter_context(Member(job))
            done = member.ask("load", limit)
            report["load_s"] = done.pop("seconds")
            report |= done
            path = job.path("outputs.npz")
            member.ask("outputs", limit, path=str(path))
        except Failed as failure:
            report["error"] = str(failure)
            return None
        with np.load(path) as stored:
            outputs = [stored[name] for name in sorted(stored.files, key=int)]
        path.unlink()
        self.members[engine.name] = member
        report["status"] = "ok"
        return outputs

    def compare(self, name, outputs, expected):
        """Leaves out an engine whose outputs differ from the reference's."""
        worst = agreement.farthest(outputs, expected, self.case.quantised)
        self.report[name]["worst"] = min(worst, 1e30)
        if worst > 1:
            self.report[name]["status"] = "differs"
            self.members.pop(name).close()

    def time(self):
        """Times those who are left, then looks at their memory and their rest."""
        turns, dropped = rounds.measure(self.members, self.setting.pace)
        for name, why in dropped.items():
            self.report[name] |= {"status": "failed", "error": why}
            self.members.pop(name).close()
        for name, found in rounds.figures(turns, BASE).items():
            self.report[name] |= found
        for name, member in self.members.items():
            with contextlib.suppress(Failed):
                peak = member.ask("memory", self.setting.limit_s, times=1)["peak_bytes"]
                idle = member.ask("idle", self.setting.limit_s, seconds=1.0)["cpu_s"]
                self.report[name] |= {"idle_cpu": idle, "peak_bytes": peak}

    def serve(self):
        """Notes the runs a second of several callers, where an engine allows them."""
        answers = {name: [] for name in self.members}
        for turn in range(SERVED_TURNS + 1):
            for name in list(answers)[::1 if turn % 2 else -1]:
                time.sleep(self.setting.pace.pause_s)
                with contextlib.suppress(Failed):
                    answers[name].append(self.members[name].ask(
                        "serve", self.setting.limit_s, callers=self.setting.callers,
                        seconds=min(SERVED_S, self.setting.pace.seconds)))
        for name, each in answers.items():
            if len(each) > 1:
                self.report[name]["served"] = {
                    key: statistics.median(answer[key] for answer in each[1:]) for key in each[0]}


def contest(case, batch, setting, chosen):
    """The report of each engine on a model."""
    everyone = engines()
    with Contest(case, batch, setting) as run:
        reference = chosen.get(REFERENCE, everyone[REFERENCE])
        expected = run.admit(reference)
        if expected is None:
            raise Missing(f"ONNX Runtime, the reference: {run.report[REFERENCE]['error']}")
        for name, engine in chosen.items():
            if name == REFERENCE:
                continue
            outputs = run.admit(engine)
            if outputs is not None:
                run.compare(name, outputs, expected)
        if REFERENCE not in chosen:
            run.members.pop(REFERENCE).close()
            run.report.pop(REFERENCE)
        run.time()
        if setting.callers:
            run.serve()
        return {name: run.report[name] for name in chosen}


def prepare_only(case, batch, setting, chosen):
    """Has the peers compile what a contest needs; True when any of them could."""
    print(f"\n{case.name}, batch {batch}, {setting.threads} threads", flush=True)
    done = 0
    try:
        with Contest(case, batch, setting) as run:
            for engine in filter(keeps, chosen.values()):
                try:
                    seconds = run.prepare(engine, run.job_of(engine), setting.limit_s)["compile_s"]
                    done += 1
                    print(f"  {engine.name:20}compiled in {seconds:.1f} s", flush=True)
                except Failed as failure:
                    print(f"  {engine.name:20}{str(failure)[:120]}", flush=True)
    except Missing as reason:
        print(f"  {reason}", flush=True)
    return done > 0


def line_of(name, report):
    """One line of the terminal's table."""
    if report["status"] == "failed":
        return f"  {name:20}{report['error'][:120]}"
    if report["status"] == "differs":
        return f"  {name:20}differs: {report['worst']:.3g} times what is allowed; not ranked"
    spread = f"{report['q1_ms']:.3f}..{report['q3_ms']:.3f}"
    ratio, ratios, served = "", "", report.get("served")
    if "ratio" in report:
        ratio = f"{report['ratio']:.2f}"
        ratios = f"{report['ratio_q1']:.2f}..{report['ratio_q3']:.2f}"
    return (f"  {name:20}{report['median_ms']:10.3f}{spread:>19}{ratio:>8}{ratios:>14}"
            f"{report['compile_s']:11.1f}{report['load_s']:8.1f}"
            f"{report.get('peak_bytes', 0) / 2**20:10.0f}{report.get('idle_cpu', 0):7.2f}"
            + (f"{served['runs_per_s']:10.1f}{served['p99_ms']:9.2f}" if served else ""))


def kept(path, wanted):
    """The result at the path, when it holds what is wanted; else None."""
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    same = all(found.get(key) == value for key, value in wanted.items() if key != "versions")
    versions = {name: report["version"] for name, report in found["engines"].items()}
    return found if same and wanted["versions"].items() <= versions.items() else None


def arguments_of(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--engines", nargs="+", metavar="NAME", help="only these, and heddle")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, nargs="+", help="only these of a model's batches")
    parser.add_argument("--seconds", type=float, default=20, help="of timing a row (default 20)")
    parser.add_argument("--rounds", type=int, default=7, help="at least so many (default 7)")
    parser.add_argument("--pause", type=float, default=100, metavar="MS", help="before a turn")
    parser.add_argument("--limit", type=float, default=180, metavar="SECONDS",
                        help="for an engine to compile, to load or to run once (default 180)")
    parser.add_argument("--callers", type=int, default=0, metavar="N",
                        help="have N threads call each engine at once, too")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--fresh", action="store_true",
                        help="compile anew what peers have compiled before")
    parser.add_argument("--prepare-only", action="store_true",
                        help="have the peers compile, and keep that for later contests")
    parser.add_argument("--list", action="store_true", help="names of models and engines")
    return parser.parse_args(arguments)


def chosen_engines(options):
    """The engines to time, Heddle among them."""
    known = engines()
    names = options.engines or known
    wrong = [name for name in names if name not in known]
    if wrong:
        raise KeyError(f"no engine '{wrong[0]}'; there are: {', '.join(known)}")
    return {name: engine for name, engine in known.items() if name in {BASE, *names}}


def bench(case, batch, threads, options, chosen):
    """One result, made or kept; None when the model cannot be had."""
    path = STORE / f"{case.name}-b{batch}-t{threads}.json"
    print(f"\n{case.name}, batch {batch}, {threads} thread{'s' if threads > 1 else ''}", flush=True)
    try:
        wanted = {"model": case.name, "batch": batch, "threads": threads,
                  "digest": digest(case.path()), "callers": options.callers,
                  "versions": {name: engine.version() for name, engine in chosen.items()}}
        result = None if options.again else kept(path, wanted)
        if result is None:
            cores = sorted(os.sched_getaffinity(0))[:None if options.callers else threads]
            if len(cores) < threads:
                raise Missing(f"{threads} threads need as many cores, but there are {len(cores)}")
            pace = rounds.Pace(options.seconds, options.rounds, limit_s=options.limit,
                               pause_s=options.pause / 1000)
            setting = Setting(threads, cores, options.limit, pace, options.fresh, options.callers)
            result = wanted | {
                "date": datetime.date.today().isoformat(), "machine": tool.machine(),
                "seconds": options.seconds, "limit_s": options.limit,
                "engines": contest(case, batch, setting, chosen)}
            del result["versions"]
            path.write_text(json.dumps(result, indent=1), encoding="utf-8")
    except Missing as reason:
        print(f"  {reason}", flush=True)
        return None
    print(HEADER)
    for name, report in result["engines"].items():
        print(line_of(name, report), flush=True)
    return result


def main(arguments=None):
    """Benches; exit status 1 when there is no result at all."""
    options = arguments_of(arguments)
    if options.list:
        print("models: ", *(f"{c.name} (batch {', '.join(map(str, c.batches))})"
                            for c in cases.cases()), sep="\n  ")
        print("engines:", *engines(), sep="\n  ")
        return 0
    try:
        models = [cases.find(name) for name in options.models or ()] or cases.cases()
        chosen = chosen_engines(options)
    except KeyError as wrong:
        print(f"bench peers: {wrong.args[0]}", file=sys.stderr)
        return 2
    Path(STORE).mkdir(parents=True, exist_ok=True)
    found = 0
    for threads in options.threads:
        setting = Setting(threads, [], options.limit, None, options.fresh)
        for case in models:
            for batch in case.batches if not options.batch else options.batch:
                if batch not in case.batches:
                    continue
                if options.prepare_only:
                    found += prepare_only(case, batch, setting, chosen)
                else:
                    found += bench(case, batch, threads, options, chosen) is not None
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
