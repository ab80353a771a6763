"""Does torch.compile with Heddle give eager's results and gradients, in one graph, on many models?

    ./dev bench torch-agrees [--only bert gpt2] [--limit 600] [--jobs 2]

Each model runs in a process of its own, in evaluation mode and a batch of 2. A result may differ
by 1e-5 of its largest number, and a gradient by 1e-4 of the largest of its parameter, or of a
hundredth of the largest of all, since some are zero but for rounding. A maximum or a rectifier
whose operands are equal but for rounding has another gradient: where an input differs by more, the
median of three counts, and may be three times as far from eager as eager is from 64 bits, but at
most a hundred times as far as others. A break, a refusal or an error that torch's own backend
`aot_eager`, which runs the graphs, has as well is torch's, and told apart. The exit status is 1 if
anything else fails. First calls hold all compiling: no cache answers.
"""

import argparse
import concurrent.futures
import copy
import json
import os
import statistics
import subprocess
import sys
import time
import warnings

os.environ["HEDDLE_CACHE"] = ""  # read when the package is loaded

import torch  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import heddle.torch  # noqa: E402, F401
from bench.kernels import report  # noqa: E402
from bench.torch import models  # noqa: E402

MOST = {"forward": 1e-5, "gradients": 1e-4}
MARK = "agrees: "  # before what a process found
RAISED = 600  # characters of an error
INPUTS = 3
OF_EAGER = 3  # times eager's own error that a result may have


def leaves(found):
    """The tensors of a result, those of caches of keys and values too."""
    for leaf in torch.utils._pytree.tree_leaves(found):
        if isinstance(leaf, torch.Tensor):
            yield leaf
        for layer in getattr(leaf, "layers", ()):
            yield from (each for each in vars(layer).values() if isinstance(each, torch.Tensor))


def difference(found, wanted, least=0.0):
    """The largest difference of two tensors, relative to the largest number; what is no number
    must be at the same places."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if not wanted.is_floating_point():
        return 0.0 if torch.equal(found, wanted) else float("inf")
    is_finite = wanted.isfinite()
    if not torch.equal(found[~is_finite].nan_to_num(0.5), wanted[~is_finite].nan_to_num(0.5)):
        return float("inf")
    if not is_finite.any():
        return 0.0
    most = max(float(wanted[is_finite].abs().max()), least, 1e-30)
    error = float((found[is_finite] - wanted[is_finite]).abs().max()) / most
    return error if error == error else float("inf")


def results(model, run, given):
    """Tensors that a call gives, without gradients."""
    with torch.no_grad():
        return {str(i): leaf for i, leaf in enumerate(leaves(models.call(run, given)))}


def gradients(model, run, given):
    """Gradients of all parameters by a loss in which each result has a share."""
    model.zero_grad(set_to_none=True)
    loss = 0.0
    for leaf in leaves(models.call(run, given)):
        if leaf.requires_grad:
            share = torch.arange(leaf.numel(), dtype=leaf.dtype).sin().view(leaf.shape)
            loss = loss + (leaf * share).sum() / leaf.numel() ** 0.5
    loss.backward()
    return {key: value.grad for key, value in model.named_parameters() if value.grad is not None}


def largest(found, wanted, of):
    """(The largest difference, what has it)."""
    if set(found) != set(wanted):
        return float("inf"), ", ".join(sorted(set(found) ^ set(wanted))[:3])
    most = max((float(value.abs().max()) for value in wanted.values() if value.numel()), default=0)
    least = most / 100 if of == "gradients" else 0.0
    return max(((difference(found[key], wanted[key], least), key) for key in wanted),
               default=(0.0, ""))


def compared(call, model, run, given, of, found=None):
    """(The largest difference on an input, what has it)."""
    wanted = call(model, model, given)
    return largest(call(model, run, given) if found is None else found, wanted, of)


def tried(model, inputs, of, engine):
    """Says of a compiled model its graphs, its error, and the seconds of the first call."""
    torch._dynamo.reset()
    counters.clear()
    call = results if of == "forward" else gradients
    options = {"fallback": "raise"} if engine == "heddle" else None
    run = torch.compile(model, backend=engine, options=options)
    begin = time.perf_counter()
    try:
        found = call(model, run, inputs[0])
    except Exception as error:  # noqa: BLE001: the engine's own, of any kind
        text = f"{type(error).__name__}: {error}".strip()
        return {"raised": text.split("\n\nSet TORCHDYNAMO")[0][:RAISED]}
    seconds = time.perf_counter() - begin
    error, where = compared(call, model, run, inputs[0], of, found)
    if error > MOST[of]:
        others = [compared(call, model, run, given, of) for given in inputs[1:]]
        error, where = sorted([(error, where), *others])[len(inputs) // 2]
    return {"graphs": counters["stats"]["unique_graphs"], "error": error, "where": where,
            "breaks": sum(counters["graph_break"].values()), "seconds": seconds,
            "why": [str(each)[:200] for each in counters["graph_break"]]}


def is_near(found, of):
    return found["error"] <= min(max(MOST[of], OF_EAGER * found.get("noise", 0)), 100 * MOST[of])


def is_right(found, of):
    return "raised" not in found and not found["breaks"] and found["graphs"] == 1 and (
        is_near(found, of))


def error_of_eager(model, inputs, of):
    """How far eager itself is from the same model in numbers of 64 bits: the median of inputs."""
    def wide(x):
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    call, found = results if of == "forward" else gradients, []
    exact = copy.deepcopy(model).double()
    for given in inputs:
        own = {key: wide(value) for key, value in call(model, model, given).items()}
        try:
            wanted = call(exact, exact, torch.utils._pytree.tree_map(wide, given))
        except RuntimeError:  # it has tensors of its own in 32 bits
            return 0.0
        found.append(largest(own, {key: wide(value) for key, value in wanted.items()}, of)[0])
    return statistics.median(found)


def alone(name):
    """Tries one model in this process."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch._dynamo.config.allow_rnn = True  # Dynamo else leaves out torch.nn.LSTM and the like
    found = {"model": name}
    for of in MOST:
        model = models.made(name)
        torch.manual_seed(1)
        inputs = [models.MODELS[name].given(2) for _ in range(INPUTS)]
        found[of] = tried(model, inputs, of, "heddle")
        if found[of].get("error", 0) > MOST[of]:
            found[of]["noise"] = error_of_eager(model, inputs, of)
        if not is_right(found[of], of):
            found[of]["own"] = tried(model, inputs, of, "aot_eager")
    return found


