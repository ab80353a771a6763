"""Models of folders and files: which are found, kept and refused."""

import json
import os
import shutil

import numpy as np
import onnx
import pytest
from heddle import starts
from heddle.generate import Generator, families, model, network, rope, safetensors
from heddle.onnx_graph import INT64, Graph

import heddle
import tiny

pytestmark = pytest.mark.usefixtures("compiler")
store = pytest.importorskip("safetensors.numpy")
PROMPT = [5, 9, 20, 9]


def tokens_of(place, prompt=PROMPT, **options):
    return Generator(place, threads=1, **options).generate(prompt, max_tokens=6,
                                                           ignore_eos=True).tokens


def as_onnx(source, folder):
    """The folder of a model.onnx that the package's writer made of another folder."""
    folder.mkdir()
    made = families.architecture(json.loads((source / "config.json").read_text()), "here")
    network.write(made, safetensors.Safetensors(source), folder / "model.onnx", 256)
    return folder


def test_an_onnx_model_is_taken_as_it_is(tmp_path):
    source = tiny.write(tmp_path / "a", "qwen3")
    wanted = tokens_of(source)
    folder = as_onnx(source, tmp_path / "b")
    (folder / "genai_config.json").write_text(json.dumps({"model": {
        "context_length": 100, "vocab_size": tiny.WORDS, "eos_token_id": [7, 8],
        "decoder": {"filename": "decoder.onnx"}}}))
    (folder / "model.onnx").rename(folder / "decoder.onnx")
    generator = Generator(folder, threads=1)
    assert generator.model.facts.context == 100 and generator.model.facts.eos == (7, 8)
    assert generator.generate(PROMPT, max_tokens=6, ignore_eos=True).tokens == wanted
    prompts = [PROMPT, PROMPT * 3]
    assert [each.tokens for each in generator.generate(prompts, max_tokens=6, ignore_eos=True)
            ] == [wanted, tokens_of(source, PROMPT * 3)]
    assert tokens_of(folder / "decoder.onnx") == wanted


@pytest.mark.parametrize("known", [
    {"decoder": {"head_size": 8, "num_key_value_heads": 2}},
    {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}])
def test_sizes_that_the_graph_leaves_open_are_the_configs(tmp_path, known):
    source = tiny.write(tmp_path / "a", "llama")
    folder = as_onnx(source, tmp_path / "b")
    graph = onnx.load(folder / "model.onnx", load_external_data=False)
    for value in graph.graph.input:
        if value.name.startswith("past"):
            dims = value.type.tensor_type.shape.dim
            dims[1].dim_param, dims[3].dim_param = "kv_heads", "kv_cache_dim"
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    with pytest.raises(heddle.Error, match="but must be .* with a number of heads and a size"):
        Generator(folder, threads=1)
    name = "genai_config.json" if "decoder" in known else "config.json"
    made = {"context_length": 256, **known}
    (folder / name).write_text(json.dumps({"model": made} if "decoder" in known else made))
    assert tokens_of(folder) == tokens_of(source)


def concatenating():
    """A decoder whose keys go by Concat: its logits are those of the mean of all embeddings."""
    graph = Graph(seed=1)
    graph.input("input_ids", ["batch", "sequence"], INT64)
    graph.input("attention_mask", ["batch", "total"], INT64)
    words = graph.weight(20, 8, name="words")
    new = graph.op("Unsqueeze", graph.op("Gather", words, "input_ids"),
                   graph.constant(np.int64([1])))
    for each in ("key", "value"):
        graph.input(f"past_key_values.0.{each}", ["batch", 1, "past", 8])
        graph.op("Concat", f"past_key_values.0.{each}", new, name=f"present.0.{each}", axis=2)
        graph.output(f"present.0.{each}", ["batch", 1, "all", 8])
    mean = graph.op("ReduceMean", "present.0.key", axes=[2], keepdims=1)
    mean = graph.op("Add", graph.op("Squeeze", mean, graph.constant(np.int64([1]))),
                    graph.op("Gather", words, "input_ids"))
    graph.op("MatMul", mean, graph.op("Transpose", words, perm=[1, 0]), name="logits")
    graph.output("logits", ["batch", "sequence", 20])
    return graph.model(opset=17), graph.arrays["words"]


