"""Engines that `./dev bench ragged` holds ragged batches against, where they are installed.

Each is opened for an encoder and a number of threads; `call(feeds)` then gives a function that runs
a padded batch and returns its result. PyTorch has the encoder as `torch.nn.TransformerEncoder`
with the weights of the file, in inference mode, which takes its fused path. Nested, it packs the
tokens that the mask keeps (`enable_nested_tensor`); else it computes all.
"""

import importlib.util
import warnings

import numpy as np

from bench.kernels.engines import runtime_session
from bench.ragged.encoders import Weights


class OnnxRuntime:
    """The file as it is, its sizes open."""

    def __init__(self, encoder, threads):
        self.session = runtime_session(encoder.model, threads)

    def call(self, feeds):
        return lambda: self.session.run(None, feeds)[0]


class OpenVino:
    """The file for the sizes of the batch."""

    def __init__(self, encoder, threads):
        import openvino
        self.core = openvino.Core()
        self.content = encoder.model.SerializeToString()
        self.options = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
                        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": str(threads),
                        "ENABLE_CPU_PINNING": "NO"}

    def call(self, feeds):
        model = self.core.read_model(self.content)
        model.reshape({name: list(value.shape) for name, value in feeds.items()})
        request = self.core.compile_model(model, "CPU", self.options).create_infer_request()
        return lambda: request.infer(feeds, share_inputs=True, share_outputs=True)[0]


def torch_form(encoder):
    """(what makes tokens of the first input, a TransformerEncoderLayer for each layer)."""
    import torch
    weights = Weights(encoder.model)
    linears, norms = iter(weights.linears), iter(weights.norms)

    def fill(module, values, turned=True):
        for parameter, value in zip((module.weight, module.bias), values):
            parameter.data = torch.tensor(value.T if turned else value).contiguous()

    def tokens(x):
        return x
    words = weights.table("word_embeddings.weight")
    if words is not None:
        embedding = torch.nn.Embedding.from_pretrained(torch.from_numpy(words.copy()))
        places = torch.from_numpy(weights.table("position_embeddings.weight")
                                  + weights.table("token_type_embeddings.weight")[0])
        first = torch.nn.LayerNorm(encoder.wide, encoder.epsilon)
        fill(first, next(norms), False)

        def tokens(x):
            return first(embedding(x) + places[:x.shape[1]])
    layers = []
    for _ in range(encoder.layers):
        made = torch.nn.TransformerEncoderLayer(
            encoder.wide, encoder.heads, encoder.inner, dropout=0, activation=encoder.activation,
            layer_norm_eps=encoder.epsilon, batch_first=True)
        parts = [next(linears) for _ in range(3)]
        for name, axis in (("in_proj_weight", 1), ("in_proj_bias", 0)):
            joined = np.concatenate([part[1 - axis] for part in parts], axis=-1)
            getattr(made.self_attn, name).data = torch.tensor(joined.T).contiguous()
        for module in (made.self_attn.out_proj, made.linear1, made.linear2):
            fill(module, next(linears))
        for module in (made.norm1, made.norm2):
            fill(module, next(norms), False)
        layers.append(made)
    return tokens, layers


class Torch:
    """The encoder in PyTorch, with all tokens."""

    nested = False

    def __init__(self, encoder, threads):
        import torch
        torch.set_num_threads(threads)
        self.tokens, layers = torch_form(encoder)
        self.network = torch.nn.TransformerEncoder(layers[0], len(layers),
                                                   enable_nested_tensor=self.nested)
        self.network.layers = torch.nn.ModuleList(layers)
        self.network.eval()
        warnings.filterwarnings("ignore", message=".*nested tensors is in prototype")

    def call(self, feeds):
        import torch
        x, mask = (torch.from_numpy(value) for value in feeds.values())

        def run():
            with torch.inference_mode():
                return self.network(self.tokens(x), src_key_padding_mask=mask == 0).numpy()
        return run


class TorchNested(Torch):
    """The encoder in PyTorch, with the tokens that the mask keeps."""

    nested = True


PEERS = {"ONNX Runtime": ("onnxruntime", OnnxRuntime), "OpenVINO": ("openvino", OpenVino),
         "PyTorch": ("torch", Torch), "PyTorch nested": ("torch", TorchNested)}


def opened(names, encoder, threads):
    """{name: engine} of those that are installed."""
    return {name: PEERS[name][1](encoder, threads) for name in names
            if importlib.util.find_spec(PEERS[name][0])}


def missing(names):
    """A line for each engine that is not installed."""
    return [f"{name}: left out, the package {PEERS[name][0]} is not installed" for name in names
            if not importlib.util.find_spec(PEERS[name][0])]
