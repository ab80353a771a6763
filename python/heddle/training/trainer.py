"""trainer: a model, a loss and an optimiser as a step that is called with a batch.

The step is compiled once, for all sizes that the model leaves open. Weights and what the optimiser
remembers of them are arrays that each run updates in place. SPDX-License-Identifier: Apache-2.0
"""

import inspect
import json
import numbers
import os
import reprlib
import warnings

import numpy as np

from .. import apart, compiler, workplace
from ..library import Error, RefusedError, UsageError
from ..session import Session
from . import checkpoint

# Names of inputs and outputs of a step (docs/spec/training.md).
RATE, STEP, LOSS = "train.learning_rate", "train.step", "train.loss"
NORM, GRADIENT = "train.gradient_norm", "/gradient"
DTYPES = {1: np.float32, 11: np.float64}  # of an optimiser's state
BEFORE = "the weights are those before it"
LARGEST = float(np.finfo(np.float32).max)
FIELDS = ("class_axis", "ignore_index", "label_smoothing", "delta", "batch_norm",
          "running_variance", "dropout", "activations")  # of a recipe, which are no arguments


class DivergedError(Error):
    """A loss or gradients that are no numbers. The weights are those before the step."""


def _is_finite(array):
    """Tests one sum, which is quick, and each element only if that is no number."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum())) or bool(np.isfinite(array).all())


def _names(given):
    return given if isinstance(given, str) else list(given)  # the recipe's reader refuses a text


def _check_options(options):
    """Refuses what neither Trainer nor heddle.compile takes."""
    own = inspect.signature(Trainer).parameters
    for name in options:
        if name in FIELDS:
            raise TypeError(f"Trainer has no option '{name}', which is a field of the recipe: "
                            f"recipe={{'{name}': ...}}")
        if name in ("load", "training"):
            raise TypeError(f"Trainer has no option '{name}', which it sets itself")
    compiler.check(among=own, **options)


class _Phase:
    """A compiled phase, with the arrays of the state that it reads and updates."""

    def __init__(self, module, report, threads, held):
        self.need = report["memory"]
        self.session = Session(module, threads)
        self.inputs = {value.name: held[value.name] for value in module.inputs
                       if value.name in held}
        self.places = {value.name: held[value.name] for value in module.outputs
                       if value.shares >= 0}

    def feeds(self, given):
        return {**self.inputs, **given}

    def run(self, given):
        """name -> result; what is in `places` is updated there."""
        return self._named(self.session.run(None, self.feeds(given), out=self.places))

    def results(self, given):
        """name -> result, without an update."""
        return self._named(self.session.run(None, self.feeds(given)))

    def _named(self, results):
        return {value.name: result for value, result in zip(self.session.get_outputs(), results)}


class Trainer:
    """Trains `model`, a path, bytes or an onnx.ModelProto.

    loss            "cross_entropy" (logits and int64 classes), "nll", "bce", "bce_with_logits",
                    "mse", "mae", "huber", or "output": the output itself, which is one number
    labels          the name of the step's input with the labels
    output          the tensor that the loss is of (default: the first output)
    optimizer       "sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop", "lion", or
                    {"name": "adam", "beta1": 0.9, "weight_decay": 0.01}
    learning_rate   a number, or a function of the number of updates done (heddle.training.cosine)
                    that returns one; `trainer.learning_rate` is that of the next update, and can
                    be set to either
    trainable       names of initializers or patterns, ["*.weight"]; default: all of floats that the
                    loss depends on, but for single numbers
    frozen          those that stay as they are
    groups          [{"match": ["*.bias"], "weight_decay": 0, "learning_rate": 0.1}]: other decays
                    and multiples of the learning rate; the first that matches counts
    clip_norm, clip_value   limits of all gradients together, and of each of their elements
    accumulate      how many calls of `step` make one update, by the mean of their gradients
    seed            of dropout; equal seeds give equal runs
    threads         of a run; None: all that the process may use
    recipe          further fields of the recipe: {"class_axis": 1, "label_smoothing": 0.1,
                    "running_variance": "unbiased"}, the last as in PyTorch
    options         further arguments of heddle.compile; memory=2**30 limits what a step takes
                    (docs/guide/memory.md)

    The first batch decides for which sizes the step is laid out; it stays right for others.
    `updates` counts those that were done.
    """

    def __init__(self, model, loss="cross_entropy", *, labels="labels", output=None,
                 optimizer="adam", learning_rate=1e-3, trainable=None, frozen=(), groups=(),
                 clip_norm=0.0, clip_value=0.0, accumulate=1, seed=0, threads=None, recipe=None,
                 **options):
        self.recipe = {"loss": loss, "labels": labels, "optimizer": optimizer,
                       "frozen": _names(frozen), "groups": _names(groups), "clip_norm": clip_norm,
                       "clip_value": clip_value, "accumulate": accumulate, **(recipe or {})}
        if output is not None:
            self.recipe["output"] = output
        if trainable is not None:
            self.recipe["trainable"] = _names(trainable)
        _check_options({"threads": threads, **options})
        compiler.check(training=self.recipe)
        self.seed = compiler.integer("`seed`", seed, 2**64 - 1)
        self.accumulate, self.threads, self.options = int(accumulate), threads, options
        self.updates = 0
        self.learning_rate = learning_rate
        self.model = checkpoint.read_model(model)
        if folded := checkpoint.folded(self.model):
            warnings.warn(folded, stacklevel=2)
        self.parts = 0  # calls of `step` since the last one
        self._phases = {}  # by name
        self._source = model if isinstance(model, (str, os.PathLike)) else self.model
        self._held = checkpoint.initializers(self.model)  # of which some become the state
        self._of_model = set(self._held)
        self._fingerprint = checkpoint.fingerprint(self.model)
        if self._source is not self.model:  # the data is in the file, and in what is held
            self.model = checkpoint.without_data(self.model)
        self._state = {}
        self._finite = ()  # of the state, that which has begun with numbers alone
        self._typical = None  # sizes that the step is laid out for, by symbol

    @property
    def learning_rate(self):
        """The learning rate of the next update."""
        rate = self._schedule(self.updates)
        if not isinstance(rate, numbers.Real) or not 0 <= rate <= LARGEST:
            raise UsageError(f"the learning rate of update {self.updates} is {reprlib.repr(rate)}, "
                             f"but must be a number from 0 to {LARGEST:.3g}")
        return float(rate)

    @learning_rate.setter
    def learning_rate(self, given):
        before = vars(self).get("_schedule")
        self._schedule = given if callable(given) else lambda _: given
        try:
            self.learning_rate  # noqa: B018: refuses what is none
        except UsageError:
            self._schedule = before
            raise

    # State of the training.

    @property
    def state(self):
        """name -> array of all that steps update: weights, running statistics, and what the
        optimiser remembers of a weight, as WEIGHT/first_moment. They are the arrays themselves."""
        if not self._state:
            self._prepare({})
        return self._state

    @property
    def weights(self):
        """Those of `state` that are in the model: weights and running statistics."""
        return {name: array for name, array in self.state.items() if name in self._of_model}

    def state_dict(self):
        """Copies of all arrays, and of the numbers of updates and of micro-batches since."""
        return {**{name: array.copy() for name, array in self.state.items()},
                STEP: np.int64(self.updates), "train.parts": np.int64(self.parts)}

    def load_state_dict(self, state):
        """Goes on from a `state_dict`, to the same bits. Weights alone will do: the optimiser then
        begins anew."""
        state = dict(state)
        updates = compiler.integer("the number of updates", state.pop(STEP, 0), 2**62)
        parts = compiler.integer("the number of micro-batches since the last update",
                                 state.pop("train.parts", 0), self.accumulate - 1)
        problems = [f"'{name}' is missing" for name in self.weights if name not in state]
        for name, array in state.items():
            here = self.state.get(name)
            if here is None:
                problems.append(f"this model has no '{name}'")
            elif here.shape != np.shape(array) or here.dtype != np.asarray(array).dtype:
                array = np.asarray(array)
                problems.append(f"'{name}' is {array.dtype}{list(array.shape)}, but must be "
                                f"{here.dtype}{list(here.shape)}")
        if problems:
            more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
            raise RefusedError("the state is of another model or optimiser: "
                               + "; ".join(problems[:5]) + more)
        for name, here in self.state.items():
            here[...] = state.get(name, 0)
        self.updates, self.parts = updates, parts
        self._seed()

    def trained(self):
        """The model with its weights as they are now, an onnx.ModelProto."""
        self._check_state("the model")
        return checkpoint.with_arrays(self.model, self._held)

    def save(self, path):
        """FILE.onnx: the trained model. FILE.safetensors: all that `load` needs to go on. Neither
        is written with elements that are no numbers."""
        self._check_state(f"'{path}'")
        if os.fspath(path).endswith(".onnx"):
            checkpoint.write_model(path, self.model, self._held)
        elif os.fspath(path).endswith(".safetensors"):
            notes = {"step": str(self.updates), "parts": str(self.parts),
                     "seed": str(self.seed), "model": self._fingerprint}
            state = self.state  # whose sizes decide the order of sums
            checkpoint.write_state(path, state, {**notes, "sizes": json.dumps(self._typical)})
        else:
            raise UsageError(f"'{path}': a trained model ends in .onnx, a checkpoint in "
                             ".safetensors")

    def load(self, path):
        """Goes on from a checkpoint of `save`."""
        state, notes = checkpoint.read_state(path)
        try:
            seed, step, parts = (int(notes.get(name, 0)) for name in ("seed", "step", "parts"))
            seed = compiler.integer("'seed'", seed, 2**64 - 1)
            sizes = {name: compiler.integer(f"the size '{name}'", size, 2**47)
                     for name, size in dict(json.loads(notes.get("sizes", "{}"))).items()}
        except (TypeError, ValueError, RecursionError) as error:
            raise RefusedError(f"'{path}': is no checkpoint of a training: {error}; without it a "
                               "training begins anew") from error
        if notes.get("model", self._fingerprint) != self._fingerprint:
            raise RefusedError(f"'{path}': is a checkpoint of another model: its nodes differ")
        self.seed = seed
        if sizes != self._typical:
            self._typical = sizes
            self._prepare({})
        try:
            self.load_state_dict({**state, STEP: step, "train.parts": parts})
        except (RefusedError, UsageError) as error:
            raise RefusedError(f"'{path}': {error}") from error

    # Running.

    def prepare(self, feeds):
        """Compiles the step for the sizes of a batch, as the first `step` would. Returns bytes that
        one takes: "inputs" (state among them), "outputs", "weights" (those that are frozen),
        "between_kernels" and "total"."""
        return dict(self._phase(self._step, feeds).need)

    def step(self, feeds):
        """One batch: the model's inputs and the labels by name. Returns the loss before the update,
        a float; with `accumulate`, each that many calls are one update."""
        if self.accumulate == 1:
            loss = self._run("step", {**feeds, **self._numbers()})
            self.updates += 1
            return loss
        rates = self._numbers() if self.parts + 1 == self.accumulate else {}
        loss = self._run("gradients", feeds)
        self.parts += 1
        if self.parts == self.accumulate:
            self.parts = 0
            self._check_gradients({name: array for name, array in self._state.items()
                                   if name.endswith(GRADIENT)})
            self._run("update", rates)
            self.updates += 1
        return loss

    def evaluate(self, feeds):
        """The loss of a batch, and the model's outputs by name, as in inference."""
        values = self._phase("evaluate", feeds).results(feeds)
        return float(values.pop(LOSS)), values

    def predict(self, feeds):
        """The model's outputs by name, as in inference, of its inputs alone."""
        return self._phase("predict", feeds).results(feeds)

    @property
    def inputs(self):
        """Inputs of `step`, the model's inputs and labels: name, dtype and shape of each."""
        return [value for value in self._phase(self._step, {}).session.get_inputs()
                if value.name not in self._held and value.name not in (RATE, STEP)]

    @property
    def memory(self):
        """Memory of the steps that were run, in bytes: `state_bytes`, which the trainer holds, and
        the memory between kernels as in `Session.memory`."""
        return {"state_bytes": sum(array.nbytes for array in self.state.values()),
                **self._phase(self._step, {}).session.memory}

    # The rest is the class's own.

    @property
    def _step(self):
        """The phase that has the inputs of the model."""
        return "step" if self.accumulate == 1 else "gradients"

    def _numbers(self):
        return {RATE: np.float32(self.learning_rate), STEP: np.int64(self.updates)}

    def _prepare(self, feeds):
        """Compiles the step, for the sizes of these feeds, and begins with the model's weights and
        an optimiser that remembers nothing."""
        if self._typical is None:
            self._typical = self._sizes(feeds)
        self._phases = {}
        for name in ["step"] if self.accumulate == 1 else ["gradients", "update"]:
            module, report = self._compiled(name)
            for output in module.outputs:
                if output.shares < 0 or output.name in self._state:
                    continue
                if output.name not in self._held:
                    self._held[output.name] = np.zeros(output.shape, DTYPES[output.dtype])
                self._state[output.name] = self._held[output.name]
            self._phases[name] = _Phase(module, report, self.threads, self._held)
        self._finite = [name for name, array in self._state.items() if _is_finite(array)]
        self._seed()

    def _compiled(self, phase):
        options = dict(self.options)
        if phase == "update":  # which has no inputs of the model
            for name in ("typical", "shapes"):
                options.pop(name, None)
        else:
            options["typical"] = {**self._typical, **options.get("typical", {})}
        return apart.compile(self._source, threads=self.threads,
                             training={**self.recipe, "phase": phase}, **options)

    def _sizes(self, feeds):
        """symbol -> size, as these feeds have it."""
        sizes = {}
        for value in self.model.graph.input:
            if value.name not in feeds:
                continue
            for dim, size in zip(value.type.tensor_type.shape.dim, np.shape(feeds[value.name])):
                if dim.dim_param.isidentifier():
                    sizes[dim.dim_param] = size
        return sizes

    def input_names(self, phase):
        """Names of all that a phase takes, "step" or "evaluate", the weights among them."""
        return [value.name for value in self._phase(phase, {}).session.get_inputs()]

    def _phase(self, name, feeds):
        if not self._state:
            self._prepare(feeds)
        if name not in self._phases:
            self._phases[name] = _Phase(*self._compiled(name), self.threads, self._held)
        return self._phases[name]

    def _seed(self):
        """Each run of a session draws from the number after the last one's."""
        for phase in self._phases.values():
            phase.session.seed(self._random)

    @property
    def _random(self):
        done = self.updates * self.accumulate + self.parts
        return (self.seed * 0x9E3779B97F4A7C15 + done) % 2**64

    def _run(self, name, feeds):
        phase = self._phase(name, feeds)
        try:
            results = phase.run(feeds)
        except UsageError as error:
            self._seed()  # as if the run had not been
            raise UsageError(f"step {self.updates}: {error}{self._about_labels(error, feeds)}") \
                from error
        loss = float(results.get(LOSS, 0))
        if not np.isfinite(loss):
            self._seed()
            raise DivergedError(self._diagnosis(loss, name, feeds))
        if not np.isfinite(results.get(NORM, 0)):
            self._seed()
            if name == "step":
                self._check_gradients(self._gradients(feeds))
            raise DivergedError(f"the gradients of update {self.updates} are too large: their norm "
                                f"is {results[NORM]}; {BEFORE}")
        return loss

    def _gradients(self, feeds):
        """Those of a batch by the names of weights, for a message."""
        module, report = self._compiled("gradients")
        held = {value.name: np.zeros(value.shape, DTYPES[value.dtype]) for value in module.inputs
                if value.name.endswith(GRADIENT)}
        phase = _Phase(module, report, self.threads, {**self._held, **held})
        phase.session.seed(self._random)
        results = phase.results({name: feeds[name] for name in feeds if name not in (RATE, STEP)})
        return {name: array for name, array in results.items() if name in held}

    def _check_gradients(self, gradients):
        """Refuses to update by what is no number. The weight that is last in the model comes first
        on the way back."""
        bad = [name for name, array in gradients.items() if not _is_finite(array)]
        if not bad:
            return
        for array in gradients.values():
            array[...] = 0
        name = bad[-1].removesuffix(GRADIENT)
        more = f", as have those of {len(bad) - 1} other weights" if len(bad) > 1 else ""
        raise DivergedError(f"the gradient of '{name}' in update {self.updates} has elements that "
                            f"are no numbers{more}; {BEFORE}")

    def _check_state(self, what):
        for name in self._finite:
            if not _is_finite(self._state[name]):
                raise DivergedError(f"{what} is not written: after {self.updates} updates '{name}' "
                                    "has elements that are no numbers; the last checkpoint, or a "
                                    "lower learning rate, goes on")

    def _about_labels(self, error, feeds):
        labels = np.asarray(feeds.get(self.recipe["labels"], 0.5))
        if LOSS not in str(error) or not np.issubdtype(labels.dtype, np.integer):
            return ""
        return (f"; '{self.recipe['labels']}' has classes from {labels.min()} to {labels.max()}, "
                "which count from 0 (ignore_index in the recipe passes one over)")

    def _diagnosis(self, loss, name, feeds):
        """Names the first tensor that is no number; weights are those before the step."""
        text = f"the loss of step {self.updates} is {loss}; {BEFORE}"
        bad = [name for name in self._finite if not _is_finite(self._state[name])]
        if bad:
            return f"{text}; '{bad[0]}' has elements that are no numbers already"
        bad = [name for name, array in feeds.items()
               if np.issubdtype(np.asarray(array).dtype, np.floating)
               and not np.isfinite(array).all()]
        if bad:
            return f"{text}; the input '{bad[0]}' has elements that are no numbers"
        phase = self._phases[name]
        given = phase.feeds(feeds)
        with workplace.folder() as folder:
            path = os.path.join(folder, "model.onnx")
            checkpoint.write_model(path, self.model, self._held)
            values = compiler.reference(
                path, [given[value.name] for value in phase.session.get_inputs()],
                training={**self.recipe, "phase": name})
        for node, op, _, array in values:
            if np.issubdtype(array.dtype, np.floating) and op != "graph.constant":
                if np.isnan(array).any() or (np.isinf(loss) and np.isinf(array).any()):
                    return (f"{text}; the first tensor with such elements is a result of node "
                            f"'{node}' ({op})")
        return text