def test_rows_of_other_attention_go_one_by_one(tmp_path):
    made, words = concatenating()
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    generator = Generator(tmp_path / "m.onnx", threads=1)
    assert not generator.model.batches
    prompts = [[1, 2, 3], [4], [5, 6]]
    results = generator.generate(prompts, max_tokens=5)
    for prompt, result in zip(prompts, results):
        tokens = list(prompt)
        for _ in range(5):
            x = words[tokens].mean(0) + words[tokens[-1]]
            tokens.append(int(np.argmax(words @ x)))
        assert result.tokens == tokens[len(prompt):]


def test_what_was_compiled_is_found_again(tmp_path, monkeypatch):
    whole = next(path for path in heddle.library.candidates() if os.path.exists(path))
    monkeypatch.setenv("HEDDLE_LIBRARY", str(whole))  # as the command does
    folder = tiny.write(tmp_path / "m", "llama")
    monkeypatch.setattr(starts, "SETTLED", 0)
    monkeypatch.setattr(heddle.library, "has_own_ops", lambda: False)  # of tests before
    kept = {"cache": str(tmp_path / "cache"), "verify_stages": False}
    first = tokens_of(folder, **kept)
    write = network.write
    monkeypatch.setattr(network, "write", None)  # would fail
    assert tokens_of(folder, **kept) == first
    with pytest.raises(TypeError):
        tokens_of(folder, max_length=99, **kept)  # other tables
    monkeypatch.setattr(network, "write", write)
    store.save_file(tiny.weights("llama", seed=1), folder / "model.safetensors")
    assert tokens_of(folder, **kept) != first


def test_weights_may_be_f16_bf16_and_in_several_files(tmp_path):
    folder = tiny.write(tmp_path / "m", "qwen2")
    weights = tiny.weights("qwen2")
    wanted = {name: array.astype(np.float16) for name, array in weights.items()}
    names = sorted(weights)
    places = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(names)}
    for file in set(places.values()):
        store.save_file({name: wanted[name] for name in names if places[name] == file},
                        folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    read = safetensors.Safetensors(folder)
    assert len(read.files) == 2
    for name in names:
        np.testing.assert_array_equal(read.read(name), wanted[name].astype(np.float32))
    dtypes = pytest.importorskip("ml_dtypes")
    half = weights["model.norm.weight"].astype(dtypes.bfloat16)
    head = json.dumps({"x": {"dtype": "BF16", "shape": [32], "data_offsets": [0, 64]}}).encode()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "x.safetensors").write_bytes(
        len(head).to_bytes(8, "little") + head + half.tobytes())
    np.testing.assert_array_equal(safetensors.Safetensors(tmp_path / "one").read("x"),
                                  half.astype(np.float32))


def config(**more):
    return {**tiny.config("llama"), **more}


@pytest.mark.parametrize("settings, message", [
    ({"model_type": "lama"}, "'model_type' is 'lama'; supported: llama, .*did you mean 'llama'"),
    ({"model_type": None}, "'model_type' is None"),
    ({"num_hidden_layers": 0}, "'num_hidden_layers' is 0, but must be a number from 1 to 1000"),
    ({"hidden_size": "big"}, "'hidden_size' is 'big'"),
    ({"vocab_size": 1.5}, "'vocab_size' is 1.5"),
    ({"num_key_value_heads": 3}, "'num_key_value_heads' is 3, but must divide"),
    ({"hidden_act": "xielu"}, "'hidden_act' is 'xielu'; supported: silu"),
    ({"quantization_config": {"quant_method": "awq"}}, "weights are quantised by 'awq'"),
    ({"use_bidirectional_attention": True}, "'use_bidirectional_attention' is True; supported: F"),
    ({"rope_theta": 0}, "'rope_theta' is 0"),
    ({"rope_scaling": {"rope_type": "longrope"}}, "rope scaling is 'longrope'; supported: default"),
    ({"rope_scaling": {"rope_type": "linear"}}, "scaling 'linear' lacks a number"),
    ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "scaling 'linear' lacks .* division"),
    ({"layer_types": ["full_attention"], "sliding_window": 4}, "'layer_types' is .* a list of 2"),
    ({"rope_scaling": "yarn"}, "'rope_scaling' is 'yarn', but must be an object"),
    ({"head_dim": [8]}, r"'head_dim' is \[8\], but must be a number from 1 to 65536"),
    ({"layer_types": ["a", "b"], "sliding_window": 4}, "a layer of 'layer_types' is 'a'"),
    ({"vocab_size": 301}, r"'model.embed_tokens.weight' is \[300, 32\], but config.json says"),
    ({"intermediate_size": 49}, r"gate_proj.weight' is \[48, 32\], but config.json wants 49 rows"),
    ({"num_hidden_layers": 3}, "no tensor 'model.layers.2.input_layernorm.weight'"),
])
def test_a_wrong_config_is_refused(tmp_path, settings, message):
    folder = tiny.write(tmp_path / "m", "llama", settings=settings)
    with pytest.raises(heddle.RefusedError, match=message):
        Generator(folder, threads=1)


