"""Encoder-decoders: tokens are those of a reference in NumPy, one by one and beside each other."""

import json
import os
import subprocess
import wave

import numpy as np
import pytest
from heddle import starts
from heddle.generate import Generator, audio, network
from heddle.generate.sample import Settings
from heddle.serve import Engine

import heddle
import tiny_pairs
from families_test import PEERS
from tiny_pairs import EAR

pytestmark = pytest.mark.usefixtures("compiler")
pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")
RANDOM = np.random.default_rng(6)
SOURCE = RANDOM.integers(3, tiny_pairs.WORDS, 150).tolist()
SOUND = (RANDOM.standard_normal(9000) * 0.3).astype(np.float32)
COUNT = 14
LANGUAGES = {"lang_to_id": {"<|en|>": 20, "<|de|>": 21, "<|fr|>": 22},
             "task_to_id": {"transcribe": 30, "translate": 31}, "no_timestamps_token_id": 33}


def mels(sound):
    return audio.log_mel(sound, audio.Ear(**EAR)).astype(np.float64)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Generators by name, made once."""
    kept, place = {}, tmp_path_factory.mktemp("models")

    def get(name):
        if name not in kept:
            kept[name] = Generator(tiny_pairs.write(place / name, name), threads=1)
        return Generator(kept[name].model)

    return get


@pytest.mark.parametrize("name", tiny_pairs.CONFIGS)
def test_tokens_are_those_of_the_reference(made, name):
    generator, is_whisper = made(name), name == "whisper"
    begin = [tiny_pairs.CONFIGS[name]["decoder_start_token_id"]]
    sources = [SOUND, SOUND[:1], SOUND[:4000]] if is_whisper else [SOURCE, SOURCE[:1], SOURCE[:23]]
    wanted = [tiny_pairs.greedy(name, mels(each) if is_whisper else each, begin, COUNT)
              for each in sources]
    assert len(set(wanted[0])) > 2 and wanted[0] != wanted[2]
    settings = {"max_tokens": COUNT, "ignore_eos": True}
    assert [generator.generate(each, **settings).tokens for each in sources] == wanted
    assert [each.tokens for each in generator.generate(sources, **settings)] == wanted
    generator.generate(sources[0], **settings)
    generator.rewind(1)
    right = tiny_pairs.logits(name, mels(SOUND) if is_whisper else SOURCE, begin)
    assert np.abs(generator.logits - right).max() < 1e-5 * np.abs(right).max()
    generator.append(wanted[0][:5])  # goes on with the same source
    assert [generator.step() for _ in range(COUNT - 5)] == wanted[0][5:]


PROGRAM = """
import sys, json, numpy, torch
library = torch.library.Library("torchvision", "DEF")  # its package may not load beside torch's
for name in ("nms", "qnms"):
    library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
from transformers import (AutoModelForSeq2SeqLM, WhisperFeatureExtractor,
                          WhisperForConditionalGeneration)
source, sound, count, *folders = json.loads(sys.argv[1])
for folder in folders:
    hears = folder.endswith("whisper")
    kind = WhisperForConditionalGeneration if hears else AutoModelForSeq2SeqLM
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    if hears:
        samples, ear = numpy.float32(sound), WhisperFeatureExtractor.from_pretrained(folder)
        whole = numpy.zeros(ear.n_samples, numpy.float32)
        whole[:len(samples)] = samples
        mels = ear._np_extract_fbank_features([whole], "cpu")
        print(json.dumps(mels[0].tobytes().hex()), flush=True)
        given = {"input_features": torch.from_numpy(mels)}
    else:
        given = {"input_ids": torch.tensor([source])}
    tokens = [model.config.decoder_start_token_id]
    for _ in range(count):
        logits = model(**given, decoder_input_ids=torch.tensor([tokens]), use_cache=False).logits
        tokens.append(int(logits[0, -1].argmax()))
    print(json.dumps(tokens[1:]), flush=True)
