"""`python -m heddle_lab.fuzz`: random models; `python -m heddle_lab.fuzz reduce`: the failing part
of one.

Exit codes are Heddle's: 0 nothing found, 1 findings, 2 usage.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import sys

from heddle import UsageError
from heddle.packages import need

MODEL_OPS = {"model": (5, 40), "rows": (1, 8), "gradients": (3, 12),
             "memory": (8, 40), "training": (3, 12)}
KINDS = {"rows": "ragged"}  # the option of a kind that is not named after it


def op_range(text):
    low, dots, high = text.partition("..")
    try:
        values = (int(low), int(high if dots else low))
    except ValueError:
        values = (0, 0)
    if not 1 <= values[0] <= values[1]:
        raise argparse.ArgumentTypeError(f"'{text}' is no range; allowed: '12' or '5..40'")
    return values


def fuzz_options(program):
    parser = argparse.ArgumentParser(prog=program, description="check random models; "
                                     f"'{program.replace('fuzz', 'reduce')}' shrinks one")
    parser.add_argument("--count", type=int, default=200, metavar="N",
                        help="models to check (default %(default)s)")
    parser.add_argument("--time", type=float, metavar="S", help="stop after S seconds")
    parser.add_argument("--ops", type=op_range, metavar="A..B",
                        help="nodes a model has (default 5..40; with --ragged 1..8, with "
                        "--gradients and --training 3..12, with --memory 8..40)")
    parser.add_argument("--only", metavar="OP,...", help="draw from these op kinds alone")
    parser.add_argument("--nodes", action="store_true", help="single nodes of any ONNX op instead, "
                        "legal or not, that read and write beside unreadable pages")
    parser.add_argument("--ragged", action="store_true", help="models of batches whose rows have "
                        "lengths of their own, judged row by row")
    parser.add_argument("--gradients", action="store_true", help="differentiated models and steps "
                        "of training, judged by differences of the model's values")
    parser.add_argument("--memory", action="store_true", help="models and derivatives compiled for "
                        "random limits of memory, judged by what they give without")
    parser.add_argument("--training", action="store_true", help="steps of training by random "
                        "recipes, judged by the interpreter")
    parser.add_argument("--seed", type=int, default=1, help="model I of a seed is always the same")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="index of the first one")
    parser.add_argument("--out", metavar="DIR", help="where findings are written")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--limit", type=float, default=60, metavar="S", help="seconds a model")
    parser.add_argument("--reduce-time", type=float, default=40, metavar="S",
                        help="seconds to reduce a finding, 0 to leave it (default 40)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def drawer(options, only):
    """The kind of models, the ops that can be drawn, and index -> (model, cases)."""
    if options.nodes:
        from .nodes import draw, seeds

        return ("node", {op for _, op in seeds.ops()},
                lambda index: draw.generate(options.seed, index, only))
    from . import generate, gradients, memory, rows, training
    from .spec import SPECS

    makers = {"rows": rows, "gradients": gradients, "memory": memory, "training": training}
    kind = next((kind for kind in makers if getattr(options, KINDS.get(kind, kind))), "model")
    generate = makers.get(kind, generate).generate
    ops = options.ops or MODEL_OPS[kind]
    return kind, SPECS, lambda index: generate(options.seed, index, ops, only)


def run_fuzz(arguments, program):
    parser = fuzz_options(program)
    options = parser.parse_args(arguments)
    from .campaign import DIFFERS, OK, Campaign, limit_memory, print_json, say
    from .distribution import check_distributions

    only = options.only.split(",") if options.only else None
    kind, known, draw = drawer(options, only)
    for name in only or []:
        if name not in known:
            parser.error(f"--only: unknown op '{name}'; known: {', '.join(sorted(known))}")
    if sum((options.nodes, options.ragged, options.gradients, options.memory,
            options.training)) > 1:
        parser.error("--nodes, --ragged, --gradients, --memory and --training exclude each other")
    if options.jobs < 1 or options.count < 0:
        parser.error("--jobs and --count take positive numbers")

    campaign = Campaign(options.seed, draw, options.out, options.limit, options.reduce_time, say,
                        kind)
    limit_memory()
    indices = range(options.first, options.first + options.count)
    try:
        campaign.run(indices, options.jobs, options.time)
    except KeyboardInterrupt:
        say("interrupted")
    for name, text in check_distributions() if not only and kind == "model" else []:
        campaign.kinds["distribution"] += 1
        campaign.findings[f"distribution: {name}"].append(name)
        say(f"{name}: distribution: {text}")
    if options.json:
        print_json(campaign)
    else:
        print(campaign.summary_line())
    return DIFFERS if campaign.kinds else OK


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    program = "heddle fuzz"
    try:
        for package in ("onnx", "ml_dtypes"):
            need(package, program, "fuzz")
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.code
    if arguments and arguments[0] == "reduce":
        from .command import run_reduce

        return run_reduce(arguments[1:])
    return run_fuzz(arguments, program)


if __name__ == "__main__":
    sys.exit(main())
