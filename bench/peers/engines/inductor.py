"""TorchInductor: torch.compile with frozen weights, and the option `max_autotune`.

Compiles the torch module that the ONNX file was exported from, or, where there is none of ours,
what onnx2torch makes of the file. Its kernels are compiled by $CXX, g++ unless told otherwise.
"""

from bench.peers.engines import Loaded, package_version
from bench.peers.torch_form import module_of


def version():
    return package_version("torch")


def start(job):
    import torch
    import torch._inductor.config as config

    torch.set_num_threads(job.threads)
    torch.set_num_interop_threads(1)
    config.freezing = True
    config.max_autotune = bool(job.options.get("max_autotune"))


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
