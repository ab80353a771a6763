"""Vectors of texts: those of a reference in NumPy, by each pooling, in batches, from all files."""

import json

import numpy as np
import pytest
from heddle.generate import Embedder, embed, network, safetensors
from heddle.onnx_graph import FLOAT, INT64, Graph

import heddle
import tiny
from small_encoders import PLACES, WIDTH, WORDS, config, reference, write

pytestmark = pytest.mark.usefixtures("compiler")
pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")
RANDOM = np.random.default_rng(4)
LISTS = [RANDOM.integers(3, WORDS, n).tolist() for n in (5, 40, 1, 17, 9, 40, 2)]


def unit(x):
    return x / np.linalg.norm(x)


@pytest.mark.parametrize("family", embed.FAMILIES)
def test_vectors_are_those_of_the_reference(tmp_path, family):
    embedder = Embedder(write(tmp_path / "m", family), threads=1)
    wanted = [reference(family, each).mean(0) for each in LISTS]
    for batch in (1, 3, 32):  # rows of a batch differ in length
        made = embedder.embed(LISTS, batch=batch)
        assert made.shape == (len(LISTS), WIDTH) == (len(LISTS), embedder.size)
        np.testing.assert_allclose(made, wanted, atol=2e-6)
    assert embedder.embed([]).shape == (0, WIDTH)
    tokens = embedder.tokenizer.encode("hello")
    np.testing.assert_array_equal(embedder.embed("hello"), embedder.embed([tokens])[0])


@pytest.mark.parametrize("modules, pooling, what", [
    (["Transformer", "Pooling"], {"pooling_mode_cls_token": True}, lambda x: x[0]),
    (["Transformer", "Pooling"], {"pooling_mode": "max"}, lambda x: x.max(0)),
    (["Transformer", "Pooling", "Normalize"], {"pooling_mode_mean_tokens": True},
     lambda x: unit(x.mean(0))),
])
def test_the_folder_says_what_is_made_of_tokens(tmp_path, modules, pooling, what):
    embedder = Embedder(write(tmp_path / "m", modules=modules, pooling=pooling), threads=1)
    np.testing.assert_allclose(embedder.embed(LISTS),
                               [what(reference("bert", each)) for each in LISTS], atol=2e-6)


def test_prompts_letters_and_lengths(tmp_path):
    folder = write(tmp_path / "m", modules=["Transformer", "Pooling"],
                   sentence_bert_config={"max_seq_length": 12, "do_lower_case": True},
                   config_sentence_transformers={"prompts": {"query": "ab: ", "none": ""},
                                                 "default_prompt_name": "query"})
    embedder = Embedder(folder, threads=1)
    tokens = tiny.tokenizer().encode("ab: abc").ids
    assert embedder.tokens("aBC") == tokens == embedder.tokens("abc", prompt="query")
    assert embedder.tokens("abc", prompt="none") == tiny.tokenizer().encode("abc").ids
    np.testing.assert_allclose(embedder.embed("ABC"), reference("bert", tokens).mean(0), atol=2e-6)
    with pytest.raises(heddle.UsageError, match="has 24 tokens, but .* takes 12; 'trunc"):
        embedder.embed("x" * 21)
    assert embedder.tokens("x" * 21, truncate=True) == tiny.tokenizer().encode(
        "ab: " + "x" * 21).ids[:12]
    for prompt, message in (("passage", "no prompt 'passage'; .* has: query, none"),
                            (["query"], r"no prompt \['query'\]")):
        with pytest.raises(heddle.UsageError, match=message):
            embedder.embed("abc", prompt=prompt)


def test_the_newer_form_of_folders(tmp_path):
    """Files as sentence-transformers 6 writes them."""
    folder = write(tmp_path / "m", modules=["Transformer", "Pooling", "Normalize"],
                   pooling={"embedding_dimension": 32, "pooling_mode": "cls",
                            "include_prompt": True},
                   tokenizer_config={"model_max_length": 30})
    modules = json.loads((folder / "modules.json").read_text())
    for module, kind in zip(modules, ("base.modules.transformer.Transformer",
                                      "sentence_transformer.modules.pooling.Pooling",
                                      "base.modules.normalize.Normalize")):
        module["type"] = f"sentence_transformers.{kind}"
    (folder / "modules.json").write_text(json.dumps(modules))
    embedder = Embedder(folder, threads=1)
    assert embedder.facts.context == 30
    np.testing.assert_allclose(embedder.embed(LISTS[:1]), [unit(reference("bert", LISTS[0])[0])],
                               atol=2e-6)


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx"])
def test_onnx_folders(tmp_path, place):
    source = write(tmp_path / "a")
    folder = write(tmp_path / "b")
    (folder / "model.safetensors").unlink()
    (folder / place).parent.mkdir(exist_ok=True)
    network.write(embed.sizes(config("bert"), "here"), safetensors.Safetensors(source),
                  folder / place, PLACES, embed.Writer)
    made = Embedder(folder, threads=1).embed(LISTS)
    np.testing.assert_allclose(made, Embedder(source, threads=1).embed(LISTS), atol=1e-6)


