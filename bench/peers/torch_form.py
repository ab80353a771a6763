"""The torch module of a job: the network that its file was exported from, or what onnx2torch makes
of the file."""

OPSET = 13  # onnx2torch knows few older forms of ops


def constant_of(network, node):
    """The list that a node of the graph always gives, or None."""
    if node.op == "get_attr":
        owner, _, name = node.target.rpartition(".")
        return getattr(network.get_submodule(owner), name).tolist()
    if node.op == "call_module":
        module = network.get_submodule(node.target)
        if type(module).__name__ == "OnnxConstant":
            return module.value.tolist()
    return None


def with_constants(network):
    """Tells reshapes, slices and squeezes their sizes: onnx2torch has them read from tensors, which
    torch.compile cannot look into."""
    from torch import nn

    class Reshape(nn.Module):
        """ONNX's Reshape: a size of 0 is the input's."""

        def __init__(self, sizes):
            super().__init__()
            self.sizes = sizes

        def forward(self, x, *_):
            return x.reshape([x.shape[i] if size == 0 else size
                              for i, size in enumerate(self.sizes)])

    class Slice(nn.Module):
        """ONNX's Slice with steps forward."""

        def __init__(self, starts, ends, axes=None, steps=None):
            super().__init__()
            axes = range(len(starts)) if axes is None else axes
            steps = steps or [1] * len(starts)
            self.slices = list(zip(axes, starts, ends, steps))

        def forward(self, x, *_):
            index = [slice(None)] * x.dim()
            for axis, start, end, step in self.slices:
                index[axis] = slice(start, end, step)
            return x[tuple(index)]

    class Squeeze(nn.Module):
        """ONNX's Squeeze of given axes."""

        def __init__(self, axes):
            super().__init__()
            self.axes = tuple(axes)

        def forward(self, x, *_):
            return x.squeeze(self.axes)

    for node in network.graph.nodes:
        if node.op != "call_module":
            continue
        constants = [constant_of(network, argument) for argument in node.args[1:]]
        if not constants or None in constants:
            continue
        kind = type(network.get_submodule(node.target)).__name__
        if kind == "OnnxReshape":
            network.set_submodule(node.target, Reshape(*constants))
        elif kind.startswith("OnnxSqueeze"):
            network.set_submodule(node.target, Squeeze(*constants))
        elif kind == "OnnxSlice" and all(step > 0 for step in (constants + [[]] * 2)[3]):
            network.set_submodule(node.target, Slice(*constants))
    return network


def module_of(job):
    """The torch module; it takes the feeds in their order."""
    from bench.networks import published  # also declares what onnx2torch's import asks for
    if job.network:
        return published.make(job.network)
    import onnx
    from onnx import version_converter

    from bench.peers.shapes import static_model
    try:
        import onnx2torch
        model = onnx.load(static_model(job))
        if any(entry.domain == "" and entry.version < OPSET for entry in model.opset_import):
            model = version_converter.convert_version(model, OPSET)
        return with_constants(onnx2torch.convert(model).eval())
    except Exception as failure:
        raise RuntimeError(f"no torch form: onnx2torch: {failure}") from failure
