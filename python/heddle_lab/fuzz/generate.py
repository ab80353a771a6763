"""generate: model i of seed s.

SPDX-License-Identifier: Apache-2.0
"""

from . import (  # noqa: F401: they register their ops
    branching,
    contracting,
    elementwise,
    reducing,
    shaping,
    special,
)
from .evaluate import Rejected, needs
from .graph import Graph, make_rng
from .spec import SPECS

OPSETS = {21: 50, 17: 12, 18: 12, 13: 8, 22: 6, 24: 11, 26: 3, 19: 4, 15: 4}


def begin(rng, kind=Graph):
    """A graph with an input or two."""
    opset = rng.choices(list(OPSETS), list(OPSETS.values()))[0]
    g = kind(rng, opset, cases=2 if rng.random() < 0.35 else 1)
    for _ in range(g.between(1, 3)):
        g.input(g.dtype(), g.dims())
    return g


def grow(g, specs):
    """Tries to add one op; what a refused attempt left behind is taken back."""
    before = (len(g.nodes), len(g.inputs), len(g.initializers), set(g.tensors))
    spec = g.rng.choices(specs, [spec.weight for spec in specs])[0]
    try:
        spec.draw(g, spec.name)
        return True
    except Rejected:
        nodes, inputs, initializers, names = before
        del g.nodes[nodes:], g.inputs[inputs:], g.initializers[initializers:]
        g.tensors = {name: tensor for name, tensor in g.tensors.items() if name in names}
        return False


def outputs_of(g):
    """Tensors that nobody reads, and now and then one that somebody does."""
    read = {name for node in g.nodes for name in needs(node)}
    made = [g.tensors[name] for node in g.nodes if node.op_type != "Constant"
            for name in node.output]
    last = [tensor for tensor in made if tensor.name not in read]
    more = [tensor for tensor in made if tensor.name in read and g.chance(0.1)]
    chosen = g.rng.sample(last, min(len(last), 8)) + more[:3]
    return [tensor for tensor in made if tensor in chosen]


def generate(seed, index, ops=(5, 40), only=None):
    """(model, feeds): a ModelProto and for each case a dictionary of arrays. `only` names the op
    kinds to draw from."""
    rng = make_rng(seed, index)
    g = begin(rng)
    add_ops(g, rng.randint(*ops), only)
    outputs = outputs_of(g)
    if not outputs:
        outputs = [g.emit("Identity", [next(iter(g.tensors.values()))])]
    return g.model(outputs)


def add_ops(g, wanted, only=None):
    specs = [SPECS[name] for name in (only or SPECS)]
    attempts = 0
    while sum(node.op_type != "Constant" for node in g.nodes) < wanted and attempts < 20 * wanted:
        attempts += 1
        grow(g, specs)
