"""table: the builders by op. SPDX-License-Identifier: Apache-2.0"""

import torch

aten, prims = torch.ops.aten, torch.ops.prims
BUILDERS = {}  # by an overload, by an op with all of its overloads, or by an op's name


def builds(*targets):
    """Makes the function the builder of these ops."""
    def add(function):
        BUILDERS.update(dict.fromkeys(targets, function))
        return function
    return add


def takes_complex(function):
    """Says of a builder that it takes complex tensors, whose parts are a dimension after the last.
    Others are not asked for one that has these."""
    function.takes_complex = True
    return function


def value_of(x):
    """The fake tensor or the number that an argument is."""
    return x.meta["val"] if isinstance(x, torch.fx.Node) else x


def rank_of(x):
    return value_of(x).dim()


def axis_of(dim, rank):
    """An axis that is not negative; a scalar has one."""
    return dim % max(rank, 1)


def axes_of(dims, rank):
    """The axes of a reduction; none is all."""
    if dims is None or dims == []:
        return list(range(rank))
    return [axis_of(dim, rank) for dim in ([dims] if isinstance(dims, int) else dims)]
