"""Do ops of torch give eager's results where torch.compile runs them with Heddle?

    ./dev bench torch-ops [--only add matmul] [--samples 4] [--limit 120] [--jobs 2]

Each op of torch's own list for tests (OpInfo) is compiled for a few of its samples, as a function
of the sample's tensors, of f32 where it takes them. `agrees`: all results are eager's, and Heddle
made them; `left`: Heddle refuses some, which eager then computes; `torch's`: torch's own backend
`aot_eager` fails as well, or eager differs from itself; `wrong`: another result, or an error. A
result may differ by the tolerance of torch.testing, ten times as much where a sum is long. The exit
status is 1 if an op is wrong.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import warnings

os.environ["HEDDLE_CACHE"] = ""  # read when the package is loaded

import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import heddle.torch  # noqa: E402, F401
from bench.kernels import report  # noqa: E402

MARK = "op: "  # before what a process found
MOST = {"rtol": 1e-4, "atol": 1e-5}
TYPES = (torch.float32, torch.int64, torch.bool)
RAISED = 300  # characters of an error
REFUSED = "BackendCompilerFailed"
VERDICTS = ("agrees", "left", "torch's", "wrong")


def name_of(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def sample_of(op, sample):
    """(A function of a sample's tensors, these tensors)."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors):
        given = list(leaves)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        first, others, named = pytree.tree_unflatten(given, spec)
        return op.op(first, *others, **named)

    return function, [leaves[place] for place in places]


def call(function, tensors):
    """The results of a function of copies: some ops write to what they are given."""
    torch.manual_seed(3)
    with torch.no_grad():
        found = function(*[tensor.clone() for tensor in tensors])
    return [leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor)]


def difference(found, wanted):
    """Text on how results differ; "" if they do not."""
    if len(found) != len(wanted):
        return f"{len(found)} results, not {len(wanted)}"
    for one, other in zip(found, wanted):
        try:
            torch.testing.assert_close(one, other, equal_nan=True, **MOST)
        except AssertionError as error:
            return " ".join(str(error).split())[:RAISED]
    return ""


def compiled(function, tensors, engine):
    """(Results, "") or (None, why there are none)."""
    torch._dynamo.reset()
    options = {"fallback": "raise"} if engine == "heddle" else None
    try:
        return call(torch.compile(function, backend=engine, options=options, dynamic=False),
                    tensors), ""
    except Exception as error:  # noqa: BLE001: the engine's own, of any kind
        text = " ".join(str(error).split("\n\nSet TORCHDYNAMO")[0].split())
        return None, f"{type(error).__name__}: {text}"[:RAISED]


def verdict_of(function, tensors):
    """(One of VERDICTS, why)."""
    wanted = call(function, tensors)
    if difference(call(function, tensors), wanted):
        return "torch's", "eager differs from itself"
    found, why = compiled(function, tensors, "heddle")
    why = why or difference(found, wanted)
    if not why:
        return "agrees", ""
    own, failure = compiled(function, tensors, "aot_eager")
    if own is None or difference(own, wanted):
        return "torch's", failure or "aot_eager differs from eager"
    return ("left" if found is None and REFUSED in why else "wrong"), why


def tried(op, count):
    """The worst verdict on samples of an op."""
    kind = next((each for each in TYPES if each in op.dtypes), None)
    if kind is None:
        return "torch's", "it takes none of f32, int64 and bool"
    worst, why, number = "agrees", "", 0
    torch.manual_seed(1)
    for sample in op.sample_inputs("cpu", kind, requires_grad=False):
        function, tensors = sample_of(op, sample)
        if not tensors:
            continue
        verdict, reason = verdict_of(function, tensors)
        if VERDICTS.index(verdict) > VERDICTS.index(worst):
            worst, why = verdict, reason
        number += 1
        if number == count:
            break
    return (worst, why) if number else ("torch's", "no sample has a tensor")


def work(names, count):
    """Tries ops in this process, and says each as it is done."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    wanted = set(names)
    for op in op_db:
        if name_of(op) in wanted:
            try:
                verdict, why = tried(op, count)
            except Exception as error:  # noqa: BLE001: of a sample, in eager
                verdict, why = "torch's", f"eager: {error}"[:RAISED]
            print(MARK + json.dumps([name_of(op), verdict, why]), flush=True)


def chunk(names, given):
    """Tries ops in new processes: after one that ends or hangs, the next goes on with the rest."""
    found, left = [], list(names)
    while left:
        command = [sys.executable, "-m", "bench.torch.ops", "--samples", str(given.samples),
                   "--alone", *left]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  timeout=given.limit * len(left))
            text, why = done.stdout, f"exit status {done.returncode}"
        except subprocess.TimeoutExpired as error:
            text, why = (error.stdout or b"").decode(), f"took more than {given.limit} s an op"
        made = [json.loads(line.removeprefix(MARK)) for line in text.splitlines()
                if line.startswith(MARK)]
        found += made
        left = left[len(made):]
        if left:
            found.append([left.pop(0), "wrong", why])
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="+", default=[], help="names of ops")
    options.add_argument("--samples", type=int, default=4, help="samples of an op")
    options.add_argument("--limit", type=float, default=60, help="seconds of an op, on average")
    options.add_argument("--jobs", type=int, default=1, help="processes at a time")
    options.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.alone:
        work(given.alone, given.samples)
        return 0
    names = list(dict.fromkeys(map(name_of, op_db)))
    if unknown := sorted(set(given.only) - set(names)):
        options.error(f"no op of torch's list is called {', '.join(unknown)}")
    names = [name for name in names if not given.only or name in given.only]
    chunks = [names[i:i + 20] for i in range(0, len(names), 20)]
    every = []
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for found in pool.map(lambda each: chunk(each, given), chunks):
            every += found
            for name, verdict, why in found:
                print(name, verdict, why, flush=True)
    report.STORE.mkdir(parents=True, exist_ok=True)
    kept = {"machine": report.machine(), "found": every}
    (report.STORE / "torch-ops.json").write_text(json.dumps(kept, indent=1) + "\n",
                                                 encoding="utf-8")
    count = {word: sum(verdict == word for _, verdict, _ in every) for word in VERDICTS}
    print(f"\n{count['agrees']} of {len(every)} ops agree, {count['left']} are left to torch, "
          f"{count[VERDICTS[2]]} are torch's own failures, {count['wrong']} are wrong")
    return int(count["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
