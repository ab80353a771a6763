"""onnxruntime_peer: runs a model with ONNX Runtime for `heddle bench` and `heddle compare`.

The parent sends a message and reads the answer: a line of JSON, then the bytes of each tensor that
the line describes, in its order. Elements travel as the C API has them; strings are in the line,
and a sequence of maps travels as a tensor [n, labels].
"""

import json
import os
import sys
import time

USAGE, REFUSED = 2, 3
BATCH = 32  # intermediate values that are held at once

# dtypes that plain NumPy has not got: the number in onnx.TensorProto, and the bits' dtype
RAW = {"bfloat16": (16, "uint16"), "float8e4m3fn": (17, "uint8"), "float8e4m3fnuz": (18, "uint8"),
       "float8e5m2": (19, "uint8"), "float8e5m2fnuz": (20, "uint8")}


class Refusal(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def load_packages():
    global np, ort
    try:
        import numpy as np
        import onnxruntime as ort
    except ImportError as error:
        raise Refusal(USAGE, f"ONNX Runtime cannot be imported by '{sys.executable}': {error}\n"
                      f"note: '{sys.executable} -m pip install onnxruntime' installs it; "
                      "HEDDLE_PYTHON names another Python")


class Peer:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.cache = {}

    def receive_tensor(self, about):
        data = self.reader.read(about["bytes"])
        dtype, shape = about["dtype"], about["shape"]
        if dtype == "string":
            return np.array(about["strings"], object).reshape(shape)
        if dtype in RAW:
            array = np.frombuffer(data, RAW[dtype][1]).reshape(shape)
            return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, RAW[dtype][0])
        if dtype not in np.sctypeDict:
            raise Refusal(REFUSED, f"input '{about['name']}': ONNX Runtime for Python takes no "
                          f"{dtype}")
        return np.frombuffer(data, dtype).reshape(shape)

    def load(self, message):
        load_packages()
        self.model, self.threads = message["model"], message["threads"]
        self.feeds = {about["name"]: self.receive_tensor(about) for about in message["inputs"]}
        self.about_outputs = message["outputs"]
        self.session = self.make_session(self.model, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
        self.names = [output.name for output in self.session.get_outputs()]
        self.binding = self.bind()
        called = "from Python" + (", inputs and outputs in place" if self.binding else "")
        return {"version": ort.__version__, "steps": self.quantisation_steps(),
                "called": called}, []

    def bind(self):
        """Inputs and outputs in place, as ours are in a timed run; None where there are strings,
        sequences or maps, which cannot be."""
        try:
            binding = self.session.io_binding()
            feeds = self.ort_feeds()
            for name, value in feeds.items():
                binding.bind_ortvalue_input(name, value)
            for name, value in zip(self.names, self.session.run_with_ort_values(self.names, feeds)):
                if "string" in value.data_type() or not value.is_tensor():
                    return None
                binding.bind_ortvalue_output(name, value)
            self.session.run_with_iobinding(binding)
            return binding
        except Exception:  # noqa: BLE001: the run itself will say what is wrong
            return None

    def make_session(self, model, level):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = level
        options.log_severity_level = 4
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def quantisation_steps(self):
        """{output: worth of one step}, of outputs that a DequantizeLinear with one scale makes."""
        try:
            import onnx
            graph = onnx.load(self.model, load_external_data=False).graph
            scales = {t.name: t for t in graph.initializer}
            return {node.output[0]: float(onnx.numpy_helper.to_array(scales[node.input[1]]).max())
                    for node in graph.node
                    if node.op_type == "DequantizeLinear" and node.input[1] in scales
                    and node.output[0] in self.names}
        except ImportError:
            return {}

    def results(self, session, names):
        if any(not isinstance(value, np.ndarray) for value in self.feeds.values()):
            return [value.numpy() if value.is_tensor() else None
                    for value in session.run_with_ort_values(names, self.ort_feeds())]
        return session.run(names, self.feeds)

    def ort_feeds(self):
        return {name: ort.OrtValue.ortvalue_from_numpy(value) if isinstance(value, np.ndarray)
                else value for name, value in self.feeds.items()}

    def run(self, _):
        abouts = {about["name"]: about for about in self.about_outputs}
        pairs = zip(self.names, self.results(self.session, self.names))
        return self.described([(name, to_tensor(value, abouts.get(name, {})))
                               for name, value in pairs])

    def time(self, message):
        seconds, count = [], message["count"]
        self.results(self.session, None)  # wakes the threads up again
        for _ in range(count):
            start = time.perf_counter()
            if self.binding:
                self.session.run_with_iobinding(self.binding)
            else:
                self.session.run(None, self.feeds)
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds}, []

    def nodes(self, _):
        """{node: how many outputs it has}, of the graph's own nodes."""
        self.expose_all()
        return {"nodes": {name: len(outputs) for name, outputs in self.outputs_of.items()}}, []

    def node(self, message):
        """The outputs of one node; without those that are no tensors."""
        outputs = self.outputs_of[message["node"]]
        if outputs[0] not in self.cache:
            at = self.every_name.index(outputs[0])
            names = self.every_name[at:at + max(BATCH, len(outputs))]
            self.cache = dict(zip(names, self.results(self.every, names)))
        values = [(name, self.cache.get(name)) for name in outputs]
        return self.described([pair for pair in values if isinstance(pair[1], np.ndarray)])

    def expose_all(self):
        """A session whose outputs are all values of the graph, computed as they are written."""
        try:
            import onnx
        except ImportError as error:
            raise Refusal(USAGE, f"results of single nodes need the package onnx: {error}\n"
                          f"note: '{sys.executable} -m pip install onnx' installs it")
        model = onnx.load(self.model)
        known = {output.name for output in model.graph.output}
        self.outputs_of = {node_name(node): [name for name in node.output if name]
                           for node in model.graph.node}
        self.every_name = [name for node in model.graph.node for name in node.output if name]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.every_name
                                  if name not in known)
        level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.every = self.make_session(model.SerializeToString(), level)

    def described(self, values):
        """The answer that carries these tensors."""
        abouts, blobs = [], []
        for name, array in values:
            if array.dtype == object or array.dtype.kind in "US":
                abouts.append({"name": name, "dtype": "string", "shape": list(array.shape),
                               "bytes": 0, "strings": [str(text) for text in array.ravel()]})
                continue
            data = np.ascontiguousarray(array).tobytes()
            abouts.append({"name": name, "dtype": dtype_name(array), "shape": list(array.shape),
                           "bytes": len(data)})
            blobs.append(data)
        return {"values": abouts}, blobs

    def serve(self):
        for line in iter(self.reader.readline, b""):
            message = json.loads(line)
            try:
                answer, blobs = getattr(self, message["command"])(message)
            except Refusal as refusal:
                answer, blobs = {"error": str(refusal), "code": refusal.code}, []
            except Exception as error:  # whatever ONNX Runtime raises is its refusal
                answer = {"error": f"ONNX Runtime: {error}", "code": REFUSED}
                blobs = []
            self.writer.write(json.dumps(answer).encode() + b"\n")
            for blob in blobs:
                self.writer.write(blob)
            self.writer.flush()
            if message["command"] == "load" and "error" in answer:
                self.reader.read()  # tensors that were not taken, until the parent has heard


def node_name(node):
    """As Heddle names a node: without a name, after its first output."""
    return node.name or f"{node.op_type}_{node.output[0] if node.output else ''}"


def dtype_name(array):
    return "bool" if array.dtype == bool else array.dtype.name


def to_tensor(value, about):
    """A sequence of maps as a tensor [n, labels]."""
    labels = about.get("labels")
    if labels is None:
        return np.asarray(value)
    of_number = about["encoding"] == "int_map"
    keys = [int(label) for label in labels] if of_number else labels
    return np.array([[row[key] for key in keys] for row in value], np.float32)


if __name__ == "__main__":
    # Output of libraries must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Peer(sys.stdin.buffer, answers).serve()
