"""Tiny random encoder-decoders as safetensors, and their meaning in NumPy, in f64, without a cache.

Written from the papers, and shares nothing with the package.
"""

import json
import math

import numpy as np
import tiny
from reference import gelu, layer_norm, rms, silu
from safetensors.numpy import save_file

WIDTH, HEADS, SIZE, WORDS = 32, 4, 8, tiny.WORDS
T5 = {"model_type": "t5", "d_model": WIDTH, "d_kv": SIZE, "d_ff": 48, "num_layers": 2,
      "num_decoder_layers": 3, "num_heads": HEADS, "vocab_size": WORDS, "eos_token_id": 2,
      "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
      "decoder_start_token_id": 0, "layer_norm_epsilon": 1e-6, "is_encoder_decoder": True}
WHISPER = {"model_type": "whisper", "d_model": WIDTH, "vocab_size": WORDS, "num_mel_bins": 20,
           "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": HEADS,
           "decoder_attention_heads": HEADS, "encoder_ffn_dim": 48, "decoder_ffn_dim": 40,
           "max_source_positions": 50, "max_target_positions": 64, "decoder_start_token_id": 1,
           "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "activation_function": "gelu",
           "is_encoder_decoder": True}
CONFIGS = {
    "t5": T5,
    "flan": {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "near": {**T5, "feed_forward_proj": "gated-silu", "relative_attention_num_buckets": 16,
             "relative_attention_max_distance": 20, "tie_word_embeddings": True},
    "mt5": {**T5, "model_type": "mt5", "feed_forward_proj": "gated-gelu"},
    "whisper": WHISPER,
}
EAR = {"feature_size": 20, "chunk_length": 1, "sampling_rate": 16000, "hop_length": 160,
       "n_fft": 400}


def _t5_shapes(config):
    found = {"shared.weight": (WORDS, WIDTH)}
    if config.get("tie_word_embeddings") is False or config["model_type"] == "mt5":
        found["lm_head.weight"] = (WORDS, WIDTH)
    inner, gated = HEADS * SIZE, "gated" in config.get("feed_forward_proj", "")
    for half, layers in (("encoder", 2), ("decoder", 3)):
        kinds = ["SelfAttention"] + ["EncDecAttention"] * (half == "decoder")
        for i in range(layers):
            block = f"{half}.block.{i}.layer"
            for j, kind in enumerate(kinds):
                found |= {f"{block}.{j}.{kind}.{each}.weight":
                          (WIDTH, inner) if each == "o" else (inner, WIDTH) for each in "qkvo"}
                found[f"{block}.{j}.layer_norm.weight"] = (WIDTH,)
            last = f"{block}.{len(kinds)}"
            found |= {f"{last}.DenseReluDense.{each}.weight": (48, WIDTH)
                      for each in (("wi_0", "wi_1") if gated else ("wi",))}
            found |= {f"{last}.DenseReluDense.wo.weight": (WIDTH, 48),
                      f"{last}.layer_norm.weight": (WIDTH,)}
        found[f"{half}.final_layer_norm.weight"] = (WIDTH,)
        found[f"{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = (
            config["relative_attention_num_buckets"], HEADS)
    return found


def _whisper_shapes(config):
    found = {"model.encoder.conv1.weight": (WIDTH, config["num_mel_bins"], 3),
             "model.encoder.conv2.weight": (WIDTH, WIDTH, 3),
             "model.encoder.conv1.bias": (WIDTH,), "model.encoder.conv2.bias": (WIDTH,),
             "model.encoder.embed_positions.weight": (50, WIDTH),
             "model.decoder.embed_positions.weight": (64, WIDTH),
             "model.decoder.embed_tokens.weight": (WORDS, WIDTH)}
    for half in ("encoder", "decoder"):
        kinds = ["self_attn"] + ["encoder_attn"] * (half == "decoder")
        hidden = config[f"{half}_ffn_dim"]
        norms = [f"model.{half}.layer_norm"]
        for i in range(2):
            block = f"model.{half}.layers.{i}"
            products = {f"{block}.{kind}.{each}_proj": (WIDTH, WIDTH)
                        for kind in kinds for each in ("q", "k", "v", "out")}
            products |= {f"{block}.fc1": (hidden, WIDTH), f"{block}.fc2": (WIDTH, hidden)}
            norms += [f"{block}.{kind}_layer_norm" for kind in [*kinds, "final"]]
            for name, shape in products.items():
                found[f"{name}.weight"] = shape
                if not name.endswith("k_proj"):
                    found[f"{name}.bias"] = shape[:1]
        found |= {f"{norm}.{kind}": (WIDTH,) for norm in norms for kind in ("weight", "bias")}
    return found


def weights(name, seed=0):
    config, made = CONFIGS[name], {}
    random = np.random.default_rng(seed)
    shapes = _whisper_shapes if config["model_type"] == "whisper" else _t5_shapes
    for each, shape in shapes(config).items():
        array = random.standard_normal(shape) * (
            2.0 if "relative" in each else 0.3 if len(shape) > 1 else 0.1)
        made[each] = (array + ("norm" in each and each.endswith(".weight"))).astype(np.float32)
    return made


def write(folder, name, settings=None, generation=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIGS[name], **(settings or {})}))
    save_file(weights(name), folder / "model.safetensors")
    tiny.tokenizer().save(str(folder / "tokenizer.json"))
    if name == "whisper":
        (folder / "preprocessor_config.json").write_text(json.dumps(EAR))
    if generation:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder


