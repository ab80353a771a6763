"""command: `heddle reduce`: shrinks a model that fails, with inputs that are given or drawn.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from .campaign import DIFFERS, OK, USAGE, same_failure, say, write_cases
from .reduce import reduce_model
from .worker import Worker


def reduce_options():
    parser = argparse.ArgumentParser(
        prog="heddle reduce", description="write the least part of a model that fails as it does: "
        "is refused, crashes, or differs from the reference")
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    parser.add_argument("-o", "--output", default="reduced.onnx", metavar="SMALL",
                        help="file to write (default %(default)s)")
    parser.add_argument("--input", action="append", default=[], metavar="FILE.npy",
                        help="values of the inputs, in their order (default: random ones)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=SIZE",
                        help="what a symbolic size stands for (default 3)")
    parser.add_argument("--test", metavar="CMD", help="a command that gets a model's path, and "
                        "whose exit code other than 0 says that it fails")
    parser.add_argument("--gradients", action="store_true",
                        help="the failure is one of the model's derivatives, in f32 and f64")
    parser.add_argument("--time", type=float, default=120, metavar="S", help="seconds it may take")
    parser.add_argument("--limit", type=float, default=60, metavar="S", help="seconds a model")
    parser.add_argument("--seed", type=int, default=1, help="of the random inputs")
    return parser


def random_array(generator, value, sizes):
    """Values for an input: small ones, of any dtype."""
    about = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 3)
             for d in about.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(about.elem_type)
    if dtype == bool:
        return generator.random(shape) < 0.5
    if dtype.kind in "iu":
        return generator.integers(0, 3, shape).astype(dtype)
    return np.asarray(generator.normal(0, 1, shape)).astype(dtype)


def load_feeds(model, options):
    known = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in known]
    if options.input:
        if len(options.input) != len(inputs):
            raise ValueError(f"{len(options.input)} files for {len(inputs)} inputs")
        feeds = {}
        for value, path in zip(inputs, options.input):
            dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            array = np.load(path)
            feeds[value.name] = array.view(dtype) if dtype.name == "bfloat16" else array
        return feeds
    sizes = {name: int(size) for name, _, size in (text.partition("=") for text in options.shape)}
    generator = np.random.default_rng(options.seed)
    return {value.name: random_array(generator, value, sizes) for value in inputs}


def command_fails(command):
    """A predicate by the user's own command."""

    def fails(model, cases):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(model, path)
            write_cases(Path(folder), model, cases)
            return subprocess.run(f"{command} {path}", shell=True, check=False,
                                  stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode != 0

    return fails


def run_reduce(arguments):
    options = reduce_options().parse_args(arguments)
    try:
        model = onnx.load(options.model)
        cases = [load_feeds(model, options)]
    except Exception as error:  # noqa: BLE001: files that are missing or not what they should be
        say(f"heddle reduce: '{options.model}': {error}")
        return USAGE
    worker = Worker("gradients" if options.gradients else "model")
    try:
        if options.test:
            fails = command_fails(options.test)
            if not fails(model, cases):
                say(f"'{options.model}' passes: '{options.test}' gives exit code 0")
                return OK
        else:
            outcome = worker.check(model, cases, options.limit)
            if not outcome.is_finding:
                say(f"'{options.model}' is compiled and agrees; nothing to reduce")
                return OK
            say(f"{outcome.kind}: {outcome.message}")
            fails = same_failure(worker, outcome, options.limit)
        small, cases = reduce_model(model, cases, fails, options.time, say)
    finally:
        worker.stop()
    onnx.save(small, options.output)
    target = Path(options.output)
    write_cases(target.parent, small, cases, f"{target.stem}_")
    print(f"{options.output}: {len(small.graph.node)} of {len(model.graph.node)} nodes")
    return DIFFERS
