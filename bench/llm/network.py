"""Decoders with random weights, Llama's layers, written as onnxruntime-genai's builder does."""

import json
import math
import zlib

import numpy as np
import onnx
from heddle.generate import families
from heddle.generate import network as written
from heddle.generate.gguf_types import Codes

SIZES = {
    "100m": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
             "num_key_value_heads": 4, "intermediate_size": 2048, "vocab_size": 16000},
    "500m": {"hidden_size": 1280, "num_hidden_layers": 24, "num_attention_heads": 20,
             "num_key_value_heads": 4, "intermediate_size": 3584, "vocab_size": 32000},
    "7b": {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 32000},
    "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 200}}
BITS = {"f32": 32, "bf16": 16, "int8": 8, "int4": 4}
BLOCK = 32


def config(size, context):
    """As config.json has it."""
    return {"model_type": "llama", "max_position_embeddings": context, "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
            **SIZES[size]}


class Random:
    """Weights that their names seed, each made as it is asked for; those of products are of a
    kind."""

    where = "random weights"

    def __init__(self, made, kind):
        self.made, self.kind = made, kind
        queries, keys = made.heads * made.head_size, made.kv_heads * made.head_size
        self._rows = {"q_proj": (queries, made.width), "k_proj": (keys, made.width),
                      "v_proj": (keys, made.width), "o_proj": (made.width, queries),
                      "gate_proj": (made.hidden, made.width), "up_proj": (made.hidden, made.width),
                      "down_proj": (made.width, made.hidden), "lm_head": (made.words, made.width),
                      "embed_tokens": (made.words, made.width)}

    def __contains__(self, name):
        return name.endswith(".weight") and "q_norm" not in name and "k_norm" not in name

    def names(self):
        """All of them, by transformers' names."""
        layer = ["input_layernorm", "post_attention_layernorm",
                 *(f"self_attn.{each}_proj" for each in "qkvo"),
                 *(f"mlp.{each}_proj" for each in ("gate", "up", "down"))]
        return [f"{name}.weight" for name in (
            "model.embed_tokens", "model.norm", "lm_head",
            *(f"model.layers.{i}.{part}" for i in range(self.made.layers) for part in layer))]

    def _shape(self, name):
        return self._rows.get(name.split(".")[-2], (self.made.width,))

    def read(self, name):
        shape = self._shape(name)
        if len(shape) == 1:
            return np.ones(shape, np.float32)
        array = seeded(name).standard_normal(shape, np.float32) / np.float32(math.sqrt(shape[1]))
        if self.kind == "bf16":  # what bf16 holds, so that all engines have the same numbers
            array.view(np.uint32)[:] &= 0xFFFF0000
        return array

    def quantised(self, name):
        """Codes of a matrix, or None."""
        bits, shape = BITS[self.kind], self._shape(name)
        if bits > 8 or len(shape) == 1 or "embed_tokens" in name:
            return None
        rows, columns = shape
        # Codes are mean 0: of 4 bits about 8, of 8 bits about 128. As llama.cpp has them, scales
        # are of f16, and no code of 8 bits is -128.
        scale = np.float16(2 / (1 << bits) / math.sqrt(columns) * math.sqrt(3))
        codes = seeded(name).integers(bits == 8, 1 << bits, (rows, columns), np.uint8)
        return Codes(bits, codes, np.full((rows, columns // BLOCK), np.float32(scale)))


def seeded(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def decoder(folder):
    """The architecture of a folder's config.json."""
    settings = json.loads((folder / "config.json").read_text())
    return families.architecture(settings, "config.json")


def write(folder, size, kind, context):
    """Writes model.onnx and what goes with it, and returns the bytes that a token reads of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(size, context)))
    made = decoder(folder)
    written.write(made, Random(made, kind), folder / "model.onnx", context)
    data = (folder / "model.onnx.data").stat().st_size
    read = data - made.words * made.width * 4  # of the embeddings it reads one row
    return read // 2 if kind == "bf16" else read


def as_genai(folder, target, threads, context):
    """The model as onnxruntime-genai takes it: all logits."""
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    for node in model.graph.node:
        if written.LAST in node.input:
            node.op_type = "Identity"
            del node.input[1:], node.attribute[:]
    kept = [value for value in model.graph.input if value.name != written.LAST]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(model, target / "model.onnx")
    data = target / "model.onnx.data"
    data.unlink(missing_ok=True)
    data.hardlink_to(folder / "model.onnx.data")
    settings = json.loads((folder / "config.json").read_text())
    decoder = {
        "filename": "model.onnx", "head_size": settings["hidden_size"] // settings[
            "num_attention_heads"],
        **{name: settings[name] for name in ("hidden_size", "num_attention_heads",
                                             "num_hidden_layers", "num_key_value_heads")},
        "session_options": {"intra_op_num_threads": threads, "provider_options": []},
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask",
                   "past_key_names": "past_key_values.%d.key",
                   "past_value_names": "past_key_values.%d.value"},
        "outputs": {"logits": "logits", "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value"}}
    (target / "genai_config.json").write_text(json.dumps({
        "model": {"type": "llama", "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
                  "context_length": context, "vocab_size": settings["vocab_size"],
                  "decoder": decoder},
        "search": {"past_present_share_buffer": True, "max_length": context}}))
