"""training: steps of random models by random recipes, as the Trainer makes them.

A model is drawn as for `gradients`, and a recipe for it: a loss that suits its output, an optimiser
with settings, limits of gradients, groups, accumulation, what is stored in bf16. Each call of the
Trainer's step, in f64 and in f32, is compared with the interpreter, which begins with the state
that the Trainer had before it. What f32 makes of a step that f64 does not is rounding.
SPDX-License-Identifier: Apache-2.0
"""

import tempfile
import zlib

import numpy as np

import heddle
from heddle.training import RATE, STEP, DivergedError, Trainer

from . import gradients
from .check import AGREES, Outcome, refusal

generate = gradients.generate
UPDATES = 2
LEARNING_RATE = 0.01
SIGN_NOISE = 1e-4  # of the largest direction, in f32
SETTINGS = {
    "sgd": {}, "momentum": {"momentum": (0.5, 0.95), "nesterov": (False, True)},
    "adam": {"beta1": (0.5, 0.9), "beta2": (0.9, 0.999), "epsilon": (1e-8, 1e-3)},
    "adamw": {"beta1": (0.5, 0.9), "epsilon": (1e-8, 1e-3)},
    "adagrad": {"learning_rate_decay": (0, 0.1), "epsilon": (1e-10, 1e-3)},
    "rmsprop": {"alpha": (0.9, 0.99), "epsilon": (1e-8, 1e-3)},
    "lion": {"beta1": (0.5, 0.9), "beta2": (0.9, 0.99)}}
OF_CLASSES = ("cross_entropy", "nll")
OF_NUMBERS = ("mse", "mae", "huber", "bce_with_logits")


def drawn(random, options):
    return options[random.integers(len(options))]


def recipe_of(random, y, weights):
    """A recipe for an output like y."""
    kinds = OF_NUMBERS + (OF_CLASSES if y.ndim and min(y.shape) > 0 else ())
    recipe = {"loss": drawn(random, kinds), "dropout": False}
    if recipe["loss"] in OF_CLASSES:
        recipe["class_axis"] = int(random.integers(-y.ndim, y.ndim))
        if random.random() < 0.4:
            recipe["ignore_index"] = drawn(random, (-100, 0))
        if recipe["loss"] == "cross_entropy" and random.random() < 0.4:
            recipe["label_smoothing"] = 0.1
    if recipe["loss"] == "huber":
        recipe["delta"] = drawn(random, (0.3, 1.0))
    name = drawn(random, list(SETTINGS))
    settings = {key: drawn(random, values) for key, values in SETTINGS[name].items()
                if random.random() < 0.5}
    if random.random() < 0.4:
        settings["weight_decay"] = 0.01
    recipe["optimizer"] = {"name": name, **settings}
    if random.random() < 0.3:
        recipe["clip_norm"] = drawn(random, (0.01, 1.0))
    if random.random() < 0.2:
        recipe["clip_value"] = drawn(random, (0.01, 1.0))
    if random.random() < 0.3:
        recipe["accumulate"] = drawn(random, (2, 3))
    if random.random() < 0.3:
        recipe["groups"] = [{"match": [drawn(random, weights)], "weight_decay": 0.1,
                             "learning_rate": 0.5}]
    if random.random() < 0.3 and len(weights) > 1:
        recipe["frozen"] = [drawn(random, weights)]
    if random.random() < 0.3:
        recipe["activations"] = "bf16"
    if random.random() < 0.2:
        recipe["batch_norm"] = "running"
    return recipe


def labels_of(random, recipe, y):
    """For an output like y; numbers of f32, of its dtype."""
    if recipe["loss"] not in OF_CLASSES:
        return random.uniform(0.05, 0.95, y.shape).astype(np.float32).astype(y.dtype)
    axis = recipe["class_axis"] % y.ndim
    shape = y.shape[:axis] + y.shape[axis + 1:]
    return random.integers(0, y.shape[axis], shape)


