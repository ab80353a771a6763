"""GGUF: weights of each type, words, and files that are damaged."""

import struct

import numpy as np
import pytest
from heddle.generate import Generator, gguf, gguf_types, network
from heddle.generate.gguf_words import words_of

import heddle
import reference
import tiny

pytest.importorskip("tokenizers")
PROMPT = np.random.default_rng(8).integers(3, tiny.WORDS, 30).tolist()
F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL, BF16, MXFP4 = 0, 1, 2, 3, 6, 7, 8, 20, 30, 39
CODED = {number: row for number, row in gguf_types.TYPES.items() if row[3]}
KINDS = {bool: 7, int: 4, float: 6, str: 8}
FORMS = {bool: "?", int: "I", float: "f"}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(what):
    if isinstance(what, list):
        inner = b"".join(value(each)[4:] for each in what)
        return struct.pack("<IIQ", 9, KINDS[type(what[0])], len(what)) + inner
    data = text(what) if isinstance(what, str) else struct.pack(f"<{FORMS[type(what)]}", what)
    return struct.pack("<I", KINDS[type(what)]) + data


def encode(array, kind):
    """(bytes, the array that they stand for)."""
    if kind == F32:
        return array.astype("<f4").tobytes(), array
    if kind == F16:
        return array.astype("<f2").tobytes(), array.astype(np.float16).astype(np.float32)
    if kind == BF16:
        bits = array.astype("<f4").view(np.uint32) >> 16
        return bits.astype("<u2").tobytes(), (bits << 16).view(np.float32)
    if kind not in (Q4_0, Q8_0):
        data = drawn(kind, array.size)
        return data.tobytes(), gguf_types.TYPES[kind][3](data).array().reshape(array.shape)
    blocks, data, made = array.reshape(-1, 32), b"", []
    for block in blocks:
        largest = block[np.argmax(np.abs(block))]
        scale = np.float16(largest / -8 if kind == Q4_0 else abs(largest) / 127)
        wide = np.float32(scale) or np.float32(1)
        if kind == Q4_0:
            codes = np.clip(np.rint(block / wide) + 8, 0, 15).astype(np.uint8)
            data += scale.tobytes() + bytes(int(codes[i]) | int(codes[i + 16]) << 4
                                            for i in range(16))
            made.append((codes.astype(np.float32) - 8) * wide)
        else:
            codes = np.clip(np.rint(block / wide), -127, 127).astype(np.int8)
            data += scale.tobytes() + codes.tobytes()
            made.append(codes * wide)
    return data, np.concatenate(made).reshape(array.shape)


def drawn(kind, elements, seed=3):
    """Blocks [blocks, bytes] of random codes, whose weights are about 0.1."""
    _, each, size, _ = CODED[kind]
    data = np.random.default_rng(seed).integers(0, 256, (elements // each, size), np.uint8)
    scales = {Q4_1: (0, 2), Q5_0: (0,), Q5_1: (0, 2), 10: (80, 82), 11: (108,), 12: (0, 2),
              13: (0, 2), 14: (208,)}.get(kind, (0,))
    if kind == MXFP4:
        data[:, 0] = data[:, 0] % 4 + 122
        return data
    largest = {Q4_1: 8, Q5_0: 16, Q5_1: 16, IQ4_NL: 99}.get(kind, 2000 if each == 256 else 128)
    for at in scales:
        number = np.float16(0.2 / (largest if at in (0, scales[0]) or each == 256 else -2))
        factors = np.random.default_rng(seed + at).choice([0, 1, 1, 1, 2], (len(data), 1))
        data[:, at:at + 2] = (number * factors.astype(np.float16)).view(np.uint8)
    return data


def gguf_name(name):
    for theirs, ours in (("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"),
                         ("lm_head", "output"), ("model.layers.", "blk."),
                         ("input_layernorm", "attn_norm"), ("self_attn.q_proj", "attn_q"),
                         ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
                         ("self_attn.qkv_proj", "attn_qkv"), ("self_attn.o_proj", "attn_output"),
                         ("self_attn.q_norm", "attn_q_norm"), ("self_attn.k_norm", "attn_k_norm"),
                         ("post_attention_layernorm", "ffn_norm"), ("mlp.gate_up_proj", "ffn_up"),
                         ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
                         ("mlp.down_proj", "ffn_down")):
        name = name.replace(theirs, ours)
    return name


def words():
    """Values of a file that describe tiny.tokenizer()."""
    made = tiny.tokenizer()
    tokens = sorted(made.get_vocab(), key=made.get_vocab().get)
    merges = [f"{x} {y}" for x in "abcdefg" for y in "abcdef"][:len(tokens) - 259]
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.token_type": [3] * 3 + [1] * (len(tokens) - 3),
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.chat_template": tiny.TEMPLATE}


def tensors(name, kind):
    """(the tensors of a file, with their bytes; weights that they stand for)."""
    made, weights = {}, {}
    for each, array in tiny.weights(name).items():
        own = kind if array.ndim == 2 and array.shape[1] % 32 == 0 else F32
        stored = array
        if name == "llama" and each.endswith(("q_proj.weight", "k_proj.weight")):
            # Neighbours turn together there: rows of a head are half and half, and become pairs.
            heads = array.shape[0] // 8
            stored = array.reshape(heads, 2, 4, -1).swapaxes(1, 2).reshape(array.shape)
        data, meant = encode(stored, own)
        if stored is not array:
            meant = meant.reshape(heads, 4, 2, -1).swapaxes(1, 2).reshape(array.shape)
        made[gguf_name(each)], weights[each] = (stored.shape, own, data), meant
    return made, weights


def values(name):
    config = tiny.config(name)
    made = {"general.architecture": name, f"{name}.block_count": 2, f"{name}.context_length": 256,
            f"{name}.embedding_length": 32, f"{name}.feed_forward_length": 48,
            f"{name}.attention.head_count": 4, f"{name}.attention.head_count_kv": 2,
            f"{name}.attention.layer_norm_rms_epsilon": 1e-6, f"{name}.rope.freq_base": 1e4,
            f"{name}.rope.dimension_count": 8, **words()}
    if config.get("sliding_window"):
        made[f"{name}.attention.sliding_window"] = config["sliding_window"]
    return made


def whole(values, tensors, version=3):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    head += b"".join(text(key) + value(what) for key, what in values.items())
    data, entries = b"", b""
    for name, (shape, kind, stored) in tensors.items():
        data += bytes(-len(data) % 32)
        entries += text(name) + struct.pack("<I", len(shape))
        entries += b"".join(struct.pack("<Q", dim) for dim in shape[::-1])
        entries += struct.pack("<IQ", kind, len(data))
        data += stored
    head += entries
    return head + bytes(-len(head) % 32) + data


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name, kind", [
    ("llama", Q4_0), ("llama", Q8_0), ("qwen2", F16), ("qwen3", BF16), ("phi3", Q4_0),
    ("qwen2", Q8_0), ("qwen2", Q4_1), ("llama", Q5_0), ("phi3", Q5_1), ("qwen3", IQ4_NL),
    ("qwen2", MXFP4)])
