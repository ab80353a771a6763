"""Decoders with random weights, Llama's layers, written as onnxruntime-genai's builder does."""

import json
import math

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
BITS = {"f32": 32, "int8": 8, "int4": 4}
BLOCK = 32


def config(size, context):
    """As config.json has it."""
    return {"model_type": "llama", "max_position_embeddings": context, "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
            **SIZES[size]}


class Random:
    """Weights drawn as they are asked for: of `bits` those of products."""

    where = "random weights"

    def __init__(self, made, bits):
        self.made, self.bits, self._random = made, bits, np.random.default_rng(0)
        queries, keys = made.heads * made.head_size, made.kv_heads * made.head_size
        self._rows = {"q_proj": (queries, made.width), "k_proj": (keys, made.width),
                      "v_proj": (keys, made.width), "o_proj": (made.width, queries),
                      "gate_proj": (made.hidden, made.width), "up_proj": (made.hidden, made.width),
                      "down_proj": (made.width, made.hidden), "lm_head": (made.words, made.width),
                      "embed_tokens": (made.words, made.width)}

    def __contains__(self, name):
        return name.endswith(".weight") and "q_norm" not in name and "k_norm" not in name

    def _shape(self, name):
        return self._rows.get(name.split(".")[-2], (self.made.width,))

    def read(self, name):
        shape = self._shape(name)
        if len(shape) == 1:
            return np.ones(shape, np.float32)
        return self._random.standard_normal(shape, np.float32) / np.float32(math.sqrt(shape[1]))

    def quantised(self, name):
        """Codes of a matrix, or None."""
        if self.bits == 32 or "embed_tokens" in name:
            return None
        bits, packed, scales = self.blocks(name)
        codes = packed if bits == 8 else np.stack([packed & 15, packed >> 4], -1)
        return Codes(bits, codes.reshape(len(packed), -1), scales)

    def blocks(self, name):
        """(bits, bytes [rows, blocks, bytes], scales [rows, blocks])."""
        rows, columns = self._shape(name)
        size = (rows, columns // BLOCK, BLOCK * self.bits // 8)
        # Codes are mean 0: their halves of a byte are about 8, bytes about 128.
        return self.bits, self._random.integers(0, 256, size, np.uint8), np.full(
            size[:2], np.float32(2 / (1 << self.bits) / math.sqrt(columns) * math.sqrt(3)))


def write(folder, size, kind, context):
    """Writes model.onnx and what goes with it, and returns the bytes that a token reads of it."""
    settings = config(size, context)
    made = families.architecture(settings, size)
    folder.mkdir(parents=True, exist_ok=True)
    written.write(made, Random(made, BITS[kind]), folder / "model.onnx", context)
    (folder / "config.json").write_text(json.dumps(settings))
    data = (folder / "model.onnx.data").stat().st_size
    return data - made.words * made.width * 4  # of the embeddings it reads one row


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
