"""A generator's text: in pieces, again, in batches, by guesses, and what it refuses."""

import json
import threading

import numpy as np
import pytest
from heddle.generate import Generator
from heddle.generate.generator import looked_up

import heddle
import tiny

pytestmark = pytest.mark.usefixtures("compiler")
pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")
random = np.random.default_rng(3)
PROMPT = random.integers(3, tiny.WORDS, 64).tolist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.write(tmp_path_factory.mktemp("models") / "mistral", "mistral")


@pytest.fixture(scope="module", params=["", "int8"])
def whole(folder, request):
    """A generator whose model the others share."""
    return Generator(folder, threads=1, kv_cache_type=request.param or None)


@pytest.fixture
def generator(whole):
    return Generator(whole.model)


def fresh(whole, prompt, **settings):
    return Generator(whole.model).generate(prompt, **{"max_tokens": 12, "ignore_eos": True,
                                                      **settings})


@pytest.mark.parametrize("piece", [1, 7, 64])
def test_a_prompt_in_pieces_is_the_same_prompt(whole, piece):
    made = Generator(whole.model, prefill=piece).generate(PROMPT, max_tokens=12, ignore_eos=True)
    assert made.tokens == fresh(whole, PROMPT).tokens and made.reason == "length"
    steps = Generator(whole.model)
    for at in range(0, 64, piece):
        steps.append(PROMPT[at:at + piece])
    assert [steps.step() for _ in range(12)] == made.tokens and steps.length == 76


@pytest.mark.parametrize("length", [1, 30, 63, 64])
def test_a_text_that_was_rewound_is_as_a_new_one(whole, generator, length):
    generator.append(PROMPT)
    for _ in range(5):
        generator.step()
    generator.rewind(length)
    assert generator.tokens == PROMPT[:length]
    other = PROMPT[::-1][:9]
    generator.append(other)
    made = [generator.step() for _ in range(8)]
    assert made == fresh(whole, PROMPT[:length] + other, max_tokens=8).tokens
    generator.rewind(length)
    np.testing.assert_allclose(generator.logits, _logits(whole, PROMPT[:length]), rtol=0,
                               atol=1e-5)


def _logits(whole, tokens):
    made = Generator(whole.model)
    made.append(tokens)
    return made.logits


def test_what_two_prompts_share_is_computed_once(whole, generator):
    settings = {"max_tokens": 6, "ignore_eos": True}
    first = generator.generate(PROMPT[:40], **settings)
    assert first.stats["reused_tokens"] == 0
    again = generator.generate(PROMPT[:40], **settings)
    assert again.tokens == first.tokens and again.stats["reused_tokens"] == 39
    longer = PROMPT[:40] + first.tokens + PROMPT[:5]
    made = generator.generate(longer, **settings)
    assert made.tokens == fresh(whole, longer, max_tokens=6).tokens
    assert made.stats["reused_tokens"] == 45  # all but the last token, which was never run
    made = generator.generate(PROMPT[:20] + PROMPT[50:], **settings)
    assert made.stats["reused_tokens"] == 20
    assert made.tokens == fresh(whole, PROMPT[:20] + PROMPT[50:], max_tokens=6).tokens


def test_a_text_that_the_model_ended_goes_on(whole, generator):
    token = fresh(whole, PROMPT).tokens[0]
    assert generator.generate(PROMPT, stop_ids=[token]).tokens == []
    longer = PROMPT + [token, 9, 8]
    stream = generator.stream(longer, max_tokens=6, ignore_eos=True)
    tokens = [piece.token for piece in stream.pieces]
    assert tokens == fresh(whole, longer, max_tokens=6).tokens
    assert generator.generate(PROMPT, stop_ids=[token]).tokens == []
    generator.append([token, 9, 8])
    np.testing.assert_allclose(generator.logits, _logits(whole, longer), rtol=0, atol=1e-5)
    assert generator.step() == tokens[0]


@pytest.mark.parametrize("settings", [
    {}, {"stop_ids": (38, 97)}, {"temperature": 0.8, "top_k": 20, "repetition_penalty": 1.2}])
def test_texts_beside_each_other_are_as_alone(whole, generator, settings):
    prompts = [PROMPT[:5], PROMPT[:40], PROMPT[7:8], PROMPT[3:64]]
    settings = {"seed": 4, **settings}
    made = generator.generate(prompts, max_tokens=12, ignore_eos=True, **settings)
    for row, (result, prompt) in enumerate(zip(made, prompts)):
        if settings.get("temperature") and row:
            continue  # draws other numbers, by its row
        assert result.tokens == fresh(whole, prompt, **settings).tokens
    lengths = [len(result.tokens) for result in made]
    assert lengths == [12] * 4 or len(set(lengths)) > 1


