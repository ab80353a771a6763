"""memory: random models within limits of memory, which change no number.

A model, and where it has weights or float inputs its derivative, is compiled without a limit and
then for a random one between what is there in any case and all that it took. What was compiled must
keep the limit and agree, its plan must be carried out to the same plan and the same bits, and where
the limit is refused, the least that the message names must do. Models whose plans without a limit
are not carried out as they are, either, are gaps.
SPDX-License-Identifier: Apache-2.0
"""

import re
import zlib

import numpy as np

import heddle

from . import generate as models
from . import gradients
from .check import AGREES, GAP, Outcome, difference, refusal, tolerances
from .evaluate import NOISE, evaluate, is_float, is_stable, wide
from .graph import make_rng

LEAST = re.compile(r"the least that was found is [^:]*\((\d+) bytes\)")
LAYERS = (None, None, "fusion", "regions", "stitch,siblings")  # of the partitioner, to leave out


def generate(seed, index, ops=(8, 40), only=None):
    """(model, cases): one to differentiate, or any."""
    kind = gradients if make_rng(seed, index).random() < 0.6 else models
    return kind.generate(seed, index, ops, only)


def sizes_of(model, feeds):
    """symbol -> size, as these feeds have it."""
    return {dim.dim_param: size for value in model.graph.input
            for dim, size in zip(value.type.tensor_type.shape.dim, feeds[value.name].shape)
            if dim.dim_param.isidentifier()}


def compiled_within(data, limit, options):
    """(what was compiled, the limit that it keeps); one that is refused becomes the least that was
    found, which must do."""
    try:
        return heddle.compile(data, memory=limit, **options), limit
    except heddle.RefusedError as error:
        least = LEAST.search(str(error))
        if least is None or int(least[1]) <= limit:
            raise
        limit = int(least[1])
    return heddle.compile(data, memory=limit, **options), limit


def again_in(plan):
    return [group["name"] for group in plan["groups"] if "again" in group]


def replayed(data, module, options):
    """(what is wrong where its plan is not carried out as it is, what was compiled by it)."""
    try:
        copy = heddle.compile(data, plan=module.compiled.plan, **options)
    except heddle.UsageError as error:
        return f"refused: {re.sub('^[^:]*:[0-9]+: ', '', str(error))}", None
    if copy.compiled.text("plan") != module.compiled.text("plan"):
        return "carried out as another one", copy
    return None, copy


def results(module, threads, feeds):
    names = [value.name for value in module.outputs]
    return dict(zip(names, heddle.Session(module, threads=threads).run(
        names, {value.name: feeds[value.name] for value in module.inputs})))


def same_bits(one, other):
    return all(array.tobytes() == other[name].tobytes() for name, array in one.items())


def judge_limit(data, cases, options, share, threads, allowed):
    """(an Outcome or None, how many results are computed again). `allowed(case, name, array)` is
    what rounding may do to a result, or None where it may do anything."""
    plain = heddle.compile(data, **options)
    need = plain.compiled.report["memory"]
    least = need["total"] - need["between_kernels"]
    limit = least + int(share * need["between_kernels"])
    if limit < 1 or not need["between_kernels"]:
        return None, 0
    module, limit = compiled_within(data, limit, options)
    took = module.compiled.report["memory"]["total"]
    if took > limit:
        return Outcome("wrong", f"a limit of {limit} bytes, but a run takes {took}"), 0
    outcome, again = None, again_in(module.compiled.plan)
    problem, copy = replayed(data, module, options)
    if problem:
        usual = replayed(data, plain, options)[0]
        outcome = Outcome(GAP, f"a plan without a limit is {usual}") if usual else \
            Outcome("wrong", f"a plan that computes {again} again is {problem}")
    for case, feeds in enumerate(cases):
        if outcome and outcome.is_finding:
            break
        wanted, found = (results(each, threads, feeds) for each in (plain, module))
        for name, array in wanted.items():
            most = allowed(case, name, array)
            wrong = most is not None and difference(found[name], array, most)
            if wrong:
                outcome = Outcome("wrong", f"'{name}': with a limit of memory and not without: "
                                  f"{wrong}")
        if not outcome and not same_bits(found, results(copy, threads, feeds)):
            outcome = Outcome("wrong", "a plan that is read gives other bits than when it was made")
    return outcome, len(again)


def judge_model(model, cases, options, share, threads):
    """As it is."""
    pairs = [evaluate(model, feeds) for feeds in cases]

    def allowed(case, name, array):
        found = pairs[case].get(name)
        if found is None or not is_stable(found):
            return None
        return tolerances(pairs[case], name, array)

    return judge_limit(model.SerializeToString(), cases, options, share, threads, allowed)


def judge_derivative(model, cases, options, share, threads):
    """Judges its derivative: a difference of f32 from f64 is rounding."""
    subject = gradients.Subject(model, 0)
    seed = f"grad.{subject.output}"
    points = [{**values, seed: gradients.seed_of(y, y.ndim > 0 or y.size != 1)}
              for values, y in subject.points(cases)]
    if not points or not subject.variables:
        return None, 0
    options = {**options, "training": subject.recipe}
    narrow = gradients.narrowed(subject.model).SerializeToString()
    points = [{name: gradients.narrow(array) for name, array in values.items()}
              for values in points]
    single = heddle.compile(narrow, **options)
    double = heddle.compile(subject.model.SerializeToString(), **options)
    apart = []
    for values in points:
        exact = {value.name: values[value.name] for value in single.inputs}
        rough = results(single, 1, exact)
        exact = results(double, 1, {name: array.astype(np.float64) if array.dtype == np.float32
                                    and is_double(double, name) else array
                                    for name, array in exact.items()})
        apart.append((rough, exact))

    def allowed(case, name, array):
        rough, exact = (wide(each[name]) for each in apart[case])
        if not is_float(array) or not np.all(np.isfinite(exact)) or rough.shape != exact.shape:
            return None
        largest = float(np.max(np.abs(exact), initial=1e-3))
        rounding = float(np.max(np.abs(rough - exact), initial=0))
        if not rounding < 0.02 * largest:
            return None
        return 20 * rounding + 30 * NOISE["float32"] * largest

    return judge_limit(narrow, points, options, share, threads, allowed)


def is_double(module, name):
    return next(value for value in module.inputs if value.name == name).dtype == 11


def is_differentiable(model):
    return len(model.graph.output) == 1 and \
        model.graph.output[0].type.tensor_type.elem_type in gradients.VARIABLES


def judge(model, cases, threads=1):
    """The Outcome of one model; what is drawn besides it hangs on its bytes."""
    random = np.random.default_rng(zlib.crc32(model.SerializeToString()))
    options = {"cache": False, "threads": threads, "typical": sizes_of(model, cases[0]),
               "without": LAYERS[random.integers(len(LAYERS))]}
    share, held = float(random.choice([0.0, *random.uniform(0, 1, 3)])), 0
    for each in (judge_model, judge_derivative):
        if each is judge_derivative and not is_differentiable(model):
            continue
        try:
            outcome, more = each(model, cases, options, share, threads)
        except heddle.Error as error:
            if each is judge_derivative:
                outcome = gradients.outcome_of(error)
                return Outcome(AGREES, held=held) if not outcome.is_finding else outcome
            return refusal("compile", error)
        held += more
        if outcome:
            return outcome
    return Outcome(AGREES, held=held)
