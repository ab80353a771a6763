"""families: what tells one family of decoders from another, as config.json names it.

One row a family: traits that neither config.json nor the names of tensors tell. What these do tell
(biases, norms of queries and keys, tied words) the writer reads there. SPDX-License-Identifier:
Apache-2.0
"""

import difflib
import math
import reprlib
from dataclasses import dataclass

from ..library import RefusedError


@dataclass(frozen=True)
class Family:
    """Traits of a family."""

    plus_one: bool = False  # norms multiply by 1 + weight
    scaled_words: bool = False  # embeddings are multiplied by the root of the width
    packed: bool = False  # one product gives queries, keys and values, one gate and up
    sandwich: bool = False  # attention and MLP have a norm after them, too
    windows: str = "all"  # layers that see a window, where config.json names a window but no layers
    gpt2: bool = False  # LayerNorm, learned positions, weights [in, out], an MLP without gate


FAMILIES = {
    "llama": Family(windows="none"),
    "mistral": Family(),
    "qwen2": Family(windows="late"),
    "qwen3": Family(windows="late"),
    "phi3": Family(packed=True),
    "gemma": Family(plus_one=True, scaled_words=True, windows="none"),
    "gemma2": Family(plus_one=True, scaled_words=True, sandwich=True, windows="even"),
    "gemma3_text": Family(plus_one=True, scaled_words=True, sandwich=True, windows="six"),
    "gpt2": Family(windows="none", gpt2=True),
}
PAIRS = ("t5", "mt5", "whisper")  # encoder-decoders, in pairs.py
ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "tanh", "gelu_new": "tanh",
               "gelu_fast": "tanh", "gelu": "gelu", "relu": "relu"}
OTHER_NAMES = {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
               "n_embd": "hidden_size", "n_inner": "intermediate_size",
               "n_positions": "max_position_embeddings", "layer_norm_epsilon": "rms_norm_eps",
               "layer_norm_eps": "rms_norm_eps", "activation_function": "hidden_act"}

MOST_WIDTH = 1 << 16
# Fields of config.json that change what a model computes, and how they are supported.
ONLY = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False, "use_bidirectional_attention": False,
        "is_encoder_decoder": False}


@dataclass(frozen=True)
class Rope:
    """Angles of a rotation: frequencies by `kind`, of `size` elements of a head."""

    theta: float
    size: int
    scaling: dict
    interleaved: bool = False


@dataclass(frozen=True)
class Architecture:
    """Sizes of a decoder, and what its layers do."""

    name: str
    family: Family
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    hidden: int
    words: int
    context: int
    epsilon: float
    activation: str
    scale: float  # of scores
    tied: bool
    windows: tuple  # of each layer: keys that it sees, or None for all
    ropes: tuple  # of each layer, or None
    attention_cap: float = 0.0
    logit_cap: float = 0.0


