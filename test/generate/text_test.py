"""Text token by token: whole characters, and stops that lie across tokens."""

import numpy as np
import pytest
from heddle.generate import Generator
from heddle.generate.text import BROKEN, Pieces, Words

import heddle
import tiny

pytest.importorskip("tokenizers")
TEXT = "a𝄞é€ abcd efgf—ß\n"


@pytest.fixture(scope="module")
def words():
    return Words(tiny.tokenizer(), "here", tiny.WORDS)


def pieces_of(words, tokens, stops=()):
    pieces = Pieces(words, stops)
    made = []
    for token in tokens:
        made.append(pieces.add(token))
        if pieces.stopped is not None:
            return made, pieces.stopped
    return [*made, pieces.finish()], None


def test_pieces_are_whole_characters(words):
    tokens = words.encode(TEXT)
    assert len(tokens) > len(TEXT)  # characters of several tokens, and tokens of two letters
    made, _ = pieces_of(words, tokens)
    assert "".join(made) == TEXT and BROKEN not in "".join(made)
    assert sum(map(bool, made)) >= 12  # none waits for the end


def test_broken_bytes_come_at_last(words):
    tokens = words.encode("a€")[:-1]
    assert pieces_of(words, tokens)[0] == ["a", "", "", BROKEN]
    wild = words.encode("ß")[:1] * 40
    made, _ = pieces_of(words, wild)
    assert "".join(made) == BROKEN * 40 and sum(map(bool, made)) >= 4
    mixed = [*words.encode("€")[:2], *words.encode("xy")]
    assert "".join(pieces_of(words, mixed)[0]).endswith("xy")


@pytest.mark.parametrize("stops, text, stopped", [
    (["d e"], "a𝄞é€ abc", "d e"), (["€ abcd efgf—ß"], "a𝄞é", "€ abcd efgf—ß"),
    (["efx", "cd efy", "fg"], "a𝄞é€ abcd e", "fg"), (["b", "ab"], "a𝄞é€ ", "ab"),
    (["\n"], TEXT[:-1], "\n"), (["a"], "", "a"), (["nowhere", "ß\n\n"], TEXT, None),
])
def test_a_stop_across_tokens_ends_the_text(words, stops, text, stopped):
    made, found = pieces_of(words, words.encode(TEXT), stops)
    assert ("".join(made), found) == (text, stopped)


def test_random_texts_are_cut_as_a_whole_one_is(words):
    random = np.random.default_rng(2)
    for _ in range(300):
        text = "".join(random.choice(list("ab€é "), 30))
        stop = "".join(random.choice(list("ab€é "), random.integers(1, 5)))
        made, found = pieces_of(words, words.encode(text), [stop])
        assert "".join(made) == text.split(stop)[0]
        assert (found is not None) == (stop in text)


def test_special_tokens_are_left_out(words):
    made, _ = pieces_of(words, [*words.encode("ab"), 2, *words.encode("cd")])
    assert "".join(made) == "abcd"


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    pytest.importorskip("safetensors")
    return Generator(tiny.write(tmp_path_factory.mktemp("models") / "m", "qwen2"), threads=1)


def forcing(generator, text):
    """A callback that makes the model say a text, and then end."""
    tokens = iter([*generator.tokenizer.encode(text), *[2] * 100])

    def force(logits):
        logits[:] = 0
        logits[next(tokens)] = 5
        return logits

    return force


def test_streams_and_results_agree(generator):
    settings = {"max_tokens": 100, "on_logits": forcing(generator, TEXT)}
    stream = generator.stream("hello", **settings)
    assert "".join(stream) == TEXT == stream.result.text == str(stream.result)
    assert stream.result.reason == "stop"
    made = generator.generate("hello", on_logits=forcing(generator, TEXT), stop=["—", "cd e"])
    assert (made.text, made.reason) == ("a𝄞é€ ab", "stop")
    made = generator.generate("hello", on_logits=forcing(generator, "a€"), max_tokens=2)
    assert (made.text, made.reason) == (f"a{BROKEN}", "length")
    made = generator.generate("hello", on_logits=forcing(generator, TEXT), max_tokens=40,
                              ignore_eos=True, logprobs=1)
    assert len(made.tokens) == len(made.logprobs) == 40 and made.reason == "length"


def test_a_stop_within_guessed_tokens_ends_the_text(generator):
    text = "abc abc abc abc abc stop abc"
    made = generator.generate(text, prompt_lookup=8, stop=["st"],
                              on_logits=forcing(generator, text), max_tokens=60)
    assert (made.text, made.reason) == ("abc abc abc abc abc ", "stop")
    assert made.stats["accepted_tokens"] > 3
    before = generator.tokens
    following = generator.step()
    other = Generator(generator.model)
    other.append(before)
    assert other.step() == following


def test_a_text_needs_a_tokenizer(tmp_path, generator):
    folder = tiny.write(tmp_path / "bare", "qwen2")
    (folder / "tokenizer.json").unlink()
    bare = Generator(folder, threads=1)
    assert bare.generate([5, 6], max_tokens=3, ignore_eos=True).text == ""
    for call in (lambda: bare.generate("a"), lambda: bare.generate([5], stop="a"),
                 lambda: bare.chat("a")):
        with pytest.raises(heddle.UsageError, match="has no tokenizer.json; give tokens instead"):
            call()


def test_a_tokenizer_of_another_model_is_told(tmp_path):
    folder = tiny.write(tmp_path / "other", "qwen2")
    made = tiny.tokenizer()
    made.add_tokens([f"more{i}" for i in range(20)])
    made.save(str(folder / "tokenizer.json"))
    with pytest.raises(heddle.RefusedError, match="tokenizer has 3.. tokens, but the model 300"):
        Generator(folder, threads=1).generate("a")
    (folder / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(heddle.RefusedError, match="is no tokenizer"):
        Generator(folder, threads=1).generate("a")
