"""MetaSchedule's search for TVM's schedules: a process that goes on until it is ended.

    python -m bench.peers.engines.tvm_search JOB

MetaSchedule's own settings measure nothing within a quarter of an hour of one core. Every process
that builds or plans reads the intrinsics of all GPUs first, half a minute of CPU; each batch of
builds has new processes; and a build is given up after 30 s. Here one process plans and builds and
reads x86's intrinsics alone. Rounds and populations are small: nothing is recorded before each
kernel has had a round, five seconds each. mobilenet_v2: 154 ms untuned, 12.5 ms after 257 records.
"""

import os
import sys
import tempfile
import types

from bench.peers import job as jobs

TRIALS = 1_000_000  # more than any budget lets it make
TRIALS_PER_TASK = 256
TRIALS_PER_ROUND = 8
POPULATION = {"population_size": 32, "init_min_unmeasured": 8, "genetic_num_iters": 2}
MEASURING = {"number": 1, "repeat": 2, "min_repeat_ms": 20}
FOREIGN = ("cuda", "rocm", "hexagon", "arm_cpu", "riscv_cpu")


def leave_out_foreign_intrinsics():
    """Lets TVM find empty modules where it has the intrinsics of other machines."""
    for name in FOREIGN:
        path = f"tvm.s_tir.tensor_intrin.{name}"
        sys.modules[path] = types.ModuleType(path)


def builder():
    """Builds candidates one after another, in this process."""
    import tvm
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    def build(candidate):
        module = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(candidate.mod)
        # Once it has run, MetaSchedule removes the folder.
        path = os.path.join(tempfile.mkdtemp(), "candidate.so")
        tvm.build(module, target=candidate.target).export_library(path, cc=os.environ["CXX"])
        return path

    @derived_object
    class Builder(ms.builder.PyBuilder):
        """What fails to build is no candidate."""

        def build(self, build_inputs):
            results = []
            for candidate in build_inputs:
                try:
                    results.append(ms.builder.BuilderResult(build(candidate), None))
                except Exception as failure:  # noqa: BLE001: whatever TVM raises
                    results.append(ms.builder.BuilderResult(None, str(failure)))
            return results

    return Builder()


def tune(module, target, folder, threads):
    """Searches the schedules of a module's kernels; the database in the folder grows with it."""
    leave_out_foreign_intrinsics()
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule import relax_integration as relaxed

    tasks, weights = relaxed.extracted_tasks_to_tune_contexts(
        relaxed.extract_tasks(module, target), folder,
        strategy=ms.search_strategy.EvolutionarySearch(**POPULATION), num_threads=threads)
    ms.tune.tune_tasks(
        tasks=tasks, task_weights=weights, work_dir=folder, max_trials_global=TRIALS,
        max_trials_per_task=TRIALS_PER_TASK, num_trials_per_iter=TRIALS_PER_ROUND,
        builder=builder(),
        runner=ms.runner.LocalRunner(evaluator_config=ms.runner.EvaluatorConfig(**MEASURING)))


def main(path):
    """Tunes the model of a job."""
    import tvm

    from bench.peers.engines import tvm as engine

    job = jobs.read(path)
    target = engine.target_of(job)
    with target, tvm.transform.PassContext(opt_level=3):
        module = engine.kernels(tuned=True)(engine.module_of(job))
    tune(module, target, str(job.path("tuning")), job.threads)


if __name__ == "__main__":
    main(sys.argv[1])
