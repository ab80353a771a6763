"""`heddle train`: trains a model on batches of a .npz file.

Exit codes are Heddle's: 0 done, 1 the loss is no number any more, 2 usage, 3 refused, 4 limit, 5
internal error.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import json
import math
import os
import re
import sys
import time
import warnings

import numpy as np

from .. import library
from ..stops import Stops
from . import checkpoint, schedules
from .data import Samples, batches_of
from .trainer import DivergedError, Trainer

OF_CLASSES = ("cross_entropy", "nll")


def setting(text):
    name, _, value = text.partition("=")
    if value in ("true", "false"):
        return name, value == "true"
    try:
        number = float(value)
        if math.isfinite(number):
            return name, number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"'{text}' is not of the form beta1=0.9")


def count(least):
    """A type of arguments: integers of at least this."""
    def read(text):
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"must be an integer of at least {least}")
        return number
    return read


UNITS = {"": 1, "B": 1, **{unit + end: 2 ** (10 * power) for end in ("", "B", "iB")
                           for power, unit in enumerate("KMGT", 1)}}


def size(text):
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)", text)
    try:
        return int(float(parts[1]) * UNITS[parts[2]])
    except (TypeError, KeyError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is no size such as 800MiB or 2GiB") from None


def parser_of(program):
    parser = argparse.ArgumentParser(
        prog=program, description="train a model; docs/guide/training.md says more")
    parser.add_argument("model", metavar="MODEL", help="an ONNX model with its first weights")
    parser.add_argument("--data", required=True, metavar="FILE.npz",
                        help="an array for each input of the model and for the labels, by name; "
                        "the first dimension counts the samples")
    parser.add_argument("--validate", metavar="FILE.npz", help="samples for a loss after each "
                        "epoch")
    parser.add_argument("-o", "--output", metavar="FILE.onnx",
                        help="where the trained model goes; this or --checkpoint is needed")
    of_loss = parser.add_argument_group("what is minimised")
    of_loss.add_argument("--loss", default="cross_entropy", help="cross_entropy (default), nll, "
                         "bce, bce_with_logits, mse, mae, huber, or output: the output itself")
    of_loss.add_argument("--labels", default="labels", metavar="NAME",
                         help="the array with the labels (default %(default)s)")
    of_loss.add_argument("--of", metavar="TENSOR", help="the tensor that the loss is of (default: "
                         "the first output)")
    of_loss.add_argument("--class-axis", type=int, default=-1, metavar="AXIS")
    how = parser.add_argument_group("how")
    how.add_argument("--optimizer", default="adam", help="sgd, momentum, adam (default), adamw, "
                     "adagrad, rmsprop or lion")
    how.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE",
                     help="of the optimiser: weight_decay=0.01, beta1=0.9")
    how.add_argument("--lr", type=float, default=1e-3,
                     help="the learning rate (default %(default)s)")
    how.add_argument("--schedule", choices=sorted(schedules.NAMES), default="constant")
    how.add_argument("--warmup", type=count(0), default=0, metavar="STEPS")
    how.add_argument("--epochs", type=count(1), default=1, metavar="N")
    how.add_argument("--batch", type=count(1), metavar="N",
                     help="samples of a step (default: the model's, or 32)")
    how.add_argument("--accumulate", type=count(1), default=1, metavar="N",
                     help="steps of an update; those left over at the end make none")
    how.add_argument("--clip-norm", type=float, default=0, metavar="NORM")
    how.add_argument("--running-variance", choices=["biased", "unbiased"], default="biased",
                     help="of BatchNormalization: ONNX's (default), or PyTorch's")
    how.add_argument("--trainable", action="append", metavar="PATTERN",
                     help="initializers that are trained: '*.weight' (default: all)")
    how.add_argument("--freeze", action="append", default=[], metavar="PATTERN")
    how.add_argument("--seed", type=count(0), default=0,
                     help="of the order of samples, and of dropout")
    how.add_argument("--threads", type=count(0), default=0, metavar="N",
                     help="0 (default): all there are")
    how.add_argument("--memory", type=size, default=0, metavar="BYTES",
                     help="what a step may take, 800MiB: where that is too little, results are "
                     "computed twice (docs/guide/memory.md)")
    how.add_argument("--math", choices=["fast", "strict", "bf16", "bf16-emulated"],
                     help="as of 'heddle compile': with bf16 factors of products are rounded, "
                     "while sums, weights and what the optimiser keeps are f32")
    state = parser.add_argument_group("checkpoints")
    state.add_argument("--checkpoint", metavar="FILE.safetensors",
                       help="written after each epoch, whole or not at all")
    state.add_argument("--every", type=count(1), metavar="STEPS", help="and after so many steps")
    state.add_argument("--resume", action="store_true",
                       help="go on from the checkpoint, if there is one")
    parser.add_argument("--json", action="store_true", help="print one JSON object an epoch")
    return parser


def mebibytes(count):
    return f"{count / 2**20:.1f} MiB"


class Course:
    """One call of the command."""

    def __init__(self, options, stops):
        self.options, self.stops = options, stops
        for path in filter(None, (options.output, options.checkpoint)):
            checkpoint.check_place(path)
        self.model = checkpoint.read_model(options.model)
        names = self._inputs()
        self.samples = Samples(options.data, names)
        self.validation = Samples(options.validate, names) if options.validate else None
        self.size, self.keeps_rest = self._batch()
        self.per_epoch = batches_of(self.samples.count, self.size, self.keeps_rest)
        if self.per_epoch == 0:
            raise library.UsageError(f"'{options.data}': has {self.samples.count} samples, but a "
                                     f"step takes {self.size}")
        self._check_updates()
        self.trainer = self._trainer()

    def _inputs(self):
        given = {tensor.name for tensor in self.model.graph.initializer}
        names = [value.name for value in self.model.graph.input if value.name not in given]
        if self.options.loss != "output" and self.options.labels not in names:
            names.append(self.options.labels)
        return names

    def _batch(self):
        """How many samples a step has, and whether it may have fewer."""
        fixed = [value.type.tensor_type.shape.dim[0].dim_value
                 for value in self.model.graph.input
                 if len(value.type.tensor_type.shape.dim) > 0]
        fixed = next((size for size in fixed if size > 0), None)
        if fixed and self.options.batch not in (None, fixed):
            raise library.UsageError(f"--batch {self.options.batch}: the model takes {fixed} "
                                     "samples at once; without a fixed first size it would take "
                                     "any number")
        return fixed or self.options.batch or 32, not fixed

    def _check_updates(self):
        options, steps = self.options, self.per_epoch * self.options.epochs
        if steps < options.accumulate:
            raise library.UsageError(
                f"--accumulate {options.accumulate}: no update is made of {steps} steps, "
                f"{self.per_epoch} of {self.size} samples in each of {options.epochs} epochs; it "
                f"may be at most {steps}")

    def _trainer(self):
        options = self.options
        steps = self.per_epoch * options.epochs // options.accumulate
        schedule = schedules.NAMES[options.schedule]
        rate = (schedule(options.lr, warmup=options.warmup) if options.schedule == "constant"
                else schedule(options.lr, steps, warmup=options.warmup))
        return Trainer(
            options.model, options.loss, labels=options.labels, output=options.of,
            optimizer={"name": options.optimizer, **dict(options.set)}, learning_rate=rate,
            trainable=options.trainable, frozen=options.freeze, clip_norm=options.clip_norm,
            accumulate=options.accumulate, seed=options.seed, threads=options.threads or None,
            recipe={"class_axis": options.class_axis,
                    "running_variance": options.running_variance}, memory=options.memory,
            math=options.math)

    def run(self):
        trainer, options = self.trainer, self.options
        if options.resume and options.checkpoint and os.path.exists(options.checkpoint):
            trainer.load(options.checkpoint)
        order = self.samples.order(options.seed, 0)
        need = trainer.prepare(next(self.samples.batches(self.size, self.keeps_rest, order)))
        for samples in filter(None, (self.samples, self.validation)):
            samples.check(trainer.inputs, options.labels, self._classes())
        self._say_what(need)
        while (epoch := self._done() // self.per_epoch) < options.epochs:
            self._epoch(epoch)
        if options.output:
            trainer.save(options.output)

    def _classes(self):
        """How many there are, if the loss is of classes and the model says it."""
        outputs = [value for value in self.model.graph.output
                   if value.name == self.options.of or self.options.of is None]
        if self.options.loss not in OF_CLASSES or not outputs:
            return None
        dims = outputs[0].type.tensor_type.shape.dim
        return dims[self.options.class_axis].dim_value or None if dims else None

    def _done(self):
        """Steps that were done, those of an earlier call among them."""
        return self.trainer.updates * self.options.accumulate + self.trainer.parts

    def _epoch(self, epoch):
        trainer, options = self.trainer, self.options
        order = self.samples.order(options.seed, epoch)
        losses, seen, seconds = [], 0, 0.0
        skipped = self._done() - epoch * self.per_epoch
        for place, feeds in enumerate(self.samples.batches(self.size, self.keeps_rest, order)):
            if place < skipped:
                continue
            self.stops.check()
            begin = time.perf_counter()
            losses.append(trainer.step(feeds))
            seconds += time.perf_counter() - begin
            seen += len(next(iter(feeds.values())))
            if options.checkpoint and options.every and self._done() % options.every == 0:
                trainer.save(options.checkpoint)
        if options.checkpoint:
            trainer.save(options.checkpoint)
        told = {"epoch": epoch + 1, "epochs": options.epochs, "updates": trainer.updates,
                "loss": float(np.mean(losses)), "samples_per_second": seen / seconds}
        if self.validation:
            told.update(self._validated())
        self._say(told)

    def _validated(self):
        losses, counts, right, labels = [], [], 0, 0
        for feeds in self.validation.batches(self.size, self.keeps_rest):
            loss, outputs = self.trainer.evaluate(feeds)
            losses.append(loss)
            counts.append(len(next(iter(feeds.values()))))
            if self.options.loss in OF_CLASSES:
                scores = outputs[self.options.of or next(iter(outputs))]
                wanted = feeds[self.options.labels]
                right += int((scores.argmax(self.options.class_axis) == wanted).sum())
                labels += wanted.size
        told = {"validation_loss": float(np.average(losses, weights=counts))}
        if labels:
            told["accuracy"] = right / labels
        return told

    def _say_what(self, need):
        if self.options.json:
            return
        weights = self.trainer.weights
        count = sum(array.size for array in weights.values())
        state = sum(array.nbytes for array in self.trainer.state.values())
        print(f"{len(weights)} weights of {count} elements, {mebibytes(state)} with what "
              f"'{self.options.optimizer}' remembers; {self.per_epoch} steps of {self.size} "
              f"samples an epoch, of which each takes {mebibytes(need['total'])}, "
              f"{mebibytes(need['between_kernels'])} of them between kernels", flush=True)

    def _say(self, told):
        if self.options.json:
            print(json.dumps(told), flush=True)
            return
        text = f"epoch {told['epoch']}/{told['epochs']}  loss {told['loss']:.5f}"
        if "validation_loss" in told:
            text += f"  validation {told['validation_loss']:.5f}"
        if "accuracy" in told:
            text += f"  accuracy {told['accuracy']:.4f}"
        print(f"{text}  {told['samples_per_second']:.0f} samples/s", flush=True)


def main(arguments=None, program="heddle train"):
    parser = parser_of(program)
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if not options.output and not options.checkpoint:
        parser.error("nothing would be kept: -o FILE.onnx names the place of the trained model, or "
                     "--checkpoint FILE.safetensors that of a state to go on from")
    for path, ending in ((options.output, ".onnx"), (options.checkpoint, ".safetensors")):
        if path and not path.endswith(ending):
            parser.error(f"'{path}' must end in {ending}")
    if (options.resume or options.every) and not options.checkpoint:
        parser.error("--resume and --every need --checkpoint")
    def tell(text):
        print(f"{program}: {text}", file=sys.stderr)

    def kept():
        path = options.checkpoint
        return f"; '{path}' is the last checkpoint" if path and os.path.exists(path) else ""

    def told(error):
        """Its exit code; raises what is no error of the user's."""
        if isinstance(error, DivergedError):
            tell(f"{error}{kept()}")
            return 1
        if isinstance(error, library.Error):
            tell(error)
            return error.code
        if isinstance(error, MemoryError):
            tell(f"out of memory: {error}")
            return 4
        raise error

    stops = Stops()
    warnings.showwarning = lambda text, *_: tell(f"warning: {text}")
    try:
        Course(options, stops).run()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if not stops.number:
            return told(error)
        # Whatever the error is: what was interrupted may have made its own of it.
        stops.ignore()
        tell(f"stopped{kept()}")
        return 128 + stops.number


if __name__ == "__main__":
    sys.exit(main())
