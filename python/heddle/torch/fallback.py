"""fallback: what is said of a graph that Heddle does not take, which then runs as it came.

SPDX-License-Identifier: Apache-2.0
"""

import re
import warnings

import torch

from .translate import Refused

CHOICES = ("warn", "silent", "raise")


class FallbackWarning(UserWarning):
    """A graph runs without Heddle."""


def source_of(node):
    """The line of the user's program that a node of FX is from, or nothing."""
    places = re.findall(r'File "(.*?)", line (\d+)', node.meta.get("stack_trace") or "")
    return f" ({places[-1][0]}, line {places[-1][1]})" if places else ""


def node_of(error, graph):
    """The node of FX that an error is about: its own, or one that the message names."""
    if isinstance(error, Refused):
        return error.node
    quoted = {name.split(":")[0].split(".")[0] for name in re.findall(r"'([^']+)'", str(error))}
    return next((node for node in graph.nodes if node.name in quoted), None)


def text_of(error, graph):
    node = node_of(error, graph)
    where = f"'{node.name}'{source_of(node)}: " if node is not None else ""
    return f"{where}{error}"


def unsupported(values):
    """Why Heddle takes none of a graph with such arguments, or None. Fake tensors have all that is
    asked."""
    for value in values:
        if not isinstance(value, torch.Tensor):
            continue
        if value.device.type != "cpu":
            return f"a tensor is on the device '{value.device}', but must be on the CPU"
        if value.layout is not torch.strided:
            return f"a tensor has the layout {value.layout}, but must be dense"
        if value.is_complex():
            return f"a tensor is of {value.dtype}, but complex numbers are not supported"
        if value.is_quantized:
            return f"a tensor is of {value.dtype}, but quantised tensors are not supported"
    return None


def tell(text):
    warnings.warn(f"heddle: a graph runs as torch's own: {text}; options={{'fallback': 'raise'}} "
                  "makes this an error", FallbackWarning, stacklevel=3)


def tell_thawed():
    warnings.warn("heddle: a weight has changed since it was frozen: the graph is compiled again, "
                  "with weights as inputs", FallbackWarning, stacklevel=4)
