"""families: what tells one family of decoders from another, as config.json names it.

One row a family: traits that neither config.json nor the names of tensors tell. What these do tell
(biases, norms of queries and keys, tied words) the writer reads there. SPDX-License-Identifier:
Apache-2.0
"""

import difflib
import math
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
ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "tanh", "gelu_new": "tanh",
               "gelu_fast": "tanh", "gelu": "gelu", "relu": "relu"}
OTHER_NAMES = {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
               "n_embd": "hidden_size", "n_inner": "intermediate_size",
               "n_positions": "max_position_embeddings", "layer_norm_epsilon": "rms_norm_eps",
               "layer_norm_eps": "rms_norm_eps", "activation_function": "hidden_act"}

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


def _number(config, key, where, default=None, least=1, most=1 << 31, kind=int):
    value = config.get(key, default)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int and is_number and value != int(value):
        is_number = False
    if not is_number or not least <= value <= most:
        raise RefusedError(f"{where}: '{key}' is {value!r}, but must be a number from {least} to "
                           f"{most}")
    return kind(value)


def _windows(config, family, layers, where):
    """The window of each layer."""
    window = config.get("sliding_window")
    if window is None or config.get("use_sliding_window") is False:
        return (None,) * layers
    window = _number(config, "sliding_window", where)
    kinds = config.get("layer_types")
    if kinds:
        if len(kinds) != layers:
            raise RefusedError(f"{where}: 'layer_types' has {len(kinds)} entries for {layers} "
                               "layers")
        known = {"sliding_attention": window, "full_attention": None}
        for kind in kinds:
            if kind not in known:
                raise RefusedError(f"{where}: a layer of 'layer_types' is '{kind}'; supported: "
                                   f"{', '.join(known)}")
        return tuple(known[kind] for kind in kinds)
    late = config.get("max_window_layers", 0)
    pattern = config.get("sliding_window_pattern", 6)
    sees = {"all": lambda i: True, "none": lambda i: False, "even": lambda i: i % 2 == 0,
            "six": lambda i: (i + 1) % pattern != 0, "late": lambda i: i >= late}
    return tuple(window if sees[family.windows](i) else None for i in range(layers))


def _rope(config, head_size, where, kind):
    """The rotation of layers of a kind: that of transformers' `rope_parameters`, or of the names
    before it."""
    given = config.get("rope_parameters") or {}
    own = given.get(kind)
    if isinstance(own, dict):
        scaling = own
    elif kind == "sliding_attention" and "rope_local_base_freq" in config:
        scaling = {"rope_theta": config["rope_local_base_freq"]}
    else:
        scaling = {**(config.get("rope_scaling") or {}), **given}
    scaling = {"rope_theta": config.get("rope_theta", 1e4), **scaling}
    theta = _number(scaling, "rope_theta", where, least=1, most=1e12, kind=float)
    share = scaling.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    return Rope(theta, int(head_size * share) // 2 * 2,
                {**scaling, "original": config.get("original_max_position_embeddings"),
                 "context": config.get("max_position_embeddings")},
                bool(config.get("rope_interleaved", False)))


def architecture(config, where):
    """The Architecture that a config.json, as a dictionary, tells."""
    config = {OTHER_NAMES.get(key, key): value for key, value in config.items()}
    name = config.get("model_type")
    if name not in FAMILIES:
        near = difflib.get_close_matches(str(name), FAMILIES, 1)
        raise RefusedError(f"{where}: 'model_type' is {name!r}; supported: {', '.join(FAMILIES)}"
                           + (f"; did you mean '{near[0]}'?" if near else "")
                           + "\nnote: a folder with a model.onnx of any decoder is taken as it is")
    if config.get("quantization_config"):
        method = config["quantization_config"].get("quant_method", "unknown")
        raise RefusedError(f"{where}: weights are quantised by '{method}'; supported: f32, f16 and "
                           "bf16 in safetensors, Q4_0 and Q8_0 in GGUF")
    for key, value in ONLY.items():
        if config.get(key, value) not in (value, None):
            raise RefusedError(f"{where}: '{key}' is {config[key]!r}; supported: {value!r}")
    family = FAMILIES[name]
    layers = _number(config, "num_hidden_layers", where, most=1000)
    width = _number(config, "hidden_size", where)
    heads = _number(config, "num_attention_heads", where)
    kv_heads = _number(config, "num_key_value_heads", where, heads) if config.get(
        "num_key_value_heads") is not None else heads
    head_size = config.get("head_dim") or (256 if name.startswith("gemma") else width // heads)
    if heads % kv_heads:
        raise RefusedError(f"{where}: 'num_key_value_heads' is {kv_heads}, but must divide "
                           f"'num_attention_heads', {heads}")
    activation = config.get("hidden_activation") or config.get("hidden_act") or (
        "gelu_pytorch_tanh" if name.startswith("gemma") else "silu")
    if activation not in ACTIVATIONS:
        raise RefusedError(f"{where}: the activation is '{activation}'; supported: "
                           f"{', '.join(ACTIVATIONS)}")
    activation = "tanh" if name == "gemma" and activation == "gelu" else ACTIVATIONS[activation]
    hidden = config.get("intermediate_size") or 4 * width
    windows = _windows(config, family, layers, where)
    ropes = {window is None: None if family.gpt2 else _rope(
        config, head_size, where, "full_attention" if window is None else "sliding_attention")
        for window in windows}
    scalar = config.get("query_pre_attn_scalar") or head_size
    return Architecture(
        name, family, layers, width, heads, kv_heads, head_size, hidden,
        _number(config, "vocab_size", where), _number(config, "max_position_embeddings", where,
                                                      2048),
        _number(config, "rms_norm_eps", where, 1e-5 if family.gpt2 else 1e-6, 0, 1, float),
        activation, 1 / math.sqrt(scalar),
        bool(config.get("tie_word_embeddings", family.gpt2 or name.startswith("gemma"))), windows,
        tuple(ropes[window is None] for window in windows),
        float(config.get("attn_logit_softcapping") or 0),
        float(config.get("final_logit_softcapping") or 0))
