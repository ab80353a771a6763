"""TorchInductor: torch.compile with frozen weights.

Compiles the torch module that the ONNX file was exported from, or, where there is none of ours,
what onnx2torch makes of the file. Its kernels are compiled by $CXX, g++ unless told otherwise.
`prepare` leaves Inductor's own caches in the job's folder. After it, loading means to trace and to
lower the module once more, for Inductor keeps no graph with packed weights, but its kernels are
there; that takes a quarter to half of the time.
"""

import os
import time

from bench.peers.engines import Loaded, package_version
from bench.peers.torch_form import module_of

SETTINGS = [os.environ.get("CXX", "g++")]


def version():
    return package_version("torch")


def start(job):
    import torch
    import torch._inductor.config as config

    torch.set_num_threads(job.threads)
    torch.set_num_interop_threads(1)
    config.freezing = True


def prepare(job):
    """Compiles by a first run; its seconds are those of an import less."""
    start(job)
    begin = time.perf_counter()
    load(job)
    return {"seconds": time.perf_counter() - begin}


def load(job):
    """Compiles, or takes what is compiled, and runs once: both are by the first run."""
    import torch

    network = module_of(job)
    feeds = job.inputs() if job.network else job.static_inputs()
    inputs = [torch.from_numpy(value) for value in feeds.values()]
    # Inputs stay as they are: to ask before each call costs mobilenet_v2 6 % of its time.
    compiled = torch.compile(network, fullgraph=bool(job.network), options={
        "guard_filter_fn": torch.compiler.skip_all_guards_unsafe})

    def run():
        with torch.no_grad():
            return compiled(*inputs)

    run()

    def arrays(results):
        results = results if isinstance(results, (tuple, list)) else [results]
        return [value.detach().numpy() for value in results]

    return Loaded(run, arrays)
