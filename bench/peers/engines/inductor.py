"""TorchInductor: torch.compile with frozen weights, and the option `max_autotune`.

Compiles the torch module that the ONNX file was exported from, or, where there is none of ours,
what onnx2torch makes of the file. Its kernels are compiled by $CXX, g++ unless told otherwise.
"""

from bench.peers.engines import Loaded, package_version

OPSET = 13  # onnx2torch knows few older forms of ops


def version():
    return package_version("torch")


def start(job):
    import torch
    import torch._inductor.config as config

    torch.set_num_threads(job.threads)
    torch.set_num_interop_threads(1)
    config.freezing = True
    config.max_autotune = bool(job.options.get("max_autotune"))


def constant_sizes(network):
    """Tells each reshape its sizes: onnx2torch reads them from a tensor, which torch.compile cannot
    look into."""
    import torch

    class Reshape(torch.nn.Module):
        """ONNX's Reshape: a size of 0 is the input's."""

        def __init__(self, sizes):
            super().__init__()
            self.sizes = sizes

        def forward(self, x, _):
            return x.reshape([x.shape[i] if size == 0 else size
                              for i, size in enumerate(self.sizes)])

    for node in network.graph.nodes:
        if node.op != "call_module" or node.args[1:2] == () or node.args[1].op != "get_attr":
            continue
        if type(network.get_submodule(node.target)).__name__ == "OnnxReshape":
            owner, _, name = node.args[1].target.rpartition(".")
            sizes = getattr(network.get_submodule(owner), name).tolist()
            network.set_submodule(node.target, Reshape(sizes))
    return network


def module_of(job):
    """The torch module; it takes the feeds in their order."""
    if job.network:
        from bench.peers import networks
        return networks.make(job.network)
    import onnx
    from onnx import version_converter

    from bench.peers import networks  # noqa: F401: declares what onnx2torch's import asks for
    from bench.peers.shapes import static_model
    try:
        import onnx2torch
        model = onnx.load(static_model(job))
        if any(entry.domain == "" and entry.version < OPSET for entry in model.opset_import):
            model = version_converter.convert_version(model, OPSET)
        return constant_sizes(onnx2torch.convert(model).eval())
    except Exception as failure:
        raise RuntimeError(f"no torch form: onnx2torch: {failure}") from failure


def load(job):
    """Compiles and runs once, since compilation is by the first run."""
    import torch

    network = module_of(job)
    feeds = job.inputs() if job.network else job.static_inputs()
    inputs = [torch.from_numpy(value) for value in feeds.values()]
    compiled = torch.compile(network, fullgraph=bool(job.network))

    def run():
        with torch.no_grad():
            return compiled(*inputs)

    run()

    def arrays(results):
        results = results if isinstance(results, (tuple, list)) else [results]
        return [value.detach().numpy() for value in results]

    return Loaded(run, arrays)
