"""Times models in f32, bf16 and int8 beside OpenVINO and ONNX Runtime: `./dev bench precision`.

Engines, each in a process of its own as in `./dev bench peers`, whose cases these are:

    f32, bf16, mixed, int8    Heddle: as it is, `--math bf16`, `--tolerance`, the quantised model
    ort, ort-int8             ONNX Runtime, on the model and on the quantised one
    openvino, openvino-int8   OpenVINO as it comes (bf16 where the CPU has it, compressed weights
                              with dynamic quantisation), on the model and on the quantised one
    nncf                      OpenVINO, on what NNCF makes of the model, if that is installed

The quantised model is of `heddle quantize`. Errors are those of outputs beside ONNX Runtime's in
f32, relative to the largest number of each, on an input that nothing was calibrated with. A machine
without products of bf16 says so, and only their errors are measured (`--math bf16-emulated`).
Results: build/bench/precision/MODEL-bBATCH-tTHREADS.json.
"""

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.kernels import report
from bench.models import tool
from bench.peers import bench as peers
from bench.peers import cases, rounds
from bench.peers.engines import Engine, engines

STORE = tool.RESULTS / "precision"
SAMPLES = 16  # of calibration
TOLERANCE = "1e-2"
PEERS = ("ort", "openvino", "openvino-int8", "ort-int8", "nncf")
COLUMNS = ("f32", "bf16", "mixed", "int8", *PEERS)
UNCALIBRATED = ("f32", "bf16", "ort", "openvino")  # engines that need no samples


def has_short():
    """Tells whether this machine multiplies numbers of bf16."""
    return "avx512_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8").split()


def quantised(case, folder):
    """(The model of a case as `heddle quantize` makes it, None), or (None, why there is none)."""
    made, data = folder / "int8.onnx", folder / "data"
    data.mkdir(exist_ok=True)
    for seed in range(SAMPLES):
        np.savez(data / f"{seed:02}.npz", **case.feeds(1, np.random.default_rng(1000 + seed)))
    done = tool.run_heddle("quantize", case.path(), "--data", data, "-o", made)
    return (str(made), None) if not done.status else (None, done.errors.strip().splitlines()[0])


def by_nncf(case, folder):
    """OpenVINO's model that NNCF makes of the model of a case."""
    import nncf
    import openvino

    made = folder / "nncf.xml"
    feeds = [case.feeds(1, np.random.default_rng(1000 + seed)) for seed in range(SAMPLES)]
    model = openvino.Core().read_model(str(case.path()))
    openvino.save_model(nncf.quantize(model, nncf.Dataset(feeds)), str(made),
                        compress_to_fp16=False)
    return str(made)


def contestants(case, folder, wanted):
    """({name: Engine}, {name: why it is not there}) of those that are wanted."""
    known = engines()
    data = ["--tolerance", TOLERANCE, "--data", str(folder / "data")]
    made, why = quantised(case, folder) if {*wanted} - {*UNCALIBRATED} else (None, "not wanted")
    found = {"f32": ("heddle", {}), "ort": ("onnxruntime", {}),
             "openvino": ("openvino", {"precision": "default"})}
    left = {}
    short = "" if has_short() else "-emulated"
    found["bf16"] = ("heddle", {"arguments": ["--math", f"bf16{short}"]})
    if short:
        left["mixed"] = "this machine multiplies no bf16"
    else:
        found["mixed"] = ("heddle", {"arguments": ["--math", "bf16", *data]})
    for name, engine in (("int8", "heddle"), ("ort-int8", "onnxruntime"),
                         ("openvino-int8", "openvino")):
        if made:
            found[name] = (engine, {"model": made, "precision": "default"})
        else:
            left[name] = why
    if "nncf" in wanted:
        try:
            found["nncf"] = ("openvino", {"model": by_nncf(case, folder), "precision": "default"})
        except Exception as reason:  # noqa: BLE001: nncf's own, of many kinds
            left["nncf"] = str(reason).strip().splitlines()[0][:200]
    return {name: dataclasses.replace(known[engine], name=name, options=options)
            for name, (engine, options) in found.items() if name in wanted}, left


class Contest(peers.Contest):
    """A contest in which what differs is timed, too, and told."""

    def job_of(self, engine: Engine):
        job = super().job_of(engine)
        return dataclasses.replace(job, model=engine.options.get("model", job.model))

    def judge(self, name, outputs, expected):
        """Notes the greatest error of an output, relative to its largest number."""
        worst = 0.0
        for found, wanted in zip(outputs, expected):
            found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
            largest = np.abs(wanted).max(initial=0)
            error = np.abs(found - wanted).max(initial=0)
            worst = max(worst, float(error / largest) if largest else float(error > 0))
        self.report[name]["error_of_outputs"] = worst


