"""Holds what `--tolerance` chooses against inputs that it has not seen, and times it.

    ./dev bench tolerance [--models NAME...] [--math bf16 int8] [--tolerances 1e-2]

For each model, arithmetic and bound: how many products were chosen, the greatest error on --unseen
inputs of other seeds, and the medians of runs that take turns: f32, all in smaller numbers, and the
choice. The gain is the time of the faster of the two uniform ones that hold the bound (f32 always
does) over that of the choice. Without products of bf16 in the CPU their errors alone are told.
"""

import argparse
import json
import tempfile

import heddle
from bench.kernels import report
from bench.models import tool
from bench.peers import cases
from bench.precision.bench import has_short
from bench.quantize.bench import find
from heddle.quantize import measure

MODELS = ["ppocr_cls", "ppocr_rec", "ppocr_det", "ultraface", "superres", "kws_fp32", "magika",
          "squeezenet1_1", "mobilenet_v2", "resnet50", "minilm_l6_32", "bert_base_128",
          "gpt2_prefill_128", "t5_small_encoder_128", "vit_b_16"]
STORE = tool.RESULTS / "tolerance.json"
SAMPLES = 10


def errors_of(reference, module, feeds):
    """The greatest error of an output, relative to its largest number."""
    return max(each.relative for each in measure.compare(reference, module, feeds))


def choose(name, math, tolerance, given):
    """Figures of one choice."""
    with tempfile.TemporaryDirectory() as folder:
        return choose_of(find(name, folder), name, math, tolerance, given)


def choose_of(subject, name, math, tolerance, given):
    """Figures of one choice for a subject."""
    path, feeds = subject.path, [subject.sample(seed) for seed in range(SAMPLES)]
    unseen = [subject.sample(1000 + seed) for seed in range(given.unseen)]
    reports, options = [], {"math": math, "threads": 1}
    plan = heddle.choose_precision(str(path), feeds, tolerance=tolerance, report=reports.append,
                                   **options)
    modules = {"f32": heddle.compile(str(path), threads=1),
               "all": heddle.compile(str(path), **options),
               "choice": heddle.compile(str(path), plan=plan, **options)}
    facts = reports[0].facts
    found = {"model": name, "math": math, "tolerance": tolerance,
             "chosen": sum(group["precision"] != "f32" for group in facts["groups"]),
             "products": len(facts["groups"]), "compiled": facts["compiled"],
             "search_s": facts["search_seconds"],
             "error": errors_of(modules["f32"], modules["choice"], unseen),
             "error_of_all": errors_of(modules["f32"], modules["all"], unseen)}
    if math == "bf16-emulated":
        return found
    seconds = facts["run_seconds"]
    uniform = seconds["f32"]
    if found["error_of_all"] <= tolerance:
        uniform = min(uniform, seconds[facts["kind"]])
    return found | {"seconds": seconds, "ratio": uniform / seconds["chosen"],
                    "over_f32": seconds["f32"] / seconds["chosen"]}


def rows(found):
    """Lines of the table."""
    for each in found:
        seconds = each.get("seconds")
        yield (each["model"], each["math"], f"{each['tolerance']:g}",
               f"{each['chosen']} of {each['products']}", f"{each['error']:.1e}",
               "yes" if each["error"] <= each["tolerance"] else "NO",
               f"{each['error_of_all']:.1e}",
               *((f"{each['over_f32']:.2f}", f"{each['ratio']:.2f}") if seconds else ("-", "-")),
               each["compiled"], f"{each['search_s']:.0f}")


def lines(found):
    """Lines of Markdown."""
    heads = ["model", "math", "bound", "chosen", "error, unseen", "holds", "error of all",
             "over f32", "over uniform", "compiled", "s"]
    held = sum(each["error"] <= each["tolerance"] for each in found)
    yield from report.table(heads, rows(found))
    yield ""
    yield f"{held} of {len(found)} hold their bounds."
    for text, key in (("over f32", "over_f32"), ("over the best uniform one", "ratio")):
        timed = [{"ratio": each[key]} for each in found if key in each and each["chosen"]]
        yield f"{text}, where something was chosen: {report.summary(timed)}."


def measured(given):
    """Figures of all, as they come."""
    for name in given.models:
        for math in given.math:
            math = "bf16-emulated" if math == "bf16" and not has_short() else math
            for tolerance in given.tolerances:
                try:
                    found = choose(name, math, tolerance, given)
                except cases.Missing as reason:
                    print(f"{name} left out: {reason}", flush=True)
                    continue
                print(json.dumps(found), flush=True)
                yield found


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    options.add_argument("--math", nargs="+", default=["bf16", "int8"])
    options.add_argument("--tolerances", nargs="+", type=float, default=[1e-2])
    options.add_argument("--unseen", type=int, default=16, metavar="N")
    found = list(measured(options.parse_args()))
    STORE.parent.mkdir(parents=True, exist_ok=True)
    STORE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("", f"`./dev bench tolerance`; {tool.machine()}.", "", *lines(found), sep="\n")


if __name__ == "__main__":
    main()
