"""`heddle quantize`: makes the products of a model ones of 8-bit integers, or its weights integers.

Exit codes are Heddle's: 0 done, 2 usage, 3 refused, 4 limit, 5 internal error.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import functools
import json
import sys

from ..stops import exit_code
from ..training.checkpoint import check_place, write_proto
from . import quantize
from .settings import add_flags, given


def parser_of(program):
    parser = argparse.ArgumentParser(
        prog=program, description="make the products of a model ones of 8-bit integers, "
        "or with --weights its weights integers of 4 or 8 bits; docs/guide/quantize.md says more")
    parser.add_argument("model", metavar="MODEL", help="an ONNX model in f32")
    parser.add_argument("--data", action="append", metavar="FILE.npz",
                        help="samples: an array for each input, whose first dimension counts them; "
                        "or a folder of such files; may be given again (default: random inputs)")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.onnx",
                        help="where the quantised model goes, whole or not at all")
    add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


class Stopped(KeyboardInterrupt):
    """Fine-tuning was stopped; what was best so far is written."""


def _run(options, tell, stops):
    check_place(options.output)
    reports, best = [], []

    def progress(facts, model):
        stops.check()
        if model is not None:
            best[:] = [(facts["epoch"], model)]
        if facts["epoch"]:
            tell(f"epoch {facts['epoch']} of {facts['epochs']}: loss {facts['loss']:.4g}, of other "
                 f"samples {facts['validation']:.4g}")

    try:
        made = quantize(options.model, options.data, report=reports.append, progress=progress,
                        **given(options))
    except KeyboardInterrupt as error:
        if not best:
            raise
        epoch, model = best[0]
        write_proto(options.output, model)
        tell(f"stopped; '{options.output}' has the model of epoch {epoch}, the best so far")
        raise Stopped(*error.args) from error
    write_proto(options.output, made)
    print(json.dumps(reports[0].facts) if options.json else reports[0], flush=True)


def main(arguments=None, program="heddle quantize"):
    parser = parser_of(program)
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if not options.output.endswith(".onnx"):
        parser.error(f"'{options.output}' must end in .onnx")

    def stopped(error, tell):
        if not isinstance(error, Stopped):
            tell("stopped; nothing was written")

    return exit_code(program, functools.partial(_run, options), stopped)


if __name__ == "__main__":
    sys.exit(main())
