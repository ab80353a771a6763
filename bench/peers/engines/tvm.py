"""TVM: the relax virtual machine, for the host's CPU, without tuning; weights are constants.

Kernels have no schedules: the pipeline for CPUs of TVM 0.27 has none. Those of its `dlight` cost
more than they give (ms of one thread without any; with; with those for products with vectors alone:
minilm_l6 427, 374, 416; mobilenet_v2 154, 275, 174), and so do convolutions as NHWC (161). The
package is built without oneDNN.
"""

import os

from bench.peers.engines import Loaded, package_version
from bench.peers.shapes import static_model


def version():
    return package_version("apache-tvm", "apache-tvm-ffi")


def any_threads():
    return True


def target_of(job):
    import tvm
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": job.threads})


def module_of(job):
    """The model as relax, with its weights as constants."""
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    feeds = job.static_inputs()
    return from_onnx(onnx.load(static_model(job)), {k: list(v.shape) for k, v in feeds.items()},
                     keep_params_in_input=False, sanitize_input_names=True)


def kernels():
    """The passes that make kernels of a module."""
    from tvm import relax, transform
    change = relax.transform
    return transform.Sequential([
        change.DecomposeOpsForInference(), change.CanonicalizeBindings(), change.LegalizeOps(),
        change.AnnotateTIROpPattern(), change.FoldConstant(), change.FuseOps(), change.FuseTIR()])


def prepare(job):
    import tvm

    target, module = target_of(job), module_of(job)
    with target, tvm.transform.PassContext(opt_level=3):
        built = tvm.compile(kernels()(module), target=target)
    built.export_library(str(job.path("model.so")), cc=os.environ["CXX"])


def start(_job):
    import tvm  # noqa: F401


def load(job):
    import tvm
    from tvm import relax

    machine = relax.VirtualMachine(tvm.runtime.load_module(str(job.path("model.so"))), tvm.cpu())
    inputs = [tvm.runtime.tensor(value) for value in job.static_inputs().values()]
    main = machine["main"]

    def run():
        return main(*inputs)

    def arrays(results):
        many = not hasattr(results, "numpy")
        return [value.numpy() for value in results] if many else [results.numpy()]

    return Loaded(run, arrays)