def contest(case, batch, setting, folder, wanted):
    """The report of each engine on a model; ratios are times over those of Heddle in f32."""
    chosen, left = contestants(case, folder, wanted)
    with Contest(case, batch, setting) as run:
        expected = run.admit(chosen["ort"])
        if expected is None:
            raise cases.Missing(f"ONNX Runtime, the reference: {run.report['ort']['error']}")
        for name, engine in chosen.items():
            outputs = run.admit(engine) if name != "ort" else expected
            if outputs is not None:
                run.judge(name, outputs, expected)
        if "bf16" in run.members and not has_short():
            run.members.pop("bf16").close()
            run.report["bf16"] |= {"status": "failed", "error": left["mixed"]}
        turns, dropped = rounds.measure(run.members, setting.pace)
        for name, why in dropped.items():
            run.report[name] |= {"status": "failed", "error": why}
        for name, figures in rounds.figures(turns, "f32").items():
            run.report[name] |= figures
        return {**run.report, **{name: {"status": "failed", "error": why}
                                 for name, why in left.items() if name in wanted}}


def bench(case, batch, threads, options):
    """One result, which is written down; None when the model cannot be had."""
    print(f"\n{case.name}, batch {batch}, {threads} threads", flush=True)
    cores = sorted(os.sched_getaffinity(0))[:threads]
    pace = rounds.Pace(options.seconds, options.rounds, limit_s=options.limit)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = contest(case, batch, peers.Setting(threads, cores, options.limit, pace),
                            Path(folder), {"ort", *options.engines})
    except cases.Missing as reason:
        print(f"  {reason}", flush=True)
        return None
    for name in options.engines:
        print(f"  {name:14}{_cell(found.get(name, {}))}", flush=True)
    result = {"model": case.name, "batch": batch, "threads": threads, "machine": tool.machine(),
              "engines": found}
    path = STORE / f"{case.name}-b{batch}-t{threads}.json"
    path.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return result


def _cell(engine):
    error = engine.get("error_of_outputs")
    told = "" if error is None else f" ({error:.1e})"
    if "median_ms" not in engine:
        return engine.get("error", "")[:100] + told
    return f"{engine['median_ms']:.2f} ms, {engine.get('ratio', 1):.2f}{told}"


def ratios(results, ours, theirs):
    """Ratios of the least median of `theirs` to the least of `ours`, where both were timed."""
    for result in results:
        times = [[result["engines"].get(name, {}).get("median_ms") for name in names]
                 for names in (ours, theirs)]
        best = [min(filter(None, each), default=None) for each in times]
        if all(best):
            yield {"ratio": best[1] / best[0]}


QUESTIONS = {
    "bf16, of f32": (("bf16",), ("f32",)),
    "bf16, of the better of OpenVINO and ONNX Runtime": (("bf16",), ("openvino", "ort")),
    "f32, of the better of OpenVINO and ONNX Runtime": (("f32",), ("openvino", "ort")),
    "int8, of f32": (("int8",), ("f32",)),
    "int8, of the better of OpenVINO, NNCF and ONNX Runtime in int8":
        (("int8",), ("openvino-int8", "ort-int8", "nncf"))}


def table(results, columns):
    """Lines of Markdown: milliseconds, and the error of outputs."""
    rows = []
    for result in results:
        cells = [result["engines"].get(name, {}) for name in columns]
        rows.append([f"{result['model']}, {result['batch']}", result["threads"], *(
            (f"{cell['median_ms']:.2f}" if "median_ms" in cell else "-")
            + (f" ({cell['error_of_outputs']:.1e})" if "error_of_outputs" in cell else "")
            for cell in cells)])
    yield from report.table(["model, batch", "threads", *columns], rows)
    yield ""
    for text, (ours, theirs) in QUESTIONS.items():
        yield f"{text}: {report.summary(list(ratios(results, ours, theirs)))}."


def files(options):
    """Cases of the files; those that cannot be had are named."""
    for path in options.files:
        try:
            yield cases.of_file(path, options.dim)
        except cases.Missing as reason:
            print(reason, file=sys.stderr)


def main(arguments=None):
    """Benches; exit status 1 when there is no result at all."""
    parser = argparse.ArgumentParser(prog="./dev bench precision",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--files", nargs="+", default=[], metavar="MODEL.onnx",
                        help="these, with random inputs, instead of models by name")
    parser.add_argument("--dim", nargs="+", default=[], metavar="NAME=SIZE",
                        help="sizes of random inputs that files leave open")
    parser.add_argument("--engines", nargs="+", default=COLUMNS, choices=COLUMNS,
                        help="only these, and ONNX Runtime in f32, the reference")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, nargs="+", help="only these of a model's batches")
    parser.add_argument("--seconds", type=float, default=20, help="of timing a row (default 20)")
    parser.add_argument("--rounds", type=int, default=7, help="at least so many (default 7)")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS",
                        help="for an engine to compile, to load or to run once (default 300)")
    options = parser.parse_args(arguments)
    STORE.mkdir(parents=True, exist_ok=True)
    wanted = [cases.find(name) for name in options.models or ()] + list(files(options)) or [
        case for case in cases.cases() if not case.quantised]
    results = [bench(case, batch, threads, options) for threads in options.threads
               for case in wanted for batch in options.batch or case.batches]
    results = [result for result in results if result]
    print(f"\n`./dev bench precision`: milliseconds (error); {tool.machine()}.", "",
          *table(results, options.engines), sep="\n")
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
