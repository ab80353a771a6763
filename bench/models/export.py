"""Exports networks with seeded random weights to build/models/NAME.onnx.

    python -m bench.models.export [NAME...]      (all when none is named)

Batch, and the sequence length of the text models, are dynamic. A file that is there is kept. Each
is loaded and run by ONNX Runtime at a shape other than the one that it was traced with, and its
outputs compared with torch's, before it gets its name.
"""

import sys
import warnings

import numpy as np
import onnxruntime
import torch
from torch import nn

from bench.models import networks
from bench.models.sources import STORE

OPSET = 17


class _Text(nn.Module):
    """A transformers model with plain tensors in and one tensor out."""

    def __init__(self, model, output):
        super().__init__()
        self.model, self.output = model, output

    def forward(self, input_ids, attention_mask):
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)
        return getattr(result, self.output)


def _bert_base():
    from transformers import BertConfig, BertModel
    config = BertConfig(attn_implementation="eager")
    return _Text(BertModel(config, add_pooling_layer=False), "last_hidden_state")


def _gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return _Text(GPT2LMHeadModel(GPT2Config(attn_implementation="eager")), "logits")


def _albert_base():
    from transformers import AlbertConfig, AlbertModel
    config = AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072,
                          attn_implementation="eager")
    return _Text(AlbertModel(config, add_pooling_layer=False), "last_hidden_state")


def _picture(batch):
    return (torch.randn(batch, 3, 224, 224),)


def _tokens(batch, length):
    ids = torch.randint(0, 30000, (batch, length))
    return ids, torch.ones_like(ids)


# Name: how to make it, inputs to trace with, inputs to check with, input names, output name.
_IMAGE = (lambda: _picture(2), lambda: _picture(1), ["input"], "logits")
_TEXT = (lambda: _tokens(2, 16), lambda: _tokens(3, 41), ["input_ids", "attention_mask"])
NETWORKS = {
    "resnet50": (networks.resnet50, *_IMAGE),
    "mobilenet_v2": (networks.mobilenet_v2, *_IMAGE),
    "vit_b_16": (networks.VisionTransformer, *_IMAGE),
    "bert_base": (_bert_base, *_TEXT, "last_hidden_state"),
    "gpt2": (_gpt2, *_TEXT, "logits"),
    "albert_base": (_albert_base, *_TEXT, "last_hidden_state"),
}


def export(name):
    """Writes build/models/NAME.onnx and returns its path."""
    path = STORE / f"{name}.onnx"
    if path.exists():
        return path
    make, trace, check, inputs, output = NETWORKS[name]
    torch.manual_seed(20)
    network = networks.measure_statistics(make().eval())
    is_text = inputs[0] == "input_ids"
    axes = {0: "batch", 1: "sequence"} if is_text else {0: "batch"}
    STORE.mkdir(parents=True, exist_ok=True)
    partial = STORE / f"{name}.partial.onnx"
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, trace(), str(partial), input_names=inputs,
                          output_names=[output], opset_version=OPSET, dynamo=False,
                          dynamic_axes={key: axes for key in (*inputs, output)})
        arguments = check()
        expected = network(*arguments).numpy()
    session = onnxruntime.InferenceSession(str(partial), providers=["CPUExecutionProvider"])
    feeds = {key: value.numpy() for key, value in zip(inputs, arguments)}
    (actual,) = session.run(None, feeds)
    np.testing.assert_allclose(actual, expected, atol=1e-3, rtol=1e-3)
    partial.replace(path)
    return path


def main(names):
    """Exports the networks of those names, or all."""
    for name in names or NETWORKS:
        if name not in NETWORKS:
            sys.exit(f"export: no network '{name}'; there are: {', '.join(NETWORKS)}")
        path = export(name)
        print(f"{path} {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
