"""gguf: decoders in llama.cpp's format: sizes, words and weights.

Matrices of codes stay such (gguf_types.py). Each size of a file is held against the file's length
before anything of that size is made.
SPDX-License-Identifier: Apache-2.0
"""

import mmap
import struct

import numpy as np

from ..library import RefusedError
from . import families, gguf_words
from .gguf_types import OTHER_TYPES, TYPES
from .safetensors import widen

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
STRING, ARRAY = 8, 9
MOST_RANK = 4
# Architecture -> whether elements of queries and keys that turn together are neighbours.
ARCHITECTURES = {"llama": True, "qwen2": False, "qwen3": False, "phi3": False}
NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
PARTS = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}


class _Reader:
    """Values of a file, one after the other."""

    def __init__(self, data, where):
        self.data, self.where, self.at = data, where, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise RefusedError(f"{self.where}: at byte {self.at} it has {count} bytes more, but "
                               f"the file ends at {len(self.data)}")
        self.at += count
        return self.data[self.at - count:self.at]

    def scalar(self, form):
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))[0]

    def text(self):
        return self.take(self.scalar("Q")).decode("utf-8", errors="replace")

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            inner, count = self.scalar("I"), self.scalar("Q")
            if inner == STRING:
                if count > (len(self.data) - self.at) // 8:
                    self.take(count * 8)
                return [self.text() for _ in range(count)]
            size = struct.calcsize(self._form(inner))
            return np.frombuffer(self.take(count * size), f"<{self._form(inner)}").tolist()
        return self.scalar(self._form(kind))

    def _form(self, kind):
        if kind not in SCALARS:
            raise RefusedError(f"{self.where}: at byte {self.at} it has a value of type {kind}, "
                               f"but GGUF has 0 to 12, and no lists of lists")
        return SCALARS[kind]


