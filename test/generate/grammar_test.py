"""Texts that a grammar allows."""

import json
import re

import pytest
from heddle.generate import Generator
from heddle.generate.sample import Settings
from heddle.serve import Engine

import heddle
import tiny
import tiny_pairs

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers", "llguidance"):
    pytest.importorskip(package)
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["name", "ages"],
          "properties": {"name": {"enum": ["cat", "dog", "f\u00fcr"]}, "ages": {
              "type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99},
              "minItems": 1, "maxItems": 3}}}
LARK = 'start: "a" ("b" | "c"){2,5} END\nEND: /[0-9]{2}/'


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return Generator(tiny.write(tmp_path_factory.mktemp("models") / "m", "qwen2"), threads=1)


def texts(whole, grammar, **settings):
    """Results of a seed and of none, with and without guesses: these change nothing."""
    for seed in range(6):
        chosen = {"temperature": 1.5 if seed else 0, "seed": seed, "max_tokens": 200, **settings}
        made = Generator(whole.model).generate("hello", grammar=grammar, **chosen)
        again = Generator(whole.model).generate("hello", grammar=grammar, prompt_lookup=6, **chosen)
        assert again.tokens == made.tokens and again.reason == made.reason
        yield made


def test_a_schema_holds(whole):
    found = set()
    for form in (SCHEMA, json.dumps(SCHEMA)):
        for made in texts(whole, {"json_schema": form}):
            value = json.loads(made.text)
            assert made.reason == "stop" and set(value) == {"name", "ages"}
            assert value["name"] in ("cat", "dog", "f\u00fcr") and 1 <= len(value["ages"]) <= 3
            assert all(isinstance(age, int) and 0 <= age <= 99 for age in value["ages"])
            found.add(made.text)
    assert len(found) > 3


def test_expressions_grammars_and_json_hold(whole):
    for made in texts(whole, {"regex": "(ab|[0-9]{3})-x"}):
        assert re.fullmatch("(ab|[0-9]{3})-x", made.text) and made.reason == "stop"
    for made in texts(whole, {"lark": LARK}):
        assert re.fullmatch("a[bc]{2,5}[0-9]{2}", made.text)
    for made in texts(whole, "json", max_tokens=120, logit_bias={}):
        assert made.text.lstrip().startswith("{")
        if made.reason == "stop":
            assert isinstance(json.loads(made.text), dict)


def test_ends_are_the_models_or_the_grammars(whole):
    """The model ends a text that may go on, or the limit of tokens does."""
    made = Generator(whole.model).generate("a", grammar={"regex": "[ab]*"}, max_tokens=9,
                                           logit_bias={2: 1e6})
    assert made.reason == "stop" and made.text == ""
    made = Generator(whole.model).generate("a", grammar={"regex": "[ab]{50}"}, max_tokens=9)
    assert made.reason == "length" and re.fullmatch("[ab]+", made.text)


def test_rows_have_places_of_their_own(whole):
    prompts = ["a", "hello", "xyz", "q"]
    settings = {"grammar": {"json_schema": SCHEMA}, "max_tokens": 100}
    alone = [Generator(whole.model).generate(each, **settings).text for each in prompts]
    assert [each.text for each in whole.generate(prompts, **settings)] == alone


def test_the_other_half_of_a_pair_is_held_too(tmp_path):
    generator = Generator(tiny_pairs.write(tmp_path / "m", "flan"), threads=1)
    made = generator.generate("hello", grammar={"json_schema": SCHEMA}, max_tokens=250)
    assert json.loads(made.text)["name"] in ("cat", "dog", "f\u00fcr")


@pytest.mark.parametrize("given, message", [
    ("xml", "'grammar' must be 'json', .* not 'xml'"), ({}, "'grammar' must be"),
    ({"regex": "a", "lark": "b"}, "'grammar' must be"), ({"gbnf": "a"}, "'grammar' must be"),
    ({"regex": 3}, "'grammar' must be"), ({"lark": {}}, "'grammar' must be"),
    ({"regex": "(("}, "is no regex that is supported: .*unclosed group"),
    ({"lark": "start: x"}, "is no lark that is supported"),
    ({"json_schema": "{"}, "is no json_schema"),
    ({"json_schema": {"type": "strange"}}, "no json_schema that is supported: Invalid type: stra"),
    ({"json_schema": {"not": {}}}, "is no json_schema that is supported: Unimplemented keys"),
    ({"json_schema": {"enum": [object]}}, "is no json_schema"),
])
def test_a_grammar_that_is_none_is_told(whole, given, message):
    with pytest.raises(heddle.UsageError, match=f"(?s){message}"):
        whole.generate("a", grammar=given)


def test_contradictions_limits_and_steps_are_told(whole):
    banned = dict.fromkeys(range(tiny.WORDS), -float("inf"))
    with pytest.raises(heddle.UsageError, match="'logit_bias' and 'grammar' leave no token"):
        whole.generate("a", grammar={"regex": "abc"}, logit_bias={**banned, 3: 0})
    with pytest.raises(heddle.UsageError, match="'grammar' is of a whole text"):
        whole.append("a")
        whole.step(grammar="json")
    with pytest.raises(heddle.Error, match="'grammar' goes over a limit"):  # it has no end
        whole.generate("a", grammar={"lark": 'start: "a" start'})


def test_the_package_may_be_missing(whole, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "llguidance", None)
    with pytest.raises(heddle.UsageError, match="the setting 'grammar' needs the Python package "
                       "'llguidance', of the extra 'grammar'"):
        whole.generate("a", grammar="json")


def test_one_text_may_fail_beside_others(whole):
    """A grammar that is refused takes no place of the engine."""
    engine = Engine(whole.model, 2)
    with pytest.raises(heddle.UsageError, match="is no regex"):
        engine.submit([[5], [6]], Settings(grammar={"regex": "(("}))
    ticket, = engine.submit([[5]], Settings(grammar={"regex": "ab"}))
    while ticket.events.get(timeout=60).reason is None:
        pass
    assert ticket.text.result.text == "ab"
    engine.end()