"""


@pytest.mark.skipif(not PEERS.exists() or not list(
    PEERS.parents[1].glob("lib/python*/site-packages/transformers")),
    reason="build/peers has no transformers; `./dev bench peers` installs it")
def test_the_reference_is_that_of_transformers(tmp_path):
    names = [*(name for name in tiny_pairs.CONFIGS if name != "whisper"), "whisper"]
    folders = [str(tiny_pairs.write(tmp_path / name, name)) for name in names]
    given = json.dumps([SOURCE[:40], SOUND[:2000].tolist(), COUNT, *folders])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    done = subprocess.run([PEERS, "-c", PROGRAM, given], capture_output=True, text=True,
                          check=False, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    *lines, heard, tokens = map(json.loads, done.stdout.splitlines())
    for name, line in zip(names, lines, strict=False):
        assert line == tiny_pairs.greedy(name, SOURCE[:40], [0], COUNT), name
    exact = audio.log_mel(SOUND[:2000], audio.Ear(**EAR))
    assert heard == exact.tobytes().hex()  # to the last bit
    assert tokens == tiny_pairs.greedy("whisper", mels(SOUND[:2000]), [1], COUNT)


def test_guesses_and_seeds_are_as_those_of_decoders(made):
    generator = made("flan")
    for settings in ({}, {"temperature": 0.8, "seed": 3}, {"repetition_penalty": 1.3}):
        settings = {"max_tokens": 30, "ignore_eos": True, **settings}
        plain = generator.generate(SOURCE, **settings)
        assert plain.stats["prompt_tokens"] == len(SOURCE) + 1
        assert generator.generate(SOURCE, prompt_lookup=5, **settings).tokens == plain.tokens
    text = generator.generate("hello", max_tokens=4)
    assert text.tokens == generator.generate(generator.tokenizer.encode("hello"),
                                             max_tokens=4).tokens


def test_whisper_finds_the_language_and_leaves_out_tokens(tmp_path):
    never = {"suppress_tokens": [40, 41], "begin_suppress_tokens": [2, 50]}
    folder = tiny_pairs.write(tmp_path / "m", "whisper", generation={**LANGUAGES, **never})
    generator = Generator(folder, threads=1)
    first = tiny_pairs.logits("whisper", mels(SOUND), [1])
    found = max(LANGUAGES["lang_to_id"].values(), key=lambda token: first[token])
    settings = {"max_tokens": 8, "ignore_eos": True}
    for options, begin in (({}, [1, found, 30, 33]), ({"language": "de"}, [1, 21, 30, 33]),
                           ({"language": "fr", "task": "translate"}, [1, 22, 31, 33])):
        tokens = list(begin)
        for step in range(8):
            scores = tiny_pairs.logits("whisper", mels(SOUND), tokens)
            scores[[40, 41, *([2, 50] if step == 0 else [])]] = -np.inf
            tokens.append(int(np.argmax(scores)))
        assert generator.generate(SOUND, **settings, **options).tokens == tokens[4:]
        assert generator.tokens == tokens
        pair = generator.generate([SOUND, SOUND[:50]], **settings, **options)
        assert pair[0].tokens == tokens[4:]
    with pytest.raises(heddle.UsageError, match="'language' is 'english', but the model knows: en"):
        generator.generate(SOUND, language="english")
    with pytest.raises(heddle.UsageError, match=r"'language' is \['en'\], but the model knows"):
        generator.generate(SOUND, language=["en"])
    with pytest.raises(heddle.UsageError, match="'task' is 'transcrib'.*did you mean 'transcribe'"):
        generator.generate(SOUND, task="transcrib")


def write_wav(path, samples, width=2, channels=1, rate=16000):
    """A file of integers, and the samples that are in it."""
    most = (1 << (8 * width - 1)) - 1
    whole = np.clip(np.round(samples.astype(np.float64) * most), -most - 1, most).astype(np.int64)
    raw = (whole + 128 * (width == 1)).astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(raw.tobytes())
    return (whole / (most + 1)).astype(np.float32)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wav_files_are_heard(made, tmp_path, width):
    inside = write_wav(tmp_path / "a.wav", SOUND, width)
    np.testing.assert_array_equal(audio.read_wav(tmp_path / "a.wav", audio.Ear()), inside)
    generator = made("whisper")
    tokens = generator.generate(inside, max_tokens=6, ignore_eos=True).tokens
    assert generator.generate(tmp_path / "a.wav", max_tokens=6, ignore_eos=True).tokens == tokens
    inside = write_wav(tmp_path / "b.wav", SOUND, width, channels=2)
    np.testing.assert_allclose(audio.read_wav(tmp_path / "b.wav", audio.Ear()),
                               inside.reshape(-1, 2).mean(1), atol=1e-7)


def test_the_spectrogram_is_that_of_sines():
    """A sine of amplitude 1 has the power (sum of the window / 2)^2 in the bin of its frequency,
    and its triangle, of area 1 in hertz, gives the share of the bin."""
    ear = audio.Ear()
    time = np.arange(16000) / 16000
    for hertz in (440.0, 1000.0, 3000.0):
        mel = audio.log_mel(np.sin(2 * np.pi * hertz * time).astype(np.float32), ear)
        assert mel.shape == (80, 3000) and mel.dtype == np.float32
        frame = 10**(4 * mel[:, 50].astype(np.float64) - 4)
        centre = int(np.argmax(frame))
        low, high = 0.0, 45.245640471924965  # mels of 8000 Hz on Slaney's scale
        edges = np.linspace(low, high, 82)
        edges = np.where(edges < 15, edges * 200 / 3, 1000 * 6.4**((edges - 15) / 27))
        assert edges[centre] < hertz < edges[centre + 2]
        assert 0.01 < frame[centre] / (100**2 * 2 / (edges[centre + 2] - edges[centre])) < 1.6
        assert mel[:, 200:].max() == mel.min()  # silence is 8 powers of 10 below the loudest


@pytest.mark.parametrize("change, message", [
    (lambda p: p.write_bytes(b"RIFF"), "is no WAV file of integers"),
    (lambda p: p.write_bytes(b"fLaC" * 20), "is no WAV file of integers.*\nnote: 'ffmpeg"),
    (lambda p: p.unlink(), "cannot be read: No such file"),
    (lambda p: write_wav(p, SOUND, rate=44100), "has 44100 samples a second, but .* hears 16000"),
    (lambda p: write_wav(p, SOUND[:0]), "the sound is empty"),
    (lambda p: write_wav(p, np.tile(SOUND, 2)), "has 1.1 seconds, but the model hears 1 at once"),
])
def test_a_file_that_is_no_sound_is_told(made, tmp_path, change, message):
    write_wav(tmp_path / "a.wav", SOUND)
    change(tmp_path / "a.wav")
    with pytest.raises(heddle.Error, match=message):
        made("whisper").generate(tmp_path / "a.wav")


@pytest.mark.parametrize("sound, message", [
    ([1, 2], r"or an array of floats.* not one of int64\[2\]"),
    (np.zeros((2, 5), np.float32), r"not one of float32\[2, 5\]"),
    (np.float32([0, np.nan]), "NaN or infinite"), (np.float64([1e39]), "NaN or infinite"),
])
def test_an_array_that_is_no_sound_is_told(made, sound, message):
    with pytest.raises(heddle.UsageError, match=message), np.errstate(over="ignore"):
        made("whisper").generate(sound)


@pytest.mark.parametrize("name, settings, message", [
    ("t5", {"decoder_start_token_id": None}, "'decoder_start_token_id' is None, but must be a tok"),
    ("t5", {"decoder_start_token_id": 300}, "'decoder_start_token_id' is 300"),
    ("t5", {"feed_forward_proj": "gated-xx"}, "'feed_forward_proj' is 'gated-xx'; supported: silu"),
    ("t5", {"relative_attention_num_buckets": 30}, "'relative_attention_num_buckets' is 30"),
    ("t5", {"num_decoder_layers": 4}, "no tensor 'decoder.block.3.layer.0.layer_norm.weight'"),
    ("t5", {"is_encoder_decoder": False}, "'is_encoder_decoder' is False; supported: True"),
    ("t5", {"model_type": "umt5"}, "'model_type' is 'umt5'; supported: .*, t5, mt5, whisper"),
    ("whisper", {"encoder_attention_heads": 8}, "'encoder_attention_heads' is 8, but must be as"),
    ("whisper", {"num_mel_bins": 21}, "says 20 x 100, but config.json 21 x 100"),
    ("whisper", {"max_target_positions": 65}, r"embed_positions.weight' is \[64, 32\], but"),
    ("whisper", {"lang_to_id": {"<|en|>": 300}}, "'lang_to_id' is no table of tokens"),
])
def test_a_wrong_config_is_refused(tmp_path, name, settings, message):
    with pytest.raises(heddle.RefusedError, match=message):
        Generator(tiny_pairs.write(tmp_path / "m", name, settings), threads=1)


@pytest.mark.parametrize("settings, message", [
    ({"hop_length": 0}, "'hop_length' is 0"), ({"dither": 0.1}, "'dither' is 0.1"),
    ({"n_fft": "x"}, "'n_fft' is 'x', but must be a number"),
    ({"n_fft": 1 << 20}, "100 windows of 1048576 samples are more")])
def test_a_wrong_ear_is_refused(tmp_path, settings, message):
    folder = tiny_pairs.write(tmp_path / "m", "whisper")
    (folder / "preprocessor_config.json").write_text(json.dumps({**EAR, **settings}))
    with pytest.raises(heddle.RefusedError, match=message):
        Generator(folder, threads=1)


def test_what_has_no_source_is_told(made):
    with pytest.raises(heddle.UsageError, match="encoder-decoder, whose text answers a source"):
        made("t5").append([5])
    with pytest.raises(heddle.UsageError, match="there is no text yet"):
        made("t5").step()
    with pytest.raises(heddle.UsageError, match="'language' and 'task' are of models that hear"):
        made("t5").generate([5], language="en")
    with pytest.raises(heddle.UsageError, match="the prompt is empty"):
        made("t5").generate([])
    with pytest.raises(heddle.UsageError, match="a sound must be|cannot be read"):
        made("whisper").generate("hello")


def test_the_server_takes_sources_of_texts(made):
    with pytest.raises(heddle.UsageError, match="hears sounds, but requests are texts"):
        Engine(made("whisper").model)
    generator = made("flan")
    engine = Engine(generator.model, 3)
    prompts = [SOURCE, SOURCE[:30], SOURCE[:1], SOURCE]
    settings = Settings(max_tokens=20, ignore_eos=True)
    tickets = engine.submit(prompts, settings)
    for prompt, ticket in zip(prompts, tickets):
        while ticket.events.get(timeout=60).reason is None:
            pass
        assert ticket.text.result.tokens == generator.generate(
            prompt, max_tokens=20, ignore_eos=True).tokens
    assert engine.counts.read()["prompt_tokens"] == sum(map(len, prompts)) + 4
    engine.end()


def test_rows_that_come_and_go_have_their_sources(made):
    """Texts of an engine end at different steps, and others take their places."""
    generator, engine = made("t5"), Engine(made("t5").model, 2)
    jobs = [(SOURCE[i:i + 3 + 9 * (i % 4)], 2 + 5 * (i % 3)) for i in range(12)]
    tickets = [engine.submit([prompt], Settings(max_tokens=count, ignore_eos=True))[0]
               for prompt, count in jobs]
    for ticket, (prompt, count) in zip(tickets, jobs):
        while ticket.events.get(timeout=60).reason is None:
            pass
        assert ticket.text.result.tokens == generator.generate(
            prompt, max_tokens=count, ignore_eos=True).tokens
    engine.end()


def test_what_was_compiled_is_found_again(tmp_path, monkeypatch):
    whole = next(path for path in heddle.library.candidates() if os.path.exists(path))
    monkeypatch.setenv("HEDDLE_LIBRARY", str(whole))  # as the command does
    monkeypatch.setattr(starts, "SETTLED", 0)
    monkeypatch.setattr(heddle.library, "has_own_ops", lambda: False)  # of tests before
    folder = tiny_pairs.write(tmp_path / "m", "t5")
    kept = {"cache": str(tmp_path / "cache"), "verify_stages": False, "threads": 1}
    first = Generator(folder, **kept).generate(SOURCE, max_tokens=9).tokens
    monkeypatch.setattr(network, "write", None)  # would fail
    assert Generator(folder, **kept).generate(SOURCE, max_tokens=9).tokens == first
