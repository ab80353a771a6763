"""Compiles and times every model of the catalogue beside ONNX Runtime: `./dev bench`.

A row a model: seconds and peak memory of the compiler, milliseconds to load the artefact, median
milliseconds of both engines from interleaved runs (`heddle bench --vs onnxruntime`), and their
ratio, which is above 1 where Heddle is faster. The last line is the geometric mean of the ratios.
The rows are kept in build/bench/models-THREADS.json.
"""

import argparse
import datetime
import json
import statistics
import sys
import time

from bench.models import catalogue, tool

STORE = tool.RESULTS
HEADER = (f"{'model':22}{'compile s':>10}{'peak MiB':>10}{'load ms':>9}{'heddle ms':>11}"
          f"{'ort ms':>9}{'ratio':>7}")


def load_milliseconds(artefact):
    """The median time to open an artefact, up to being ready to run."""
    import heddle

    times = []
    for _ in range(7):
        start = time.perf_counter()
        heddle.Session(str(artefact))
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def compile_model(model, limit_seconds):
    """Compiles a model; its row so far, with the artefact's path."""
    artefact = STORE / f"{model.name}.so"
    artefact.parent.mkdir(parents=True, exist_ok=True)
    done = tool.checked("compile", model.path(), "-o", artefact, "--no-cache",
                        limit_seconds=limit_seconds)
    return {"model": model.name, "artefact": str(artefact), "compile_s": done.seconds,
            "peak_bytes": done.peak_bytes, "load_ms": load_milliseconds(artefact)}


def time_model(model, threads):
    """Median milliseconds of Heddle and ONNX Runtime at the model's first shape."""
    options = tool.input_options(model.make_feeds()[0], STORE / "feeds" / model.name)
    done = tool.checked("bench", model.path(), "--vs", "onnxruntime", "--threads", threads,
                        "--json", *options)
    report = json.loads(done.output)
    return {"heddle_ms": report["median_ms"], "ort_ms": report["onnxruntime"]["median_ms"]}


def bench(models, threads, compiled, limit_seconds):
    """The rows of a table, printed as they come; `compiled` keeps compile figures for the next."""
    print(f"\n{threads} thread{'s' if threads > 1 else ''}\n{HEADER}")
    rows, left_out = [], []
    for model in models:
        try:
            if model.name not in compiled:
                compiled[model.name] = compile_model(model, limit_seconds)
            row = compiled[model.name] | time_model(model, threads)
        except (catalogue.Missing, RuntimeError) as reason:
            left_out.append({"model": model.name, "reason": str(reason)})
            print(f"{model.name:22}  {reason}")
            continue
        row["ratio"] = row["ort_ms"] / row["heddle_ms"]
        rows.append(row)
        print(f"{row['model']:22}{row['compile_s']:10.1f}{row['peak_bytes'] / 2**20:10.0f}"
              f"{row['load_ms']:9.1f}{row['heddle_ms']:11.2f}{row['ort_ms']:9.2f}"
              f"{row['ratio']:7.2f}", flush=True)
    if rows:
        mean = statistics.geometric_mean(row["ratio"] for row in rows)
        print(f"geometric mean of {len(rows)} ratios: {mean:.2f}")
    return {"date": datetime.date.today().isoformat(), "machine": tool.machine(),
            "threads": threads, "command": f"./dev bench --threads {threads}", "rows": rows,
            "left_out": left_out}


def main():
    """Benches the models for each number of threads; 1 when none could be benched."""
    parser = argparse.ArgumentParser(description="time every model beside ONNX Runtime")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS",
                        help="end a compilation that takes longer (default 120)")
    options = parser.parse_args()
    if options.models:
        models = [catalogue.find(name) for name in options.models]
    else:
        models = catalogue.models()
    compiled, found = {}, 0
    for threads in options.threads:
        result = bench(models, threads, compiled, options.limit)
        found += len(result["rows"])
        if not options.models:
            path = STORE / f"models-{threads}.json"
            path.write_text(json.dumps(result, indent=1))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
