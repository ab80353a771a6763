"""The torch networks of the benchmark: published architectures with seeded random weights.

Definitions are torchvision's and transformers' own. Batch norms hold the statistics of a random
batch, so that activations stay in the range that a trained network has. `make(name)` gives the
same weights at every call: the ONNX file is exported from it, and TorchInductor compiles it.
"""

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import torch
from torch import nn

from bench.networks import vision as compact

SEED = 20
LAYERS, HEADS, WIDTH = 12, 12, 64  # of GPT-2's cache
T5_LAYERS, T5_HEADS, T5_WIDTH = 6, 8, 64


def _declare():
    """Declares operators of torchvision that its import asks for where its compiled ones do not
    load: the wheel may be for another build of torch. No classifier calls them, but without the
    declarations neither torchvision nor transformers can be imported."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None:
        return None
    try:
        for path in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(str(path))
        return None
    except OSError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library


DECLARED = _declare()  # declarations live as long as their library


def vision(name):
    """A network of torchvision without weights."""
    from torchvision import models
    return getattr(models, name)(weights=None)


class Part(nn.Module):
    """A transformers model with plain tensors in and one tensor out."""

    def __init__(self, model, output="last_hidden_state",
                 names=("input_ids", "attention_mask"), **options):
        super().__init__()
        self.model, self.output, self.names, self.options = model, output, names, options

    def forward(self, *inputs):
        result = self.model(**dict(zip(self.names, inputs)), **self.options)
        return getattr(result, self.output)


def _bert(**sizes):
    from transformers import BertConfig, BertModel
    config = BertConfig(attn_implementation="eager", **sizes)
    return Part(BertModel(config, add_pooling_layer=False))


def albert(**options):
    """ALBERT of base size."""
    from transformers import AlbertConfig, AlbertModel
    config = AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072,
                          attn_implementation="eager")
    return AlbertModel(config, **options)


def _gpt2_model():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(attn_implementation="eager"))


def _t5_encoder():
    from transformers import T5Config, T5EncoderModel
    return Part(T5EncoderModel(T5Config(**T5_SMALL)))


def _cache(pairs):
    """A cache of transformers that holds these keys and values."""
    from transformers import DynamicCache
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(pairs):
        cache.update(keys, values, layer)
    return cache


def _pairs(tensors):
    return list(zip(tensors[::2], tensors[1::2]))


def _contents(cache):
    """Keys and values of each layer in turn."""
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


class _Gpt2Step(nn.Module):
    """One token of GPT-2: the keys and values of those before come in, and all go out."""

    def __init__(self):
        super().__init__()
        self.model = _gpt2_model()

    def forward(self, input_ids, position_ids, attention_mask, *past):
        result = self.model(input_ids=input_ids, position_ids=position_ids,
                            attention_mask=attention_mask, past_key_values=_cache(_pairs(past)),
                            use_cache=True)
        return result.logits, *_contents(result.past_key_values)


class _T5Step(nn.Module):
    """One token of T5's decoder: its own cache grows, that of the encoder's keys stays."""

    def __init__(self):
        super().__init__()
        from transformers import T5Config, T5ForConditionalGeneration
        self.model = T5ForConditionalGeneration(T5Config(**T5_SMALL))

    def forward(self, decoder_input_ids, attention_mask, *past):
        from transformers import EncoderDecoderCache
        from transformers.modeling_outputs import BaseModelOutput
        own, crossed = past[:2 * T5_LAYERS], past[2 * T5_LAYERS:]
        cache = EncoderDecoderCache(_cache(_pairs(own)), _cache(_pairs(crossed)))
        # The step reads the encoder's states through the cache alone.
        states = BaseModelOutput(last_hidden_state=crossed[0].new_zeros(
            crossed[0].shape[0], crossed[0].shape[2], T5_HEADS * T5_WIDTH))
        result = self.model(decoder_input_ids=decoder_input_ids, attention_mask=attention_mask,
                            encoder_outputs=states, past_key_values=cache, use_cache=True)
        return result.logits, *_contents(result.past_key_values.self_attention_cache)


T5_SMALL = {"d_model": 512, "d_ff": 2048, "num_layers": T5_LAYERS, "num_heads": T5_HEADS,
            "d_kv": T5_WIDTH, "attn_implementation": "eager"}


@dataclass(frozen=True)
class Network:
    """How a network is made; example inputs; the names and dynamic axes of its ONNX file."""

    make: Callable[[], nn.Module]
    example: Callable[[int], dict[str, torch.Tensor]]
    outputs: list
    axes: dict = field(default_factory=dict)


def _picture(make, side=224):
    axes = {"input": {0: "batch"}, "logits": {0: "batch"}}
    return Network(make, lambda batch: {"input": torch.randn(batch, 3, side, side)}, ["logits"],
                   axes)


def _tokens(batch, length):
    ids = torch.randint(0, 30000, (batch, length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _text(make, output="last_hidden_state"):
    axes = {0: "batch", 1: "sequence"}
    return Network(make, lambda batch: _tokens(batch, 8 * (batch + 1)), [output],
                   {name: axes for name in ("input_ids", "attention_mask", output)})


def cache_names(layers, prefix="past"):
    """past.0.key, past.0.value, past.1.key..."""
    return [f"{prefix}.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]


def _gpt2_step():
    def example(batch, past=9):
        feeds = {"input_ids": torch.randint(0, 50000, (batch, 1)),
                 "position_ids": torch.full((batch, 1), past),
                 "attention_mask": torch.ones(batch, past + 1, dtype=torch.int64)}
        return feeds | {name: torch.randn(batch, HEADS, past, WIDTH)
                        for name in cache_names(LAYERS)}

    axes = {name: {0: "batch"} for name in ("input_ids", "position_ids", "logits")}
    axes["attention_mask"] = {0: "batch", 1: "total"}
    axes |= {name: {0: "batch", 2: "past"} for name in cache_names(LAYERS)}
    axes |= {name: {0: "batch", 2: "total"} for name in cache_names(LAYERS, "present")}
    return Network(_Gpt2Step, example, ["logits", *cache_names(LAYERS, "present")], axes)


def _t5_step():
    crossed = cache_names(T5_LAYERS, "encoder")

    def example(batch, past=5, encoded=12):
        feeds = {"decoder_input_ids": torch.randint(0, 30000, (batch, 1)),
                 "attention_mask": torch.ones(batch, encoded, dtype=torch.int64)}
        feeds |= {name: torch.randn(batch, T5_HEADS, past, T5_WIDTH)
                  for name in cache_names(T5_LAYERS)}
        return feeds | {name: torch.randn(batch, T5_HEADS, encoded, T5_WIDTH) for name in crossed}

    axes = {name: {0: "batch"} for name in ("decoder_input_ids", "logits")}
    axes["attention_mask"] = {0: "batch", 1: "encoded"}
    axes |= {name: {0: "batch", 2: "past"} for name in cache_names(T5_LAYERS)}
    axes |= {name: {0: "batch", 2: "encoded"} for name in crossed}
    axes |= {name: {0: "batch", 2: "total"} for name in cache_names(T5_LAYERS, "present")}
    return Network(_T5Step, example, ["logits", *cache_names(T5_LAYERS, "present")], axes)


MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
          "intermediate_size": 1536}
NETWORKS = {
    "resnet50": _picture(compact.resnet50),
    "mobilenet_v2": _picture(compact.mobilenet_v2),
    "vit_b_16": _picture(compact.VisionTransformer),
    **{name: _picture(lambda name=name: vision(name)) for name in (
        "mobilenet_v3_large", "efficientnet_b0", "squeezenet1_1", "densenet121",
        "shufflenet_v2_x1_0", "vgg19", "swin_t")},
    "bert_base": _text(_bert),
    "minilm_l6": _text(lambda: _bert(**MINILM)),
    "albert_base": _text(lambda: Part(albert(add_pooling_layer=False))),
    "gpt2": _text(lambda: Part(_gpt2_model(), "logits", use_cache=False), "logits"),
    "gpt2_step": _gpt2_step(),
    "t5_small_encoder": _text(_t5_encoder),
    "t5_small_step": _t5_step(),
}
COMPACT = ("resnet50", "mobilenet_v2", "vit_b_16")  # whose batches are drawn after the weights


def settle(network, example):
    """Gives each batch norm the statistics of what `example` makes, with weights that damp: a sum
    over many residual blocks must not grow."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
        nn.init.uniform_(norm.weight, 0.6, 1.0)
        nn.init.normal_(norm.bias, std=0.1)
        norm.train()
    for block in network.modules():
        if isinstance(block, compact.Bottleneck):
            nn.init.constant_(block.body[-1][1].weight, 0.2)
    if norms:
        with torch.no_grad():
            network(*example().values())
    return network.eval()


def make(name):
    """The network of that name in evaluation mode."""
    torch.manual_seed(SEED)
    recipe = NETWORKS[name]
    network = recipe.make().eval()
    if name in COMPACT:
        return settle(network, lambda: recipe.example(4))
    drawn = recipe.example(4)
    return settle(network, lambda: drawn)
