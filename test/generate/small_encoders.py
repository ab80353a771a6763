"""Tiny random encoders of texts as safetensors, and their meaning in NumPy, in f64."""

import json

import numpy as np
import tiny
from heddle.generate import embed
from safetensors.numpy import save_file
from tiny_pairs import attend, erf_gelu

WIDTH, WORDS, PLACES = 32, tiny.WORDS, 40
CONFIG = {"hidden_size": WIDTH, "num_attention_heads": 4, "num_hidden_layers": 2,
          "intermediate_size": 48, "vocab_size": WORDS, "layer_norm_eps": 1e-6}


def config(family):
    return {**CONFIG, "model_type": family,
            "max_position_embeddings": PLACES + embed.FAMILIES[family][1]}


def weights(family):
    root, first = embed.FAMILIES[family]
    shapes = {"embeddings.word_embeddings.weight": (WORDS, WIDTH),
              "embeddings.position_embeddings.weight": (PLACES + first, WIDTH),
              "embeddings.token_type_embeddings.weight": (2, WIDTH),
              "embeddings.LayerNorm.weight": (WIDTH,), "embeddings.LayerNorm.bias": (WIDTH,)}
    for i in range(2):
        for part, rows, columns in (
                ("attention.self.query", WIDTH, WIDTH), ("attention.self.key", WIDTH, WIDTH),
                ("attention.self.value", WIDTH, WIDTH), ("attention.output.dense", WIDTH, WIDTH),
                ("intermediate.dense", 48, WIDTH), ("output.dense", WIDTH, 48)):
            shapes |= {f"encoder.layer.{i}.{part}.weight": (rows, columns),
                       f"encoder.layer.{i}.{part}.bias": (rows,)}
        shapes |= {f"encoder.layer.{i}.{part}.LayerNorm.{kind}": (WIDTH,)
                   for part in ("attention.output", "output") for kind in ("weight", "bias")}
    random = np.random.default_rng(7)
    return {f"{root}.{name}": (random.standard_normal(shape) * 0.3 + ("LayerNorm.weight" in name)
                               ).astype(np.float32) for name, shape in shapes.items()}


def write(folder, family="bert", modules=None, pooling=None, **files):
    """A folder of the model; `files` are dictionaries, by the names of JSON files."""
    folder.mkdir(parents=True)
    save_file(weights(family), folder / "model.safetensors")
    tiny.tokenizer().save(str(folder / "tokenizer.json"))
    files = {"config": config(family), **files}
    if modules is not None:
        files["modules"] = [{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{kind}",
                             "type": f"sentence_transformers.models.{kind}"}
                            for i, kind in enumerate(modules)]
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling or {
            "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}))
    for name, values in files.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    return folder


def reference(family, tokens):
    """Vectors of the tokens."""
    root, first = embed.FAMILIES[family]
    w = {name.removeprefix(f"{root}."): array.astype(np.float64)
         for name, array in weights(family).items()}

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
                * w[f"{name}.LayerNorm.weight"] + w[f"{name}.LayerNorm.bias"])

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = (w["embeddings.word_embeddings.weight"][tokens]
         + w["embeddings.position_embeddings.weight"][first:first + len(tokens)]
         + w["embeddings.token_type_embeddings.weight"][0])
    x = norm(x, "embeddings")
    for i in range(2):
        block = f"encoder.layer.{i}"
        query, key, value = (linear(x, f"{block}.attention.self.{each}")
                             for each in ("query", "key", "value"))
        y = attend(query * 8**-0.5, key, value, np.zeros(4))
        x = norm(x + linear(y, f"{block}.attention.output.dense"), f"{block}.attention.output")
        y = linear(erf_gelu(linear(x, f"{block}.intermediate.dense")), f"{block}.output.dense")
        x = norm(x + y, f"{block}.output")
    return x
