"""`heddle cost`: what was measured as numbers, and models that learn from them.

Exit codes are Heddle's: 0 done, 2 usage, 3 refused, 5 internal error.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import os
import sys

import heddle

from . import ranker
from .corpus import Corpus
from .evaluate import NAMES, evaluate, evaluate_file, usable
from .train import train


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
    judging = actions.add_parser(
        "evaluate", help="compare models of costs on models that they have not seen",
        description="train each model of costs without some of the networks, and say how well it "
        "orders the candidates of those")
    judging.add_argument("--models", nargs="+", default=list(NAMES), choices=NAMES, metavar="NAME",
                         help="of analytic, trees, network (default: all)")
    judging.add_argument("--folds", default="5", metavar="N",
                         help="parts into which the networks are split, each left out once "
                         "(default 5); 'models': each network alone")
    judging.add_argument("-o", "--output", metavar="DIR", help="write the figures as JSON, and "
                          "pictures of them")
    judging.add_argument("--cost-model", metavar="FILE.onnx", help="judge what 'train' wrote, on "
                         "the groups that it has not seen, and train nothing")
    training = actions.add_parser(
        "train", help="train the graph network with all of a corpus, and write it",
        description="train the graph network with all of a corpus, by Heddle's own training step, "
        "and write it as an ONNX model")
    training.add_argument("-o", "--output", required=True, metavar="FILE.onnx")
    for action in (judging, training):
        action.add_argument("--least", type=float, default=2e-6, metavar="S",
                            help="groups whose default takes less than S seconds are left out: "
                            "their times are mostly noise (default %(default)s)")
        action.add_argument("--epochs", type=int, default=40, metavar="N",
                            help="of the network (default %(default)s)")
        action.add_argument("--seed", type=int, default=0)
    for action in (features, judging, training):
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
        raise heddle.UsageError(f"'{options.records}': no such file")
    corpus = Corpus.read(options.records, options.target, options.threads)
    corpus.save(options.output)
    for why, count in corpus.about["left_out"].items():
        say(f"note: left out: {count} {why}")
    print(f"{options.output}: {len(corpus)} candidates of {len(corpus.groups)} groups of "
          f"{len(corpus.models)} models")


def run_evaluate(options):
    corpus = Corpus.read(options.records, options.target, options.threads)
    if options.cost_model:
        print(evaluate_file(corpus, options, options.cost_model))
    else:
        print(evaluate(corpus, options, say))


def run_train(options):
    corpus = Corpus.read(options.records, options.target, options.threads)
    groups = usable(corpus, options.least)
    if not groups:
        raise heddle.UsageError(f"'{options.records}' has no group with an order to learn: three "
                                 f"candidates, of a default that takes {options.least} seconds")
    ranker.save(train(groups, corpus, options, say), groups, corpus, options.output)
    print(f"{options.output}: trained with {sum(len(group.seconds) for group in groups)} "
          f"candidates of {len(groups)} groups")


RUNS = {"features": run_features, "evaluate": run_evaluate, "train": run_train}


def main(arguments=None):
    options = parser_of("heddle cost").parse_args(arguments)
    try:
        RUNS[options.action](options)
    except heddle.Error as error:
        say(f"heddle cost: {error}")
        return error.code
    except OSError as error:
        say(f"heddle cost: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
