"""ONNX Runtime: all graph optimisations, weights prepacked, inputs and outputs bound to memory.

It gets the file with its dynamic sizes, as Heddle does.
"""

from bench.peers.engines import Loaded, package_version


def version():
    return package_version("onnxruntime")


def start(_job):
    import onnxruntime  # noqa: F401


def load(job):
    """A session; after a first run has told the sizes, outputs are bound to memory that is kept."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads, options.inter_op_num_threads = job.threads, 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    session = onnxruntime.InferenceSession(job.model, options, providers=["CPUExecutionProvider"])
    feeds = job.inputs()
    feeds = {value.name: feeds[value.name] for value in session.get_inputs()}
    held = {name: onnxruntime.OrtValue.ortvalue_from_numpy(v) for name, v in feeds.items()}
    names = [value.name for value in session.get_outputs()]
    results, run_options = session.run(names, feeds), onnxruntime.RunOptions()

    def caller():
        """A run into outputs of its own."""
        binding = session.io_binding()
        for name, value in held.items():
            binding.bind_ortvalue_input(name, value)
        kept = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in results]
        for name, value in zip(names, kept):
            binding.bind_ortvalue_output(name, value)

        def run():
            session.run_with_iobinding(binding, run_options)
            return kept

        return run

    return Loaded(caller(), lambda values: [value.numpy() for value in values], caller)
