"""The five transformers of PluS's Table 1, with seeded random weights, as ONNX files.

Base size, 12 layers, 128 tokens or pictures of 224 x 224; sizes are constant, as in the paper.
Files lie in build/models/fusion and are made once.
"""

import warnings

import torch
from torch import nn

from bench.models.sources import STORE
from bench.networks.published import Part, albert

LENGTH, VOCABULARY = 128, 30000


class _Picture(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels):
        return self.model(pixel_values=pixels).logits


def _text(model, names=("input_ids", "attention_mask"), output="last_hidden_state"):
    def inputs(batch):
        ids = torch.randint(0, VOCABULARY, (batch, LENGTH))
        return tuple(torch.ones_like(ids) if "mask" in name else ids for name in names)

    return Part(model, output, names, use_cache=False), inputs, list(names)


def _bert():
    from transformers import BertConfig, BertModel
    return _text(BertModel(BertConfig(attn_implementation="eager")))


def _gpt2():
    from transformers import GPT2Config, GPT2Model
    return _text(GPT2Model(GPT2Config(attn_implementation="eager")))


def _t5():
    from transformers import T5Config, T5Model
    config = T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12)
    return _text(T5Model(config), ("input_ids", "decoder_input_ids"))


def _vit():
    from transformers import ViTConfig, ViTForImageClassification
    model = ViTForImageClassification(ViTConfig(attn_implementation="eager"))
    return _Picture(model), lambda batch: (torch.randn(batch, 3, 224, 224),), ["pixels"]


NETWORKS = {"bert": _bert, "albert": lambda: _text(albert()), "gpt2": _gpt2, "t5": _t5, "vit": _vit}


def export(name, batch):
    """Path of the ONNX file."""
    path = STORE / "fusion" / f"{name}-b{batch}-opset17.onnx"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(20)
    network, inputs, names = NETWORKS[name]()
    partial = path.with_suffix(".partial")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(network.eval(), inputs(batch), str(partial), input_names=names,
                          output_names=["y"], opset_version=17, dynamo=False)
    partial.replace(path)
    return path
