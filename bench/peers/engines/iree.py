"""IREE: llvm-cpu for the host's CPU at -O3 with data tiling, run by its Python bindings.

One thread runs on the device local-sync, which has no scheduler; more on local-task.

Of version 3.13's flags these made the fastest code on a Zen 5 (whose AVX-512 it knows); ms of one
thread without them, and with: resnet50 284 and 178, mobilenet_v2 23.8 and 17.4, minilm_l6 both 6.7.
Convolutions as channels last are what counts, those of 1x1 as products, and loops' rests peeled
off, not padded. Depthwise ones have no such pass and stay scalar in their innermost loop, over
channels of NCHW. What else was tried: im2col (slower, or minutes of compilation), transposes
propagated through convolutions (resnet50: 1982), LLVM's own vectorisers, masked loops, all
microkernels, data tiling by dispatch, no aggressive fusion (no faster), convolutions data-tiled,
and matmuls as inner tiles (the compiler crashes or refuses).
"""

import subprocess
import sys
from pathlib import Path

from bench.peers.engines import Loaded, package_version
from bench.peers.shapes import static_model

CONVOLUTIONS = ("builtin.module(util.func(iree-preprocessing-convert-conv-to-channels-last,"
                "iree-preprocessing-convert-1x1-filter-conv2d-to-matmul))")
FLAGS = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
         "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", "--iree-opt-data-tiling",
         "--iree-input-type=onnx", f"--iree-preprocessing-pass-pipeline={CONVOLUTIONS}",
         "--iree-llvmcpu-vector-pproc-strategy=peel",
         # What it makes of BERT needs more than the 32 KiB that it allows itself.
         "--iree-llvmcpu-stack-allocation-limit=262144"]
SETTINGS = FLAGS


def any_threads(_options):
    return True


def version():
    return package_version("iree-base-compiler", "iree-base-runtime")


def call(command):
    """Runs one of IREE's tools; its first complaint becomes the exception."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        lines += done.stderr.strip().splitlines()[-1:]
        name = Path(command[0]).name
        raise RuntimeError(lines[0] if lines else f"{name} ended with {done.returncode}")


def prepare(job):
    tools = Path(sys.executable).parent
    source, module = job.path("model.mlir"), job.path("model.vmfb")
    call([str(tools / "iree-import-onnx"), static_model(job), "-o", str(source),
          "--opset-version", "17"])
    call([str(tools / "iree-compile"), str(source), *FLAGS, "-o", str(module)])
    source.unlink()


def start(_job):
    import iree.runtime  # noqa: F401


def load(job):
    """Invokes the module's only public function on buffers that are there already."""
    import iree.runtime as rt
    import numpy as np

    if job.threads == 1:
        uri = "local-sync"
    else:
        uri = "local-task"
        rt.flags.parse_flags("--task_topology_cpu_ids=" + ",".join(map(str, job.cores)))
    config = rt.Config(uri)
    module = rt.VmModule.mmap(config.vm_instance, str(job.path("model.vmfb")))
    hal = rt.create_hal_module(config.vm_instance, config.device)
    context = rt.VmContext(config.vm_instance, modules=[hal, module])
    names = [name for name in module.function_names if not name.startswith("__")]
    function = module.lookup_function(next(n for n in names if not n.endswith("$async")))
    feeds = list(job.static_inputs().values())
    arguments = rt.VmVariantList(len(feeds))
    held = [rt.asdevicearray(config.device, value) for value in feeds]
    for value in held:
        arguments.push_ref(value._buffer_view)

    def run():
        results = rt.VmVariantList(1)
        context.invoke(function, arguments, results)
        return results

    def arrays(results):
        views = [results.get_as_object(i, rt.HalBufferView) for i in range(results.size)]
        return [np.array(rt.DeviceArray(config.device, view, implicit_host_transfer=True))
                for view in views]

    run.alive = (module, hal, held)
    return Loaded(run, arrays)
