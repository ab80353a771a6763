"""Decoders as llama.cpp reads them: GGUF of F32, BF16, Q8_0 and Q4_0."""

import gguf
import numpy as np
from heddle.generate.gguf import NAMES, PARTS

CONTROLS = ["<unk>", "<s>", "</s>", "<0x0A>"]  # before words, of a character each
FIRST_CHARACTER = 0x20000
KINDS = {"f32": "F32", "bf16": "BF16", "int8": "Q8_0", "int4": "Q4_0"}


def name_of(name):
    """The name of llama.cpp for one of transformers."""
    source = name.removesuffix(".weight")
    if source in NAMES:
        return f"{NAMES[source]}.weight"
    _, _, number, part = source.split(".", 3)
    return f"blk.{number}.{PARTS[part]}.weight"


def as_blocks(matrix):
    """The bytes of Codes [rows, bytes]: a scale of f16 a block of 32, and its codes."""
    parts = matrix.parts()
    if matrix.bits == 8:
        packed = parts ^ 0x80
    else:  # the first half of a block is in the low bits
        packed = parts[:, :, :16] | parts[:, :, 16:] << 4
    heads = matrix.scales.astype(np.float16)[:, :, None].view(np.uint8)
    return np.concatenate([heads, packed], -1).reshape(len(parts), -1)


def paired(array, heads):
    """Rows of queries or keys, where those that turn together are neighbours."""
    return array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def word(token):
    return chr(FIRST_CHARACTER + token)


def add_words(file, count):
    """Has a tokenizer of SentencePiece's kind."""
    types, others = gguf.TokenType, range(len(CONTROLS), count)
    file.add_tokenizer_model("llama")
    file.add_token_list([*CONTROLS, *map(word, others)])
    file.add_token_scores([0.0] * count)
    file.add_token_types([types.UNKNOWN, types.CONTROL, types.CONTROL, types.BYTE,
                          *[types.NORMAL for _ in others]])
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_add_bos_token(False)
    file.add_add_space_prefix(False)


def write(made, weights, kind, path, context, has_words=False):
    """Writes the decoder as one file."""
    file = gguf.GGUFWriter(path, "llama")
    for say, value in ((file.add_context_length, context), (file.add_embedding_length, made.width),
                       (file.add_block_count, made.layers),
                       (file.add_feed_forward_length, made.hidden),
                       (file.add_head_count, made.heads), (file.add_head_count_kv, made.kv_heads),
                       (file.add_layer_norm_rms_eps, made.epsilon),
                       (file.add_rope_dimension_count, made.head_size),
                       (file.add_rope_freq_base, made.ropes[0].theta),
                       (file.add_vocab_size, made.words)):
        say(value)
    if has_words:
        add_words(file, made.words)
    else:
        file.add_tokenizer_model("no_vocab")
    stored = gguf.GGMLQuantizationType[KINDS[kind]]
    for name in weights.names():
        heads = {"q_proj": made.heads, "k_proj": made.kv_heads}.get(name.split(".")[-2])
        turn = (lambda array, heads=heads: paired(array, heads)) if heads else lambda array: array
        small = weights.quantised(name)
        if small is not None:
            file.add_tensor(name_of(name), turn(as_blocks(small)), raw_dtype=stored)
            continue
        array = turn(weights.read(name))
        if kind == "bf16" and array.ndim == 2 and "embed_tokens" not in name:
            bits = (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16)
            file.add_tensor(name_of(name), bits.view(np.uint8), raw_dtype=stored)
        else:
            file.add_tensor(name_of(name), np.ascontiguousarray(array))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
