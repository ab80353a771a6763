"""rows: models compiled with `--ragged`, judged by ONNX's evaluator on each row alone.

A case of the generator is a row: a batch of 1, with the length of the row as the size `seq`. So any
model that it draws says what each row of a batch must be, whether the ops in it keep rows apart or
not: those that mix them are refused, which is no finding. What is beyond a row in the batch is not
a number, so that a result shows if it was read.
SPDX-License-Identifier: Apache-2.0
"""

import re

import numpy as np

import heddle

from .check import AGREES, GAP, Outcome, difference, refusal, tolerances
from .evaluate import Rejected, evaluate, is_float, is_stable, needs
from .generate import OPSETS, add_ops
from .graph import SMALL, Graph, make_rng

LENGTHS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 63, 64, 65)
BATCH, SIZE, GIVEN = "batch", "seq", "lengths"


class RowGraph(Graph):
    """Each case is a row. Inputs [1, seq, ...] have one of each row; others are of all rows."""

    def __init__(self, rng, opset):
        lengths = tuple(rng.sample(LENGTHS, rng.randint(2, 5)))
        super().__init__(rng, opset, cases=len(lengths))
        self.lengths, self.most = lengths, SMALL
        self.symbols[lengths] = SIZE
        self.wholes = {}  # inputs of all rows, at the greatest length

    def rows(self, dtype, rank):
        dims = [(1,) * self.cases, self.lengths]
        return self.input(dtype, dims + [self.fixed_dim(1, 9) for _ in range(rank - 2)])

    def input(self, dtype, dims, arrays=None):
        if any(len(set(d)) > 1 and d != self.lengths for d in dims):
            raise Rejected("a size of each row that is not its length")
        is_of_rows = len(dims) > 1 and set(dims[0]) == {1} and dims[1] == self.lengths
        if is_of_rows:
            tensor = super().input(dtype, dims, arrays)
            self.input_dims[tensor.name][0] = BATCH
            return tensor
        if arrays is None:
            whole = self.elements(dtype, [max(d) for d in dims])
            arrays = [whole[tuple(slice(d[case]) for d in dims)] for case in range(self.cases)]
        else:
            whole = max(arrays, key=np.size)
            if not all(np.array_equal(whole[tuple(map(slice, a.shape))], a) for a in arrays):
                raise Rejected("rows differ in an input that is the same of all")
        tensor = super().input(dtype, dims, arrays)
        self.wholes[tensor.name] = whole
        return tensor


def of_rows(g):
    """The tensors that follow from an input of rows, late ones more often."""
    names = {name for name in g.inputs if name not in g.wholes}
    found = [g.emit("Identity", [g.tensors[min(names)]])]
    for node in g.nodes[:-1]:
        if names & set(needs(node)):
            names.update(node.output)
            found += [g.tensors[name] for name in node.output] * (1 + len(found))
    return found


def padded(rows):
    """The rows as a batch; beyond them is what must not be read."""
    shape = np.max([values.shape[1:] for values in rows], axis=0)
    array = np.full([len(rows), *shape], np.nan if is_float(rows[0]) else 1).astype(rows[0].dtype)
    for row, values in enumerate(rows):
        array[(row, *map(slice, values.shape[1:]))] = values[0]
    return array


def generate(seed, index, ops=(1, 8), only=None):
    """(model, [feeds]) with the input `lengths` among the feeds."""
    rng = make_rng(f"rows/{seed}", index)
    g = RowGraph(rng, rng.choices(list(OPSETS), list(OPSETS.values()))[0])
    for _ in range(g.between(1, 2)):
        g.rows(g.dtype(), g.between(2, 4))
    add_ops(g, rng.randint(*ops), only)
    model, cases = g.model([g.choice(of_rows(g))])
    feeds = {GIVEN: np.array(g.lengths, np.int64)}
    for name in cases[0]:
        feeds[name] = (g.wholes[name] if name in g.wholes
                       else padded([feeds[name] for feeds in cases]))
    return model, [feeds]


def row_of(model, feeds, row):
    """The model's inputs for one row alone."""
    length, cut = int(feeds[GIVEN][row]), {}
    for value in model.graph.input:
        array = feeds[value.name]
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param == BATCH:
                array = array[row : row + 1]
            elif dim.dim_param == SIZE:
                array = np.take(array, range(length), axis)
        cut[value.name] = array.copy()
    return cut


def cut_row(found, dims, shape, count, row):
    """(the part of a padded output that is of the row, whether zeros are beyond it)."""
    for axis, dim in enumerate(dims):
        if not re.search(rf"\b{BATCH}\b", str(dim)):
            continue
        parts = [count, found.shape[axis] // count]
        apart = found.reshape(*found.shape[:axis], *parts, *found.shape[axis + 1:])
        found = np.take(apart, row, axis)
        inside = tuple(map(slice, shape))
        beyond = found.copy()
        beyond[inside] = 0
        return found[inside], not np.any(beyond)
    return found[tuple(map(slice, shape))], True  # of no rows: its beginning is that of each


def compare_row(output, found, pairs, count, row):
    """An Outcome where row `row` of an output is not that of the model of it alone."""
    name, expected = output.name, pairs[output.name][0]
    if found.ndim == expected.ndim:
        found, is_clean = cut_row(found, output.shape, expected.shape, count, row)
        if not is_clean:
            return Outcome("wrong", f"output '{name}': row {row} goes beyond its length")
    wrong = difference(found.astype(expected.dtype), expected, tolerances(pairs, name, expected))
    return wrong and Outcome("wrong", f"output '{name}', row {row} of its own: {wrong}")


def plan_of(cases):
    """Every other model runs its batch as blocks of rows, as few as there can be."""
    kilobytes = len(cases[0][GIVEN]) % 2
    return {"plan": 1, "thresholds": {"row_block": kilobytes}, "groups": []}


def judge(model, cases, threads=1):
    """The Outcome of one model for its batches. Refusals are gaps: ops may mix rows."""
    names = [output.name for output in model.graph.output]
    stage = "compile"
    try:
        module = heddle.compile(model.SerializeToString(), cache=False, plan=plan_of(cases),
                                ragged=f"{BATCH}:{SIZE}={GIVEN}")
        stage = "run"
        session = heddle.Session(module, threads=threads)
        results = [dict(zip(names, session.run(names, feeds))) for feeds in cases]
    except heddle.Error as error:
        is_gap = stage == "compile" and isinstance(error, heddle.RefusedError)
        return Outcome(GAP, str(error)) if is_gap else refusal(stage, error)
    for feeds, found in zip(cases, results):
        for row in range(len(feeds[GIVEN])):
            pairs = evaluate(model, row_of(model, feeds, row))
            for output in module.outputs:
                if output.name not in pairs or not is_stable(pairs[output.name]):
                    continue
                outcome = compare_row(output, found[output.name], pairs, len(feeds[GIVEN]), row)
                if outcome:
                    return outcome
    return Outcome(AGREES)
