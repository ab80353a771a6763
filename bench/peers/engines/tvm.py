"""TVM: the relax virtual machine, for the host's CPU; with `tune_seconds` after MetaSchedule.

MetaSchedule counts trials, not seconds: tuning is a process (tvm_search.py) that is ended when its
time is over, and what its database holds by then is applied. Weights are constants, so the layouts
that tuning asks for are folded into them.

Without tuning, kernels have no schedules: the pipeline for CPUs of TVM 0.27 has none. Those of its
`dlight` cost more than they give (ms of one thread without any; with; with those for products with
vectors alone: minilm_l6 427, 374, 416; mobilenet_v2 154, 275, 174), and so do convolutions as NHWC
(161). The package is built without oneDNN.
"""

import os
import shutil
import signal
import subprocess
import sys

from bench.peers.engines import Loaded, package_version
from bench.peers.shapes import static_model

SEARCH = "bench.peers.engines.tvm_search"


def version():
    return package_version("apache-tvm", "apache-tvm-ffi")


def any_threads(options):
    """What is tuned is tuned for a number of them."""
    return "tune_seconds" not in options


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


def kernels(tuned=False):
    """What makes kernels of a module, to be scheduled; for tuning their weights may change layout.
    """
    from tvm import relax, transform
    change = relax.transform
    passes = [change.DecomposeOpsForInference(), change.CanonicalizeBindings(),
              change.LegalizeOps(), change.AnnotateTIROpPattern(), change.FoldConstant(),
              change.FuseOps(), change.FuseTIR()]
    return transform.Sequential(passes + [change.AttachAttrLayoutFreeBuffers()] * tuned)


def schedules(database):
    """Gives kernels the best schedules of the database, and folds their layouts into weights."""
    from tvm import relax, transform
    change = relax.transform
    return transform.Sequential([change.MetaScheduleApplyDatabase(str(database)),
                                 change.SplitLayoutRewritePreproc(), change.FoldConstant()])


def search(job, seconds):
    """Tunes in a process of its own for so long."""
    candidates = job.path("candidates")
    candidates.mkdir()
    with open(job.path("tuning.log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, "-m", SEARCH, job.path("job.json")],
                                   stdout=log, stderr=log, start_new_session=True,
                                   env=os.environ | {"TMPDIR": str(candidates)})
        try:
            if process.wait(timeout=seconds):
                raise RuntimeError(f"tuning ended with status {process.returncode}")
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            shutil.rmtree(candidates, ignore_errors=True)


def records_of(job):
    """How many schedules the database holds."""
    path = job.path("tuning") / "database_tuning_record.json"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def prepare(job):
    import tvm

    seconds = job.options.get("tune_seconds")
    if seconds:
        search(job, seconds)
        if not records_of(job):
            raise RuntimeError(f"tuning has measured nothing within {seconds:.0f} s")
    target, module = target_of(job), module_of(job)
    with target, tvm.transform.PassContext(opt_level=3):
        module = kernels(bool(seconds))(module)
        if seconds:
            module = schedules(job.path("tuning"))(module)
        built = tvm.compile(module, target=target)
    built.export_library(str(job.path("model.so")), cc=os.environ["CXX"])
    return {"tuning_records": records_of(job)}


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