def test_logits_are_those_of_the_weights(tmp_path, name, kind):
    made, weights = tensors(name, kind)
    (tmp_path / "m.gguf").write_bytes(whole(values(name), made))
    config = {**tiny.config(name), "rope_scaling": None}
    generator = Generator(tmp_path, threads=1)
    generator.append(PROMPT)
    wanted = reference.logits(config, weights, PROMPT)
    assert np.abs(generator.logits - wanted).max() < 1e-5 * np.abs(wanted).max()
    assert generator.generate(PROMPT, max_tokens=6, ignore_eos=True).tokens == reference.greedy(
        config, weights, PROMPT, 6)
    assert generator.tokenizer.encode("abc <s>€") == tiny.tokenizer().encode("abc <s>€").ids
    assert generator.chat("hi", max_tokens=2).stats["prompt_tokens"] > 10


def test_products_of_quantised_matrices_keep_their_bits(tmp_path):
    made, weights = tensors("llama", Q4_0)
    (tmp_path / "m.gguf").write_bytes(whole(values("llama"), made))
    file = gguf.File(tmp_path / "m.gguf")
    name = "model.layers.0.mlp.up_proj.weight"
    codes = file.quantised(name)
    np.testing.assert_array_equal(codes.array(), weights[name])
    assert codes.bits == 4 and file.quantised("model.norm.weight") is None
    assert file.eos == (2,) and file.bos == 1 and file.token_names["eos_token"] == "</s>"


@pytest.mark.parametrize("kind", CODED)
def test_codes_are_those_of_llama_cpp(kind):
    theirs = pytest.importorskip("gguf", reason="the package gguf is not installed")
    name, elements, size, make = CODED[kind]
    kind = theirs.GGMLQuantizationType(kind)
    assert kind.name == name and theirs.GGML_QUANT_SIZES[kind] == (elements, size)
    data = np.random.default_rng(1).integers(0, 256, (300, size), np.uint8)
    with np.errstate(all="ignore"):  # random scales may be NaN
        wanted, codes = theirs.quants.dequantize(data, kind), make(data)
        found = codes.array()
    sound = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), sound)
    for ours, wants, is_sound in zip(found, wanted, sound):  # each has scales of its own
        if is_sound.any():
            most = np.abs(wants[is_sound]).max()
            np.testing.assert_allclose(ours[is_sound], wants[is_sound], rtol=0, atol=2e-6 * most)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("kind", CODED)
def test_products_of_codes(tmp_path, kind):
    """Products are those of the weights; of activations of 8 bits nearly so."""
    codes = CODED[kind][3](drawn(kind, 24 * 512)).rows(24)
    with open(tmp_path / "m.onnx.data", "wb") as file:
        net = network.Network(file)
        net.input("x", ["rows", 512])
        net.outputs.append(network.onnx_graph.make_value(
            network.Writer(None, None, net, 0).product("x", codes, "w", "y"), ["rows", 24]))
        (tmp_path / "m.onnx").write_bytes(net.finish().SerializeToString())
    for rows in (1, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 512), np.float32)
        wanted = x @ codes.array().T
        for math, tolerance in (("strict", 1e-5), ("fast", 2e-2)):
            found, = heddle.compile(tmp_path / "m.onnx", math=math).run(None, {"x": x})
            assert np.abs(found - wanted).max() < tolerance * np.abs(wanted).max()


