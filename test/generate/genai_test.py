"""Programs for onnxruntime-genai, over heddle.onnxruntime_genai."""

import json

import numpy as np
import pytest
from heddle import generate
from heddle import onnxruntime_genai as og

import heddle
import tiny

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers", "jinja2"):
    pytest.importorskip(package)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return og.Model(tiny.write(tmp_path_factory.mktemp("models") / "m", "qwen3"), threads=1)


def made(model, prompt="hello abcd", **options):
    params = og.GeneratorParams(model)
    params.set_search_options(**{"max_length": 30, **options})
    generator = og.Generator(model, params)
    generator.append_tokens(og.Tokenizer(model).encode(prompt))
    return generator


def wanted(model, prompt="hello abcd", **settings):
    return generate.Generator(model._model).generate(prompt, max_tokens=30, ignore_eos=True,
                                                     **settings).tokens


def test_the_usual_loop(model):
    generator, tokenizer = made(model), og.Tokenizer(model)
    stream, text, count = tokenizer.create_stream(), "", generator.token_count()
    while not generator.is_done():
        generator.generate_next_token()
        text += stream.decode(generator.get_next_tokens()[0])
    tokens = generator.get_sequence(0)
    assert tokens.dtype == np.int32 and len(tokens) == 30 == generator.token_count()
    assert tokens[count:].tolist() == wanted(model)[:30 - count]
    assert tokenizer.decode(tokens[count:]).startswith(text)
    with pytest.raises(heddle.UsageError, match="the text is done"):
        generator.generate_next_token()
    generator.rewind_to(count)
    assert not generator.is_done() and generator.get_logits().shape == (1, 1, tiny.WORDS)
    generator.generate_next_token()
    assert generator.get_sequence(0)[-1] == tokens[count]


def test_sampling_and_ends(model):
    settings = {"temperature": 0.8, "top_k": 20, "top_p": 0.9}
    generator = made(model, do_sample=True, random_seed=5, **settings)
    for _ in range(6):
        generator.generate_next_token()
    assert generator.get_sequence(0)[-6:].tolist() == wanted(model, seed=5, **settings)[:6]
    token = wanted(model)[2]
    model._model.facts.eos, kept = (token,), model._model.facts.eos
    try:
        generator = made(model)
        while not generator.is_done():
            generator.generate_next_token()
        assert generator.get_sequence(0)[-1] == token and og.Tokenizer(model).eos_token_ids == [
            token]
        later = made(model, min_length=30)
        while not later.is_done():
            later.generate_next_token()
        assert later.token_count() == 30 and token not in later.get_sequence(0)[10:]
    finally:
        model._model.facts.eos = kept


def test_templates_and_words(model):
    tokenizer = og.Tokenizer(model)
    messages = [{"role": "user", "content": "hi"}]
    for given in (messages, json.dumps(messages)):
        assert tokenizer.apply_chat_template(given) == "<user>hi\n<assistant>"
    assert tokenizer.apply_chat_template(messages, add_generation_prompt=False) == "<user>hi\n"
    assert tokenizer.apply_chat_template(messages, template_str="{{ tools }}", tools="[1]") == "[1]"
    assert tokenizer.to_token_id("</s>") == 2 and tokenizer.bos_token_id == 1
    generator = og.Generator(model, og.GeneratorParams(model))
    generator.append("ab")
    generator.append("cd")
    assert tokenizer.decode(generator.get_sequence(0)) == "abcd"


def test_refusals(model):
    with pytest.raises(heddle.UsageError, match="'num_beams' is 4, but only 1 is supported"):
        made(model, num_beams=4)
    with pytest.raises(heddle.UsageError, match="no option 'max_len'; known: max_length"):
        made(model, max_len=4)
    with pytest.raises(heddle.UsageError, match="'max_length' is 999, but must be an integer"):
        made(model, max_length=999)
    generator = made(model, max_length=12)
    with pytest.raises(heddle.UsageError, match="would have 18 tokens, but 'max_length' is 12"):
        generator.append_tokens([5] * (18 - generator.token_count()))
    with pytest.raises(heddle.UsageError, match=r"shape \[2, 2\], but must be those of one text"):
        generator.append_tokens([[5, 6], [7, 8]])
    with pytest.raises(heddle.UsageError, match="no sequence 1"):
        generator.get_sequence(1)
    with pytest.raises(heddle.UsageError, match="messages are no JSON"):
        og.Tokenizer(model).apply_chat_template("hi")
