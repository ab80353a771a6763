"""OpenVINO's CPU plugin: for latency, one stream, f32 and never less unless the option `precision`
is "default", and the benched sizes.

A file that it does not read as it is it gets once more with its sizes fixed.
"""

from bench.peers.engines import Loaded, package_version
from bench.peers.shapes import static_model


def version():
    return package_version("openvino")


def start(_job):
    import openvino  # noqa: F401


def _name_in(port, feeds):
    """The name by which the model knows an input: OpenVINO may add others of the same tensor."""
    return next(name for name in port.get_names() if name in feeds)


def load(job):
    """An infer request whose input tensors share our arrays."""
    import openvino

    core, feeds = openvino.Core(), job.inputs()
    try:
        model = core.read_model(job.model)
        names = {port.index: _name_in(port, feeds) for port in model.inputs}
        model.reshape({index: list(feeds[name].shape) for index, name in names.items()})
    except RuntimeError:
        model = core.read_model(static_model(job))
    precision = job.options.get("precision", "f32")
    compiled = core.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
        "INFERENCE_NUM_THREADS": str(job.threads), "ENABLE_CPU_PINNING": "NO",
        **({} if precision == "default" else {"INFERENCE_PRECISION_HINT": precision})})
    request = compiled.create_infer_request()
    kept = []
    for port in compiled.inputs:
        kept.append(openvino.Tensor(feeds[_name_in(port, feeds)], shared_memory=True))
        request.set_tensor(port, kept[-1])
    outputs = compiled.outputs

    def run():
        request.infer(share_outputs=True)
        return request

    run.alive = (kept, feeds)
    return Loaded(run, lambda done: [done.get_tensor(port).data.copy() for port in outputs])
