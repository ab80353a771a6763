"""IREE: llvm-cpu for the host's CPU at -O3 with data tiling, run by its Python bindings.

One thread runs on the device local-sync, which has no scheduler; more on local-task. A model with
convolutions is compiled both ways that WAYS names and keeps the faster: neither is best for all.

These flags of version 3.13 made the fastest code on a Zen 5 (whose AVX-512 it knows); ms of one
thread without them, and with: resnet50 284 and 178, mobilenet_v2 23.8 and 17.4, minilm_l6 both 6.7,
bert_base_128 210 and 206; magika 109, and 5 by im2col. Depthwise convolutions have no way: their
innermost loop, over channels of NCHW, stays scalar. What else was tried: transposes propagated
through convolutions (resnet50: 1982), LLVM's own vectorisers, masked loops, all microkernels, data
tiling by dispatch, no aggressive fusion (no faster), convolutions data-tiled, and matmuls as inner
tiles (the compiler crashes or refuses).
"""

import subprocess
import sys
import time
from pathlib import Path

from bench.peers.engines import Loaded, package_version
from bench.peers.shapes import static_model

FLAGS = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
         "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", "--iree-opt-data-tiling",
         "--iree-input-type=onnx", "--iree-llvmcpu-vector-pproc-strategy=peel",
         # Its code for BERT needs more than the 32 KiB that it allows itself.
         "--iree-llvmcpu-stack-allocation-limit=262144"]
WAYS = {  # to compile convolutions
    "channels-last": ["--iree-preprocessing-pass-pipeline=builtin.module(util.func("
                      "iree-preprocessing-convert-conv-to-channels-last,"
                      "iree-preprocessing-convert-1x1-filter-conv2d-to-matmul))"],
    "im2col": ["--iree-global-opt-use-im2col-for-convs"],
}
WAY_S = 60  # for each way after the first: im2col of a large network takes many minutes
SETTINGS = [FLAGS, WAYS]


def any_threads():
    return True


def version():
    return package_version("iree-base-compiler", "iree-base-runtime")


def call(command, limit_s=None):
    """Runs one of IREE's tools; its first complaint becomes the exception."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{name} took more than {limit_s} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        lines += done.stderr.strip().splitlines()[-1:]
        folder = f"{Path(command[1]).parent}/"  # where the model lies for now: no reader's matter
        raise RuntimeError(lines[0].replace(folder, "") if lines
                           else f"{name} ended with {done.returncode}")


def convolves(path):
    """Tells whether the ONNX file has a convolution."""
    import onnx
    nodes = onnx.load(path, load_external_data=False).graph.node
    return any("Conv" in node.op_type for node in nodes)


def seconds_of(job, module):
    """CPU seconds of the quickest of a few runs."""
    loaded, found = load(job, module), []
    loaded.run()
    for _ in range(3):
        begin = time.process_time()
        loaded.run()
        found.append(time.process_time() - begin)
    return min(found)


def compile_ways(job, source, flags, ways):
    """({way: seconds of a run}, what went wrong); each way that compiles leaves WAY.vmfb."""
    from iree.compiler.tools import binaries

    # The command of that name is a script around it, which would die alone.
    compiler, seconds, failures = binaries.find_tool("iree-compile"), {}, []
    for way, more in ways.items():
        module = job.path(f"{way}.vmfb")
        try:
            call([compiler, str(source), *flags, *more, "-o", str(module)],
                 WAY_S if seconds or failures else None)
            seconds[way] = seconds_of(job, module)
        except RuntimeError as failure:
            failures.append(failure)
    return seconds, failures


def prepare(job):
    """Compiles; with convolutions in each way, and keeps what runs fastest. Where data tiling makes
    what the compiler then refuses, it goes without."""
    source = job.path("model.mlir")
    importer = str(Path(sys.executable).with_name("iree-import-onnx"))
    call([importer, static_model(job), "-o", str(source), "--opset-version", "17"])
    ways = WAYS if convolves(static_model(job)) else {"none": []}
    seconds, failures = compile_ways(job, source, FLAGS, ways)
    if not seconds:
        untiled = [flag for flag in FLAGS if flag != "--iree-opt-data-tiling"]
        seconds, _ = compile_ways(job, source, untiled, ways)
    source.unlink()
    if not seconds:
        raise failures[0]
    best = min(seconds, key=seconds.get)
    job.path(f"{best}.vmfb").rename(job.path("model.vmfb"))
    for way in ways:
        job.path(f"{way}.vmfb").unlink(missing_ok=True)
    return {"convolutions": best}


def start(_job):
    import iree.runtime  # noqa: F401


def load(job, path=None):
    """Invokes the module's only public function on buffers that are there already."""
    import iree.runtime as rt
    import numpy as np

    if job.threads == 1:
        uri = "local-sync"
    else:
        uri = "local-task"
        rt.flags.parse_flags("--task_topology_cpu_ids=" + ",".join(map(str, job.cores)))
    config = rt.Config(uri)
    module = rt.VmModule.mmap(config.vm_instance, str(path or job.path("model.vmfb")))
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