def test_learned_positions_and_full_attention_go_in_batches(tmp_path):
    whole = Generator(tiny.write(tmp_path / "gpt2", "gpt2"), threads=1)
    prompts = [PROMPT[:3], PROMPT[:33], PROMPT[9:21]]
    made = whole.generate(prompts, max_tokens=10, ignore_eos=True)
    assert [each.tokens for each in made] == [
        fresh(whole, prompt, max_tokens=10).tokens for prompt in prompts]


def test_guesses_change_no_token(whole):
    prompt = (PROMPT[:9] * 4)[:30]
    for settings in ({}, {"temperature": 0.7, "seed": 1}, {"stop_ids": (38, 97)}):
        plain = fresh(whole, prompt, max_tokens=60, **settings)
        for count in (1, 4, 16):
            generator = Generator(whole.model)
            made = generator.generate(prompt, max_tokens=60, ignore_eos=True, prompt_lookup=count,
                                      **settings)
            assert (made.tokens, made.reason) == (plain.tokens, plain.reason)
            assert generator.tokens == prompt + made.tokens
            # The text that is left goes on as a new one would.
            on = [generator.step() for _ in range(4)]
            assert on == fresh(whole, prompt + made.tokens, max_tokens=4).tokens


def test_right_guesses_are_counted(whole):
    forced = [20, 21, 22, 23]
    place = iter(range(1000))

    def only(logits):
        logits[:] = -np.inf
        logits[forced[next(place) % 4]] = 0
        return logits

    made = fresh(whole, forced * 3, max_tokens=32, on_logits=only, prompt_lookup=7)
    assert made.tokens == forced * 8
    assert made.stats["accepted_tokens"] == made.stats["guessed_tokens"] == 28


def test_the_longest_end_is_looked_up():
    assert looked_up([1, 2, 3, 9, 2, 3], 2) == [9, 2]
    assert looked_up([7, 3, 1, 8, 3, 2, 8, 3], 2) == [2, 8]
    assert looked_up([5, 3, 4, 5], 1) == [3] and looked_up([1, 2, 3], 4) == []
    assert looked_up([4, 5] * 5, 5) == [4, 5, 4, 5, 4]


def test_a_text_of_one_thread_only(generator):
    stream = generator.stream(PROMPT, max_tokens=8, ignore_eos=True)
    next(stream)
    errors = []

    def other():
        for call in (lambda: generator.append([5]), lambda: generator.generate(PROMPT),
                     lambda: generator.rewind(0), generator.step):
            try:
                call()
            except heddle.UsageError as error:
                errors.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(errors) == 4 and all("in use by another thread" in error for error in errors)
    stream.close()
    generator.append([5])