def test_words_by_scores():
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), "\u2581", "a", "b",
              "ab", "\u2581ab", "ba"]
    scores = [0.0] * 260 + [-1.0, -2.0, -5.0, -3.0, -4.0]
    made = words_of({"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens,
                     "tokenizer.ggml.scores": scores, "tokenizer.ggml.token_type":
                     [2, 3, 3] + [6] * 256 + [1] * 6}, "here", 300)
    read = [tokens[each] for each in made.encode("ab aba€")]
    # "ba" has a better score than "ab".
    assert read == ["\u2581ab", "\u2581", "a", "ba", "<0xE2>", "<0x82>", "<0xAC>"]
    assert made.decode(made.encode("ab aba€")) == "ab aba€"


def damaged(change):
    made, _ = tensors("qwen2", F32)
    known = values("qwen2")
    data = change(known, made)
    return data if data is not None else whole(known, made)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("change, message", [
    (lambda v, t: b"GGML" + bytes(99), "is no GGUF file"),
    (lambda v, t: whole(v, t, version=1), "GGUF of version 1; supported: 2 and 3"),
    (lambda v, t: b"GGUF" + struct.pack("<IQQ", 3, 1 << 62, 1), "would have 461"),
    (lambda v, t: b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 63) + bytes(9), "the file ends at"),
    (lambda v, t: b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack(
        "<IIQ", 9, 8, 1 << 60), "the file ends at"),
    (lambda v, t: b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack(
        "<IIQ", 9, 9, 1), "a value of type 9"),
    (lambda v, t: whole(v, t)[:3000], "the file ends at 3000"),
    (lambda v, t: whole(v, t)[:-40], "goes beyond the end of the file"),
    (lambda v, t: t.update({"blk.0.attn_q.weight": ((1 << 62, 1 << 62), F32, b"")}),
     "goes beyond the end of the file"),
    (lambda v, t: t.update({"blk.0.attn_q.weight": ((32, 32), 16, b"")}),
     "'blk.0.attn_q.weight' is IQ2_XXS; supported: F32, F16, BF16, Q4_0"),
    (lambda v, t: t.update({"blk.0.attn_q.weight": ((32, 32), 12, b"")}),
     r"is Q4_K\[32, 32\], whose rows are not whole blocks of 256"),
    (lambda v, t: t.update({"blk.0.attn_q.weight": ((32, 32), 77, b"")}), "is of number 77"),
    (lambda v, t: t.update({"blk.0.attn_q.weight": ((64, 16), Q4_0, b"")}), "not whole blocks"),
    (lambda v, t: t.update({"blk.0.attn_q.weight": t["blk.0.attn_k.weight"]}),
     r"'model.layers.0.self_attn.q_proj.weight' is \[16, 32\], but"),
    (lambda v, t: t.pop("blk.1.ffn_down.weight") and None, "no tensor 'blk.1.ffn_down.weight'"),
    (lambda v, t: v.update({"general.architecture": "mamba"}), "the architecture is 'mamba'"),
    (lambda v, t: v.pop("qwen2.block_count") and None, "'qwen2.block_count' is None"),
    (lambda v, t: v.update({"qwen2.attention.head_count": 0}), "head_count' is 0"),
    (lambda v, t: v.update({"qwen2.rope.scaling.type": "longrope"}),
     "the rope scaling is 'longrope'"),
    (lambda v, t: v.update({"general.alignment": 0}), "'general.alignment' is 0"),
])
def test_a_damaged_file_is_refused(tmp_path, change, message):
    (tmp_path / "m.gguf").write_bytes(damaged(change))
    with pytest.raises(heddle.RefusedError, match=message):
        Generator(tmp_path / "m.gguf", threads=1)


@pytest.mark.parametrize("change, message", [
    ({"tokenizer.ggml.pre": "tekken"}, "splits text by 'tekken'"),
    ({"tokenizer.ggml.model": "rwkv"}, "the tokenizer is 'rwkv'"),
    ({"tokenizer.ggml.merges": ["a"]}, r"merges \('a',\), which are not"),
    ({"tokenizer.ggml.tokens": ["a"]}, r"merges \('a', 'a'\), which are not"),
    ({"tokenizer.ggml.token_type": 3}, "the tokenizer is damaged"),
    ({"tokenizer.ggml.tokens": [[1]] * 300}, "the tokenizer is damaged"),
    ({"tokenizer.ggml.model": "llama"}, "has 0 scores for 300 tokens"),
])
def test_damaged_words_are_refused(change, message):
    with pytest.raises(heddle.RefusedError, match=message):
        words_of({**words(), **change}, "here", tiny.WORDS)