def test_models_that_pool_themselves(tmp_path):
    graph = Graph(seed=2)
    graph.input("input_ids", ["batch", "n"], INT64)
    graph.input("token_type_ids", ["batch", "n"], INT64)
    words = graph.weight(WORDS, 6, name="words")
    tokens = graph.op("Gather", words, graph.op("Add", "input_ids", "token_type_ids"))
    graph.output(graph.op("Identity", tokens, name="token_embeddings"), ["batch", "n", 6])
    graph.op("ReduceMax", tokens, name="sentence_embedding", axes=[1], keepdims=0)
    graph.output("sentence_embedding", ["batch", 6], FLOAT)
    (tmp_path / "model.onnx").write_bytes(graph.model().SerializeToString())
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": WORDS}))
    embedder = Embedder(tmp_path, threads=1)
    lists = [[5, 6], [7], [7, 8], [9, 5, 6], [4]]  # without a mask nothing may be padded
    table = graph.arrays["words"]
    np.testing.assert_array_equal(embedder.embed(lists), [table[each].max(0) for each in lists])
    with pytest.raises(heddle.UsageError, match="has no tokenizer.json"):
        embedder.embed("abc")


@pytest.mark.parametrize("texts, message", [
    ([[5, WORDS]], "token 300 is none of the model's"), ([[-1]], "token -1 is none"),
    ([[]], "the text is empty"), ("", "the text is empty"), ([[5] * 41], "has 41 tokens, but"),
    ([3], "a text must be a str, or a list of tokens"), ([["a"]], "a text must be a str"),
])
def test_bad_texts_are_told(tmp_path, texts, message):
    embedder = Embedder(write(tmp_path / "m"), threads=1)
    with pytest.raises(heddle.UsageError, match=message):
        embedder.embed(texts)
    with pytest.raises(heddle.UsageError, match="'batch' is 0"):
        embedder.embed([[5]], batch=0)


@pytest.mark.parametrize("files, message", [
    ({"config": {**config("bert"), "model_type": "mpnet"}}, "'model_type' is 'mpnet'; support"),
    ({"config": {**config("bert"), "position_embedding_type": "relative_key"}}, "'relative_key'"),
    ({"config": {**config("bert"), "num_attention_heads": 5}}, "'num_attention_heads' is 5"),
    ({"config": {**config("bert"), "vocab_size": 301}}, r"is \[300, 32\], but config.json says"),
    ({"config_sentence_transformers": {"prompts": {"a": 1}}}, "'prompts' must be an object of"),
    ({"config_sentence_transformers": {"default_prompt_name": "a"}}, "a name among them"),
    ({"modules": ["Transformer", "Pooling", "Dense"]}, "has a module 'Dense'"),
    ({"modules": ["Transformer", "Pooling"], "pooling": {"pooling_mode_lasttoken": True}},
     "the pooling is pooling_mode_lasttoken; supported: one of cls, mean, max"),
    ({"modules": ["Transformer", "Pooling"], "pooling": {
        "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}}, "pooling is cls, mean"),
])
def test_a_wrong_folder_is_refused(tmp_path, files, message):
    with pytest.raises(heddle.RefusedError, match=message):
        Embedder(write(tmp_path / "m", **files), threads=1)


def test_another_onnx_model_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": WORDS}))
    for name, output, message in (("x", "y", "is no encoder of texts: it takes x"),
                                  ("input_ids", "y", r"gives y \['b', 4\], none of which is")):
        graph = Graph()
        graph.output(graph.op("Relu", graph.input(name, ["b", 4]), name=output), ["b", 4])
        (tmp_path / "model.onnx").write_bytes(graph.model().SerializeToString())
        with pytest.raises(heddle.RefusedError, match=message):
            Embedder(tmp_path)


def test_other_places_are_told(tmp_path):
    with pytest.raises(heddle.UsageError, match="there is no such folder"):
        Embedder(tmp_path / "m")
    folder = write(tmp_path / "m", modules=["Transformer", "Pooling"])
    modules = json.loads((folder / "modules.json").read_text())
    for place in ("../m/1_Pooling", "/"):
        modules[1]["path"] = place
        (folder / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(heddle.RefusedError, match="in folders beside it"):
            Embedder(folder)
    (folder / "modules.json").unlink()
    (folder / "model.safetensors").unlink()
    with pytest.raises(heddle.UsageError, match="neither model.onnx nor"):
        Embedder(folder)
    with pytest.raises(heddle.UsageError, match="'max_length' is 99, but .* sees 40 tokens"):
        Embedder(write(tmp_path / "n"), max_length=99)