class File:
    """One file: what it says of its model, and its tensors by the names of transformers."""

    def __init__(self, path):
        self.where = f"'{path}'"
        with open(path, "rb") as file:
            if file.read(4) != b"GGUF":
                raise RefusedError(f"{self.where}: is no GGUF file: it does not begin with 'GGUF'")
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        read = _Reader(self.map, self.where)
        read.take(4)
        version = read.scalar("I")
        if version not in (2, 3):
            raise RefusedError(f"{self.where}: is GGUF of version {version}; supported: 2 and 3")
        tensors, values = read.scalar("Q"), read.scalar("Q")
        if (tensors + values) * 8 > len(self.map):
            raise RefusedError(f"{self.where}: would have {tensors} tensors and {values} values, "
                               f"but has {len(self.map)} bytes")
        self.values = {}
        for _ in range(values):
            key = read.text()
            self.values[key] = read.value(read.scalar("I"))
        self.tensors = dict(self._entry(read) for _ in range(tensors))
        alignment = self.values.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 1 <= alignment <= 1 << 16:
            raise RefusedError(f"{self.where}: 'general.alignment' is {alignment!r}")
        self.start = -(-read.at // alignment) * alignment

    def _entry(self, read):
        """(name, (shape, type, offset)) of a tensor."""
        name, rank = read.text(), read.scalar("I")
        if rank > MOST_RANK:
            raise RefusedError(f"{self.where}: tensor '{name}' has rank {rank}, but GGUF has at "
                               f"most {MOST_RANK}")
        shape = [read.scalar("Q") for _ in range(rank)][::-1]
        return name, (shape, read.scalar("I"), read.scalar("Q"))

    def _need(self, key, kinds=(int, float)):
        value = self.values.get(key)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise RefusedError(f"{self.where}: '{key}' is {value!r}, but must be a "
                               f"{'text' if kinds is str else 'number'}")
        return value

    def architecture(self):
        """The Architecture of its model."""
        name = self._need("general.architecture", str)
        if name not in ARCHITECTURES:
            raise RefusedError(f"{self.where}: the architecture is '{name}'; supported in GGUF: "
                               f"{', '.join(ARCHITECTURES)}")
        has = {key.removeprefix(f"{name}."): value for key, value in self.values.items()}
        heads = self._need(f"{name}.attention.head_count", int)
        width = self._need(f"{name}.embedding_length", int)
        if heads < 1:
            raise RefusedError(f"{self.where}: '{name}.attention.head_count' is {heads}")
        size = has.get("attention.key_length", width // heads)
        embedded = self._shape("token_embd.weight")
        config = {
            "model_type": name, "num_hidden_layers": self._need(f"{name}.block_count", int),
            "hidden_size": width, "num_attention_heads": heads, "head_dim": size,
            "num_key_value_heads": has.get("attention.head_count_kv"),
            "intermediate_size": self._need(f"{name}.feed_forward_length", int),
            "vocab_size": embedded[0], "rope_interleaved": ARCHITECTURES[name],
            "max_position_embeddings": self._need(f"{name}.context_length", int),
            "rms_norm_eps": self._need(f"{name}.attention.layer_norm_rms_epsilon"),
            "sliding_window": has.get("attention.sliding_window") or None,
            "rope_theta": has.get("rope.freq_base", 1e4), "rope_scaling": self._scaling(has),
            "partial_rotary_factor": has.get("rope.dimension_count", size) / size,
            "tie_word_embeddings": "output.weight" not in self.tensors}
        return families.architecture(config, self.where)

    def _scaling(self, has):
        """The rotation's scaling as config.json has it."""
        if "rope_freqs.weight" in self.tensors:
            return {"rope_type": "factors",
                    "factors": self._array("rope_freqs.weight").reshape(-1).tolist()}
        kind = has.get("rope.scaling.type", "none")
        if kind == "none":
            return {}
        return {"rope_type": kind, "factor": has.get("rope.scaling.factor", 1.0),
                "original_max_position_embeddings": has.get("rope.scaling.original_context_length")}

    def _name(self, name):
        """The file's name of a tensor of transformers' name."""
        stem, _, kind = name.rpartition(".")
        if stem in NAMES:
            return f"{NAMES[stem]}.{kind}"
        if stem.startswith("model.layers."):
            number, _, part = stem.removeprefix("model.layers.").partition(".")
            if part in PARTS:
                return f"blk.{number}.{PARTS[part]}.{kind}"
        return name

    def __contains__(self, name):
        return self._name(name) in self.tensors

    def _entry_of(self, name):
        if name not in self.tensors:
            raise RefusedError(f"{self.where}: there is no tensor '{name}'")
        return self.tensors[name]

    def _shape(self, name):
        shape = self._entry_of(name)[0]
        if len(shape) != 2:
            raise RefusedError(f"{self.where}: '{name}' is {shape}, but must be a matrix")
        return shape

    def _blocks(self, name):
        """(name of the type, bytes [blocks, bytes of a block], shape, what makes Codes of them)."""
        shape, number, offset = self._entry_of(name)
        if number not in TYPES:
            kind = OTHER_TYPES.get(number, f"of number {number}")
            raise RefusedError(f"{self.where}: '{name}' is {kind}; supported: "
                               f"{', '.join(kind for kind, *_ in TYPES.values())}")
        kind, elements, size, make = TYPES[number]
        count = 1
        for dim in shape:
            count *= dim
        if count % elements or (elements > 1 and shape[-1] % elements):
            raise RefusedError(f"{self.where}: '{name}' is {kind}{shape}, whose rows are not whole "
                               f"blocks of {elements}")
        begin, length = self.start + offset, count // elements * size
        if begin + length > len(self.map):
            raise RefusedError(f"{self.where}: '{name}' is {kind}{shape} at byte {begin}, which "
                               f"goes beyond the end of the file, {len(self.map)}")
        blocks = np.frombuffer(self.map, np.uint8, length, begin).reshape(-1, size)
        return kind, blocks, shape, make

    def _array(self, name):
        """A tensor as f32."""
        kind, blocks, shape, make = self._blocks(name)
        if make:
            with np.errstate(all="ignore"):  # scales may be infinite: the model's logits then tell
                return make(blocks).array().reshape(shape)
        flat = blocks.reshape(-1)
        if kind == "BF16":
            return widen(flat.view("<u2")).reshape(shape)
        return flat.view("<f4" if kind == "F32" else "<f2").astype(np.float32).reshape(shape)

    def read(self, name):
        return self._array(self._name(name))

    def quantised(self, name):
        """The Codes of a matrix, or None where its type has none."""
        _, blocks, shape, make = self._blocks(self._name(name))
        if not make or len(shape) != 2:
            return None
        with np.errstate(all="ignore"):
            return make(blocks).rows(shape[0])

    def _token(self, which):
        number = self.values.get(f"tokenizer.ggml.{which}_token_id")
        return number if isinstance(number, int) else None

    @property
    def bos(self):
        return self._token("bos")

    @property
    def eos(self):
        found = (self._token(which) for which in ("eos", "eot", "eom"))
        return tuple(dict.fromkeys(each for each in found if each is not None))

    @property
    def template(self):
        return self.values.get("tokenizer.chat_template")

    @property
    def token_names(self):
        """Texts of special tokens, by the names that templates have for them."""
        tokens = self.values.get("tokenizer.ggml.tokens")
        tokens = tokens if isinstance(tokens, list) else []
        numbers = {f"{which}_token": self._token(which) for which in ("bos", "eos")}
        return {name: tokens[number] for name, number in numbers.items()
                if number is not None and number < len(tokens)}

    @property
    def adds_bos(self):
        kind = self.values.get("tokenizer.ggml.model")
        pre = self.values.get("tokenizer.ggml.pre")
        return bool(self.values.get("tokenizer.ggml.add_bos_token",
                                    kind == "llama" or pre == "llama-bpe"))

    def tokenizer(self):
        """The Words that the file has."""
        words = self._shape("token_embd.weight")[0]
        return gguf_words.words_of(self.values, self.where, words)