class Config:
    """Values of a config.json, of the types that they must have."""

    def __init__(self, values, where):
        self.values = {OTHER_NAMES.get(key, key): value for key, value in values.items()
                       if value is not None}
        self.where = where

    def refuse(self, key, allowed):
        raise RefusedError(f"{self.where}: '{key}' is {reprlib.repr(self.values.get(key))}, but "
                           f"must be {allowed}")

    def number(self, key, default=None, least=1, most=1 << 31, kind=int):
        value = self.values.get(key, default)
        if (isinstance(value, bool) or not isinstance(value, (int, float))
                or not least <= value <= most or (kind is int and value != int(value))):
            self.refuse(key, f"a number from {least} to {most}")
        return kind(value)

    def text(self, key, known, default=None):
        """One of the known texts."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in known:
            near = difflib.get_close_matches(str(value), known, 1)
            raise RefusedError(f"{self.where}: '{key}' is {reprlib.repr(value)}; supported: "
                               f"{', '.join(known)}"
                               + (f"; did you mean '{near[0]}'?" if near else ""))
        return value

    def table(self, key):
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, "an object")
        return value


def _windows(config, family, layers):
    """The window of each layer."""
    if "sliding_window" not in config.values or config.values.get("use_sliding_window") is False:
        return (None,) * layers
    window = config.number("sliding_window")
    kinds = config.values.get("layer_types")
    if kinds:
        if not isinstance(kinds, list) or len(kinds) != layers:
            config.refuse("layer_types", f"a list of {layers} kinds, one a layer")
        known = {"sliding_attention": window, "full_attention": None}
        for kind in kinds:
            if not isinstance(kind, str) or kind not in known:
                raise RefusedError(f"{config.where}: a layer of 'layer_types' is {kind!r}; "
                                   f"supported: {', '.join(known)}")
        return tuple(known[kind] for kind in kinds)
    late = config.number("max_window_layers", 0, 0)
    pattern = config.number("sliding_window_pattern", 6)
    sees = {"all": lambda i: True, "none": lambda i: False, "even": lambda i: i % 2 == 0,
            "six": lambda i: (i + 1) % pattern != 0, "late": lambda i: i >= late}
    return tuple(window if sees[family.windows](i) else None for i in range(layers))


def _rope(config, head_size, kind):
    """The rotation of layers of a kind: that of transformers' `rope_parameters`, or of the names
    before it."""
    given = config.table("rope_parameters")
    own = given.get(kind)
    if isinstance(own, dict):
        scaling = own
    elif kind == "sliding_attention" and "rope_local_base_freq" in config.values:
        scaling = {"rope_theta": config.values["rope_local_base_freq"]}
    else:
        scaling = {**config.table("rope_scaling"), **given}
    defaults = {key: config.values[key] for key in ("rope_theta", "partial_rotary_factor")
                if key in config.values}
    scaling = Config({**defaults, **scaling}, config.where)
    theta = scaling.number("rope_theta", 1e4, 1, 1e12, float)
    share = scaling.number("partial_rotary_factor", 1.0, 0, 1, float)
    original = ({"original": config.number("original_max_position_embeddings")}
                if "original_max_position_embeddings" in config.values else {"original": None})
    return Rope(theta, int(head_size * share) // 2 * 2,
                {**scaling.values, **original,
                 "context": config.number("max_position_embeddings", 2048)},
                config.values.get("rope_interleaved") is True)


def check_fields(config, only):
    """Refuses quantised weights, and fields that are not as `only` has them."""
    if config.values.get("quantization_config"):
        method = config.table("quantization_config").get("quant_method", "unknown")
        raise RefusedError(f"{config.where}: weights are quantised by '{method}'; supported: f32, "
                           "f16 and bf16 in safetensors, Q4_0 and Q8_0 in GGUF")
    for key, value in only.items():
        if config.values.get(key, value) is not value:
            raise RefusedError(f"{config.where}: '{key}' is {config.values[key]!r}; supported: "
                               f"{value!r}")


def _supported(values, where):
    """The Config of a model that is supported as a whole."""
    config = Config(values, where)
    name = values.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        near = difflib.get_close_matches(str(name), FAMILIES, 1)
        raise RefusedError(f"{where}: 'model_type' is {name!r}; supported: "
                           f"{', '.join([*FAMILIES, *PAIRS])}"
                           + (f"; did you mean '{near[0]}'?" if near else "")
                           + "\nnote: a folder with a model.onnx of any decoder is taken as it is; "
                           "heddle.generate.Embedder takes BERT and its like")
    check_fields(config, ONLY)
    return config


def architecture(values, where):
    """The Architecture that a config.json, as a dictionary, tells."""
    config = _supported(values, where)
    name, family = values["model_type"], FAMILIES[values["model_type"]]
    is_gemma = name.startswith("gemma")
    layers = config.number("num_hidden_layers", most=1000)
    width = config.number("hidden_size", most=MOST_WIDTH)
    heads = config.number("num_attention_heads", most=MOST_WIDTH)
    kv_heads = config.number("num_key_value_heads", heads, most=MOST_WIDTH)
    head_size = config.number("head_dim", 256 if is_gemma else width // heads, most=MOST_WIDTH)
    if heads % kv_heads:
        raise RefusedError(f"{where}: 'num_key_value_heads' is {kv_heads}, but must divide "
                           f"'num_attention_heads', {heads}")
    named = "hidden_activation" if "hidden_activation" in config.values else "hidden_act"
    activation = config.text(named, ACTIVATIONS, "gelu_pytorch_tanh" if is_gemma else "silu")
    # Configs of the first Gemma say "gelu" and mean the one by tanh.
    activation = "tanh" if name == "gemma" and activation == "gelu" else ACTIVATIONS[activation]
    windows = _windows(config, family, layers)
    ropes = {window is None: None if family.gpt2 else _rope(
        config, head_size, "full_attention" if window is None else "sliding_attention")
        for window in windows}
    tied = config.values.get("tie_word_embeddings", family.gpt2 or is_gemma)
    return Architecture(
        name, family, layers, width, heads, kv_heads, head_size,
        config.number("intermediate_size", 4 * width, most=1 << 20), config.number("vocab_size"),
        config.number("max_position_embeddings", 2048),
        config.number("rms_norm_eps", 1e-5 if family.gpt2 else 1e-6, 0, 1, float), activation,
        1 / math.sqrt(config.number("query_pre_attn_scalar", head_size, 1e-6, 1e6, float)),
        tied is True, windows, tuple(ropes[window is None] for window in windows),
        config.number("attn_logit_softcapping", 0.0, 0, 1e6, float),
        config.number("final_logit_softcapping", 0.0, 0, 1e6, float))