def test_rotations_of_transformers_5(tmp_path):
    """Numbers of rotations are in `rope_parameters` there, for each kind of layer or for all."""
    old = families.architecture(tiny.config("gemma3_text"), "here")
    given = tiny.config("gemma3_text")
    del given["rope_theta"], given["rope_local_base_freq"]
    given["rope_parameters"] = {"full_attention": {"rope_type": "default", "rope_theta": 1e4},
                                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}
    new = families.architecture(given, "here")
    for one, other in zip(old.ropes, new.ropes):
        np.testing.assert_array_equal(rope.tables(one, 9, "here"), rope.tables(other, 9, "here"))
    given = {**tiny.config("llama")}
    scaling = given.pop("rope_scaling")
    given["rope_parameters"] = {**scaling, "rope_theta": given.pop("rope_theta")}
    np.testing.assert_array_equal(
        rope.tables(families.architecture(given, "here").ropes[0], 9, "here"),
        rope.tables(families.architecture(tiny.config("llama"), "here").ropes[0], 9, "here"))


def test_linear_scaling_stretches_positions():
    plain, slow = (families.architecture(config(rope_scaling=scaling), "here").ropes[0]
                   for scaling in (None, {"type": "linear", "factor": 4.0}))
    np.testing.assert_allclose(rope.tables(slow, 33, "here")[0][::4],
                               rope.tables(plain, 9, "here")[0], atol=1e-6)


@pytest.mark.parametrize("change, message", [
    (lambda f: shutil.rmtree(f), "there is no such file or folder"),
    (lambda f: (f / "model.safetensors").unlink(), "has no model: neither model.onnx"),
    (lambda f: (f / "config.json").write_text("{"), "is no JSON"),
    (lambda f: (f / "config.json").write_text("[1]"), "is a list, but must be an object"),
    (lambda f: (f / "generation_config.json").write_text('{"eos_token_id": "x"}'),
     "tokens are 'x'"),
    (lambda f: (f / "model.safetensors").write_bytes(b"abc"),
     "no safetensors file: it has 3 bytes"),
    (lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 99), "no safetensors file, or not"),
    (lambda f: (f / "model.safetensors").write_bytes(
        (9).to_bytes(8, "little") + b"{'a': 1} " + bytes(9)), "the header is damaged"),
    (lambda f: (f / "model.safetensors").write_bytes(
        (f / "model.safetensors").read_bytes()[:-8]), "which does not fit"),
    (lambda f: (f / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "../b.safetensors"}}'), "names '../b.safetensors', which is not in"),
])
def test_a_folder_that_is_no_model_is_told(tmp_path, change, message):
    folder = tiny.write(tmp_path / "m", "llama")
    change(folder)
    with pytest.raises(heddle.Error, match=message):
        Generator(folder, threads=1)


def test_an_onnx_model_of_another_kind_is_refused(tmp_path):
    graph = Graph()
    graph.output(graph.op("Relu", graph.input("x", [4]), name="y"), [4])
    (tmp_path / "model.onnx").write_bytes(graph.model().SerializeToString())
    (tmp_path / "config.json").write_text('{"vocab_size": 4}')
    with pytest.raises(heddle.RefusedError, match="it lacks input_ids, attention_mask, logits, "
                       "past_key_values.0.key and it wants x"):
        Generator(tmp_path, threads=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'thread'"):
        Generator(tiny.write(tmp_path / "m", "llama"), thread=1)
    with pytest.raises(heddle.UsageError, match="'max_length' is 0"):
        Generator(tmp_path / "m", max_length=0)
    with pytest.raises(heddle.UsageError, match="'kv_cache' is no option .* 'max_length'"):
        Generator(tmp_path / "m", max_length=64, kv_cache=128)
    assert model.LONGEST == 4096
