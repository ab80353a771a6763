"""The model with the sizes of the inputs instead of open ones, for engines that want them known.

    python -m bench.peers.shapes JOB

Inputs that the job names as constants become such. Constants are folded by ONNX Runtime's basic
optimisations, which keep to ONNX's own ops: what computed sizes and chose branches, which importers
often cannot read, is gone then.
"""

import subprocess
import sys

import onnx

from bench.peers import job as jobs


def folded(model, job):
    """The model after ONNX Runtime's basic optimisations."""
    import onnxruntime

    before, after = job.path("fixed.onnx"), job.path("folded.onnx")
    onnx.save(model, before)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(after)
    options.intra_op_num_threads = job.threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(before), options,
                                           providers=["CPUExecutionProvider"])
    model = onnx.load(after)
    for value, known in zip(model.graph.output, session.get_outputs(), strict=True):
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        for size in known.shape:
            shape.dim.add(**{"dim_value" if isinstance(size, int) else "dim_param": size})
    before.unlink()
    after.unlink()
    used = {node.domain for node in model.graph.node} | {""}
    kept = [entry for entry in model.opset_import if entry.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    return model


def fix_constants(model, job):
    """Makes inputs constant."""
    feeds = job.inputs()
    for value in [value for value in model.graph.input if value.name in job.constants]:
        model.graph.initializer.append(onnx.numpy_helper.from_array(feeds[value.name], value.name))
        model.graph.input.remove(value)


def fix_sizes(model, job):
    """Gives the inputs the sizes of the feeds, and forgets what was known of other values."""
    feeds = job.static_inputs()
    for value in model.graph.input:
        if value.name in feeds:
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for size in feeds[value.name].shape:
                shape.dim.add().dim_value = size
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]


def write(job):
    """Writes the model into the job's folder."""
    model = onnx.load(job.model)
    if job.constants:  # the branches that they choose go first: the others may not fit the sizes
        fix_constants(model, job)
        model = folded(model, job)
    fix_sizes(model, job)
    onnx.save(folded(model, job), job.path("static.onnx"))


def static_model(job):
    """Path of the model, made by a process of its own: an engine's process holds that engine."""
    path = job.path("static.onnx")
    if not path.exists():
        done = subprocess.run([sys.executable, "-m", "bench.peers.shapes", job.path("job.json")],
                              capture_output=True, text=True, check=False)
        if done.returncode or not path.exists():
            last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
            raise RuntimeError(f"its sizes cannot be fixed: {last}")
    return str(path)


if __name__ == "__main__":
    write(jobs.read(sys.argv[1]))