def settle_signs(optimizer, before, expected, found):
    """Lion steps by a sign: where rounding decides it, either one is right."""
    if optimizer["name"] != "lion":
        return
    beta1, beta2 = optimizer.get("beta1", 0.9), optimizer.get("beta2", 0.99)
    for name, after in expected.items():
        weight, _, kind = name.partition("/")
        if kind != "first_moment" or weight not in found or after.size == 0:
            continue
        moment, after = before[name].astype(np.float64), after.astype(np.float64)
        direction = beta1 * moment + (1 - beta1) * (after - beta2 * moment) / (1 - beta2)
        is_open = np.abs(direction) <= SIGN_NOISE * np.max(np.abs(direction))
        is_step = np.abs(found[weight] - expected[weight]) <= 2.01 * LEARNING_RATE
        found[weight] = np.where(is_open & is_step, expected[weight], found[weight])


class Training:
    """A Trainer, and the interpreter's steps from where it is."""

    def __init__(self, model, recipe, threads, typical):
        options = {key: value for key, value in recipe.items()
                   if key in ("loss", "optimizer", "clip_norm", "clip_value", "accumulate",
                              "groups", "frozen")}
        more = {key: value for key, value in recipe.items() if key not in options}
        self.data = model.SerializeToString()
        self.trainer = Trainer(model, **options, recipe=more, learning_rate=LEARNING_RATE,
                               threads=threads, cache=False)
        self.trainer.prepare(typical)

    def interpret(self, phase, values):
        """name -> array of a phase from these values."""
        names = self.trainer.input_names(phase)
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(self.data)
            file.flush()
            rows = heddle.reference(file.name, [values[name] for name in names],
                                    training={**self.trainer.recipe, "phase": phase})
        return {value: array for _, op, value, array in rows if op == "output"}

    def step(self, feeds):
        """(the loss and the state after a step, the same by the interpreter)."""
        trainer = self.trainer
        numbers = {RATE: np.float32(LEARNING_RATE), STEP: np.int64(trainer.updates)}
        values = {**trainer.state_dict(), **numbers, **feeds}
        is_last = trainer.parts + 1 == trainer.accumulate
        if trainer.accumulate == 1:
            expected = self.interpret("step", values)
        else:
            expected = self.interpret("gradients", values)
            if is_last:
                after = self.interpret("update", {**values, **expected})
                expected = {**expected, **after}
        try:
            loss = trainer.step(feeds)
        except DivergedError:  # the loss, or the gradients, which changes nothing either
            loss = expected["train.loss"]
        like = expected["train.loss"]
        found = {**trainer.state_dict(), "train.loss": np.asarray(loss, like.dtype)}
        settle_signs(trainer.recipe["optimizer"], values, expected, found)
        return {name: found[name] for name in expected if name in found}, \
            {name: array for name, array in expected.items() if name in found}


def judge_at(model, cases, threads, salt):
    subject = gradients.Subject(model, salt)
    names = [value.name for value in subject.model.graph.input
             if value.name not in subject.weights]
    points = [({name: values[name] for name in names}, y)
              for values, y in subject.points(cases) if y.size]
    read = [name for name in subject.weights if name in subject.variables]
    if not points or not read:
        return Outcome(AGREES)
    random = np.random.default_rng(zlib.crc32(model.SerializeToString()))
    recipe = recipe_of(random, points[0][1], read)
    batches = [{**feeds, "labels": labels_of(random, recipe, y)} for feeds, y in points]
    narrow = [{name: gradients.narrow(array) for name, array in feeds.items()}
              for feeds in batches]
    try:
        pair = [Training(network, recipe, threads, feeds[0]) for network, feeds in
                ((subject.model, batches), (gradients.narrowed(subject.model), narrow))]
    except heddle.Error as error:
        is_fixed = gradients.UNTRAINED in str(error)
        return Outcome(AGREES) if is_fixed else gradients.outcome_of(error)
    calls = UPDATES * recipe.get("accumulate", 1)
    is_rounded, held = gradients.is_single(model), 0
    for call in range(calls):
        at = call % len(batches)
        try:
            found = [pair[0].step(batches[at]), pair[1].step(narrow[at])]
        except heddle.Error as error:
            return refusal("run", error)
        outcome = gradients.compare(found, is_rounded)
        if outcome:
            return Outcome(outcome.kind, f"call {call + 1} of {recipe}: {outcome.message}")
        if not all(np.all(np.isfinite(array)) for array in found[0][1].values()):
            break
        held += 1
    return Outcome(AGREES, held=held)


def judge(model, cases, threads=1):
    if model.graph.output[0].type.tensor_type.elem_type not in gradients.VARIABLES:
        return Outcome(AGREES)
    return gradients.judge_twice(judge_at, model, cases, threads)