def erf_gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def attend(query, key, value, bias):
    """Heads of [tokens, width]; bias [heads, queries, keys]."""
    made = []
    for head in range(HEADS):
        part = slice(head * SIZE, (head + 1) * SIZE)
        scores = query[:, part] @ key[:, part].T + bias[head]
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        made.append(shares / shares.sum(-1, keepdims=True) @ value[:, part])
    return np.concatenate(made, -1)


def distance_bias(table, queries, keys, both, most):
    """T5's biases [heads, queries, keys], one by one."""
    made = np.zeros((HEADS, queries, keys))
    for at in range(queries):
        for place in range(keys):
            count, distance, start = len(table), place - at, 0
            if both:
                count //= 2
                start = count if distance > 0 else 0
                distance = abs(distance)
            else:
                distance = max(-distance, 0)
            exact = count // 2
            if distance >= exact:
                distance = min(count - 1, exact + int(np.float32(np.log(np.float32(
                    distance) / np.float32(exact))) / np.float32(math.log(most / exact))
                    * np.float32(count - exact)))
            made[:, at, place] = table[start + distance]
    return made


def causal(count):
    return np.broadcast_to(np.triu(np.full((count, count), -np.inf), 1), (HEADS, count, count))


def t5(config, w, source, tokens):
    """Logits of the last token."""
    def linear(x, name):
        return x @ w[f"{name}.weight"].T

    def forward(x, name):
        kind = config.get("feed_forward_proj", "relu")
        active = {"relu": lambda x: np.maximum(x, 0), "gated-gelu": gelu, "gated-silu": silu}[kind]
        if kind == "relu":
            return linear(active(linear(x, f"{name}.wi")), f"{name}.wo")
        return linear(active(linear(x, f"{name}.wi_0")) * linear(x, f"{name}.wi_1"), f"{name}.wo")

    def layer(x, name, kind, of, bias):
        y = rms(x, w[f"{name}.layer_norm.weight"])
        of = y if of is None else of
        y = attend(linear(y, f"{name}.{kind}.q"), *(linear(of, f"{name}.{kind}.{each}")
                                                    for each in "kv"), bias)
        return x + linear(y, f"{name}.{kind}.o")

    def run(half, layers, tokens, seen):
        count, most = len(tokens), config["relative_attention_max_distance"]
        table = w[f"{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        bias = distance_bias(table, count, count, seen is None, most)
        bias = bias if seen is None else bias + causal(count)
        x = w["shared.weight"][tokens]
        for i in range(layers):
            block = f"{half}.block.{i}.layer"
            x = layer(x, f"{block}.0", "SelfAttention", None, bias)
            if seen is not None:
                x = layer(x, f"{block}.1", "EncDecAttention", seen, np.zeros(HEADS))
            last = f"{block}.{1 if seen is None else 2}"
            x = x + forward(rms(x, w[f"{last}.layer_norm.weight"]), f"{last}.DenseReluDense")
        return rms(x, w[f"{half}.final_layer_norm.weight"])

    y = run("decoder", 3, tokens, run("encoder", 2, source, None))[-1]
    if config["model_type"] == "t5" and config.get("tie_word_embeddings") is not False:
        y = y * WIDTH**-0.5
    return y @ w.get("lm_head.weight", w["shared.weight"]).T


def whisper(config, w, features, tokens):
    """Logits of the last token."""
    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def norm(x, name):
        return layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def convolve(x, name, stride):
        padded = np.pad(x, ((0, 0), (1, 1)))
        places = range(0, x.shape[1], stride)
        return np.stack([np.einsum("oik,ik->o", w[f"{name}.weight"], padded[:, at:at + 3])
                         for at in places], 1) + w[f"{name}.bias"][:, None]

    def layer(x, name, kind, of, bias):
        y = norm(x, f"{name}.{kind}_layer_norm")
        of = y if of is None else of
        query, key, value = (linear(each, f"{name}.{kind}.{which}_proj")
                             for which, each in (("q", y), ("k", of), ("v", of)))
        return x + linear(attend(query * SIZE**-0.5, key, value, bias), f"{name}.{kind}.out_proj")

    def run(half, x, seen, bias):
        for i in range(2):
            name = f"model.{half}.layers.{i}"
            x = layer(x, name, "self_attn", None, bias)
            if seen is not None:
                x = layer(x, name, "encoder_attn", seen, np.zeros(HEADS))
            y = erf_gelu(linear(norm(x, f"{name}.final_layer_norm"), f"{name}.fc1"))
            x = x + linear(y, f"{name}.fc2")
        return norm(x, f"model.{half}.layer_norm")

    x = erf_gelu(convolve(features, "model.encoder.conv1", 1))
    x = erf_gelu(convolve(x, "model.encoder.conv2", 2)).T
    seen = run("encoder", x + w["model.encoder.embed_positions.weight"], None, np.zeros(HEADS))
    words = w["model.decoder.embed_tokens.weight"]
    x = words[tokens] + w["model.decoder.embed_positions.weight"][:len(tokens)]
    return run("decoder", x, seen, causal(len(tokens)))[-1] @ words.T


def logits(name, source, tokens):
    w = {each: array.astype(np.float64) for each, array in weights(name).items()}
    return (whisper if name == "whisper" else t5)(CONFIGS[name], w, source, tokens)


def greedy(name, source, begin, count):
    tokens = list(begin)
    for _ in range(count):
        tokens.append(int(np.argmax(logits(name, source, tokens))))
    return tokens[len(begin):]
