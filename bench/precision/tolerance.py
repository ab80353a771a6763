"""Holds what `--tolerance` chooses against inputs that it has not seen, and times it.

    ./dev bench tolerance [--models NAME...] [--math bf16 int8] [--tolerances 1e-2]
    ./dev bench tolerance --untimed --files MODEL.onnx...    # of random inputs

For each model, arithmetic and bound: how many products were chosen, the greatest error on --unseen
inputs of other seeds, and the medians of runs that take turns, by the clock of their thread: f32,
all in smaller numbers, and the choice. The gain is the time of the faster of the two uniform ones
that hold the bound (f32 always does) over that of the choice. With --untimed there is a second
choice, for which nothing was timed. Without products of bf16 in the CPU their errors alone are
told.
"""

import argparse
import json
import statistics
import tempfile
from functools import partial

import numpy as np
from heddle.quantize import measure

import heddle
from bench.kernels import report, turns
from bench.models import tool
from bench.peers import cases
from bench.precision.bench import has_short
from bench.quantize.bench import Subject, find

MODELS = ["ppocr_cls", "ppocr_rec", "ppocr_det", "ultraface", "superres", "kws_fp32", "magika",
          "squeezenet1_1", "mobilenet_v2", "resnet50", "minilm_l6_32", "bert_base_128",
          "gpt2_prefill_128", "t5_small_encoder_128", "vit_b_16"]
STORE = tool.RESULTS / "tolerance.json"
KINDS = {"searched": False, "untimed": True}


def errors_of(reference, module, feeds):
    """The greatest error of an output, relative to its largest number."""
    return max(each.relative for each in measure.compare(reference, module, feeds))


def subject_of(name, folder, given):
    """(name, subject) of a model of the catalogue, or of a file."""
    if not name.endswith(".onnx"):
        return name, find(name, folder)
    case = cases.of_file(name, given.dim)
    return case.name, Subject(name, lambda seed: case.feeds(1, np.random.default_rng(seed)), [])


def seconds_of(modules, feed, given):
    """The median of the turns of each module; equal plans have the same."""
    texts = {kind: json.dumps([module.compiled.plan.get("integers"), *(
        (group.get("precision"), group.get("card"), group.get("knobs"))
        for group in module.compiled.plan["groups"])]) for kind, module in modules.items()}
    timed = {texts[kind]: turns.timed_calls(partial(heddle.Session(module, threads=1).run, None,
                                                    feed)) for kind, module in modules.items()}
    found = turns.by_turns(timed, given.rounds, given.turn)
    return {kind: statistics.median(found[text]) for kind, text in texts.items()}


def choose(name, math, tolerance, given):
    """Figures of the choices of a model."""
    with tempfile.TemporaryDirectory() as folder:
        return choose_of(*subject_of(name, folder, given), math, tolerance, given)


def choose_of(name, subject, math, tolerance, given):
    """Figures of the choices for a subject."""
    path, feeds = str(subject.path), [subject.sample(seed) for seed in range(given.samples)]
    unseen = [subject.sample(1000 + seed) for seed in range(given.unseen)]
    options = {"math": math, "threads": 1}
    modules = {"f32": heddle.compile(path, threads=1), "all": heddle.compile(path, **options)}
    found = {"model": name, "math": math, "tolerance": tolerance,
             "error_of_all": errors_of(modules["f32"], modules["all"], unseen)}
    for kind in list(KINDS)[:1 + given.untimed]:
        reports = []
        plan = heddle.choose_precision(path, feeds, tolerance=tolerance, report=reports.append,
                                       untimed=KINDS[kind], **options)
        facts, module = reports[0].facts, heddle.compile(path, plan=plan, **options)
        modules[kind] = module
        found[kind] = {"chosen": sum(group["precision"] != "f32" for group in facts["groups"]),
                       "products": len(facts["groups"]), "compiled": facts["compiled"],
                       "search_s": facts["search_seconds"],
                       "error": errors_of(modules["f32"], module, unseen)}
    if math != "bf16-emulated":
        found["seconds"] = seconds = seconds_of(modules, dict(feeds[0]), given)
        uniform = seconds["f32"]
        if found["error_of_all"] <= tolerance:
            uniform = min(uniform, seconds["all"])
        for kind in filter(modules.get, KINDS):
            found[kind] |= {"over_f32": seconds["f32"] / seconds[kind],
                            "over_uniform": uniform / seconds[kind]}
    return found


def rows(found):
    """Lines of the table."""
    for each in found:
        for kind in filter(each.get, KINDS):
            choice = each[kind]
            yield (each["model"], each["math"], f"{each['tolerance']:g}", kind,
                   f"{choice['chosen']} of {choice['products']}", f"{choice['error']:.1e}",
                   "yes" if choice["error"] <= each["tolerance"] else "NO",
                   f"{each['error_of_all']:.1e}",
                   *(f"{choice[key]:.2f}" if key in choice else "-"
                     for key in ("over_f32", "over_uniform")),
                   choice["compiled"], f"{choice['search_s']:.0f}")


def lines(found):
    """Lines of Markdown."""
    heads = ["model", "math", "bound", "choice", "chosen", "error, unseen", "holds",
             "error of all", "over f32", "over uniform", "compiled", "s"]
    yield from report.table(heads, rows(found))
    yield ""
    for kind in KINDS:
        choices = [(each, each[kind]) for each in found if kind in each]
        if not choices:
            continue
        held = sum(choice["error"] <= each["tolerance"] for each, choice in choices)
        yield f"{kind}: {held} of {len(choices)} hold their bounds."
        # A choice that does not hold its bound is worth no more than f32.
        over = [{"ratio": choice["over_f32"] if choice["error"] <= each["tolerance"] else 1.0}
                for each, choice in choices if "over_f32" in choice]
        yield f"{kind}, over f32: {report.summary(over)}."
        mixed = [{"ratio": choice["over_uniform"]} for each, choice in choices
                 if "over_uniform" in choice and choice["chosen"]
                 and each["error_of_all"] > each["tolerance"]]
        yield (f"{kind}, over the best uniform one, where all is further off than the bound and "
               f"something was chosen: {report.summary(mixed)}.")


def measured(given):
    """Figures of all, as they come."""
    for name in given.files or given.models:
        for math in given.math:
            math = "bf16-emulated" if math == "bf16" and not has_short() else math
            for tolerance in given.tolerances:
                try:
                    found = choose(name, math, tolerance, given)
                except (cases.Missing, heddle.Error) as reason:
                    print(f"{name} left out: {reason}", flush=True)
                    continue
                print(json.dumps(found), flush=True)
                yield found


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    options.add_argument("--files", nargs="+", metavar="MODEL.onnx",
                         help="these, with random inputs, instead of models by name")
    options.add_argument("--dim", nargs="+", default=[], metavar="NAME=SIZE",
                         help="sizes of random inputs that files leave open")
    options.add_argument("--math", nargs="+", default=["bf16", "int8"])
    options.add_argument("--tolerances", nargs="+", type=float, default=[1e-2])
    options.add_argument("--samples", type=int, default=10, metavar="N")
    options.add_argument("--unseen", type=int, default=16, metavar="N")
    options.add_argument("--untimed", action="store_true", help="choose without timing, too")
    options.add_argument("--rounds", type=int, default=9, metavar="N")
    options.add_argument("--turn", type=float, default=0.05, metavar="SECONDS")
    found = list(measured(options.parse_args()))
    STORE.parent.mkdir(parents=True, exist_ok=True)
    STORE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("", f"`./dev bench tolerance`; {tool.machine()}.", "", *lines(found), sep="\n")


if __name__ == "__main__":
    main()