def test_threads_share_a_model(whole):
    made = [None] * 4

    def go(i):
        made[i] = fresh(whole, PROMPT[i:i + 20]).tokens

    threads = [threading.Thread(target=go, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [fresh(whole, PROMPT[i:i + 20]).tokens for i in range(4)]


def test_an_interrupt_leaves_no_text(generator):
    def stop(logits):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generator.generate(PROMPT, on_logits=stop)
    assert generator.length == 0
    assert generator.generate(PROMPT, max_tokens=1).stats["reused_tokens"] == 0


def test_the_longest_text_is_full(folder, whole):
    generator = Generator(folder, max_length=70, threads=1)
    made = generator.generate(PROMPT, max_tokens=100, ignore_eos=True)
    assert made.tokens == fresh(whole, PROMPT, max_tokens=6).tokens and made.reason == "length"
    with pytest.raises(heddle.UsageError, match="the text has 70 tokens, as many as .* takes"):
        generator.step()
    with pytest.raises(heddle.UsageError, match="the prompt has 71 tokens, but .* takes 70"):
        generator.append([4])
    with pytest.raises(heddle.UsageError, match="the prompt has 71 tokens, but .* takes 70"):
        generator.generate(PROMPT + PROMPT[:7])
    assert generator.generate((PROMPT * 2)[:70]).reason == "length"
    with pytest.raises(heddle.UsageError, match="'max_length' is 257, but .* sees 256 tokens"):
        Generator(folder, max_length=257)


@pytest.mark.parametrize("prompt, message", [
    ([], "the prompt is empty"), ("", "the prompt is empty"),
    ([5, 300], "token 300 of the prompt is none of the model's: .* tokens from 0 to 299"),
    ([-1], "token -1 of the prompt"), ([1.5], "a prompt must be a text, or a list of tokens"),
    (7, "a prompt must be a text"), ("\ud800", "cannot encode the text"),
])
def test_a_bad_prompt_is_told(generator, prompt, message):
    with pytest.raises(heddle.UsageError, match=message):
        generator.generate(prompt)
    assert generator.length == 0


@pytest.mark.parametrize("settings, message", [
    ({"stop": ""}, "'stop' has '', but must be a text that is not empty"),
    ({"stop": ["a", 3]}, "'stop' has 3"),
    ({"temperature": float("nan")}, "'temperature' is nan, but must be a number from 0 to 100"),
    ({"temperature": -1}, "'temperature' is -1"),
    ({"temperature": "hot"}, "'temperature' is 'hot'"),
    ({"top_p": 0}, "'top_p' is 0, but must be a number above 0 and at most 1"),
    ({"min_p": 1.5}, "'min_p' is 1.5"), ({"top_k": -1}, "'top_k' is -1, but must be an integer"),
    ({"repetition_penalty": 0}, "'repetition_penalty' is 0, but must be a number above 0"),
    ({"max_tokens": 1.5}, "'max_tokens' is 1.5"), ({"seed": -1}, "'seed' is -1"),
    ({"logit_bias": {400: 1}}, "'logit_bias' has token 400, but the model has 300"),
    ({"logit_bias": [1]}, "'logit_bias' is a list"),
    ({"logit_bias": {5: float("nan")}}, "'logit_bias' is nan"),
    ({"stop_ids": [999]}, "'stop_ids' has token 999"), ({"on_logits": 3}, "'on_logits' must be a"),
    ({"prompt_lookup": 65}, "'prompt_lookup' is 65"), ({"logprobs": True}, "'logprobs' is True"),
    ({"temprature": 1}, "no setting 'temprature'; did you mean 'temperature'"),
])
def test_a_bad_setting_is_told(generator, settings, message):
    with pytest.raises(heddle.UsageError, match=message):
        generator.generate([5], **settings)


def test_nan_says_which_step(tmp_path):
    weights = tiny.weights("llama")
    weights["model.embed_tokens.weight"][77] = np.nan
    folder = tiny.write(tmp_path / "nan", "llama")
    from safetensors.numpy import save_file

    save_file(weights, folder / "model.safetensors")
    generator = Generator(folder, threads=1)
    with pytest.raises(heddle.Error, match="step 3: the logits hold NaN or infinity"):
        generator.generate([5, 6], on_logits=lambda logits: np.eye(tiny.WORDS)[
            77 if generator.length == 3 else 8], ignore_eos=True)


@pytest.fixture(scope="module")
def fast(whole, tmp_path_factory):
    """Generators with drafts: the model itself, and one of other weights."""
    other = tiny.write(tmp_path_factory.mktemp("models") / "draft", "llama", seed=5)
    return {name: Generator(whole.model, draft=draft, draft_tokens=3, prefill=16)
            for name, draft in (("same", whole.model), ("other", other))}


@pytest.mark.parametrize("name", ["same", "other"])
@pytest.mark.parametrize("settings", [
    {}, {"temperature": 0.8, "seed": 2}, {"stop_ids": (38, 97)}, {"prompt_lookup": 2},
    {"temperature": 1.2, "seed": 9, "top_p": 0.9, "repetition_penalty": 1.2}])
def test_a_draft_changes_no_token(whole, fast, name, settings):
    for prompt in (PROMPT[:30], PROMPT[:5], PROMPT[:30] + PROMPT[:9], PROMPT[:1]):
        plain = fresh(whole, prompt, max_tokens=40, **settings)
        made = fast[name].generate(prompt, max_tokens=40, ignore_eos=True, **settings)
        assert (made.tokens, made.reason) == (plain.tokens, plain.reason)
        assert made.stats["guessed_tokens"] > 0 or len(plain.tokens) < 3
        if name == "same" and not settings:
            assert made.stats["accepted_tokens"] == made.stats["guessed_tokens"] >= 29
        on = [fast[name].step() for _ in range(3)]
        assert on == fresh(whole, prompt + made.tokens, max_tokens=3).tokens


def test_a_draft_sees_as_far_as_it_can(whole, folder):
    generator = Generator(whole.model, draft=Generator(folder, threads=1, max_length=40).model)
    made = generator.generate(PROMPT[:30], max_tokens=30, ignore_eos=True)
    assert made.tokens == fresh(whole, PROMPT[:30], max_tokens=30).tokens
    assert 0 < made.stats["guessed_tokens"] <= 10


def test_a_draft_of_other_tokens_is_refused(whole, folder, tmp_path):
    other = tiny.write(tmp_path / "other", "llama")
    whole_words = json.loads((other / "tokenizer.json").read_text())
    words = whole_words["model"]["vocab"]
    words["a"], words["b"] = words["b"], words["a"]
    (other / "tokenizer.json").write_text(json.dumps(whole_words))
    with pytest.raises(heddle.UsageError, match="whose tokens are not those of .*'a' has number"):
        Generator(whole.model, draft=other)
    pair = pytest.importorskip("tiny_pairs").write(tmp_path / "t5", "t5")
    with pytest.raises(heddle.UsageError, match="encoder-decoders neither have drafts"):
        Generator(whole.model, draft=pair)
    for count in (0, 65, "x"):
        with pytest.raises(heddle.UsageError, match="'draft_tokens' is"):
            Generator(whole.model, draft=folder, draft_tokens=count)
