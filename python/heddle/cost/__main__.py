"""`heddle cost`: what was measured as numbers, and models that learn from them.

Exit codes are Heddle's: 0 done, 2 usage, 3 refused, 5 internal error.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import os
import sys

from .. import library
from .corpus import Corpus


def parser_of(program):
    parser = argparse.ArgumentParser(
        prog=program, description="learn from tuning records what candidates cost; "
        "docs/guide/cost.md says more")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    features = actions.add_parser(
        "features", help="write the features of a file of tuning records",
        description="write what a file of tuning records has measured as numbers "
        "(docs/spec/features.md)")
    features.add_argument("-o", "--output", required=True, metavar="FILE.npz")
    evaluate = actions.add_parser(
        "evaluate", help="compare models of costs on models that they have not seen",
        description="train each model of costs without some of the networks, and say how well it "
        "orders the candidates of those")
    evaluate.add_argument("--models", nargs="+", default=["analytic", "trees", "network"],
                          choices=("analytic", "trees", "network"), metavar="NAME",
                          help="of analytic, trees, network (default: all)")
    evaluate.add_argument("--folds", default="5", metavar="N",
                          help="parts into which the networks are split, each left out once "
                          "(default 5); 'models': each network alone")
    evaluate.add_argument("--least", type=float, default=2e-6, metavar="S",
                          help="groups whose default takes less than S seconds are left out: their "
                          "times are mostly noise (default %(default)s)")
    evaluate.add_argument("--epochs", type=int, default=40, help="of the network (default 40)")
    evaluate.add_argument("--seed", type=int, default=0)
    evaluate.add_argument("-o", "--output", metavar="DIR", help="write the figures as JSON, and "
                          "pictures of them")
    for action in (features, evaluate):
        action.add_argument("records", metavar="RECORDS" if action is features else "CORPUS",
                            help="a file that 'heddle tune --records' or './dev bench corpus' "
                            "wrote" + ("" if action is features else ", or a .npz of its features"))
        action.add_argument("--target", help="whose measurements are meant: a name as 'heddle "
                            "compile --target' takes, or as the file has it (default: this "
                            "machine's)")
        action.add_argument("--threads", type=int, metavar="N", help="those of N threads (default: "
                            "all, which must be of one number)")
    return parser


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_features(options):
    if not os.path.exists(options.records):
        raise library.UsageError(f"'{options.records}': no such file")
    corpus = Corpus.read(options.records, options.target, options.threads)
    corpus.save(options.output)
    for why, count in corpus.about["left_out"].items():
        say(f"note: left out: {count} {why}")
    print(f"{options.output}: {len(corpus)} candidates of {len(corpus.groups)} groups of "
          f"{len(corpus.models)} models")


def run_evaluate(options):
    from .evaluate import evaluate

    corpus = Corpus.read(options.records, options.target, options.threads)
    print(evaluate(corpus, options, say))


def main(arguments=None):
    options = parser_of("heddle cost").parse_args(arguments)
    try:
        {"features": run_features, "evaluate": run_evaluate}[options.action](options)
    except library.Error as error:
        say(f"heddle cost: {error}")
        return next((code for code, kind in library.ERRORS.items() if type(error) is kind), 5)
    except OSError as error:
        say(f"heddle cost: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