def is_torchs(found, of):
    """Tells whether torch's own backend, which gave the same graphs, fails as well."""
    own = found.get("own", {"raised": ""})
    if "raised" in found or "raised" in own:
        return "raised" in found and "raised" in own
    return own["breaks"] >= found["breaks"] and (is_near(found, of) or own["error"] > MOST[of])


def verdict(found):
    """`agrees`, `torch's`, or `fails`."""
    if "raised" in found:
        return "fails"
    wrong = [of for of in MOST if not is_right(found[of], of)]
    if not wrong:
        return "agrees"
    return "torch's" if all(is_torchs(found[of], of) for of in wrong) else "fails"


def one(name, limit):
    """Tries a model in a new process."""
    try:
        done = subprocess.run([sys.executable, "-m", "bench.torch.agrees", "--alone", name],
                              capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"model": name, "raised": f"took more than {limit} s"}
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return json.loads(line.removeprefix(MARK))
    last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
    return {"model": name, "raised": f"exit status {done.returncode}: {last}"[:RAISED]}


def cells(found):
    """Cells of the table for a forward pass or for gradients."""
    if "raised" in found:
        return "", "", ""
    graphs = f"{found['graphs']}" + f" ({found['breaks']} breaks)" * bool(found["breaks"])
    return graphs, f"{found['error']:.1e}", f"{found['seconds']:.1f}"


def row(found):
    each = [found.get(of, {"raised": ""}) for of in MOST]
    return (found["model"], verdict(found), *cells(each[0]), *cells(each[1]))


def reasons(found):
    """Lines on what is not right."""
    if "raised" in found:
        yield f"- {found['model']}: {found['raised']}"
        return
    for of in MOST:
        this = found[of]
        if "noise" not in this and is_right(this, of):
            continue
        own = this.get("own", {})
        text = this.get("raised") or (
            f"{this['graphs']} graphs, error {this['error']:.1e} of '{this['where']}', eager's own "
            f"beside 64 bits {this.get('noise', 0):.1e} {' '.join(this['why'])}")
        told = own and (own.get("raised") or f"{own['graphs']} graphs, {own['breaks']} breaks")
        more = f"; torch's own: {' '.join(told[:200].split())}" if told else ""
        yield f"- {found['model']}, {of}: {' '.join(text.split())}{more}"


def lines(every):
    yield from report.table(
        ["model", "", "graphs", "error", "first call, s", "graphs of a step", "error of gradients",
         "first step, s"], map(row, every))
    yield ""
    for found in every:
        yield from reasons(found)
    count = [sum(verdict(found) == word for found in every) for word in
             ("agrees", "torch's", "fails")]
    yield f"{count[0]} of {len(every)} agree, {count[1]} are torch's own failures, {count[2]} fail"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="+", default=[], help="names of models")
    options.add_argument("--limit", type=float, default=600, help="seconds of a model")
    options.add_argument("--jobs", type=int, default=1, help="models at a time")
    options.add_argument("--alone", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.alone:
        print(MARK + json.dumps(alone(given.alone)), flush=True)
        return 0
    names, every = models.chosen(given.only) if given.only else list(models.MODELS), []
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for found in pool.map(lambda name: one(name, given.limit), names):
            every.append(found)
            print(*row(found), flush=True)
            for line in reasons(found):
                print(line, flush=True)
    report.STORE.mkdir(parents=True, exist_ok=True)
    kept = {"machine": report.machine(), "found": every}
    place = report.STORE / "torch-agrees.json"
    place.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print("", *lines(every), sep="\n")
    return int(any(verdict(found) == "fails" for found in every))


if __name__ == "__main__":
    sys.exit(main())
