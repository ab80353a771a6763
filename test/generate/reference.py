"""Decoders in NumPy, in f64 and without a cache: the whole text anew for each token.

Written from the papers and the code of transformers, and shares nothing with the package.
"""

import math

import numpy as np


def rms(x, weight, epsilon=1e-6):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + epsilon) * weight


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def frequencies(config, is_local):
    """(frequencies, a factor of cosines and sines)."""
    theta = config["rope_theta"]
    if is_local and "rope_local_base_freq" in config:
        theta = config["rope_local_base_freq"]
    size = config["head_dim"]
    made = np.array([theta ** (-2 * i / size) for i in range(size // 2)])
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        old, low, high = (scaling[key] for key in (
            "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
        for i, frequency in enumerate(made):
            wave = 2 * math.pi / frequency
            if wave > old / low:
                made[i] = frequency / scaling["factor"]
            elif wave > old / high:
                mix = (old / wave - low) / (high - low)
                made[i] = (1 - mix) * frequency / scaling["factor"] + mix * frequency
    if scaling.get("rope_type") == "yarn":
        old, factor = scaling["original_max_position_embeddings"], scaling["factor"]

        def dim(turns):
            return size * math.log(old / (turns * 2 * math.pi)) / (2 * math.log(theta))

        low, high = max(math.floor(dim(32)), 0), min(math.ceil(dim(1)), size - 1)
        for i, frequency in enumerate(made):
            ramp = min(max((i - low) / max(high - low, 0.001), 0), 1)
            made[i] = frequency / factor * ramp + frequency * (1 - ramp)
        return made, 0.1 * math.log(factor) + 1
    return made, 1.0


def turned(x, config, is_local):
    """Heads [tokens, heads, size], turned by their positions: halves of a head are pairs."""
    angles, factor = frequencies(config, is_local)
    angles = np.arange(len(x))[:, None, None] * angles
    cosine, sine = np.cos(angles) * factor, np.sin(angles) * factor
    first, second = np.split(x, 2, -1)
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def attend(query, key, value, scale, window=None, cap=None):
    count, heads, _ = query.shape
    made = np.zeros_like(query)
    for head in range(heads):
        mine = head * key.shape[1] // heads
        for at in range(count):
            begin = 0 if window is None else max(0, at - window + 1)
            scores = key[begin:at + 1, mine] @ query[at, head] * scale
            if cap:
                scores = np.tanh(scores / cap) * cap
            shares = np.exp(scores - scores.max())
            made[at, head] = shares @ value[begin:at + 1, mine] / shares.sum()
    return made.reshape(count, -1)


def gpt2(weights, tokens):
    """Logits of the last token."""
    def linear(x, name):
        return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def norm(x, name):
        return layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    x = weights["transformer.wte.weight"][tokens] + weights["transformer.wpe.weight"][:len(tokens)]
    for i in range(2):
        block = f"transformer.h.{i}"
        heads = linear(norm(x, f"{block}.ln_1"), f"{block}.attn.c_attn")
        query, key, value = (each.reshape(len(x), 4, 8) for each in np.split(heads, 3, -1))
        x = x + linear(attend(query, key, value, 8**-0.5), f"{block}.attn.c_proj")
        h = gelu(linear(norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc"))
        x = x + linear(h, f"{block}.mlp.c_proj")
    return norm(x, "transformer.ln_f")[-1] @ weights["transformer.wte.weight"].T


def windows(config):
    window = config.get("sliding_window")
    if window is None:
        return [None, None]
    kinds = config.get("layer_types", ["sliding_attention"] * 2)
    return [window if kind == "sliding_attention" else None for kind in kinds]


def logits(config, weights, tokens):
    """Logits of the last token."""
    weights = {name: array.astype(np.float64) for name, array in weights.items()}
    family = config["model_type"]
    if family == "gpt2":
        return gpt2(weights, tokens)
    is_gemma, is_sandwich = family.startswith("gemma"), family in ("gemma2", "gemma3_text")
    active = gelu if is_gemma else silu
    heads, kv_heads, size = 4, 2, 8
    scale = config.get("query_pre_attn_scalar", size) ** -0.5

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0)

    def norm(x, name):
        return rms(x, weights[f"{name}.weight"] + is_gemma)

    x = weights["model.embed_tokens.weight"][tokens] * (32**0.5 if is_gemma else 1)
    for i, window in enumerate(windows(config)):
        block = f"model.layers.{i}"
        h = norm(x, f"{block}.input_layernorm")
        if family == "phi3":
            both = linear(h, f"{block}.self_attn.qkv_proj")
            parts = both[:, :32], both[:, 32:48], both[:, 48:]
        else:
            parts = [linear(h, f"{block}.self_attn.{each}_proj") for each in "qkv"]
        query, key, value = (part.reshape(len(x), count, size)
                             for part, count in zip(parts, (heads, kv_heads, kv_heads)))
        if family in ("qwen3", "gemma3_text"):
            query = norm(query, f"{block}.self_attn.q_norm")
            key = norm(key, f"{block}.self_attn.k_norm")
        is_local = window is not None
        y = attend(turned(query, config, is_local), turned(key, config, is_local), value, scale,
                   window, config.get("attn_logit_softcapping"))
        y = linear(y, f"{block}.self_attn.o_proj")
        x = x + (norm(y, f"{block}.post_attention_layernorm") if is_sandwich else y)
        h = norm(x, f"{block}.{'pre_feedforward' if is_sandwich else 'post_attention'}_layernorm")
        if family == "phi3":
            gate, up = np.split(linear(h, f"{block}.mlp.gate_up_proj"), 2, -1)
        else:
            gate, up = (linear(h, f"{block}.mlp.{each}_proj") for each in ("gate", "up"))
        y = linear(active(gate) * up, f"{block}.mlp.down_proj")
        x = x + (norm(y, f"{block}.post_feedforward_layernorm") if is_sandwich else y)
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    made = norm(x, "model.norm")[-1] @ head.T
    cap = config.get("final_logit_softcapping")
    return np.tanh(made / cap) * cap if cap else made


def greedy(config, weights, prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(np.argmax(logits(config, weights, tokens))))
    return tokens[len(prompt):]
