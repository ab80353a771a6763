"""reduce: shrink a model while it keeps failing in the same way.

Delta debugging over the nodes: a set of nodes is dropped, what others read of it becomes inputs
that hold the values computed before, and any tensor may become the output. Then attributes and
optional inputs are dropped, and sizes and elements made small. `fails(model, cases)` decides.
SPDX-License-Identifier: Apache-2.0
"""

import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .evaluate import constants, evaluate, needs


def copy_of(model):
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied


def is_legal(model):
    try:
        onnx.checker.check_model(model, full_check=True)
        return True
    except Exception:  # noqa: BLE001: several kinds
        return False


def prune(nodes, outputs):
    """The nodes that these names need, in order."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            kept.append(node)
            wanted.update(needs(node))
    return kept[::-1]


class Reducer:
    def __init__(self, model, cases, fails, seconds=60.0, say=None):
        self.model, self.cases, self.fails = copy_of(model), cases, fails
        self.deadline, self.say = time.monotonic() + seconds, say or (lambda text: None)
        self.refresh()

    def refresh(self):
        """The values of the present model."""
        self.values = [{name: pair[0] for name, pair in evaluate(self.model, feeds).items()}
                       for feeds in self.cases]
        self.constants = constants(self.model)

    @property
    def is_over(self):
        return time.monotonic() > self.deadline

    def attempt(self, model, cases):
        """Keeps a smaller model if it fails as well."""
        if self.is_over or not is_legal(model) or not self.fails(model, cases):
            return False
        self.model, self.cases = model, cases
        return True

    # --- nodes

    def assemble(self, nodes, outputs):
        """(model, cases) of these nodes; names that none of them makes become inputs."""
        made = {name for node in nodes for name in node.output}
        read = list(dict.fromkeys(name for node in nodes for name in needs(node)))
        free = [name for name in read if name not in made]
        old = {value.name: value for value in self.model.graph.input}
        inputs, initializers = [], []
        for name in free:
            if name in self.constants:
                initializers.append(numpy_helper.from_array(self.constants[name], name))
            elif name in old:
                inputs.append(old[name])
            else:
                inputs.append(self.described(name))
        graph = helper.make_graph(nodes, "reduced", inputs,
                                  [self.described(name, fixed=False) for name in outputs],
                                  initializers)
        model = helper.make_model(graph, opset_imports=self.model.opset_import,
                                  functions=self.model.functions,
                                  ir_version=self.model.ir_version)
        cases = [{value.name: values[value.name] for value in inputs} for values in self.values]
        return model, cases

    def described(self, name, fixed=True):
        arrays = [values[name] for values in self.values]
        number = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
        sizes = zip(*(array.shape for array in arrays)) if arrays[0].ndim else []
        dims = [(d[0] if len(set(d)) == 1 else f"d{'_'.join(map(str, d))}") if fixed else None
                for d in sizes]
        return helper.make_tensor_value_info(name, number, dims)

    def try_nodes(self, nodes, outputs):
        known = self.values[0]
        outputs = [name for name in outputs if name in known]
        if not outputs:
            return False
        nodes = prune(nodes, outputs)
        free = {name for node in nodes for name in needs(node)} - {
            name for node in nodes for name in node.output}
        if not nodes or any(name not in known for name in free):
            return False
        return self.attempt(*self.assemble(nodes, outputs))

    def outputs(self):
        return [value.name for value in self.model.graph.output]

    def single_output(self):
        """One output, as early as may be."""
        nodes = list(self.model.graph.node)
        self.drop_outputs()
        low, high = 0, len(nodes) - 1  # a failure of a node often stays in what follows
        while low < high and not self.is_over:
            middle = (low + high) // 2
            names = [name for node in nodes[: middle + 1] for name in node.output if name]
            if self.try_nodes(nodes[: middle + 1], names):
                high = middle
            else:
                low = middle + 1
        self.drop_outputs()

    def drop_outputs(self):
        for name in self.outputs():
            if len(self.outputs()) > 1 and self.try_nodes(list(self.model.graph.node), [name]):
                break

    def drop_nodes(self):
        """Drops sets of nodes, of half of them and then ever fewer."""
        size = max(1, len(self.model.graph.node) // 2)
        while not self.is_over:
            start, is_smaller = 0, False
            while start < len(self.model.graph.node) and not self.is_over:
                nodes = list(self.model.graph.node)
                kept = nodes[:start] + nodes[start + size:]
                made = {name for node in kept for name in node.output}
                outputs = [name for name in self.outputs() if name in made]
                if not outputs and kept:
                    outputs = [name for name in kept[-1].output if name]
                if kept and self.try_nodes(kept, outputs):
                    is_smaller = True
                else:
                    start += size
            if size == 1 and not is_smaller:
                return
            size = max(1, size // 2)

    # --- what is left

    def edit(self, change):
        """Tries the model after `change(graph)`."""
        model = copy_of(self.model)
        if change(model.graph) is False:
            return False
        names = {value.name for value in model.graph.input}
        cases = [{name: feeds[name] for name in feeds if name in names} for feeds in self.cases]
        return self.attempt(model, cases)

    def drop_attributes(self):
        for i, node in enumerate(self.model.graph.node):
            for attribute in list(node.attribute):
                def without(graph, i=i, name=attribute.name):
                    left = [a for a in graph.node[i].attribute if a.name != name]
                    del graph.node[i].attribute[:]
                    graph.node[i].attribute.extend(left)

                self.edit(without)
            for k in range(len(node.input) - 1, 0, -1):
                if k < len(self.model.graph.node[i].input) and node.input[k]:
                    self.edit(lambda graph, i=i, k=k: drop_input(graph, i, k))

    def fix_case(self):
        for feeds in self.cases if len(self.cases) > 1 else []:
            if self.attempt(self.model, [feeds]):
                break
        if len(self.cases) == 1:
            def fix(graph):
                for value in graph.input:
                    value.CopyFrom(helper.make_tensor_value_info(
                        value.name, value.type.tensor_type.elem_type,
                        self.cases[0][value.name].shape))

            self.edit(fix)

    def simplify_elements(self):
        """Inputs of zeros and ones or small numbers, where the failure does not need others."""
        for name in list(self.cases[0]):
            for make in (np.zeros_like, np.ones_like, counting):
                cases = [{**feeds, name: make(feeds[name])} for feeds in self.cases]
                if self.attempt(self.model, cases):
                    break

    def shrink_sizes(self):
        """Every axis of one size made shorter at once."""
        if len(self.cases) > 1:
            return
        arrays = [*self.cases[0].values(), *constants(self.model).values()]
        for size in sorted({n for array in arrays for n in array.shape if n > 1}, reverse=True):
            for shorter in sorted({1, 2, 3, size // 2} & set(range(1, size))):
                if self.try_size(size, shorter):
                    break

    def try_size(self, size, shorter):
        def cut(array):
            kept = tuple(slice(0, shorter) if n == size else slice(None) for n in array.shape)
            return np.ascontiguousarray(array[kept]).reshape(
                [shorter if n == size else n for n in array.shape])

        model = copy_of(self.model)
        feeds = {name: cut(array) for name, array in self.cases[0].items()}
        for value in model.graph.input:
            value.CopyFrom(helper.make_tensor_value_info(
                value.name, value.type.tensor_type.elem_type, feeds[value.name].shape))
        for tensor in model.graph.initializer:
            tensor.CopyFrom(numpy_helper.from_array(cut(numpy_helper.to_array(tensor)),
                                                    tensor.name))
        return self.attempt(model, [feeds])

    def run(self):
        for step in (self.single_output, self.drop_nodes, self.drop_outputs, self.fix_case,
                     self.drop_attributes, self.shrink_sizes, self.drop_nodes, self.drop_outputs,
                     self.simplify_elements):
            self.refresh()
            step()
            self.say(f"{step.__name__.replace('_', ' ')}: {len(self.model.graph.node)} nodes")
        return self.model, self.cases


def counting(array):
    """1, 2, 3, ... in the array's shape and dtype, none of them great."""
    return (np.arange(array.size) % 7 + 1).reshape(array.shape).astype(array.dtype)


def drop_input(graph, i, k):
    node = graph.node[i]
    node.input[k] = ""
    while node.input and not node.input[-1]:
        del node.input[-1]
    left = {name for node in graph.node for name in needs(node)}
    for kind in (graph.input, graph.initializer):
        kept = [value for value in kind if value.name in left]
        del kind[:]
        kind.extend(kept)


def reduce_model(model, cases, fails, seconds=60.0, say=None):
    """The smallest (model, cases) found for which `fails` still holds."""
    return Reducer(model, cases, fails, seconds, say).run()
