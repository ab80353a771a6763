"""`heddle generate`."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
import wave

import pytest
from heddle.generate import Generator
from heddle.generate import __main__ as program

import tiny
import tiny_pairs
from command import OK, USAGE, heddle, needs_heddle

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers", "jinja2"):
    pytest.importorskip(package)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.write(tmp_path_factory.mktemp("models") / "m", "qwen2")


@pytest.fixture(autouse=True)
def own_signals():
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    for number, handler in kept.items():
        signal.signal(number, handler)


def run(folder, *arguments):
    return program.main([str(folder), "--threads", "1", *arguments])


def test_it_prints_text_and_stats(folder, capsys):
    assert run(folder, "-p", "hello", "--max-tokens", "9", "--stats") == OK
    told = capsys.readouterr()
    assert run(folder, "-p", "hello", "--max-tokens", "9", "--json") == OK
    made = json.loads(capsys.readouterr().out)
    assert told.out == made["text"] + "\n"
    assert "heddle generate: prompt: 5 tokens (0 of them known), " in told.err
    assert "ms a token" in told.err and made["stats"]["prompt_tokens"] == 5


def test_settings_are_those_of_the_package(folder, capsys):
    arguments = ("-p", "hello", "--max-tokens", "20", "--temperature", "0.9", "--top-k", "50",
                 "--top-p", "0.95", "--min-p", "0.01", "--repetition-penalty", "1.1",
                 "--presence-penalty", "0.1", "--frequency-penalty", "0.1", "--prompt-lookup", "3",
                 "--json")
    texts = []
    for seed in ("1", "1", "2"):
        assert run(folder, *arguments, "--seed", seed) == OK
        texts.append(json.loads(capsys.readouterr().out)["tokens"])
    assert texts[0] == texts[1] != texts[2]


def test_messages_and_input(folder, capsys, monkeypatch):
    arguments = ("--system", "be kind", "--max-tokens", "3", "--json", "--stop", "\\n")
    assert run(folder, "-p", "hi", *arguments) == OK
    made = json.loads(capsys.readouterr().out)
    assert made["stats"]["prompt_tokens"] == len(
        tiny.tokenizer().encode("<system>be kind\n<user>hi\n<assistant>").ids)
    monkeypatch.setattr(sys, "stdin", io.StringIO("hi"))
    assert run(folder, *arguments) == OK
    assert json.loads(capsys.readouterr().out)["tokens"] == made["tokens"]


def test_it_takes_sources(tmp_path, capsys):
    place = tiny_pairs.write(tmp_path / "m", "whisper")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(range(250)) * 40)
    wanted = Generator(place, threads=1).generate(tmp_path / "a.wav", max_tokens=5)
    sound = ["--json", "--max-tokens", "5", "--audio", str(tmp_path / "a.wav")]
    assert run(place, *sound) == OK
    assert json.loads(capsys.readouterr().out)["tokens"] == wanted.tokens
    assert run(place, *sound, "-p", "a") == USAGE
    assert "--audio is in place of a prompt" in capsys.readouterr().err
    assert run(place, *sound, "--language", "en") == USAGE
    assert "knows one language and task" in capsys.readouterr().err
    place = tiny_pairs.write(tmp_path / "t5", "t5")
    assert run(place, "-p", "hello", "--json", "--max-tokens", "5") == OK
    wanted = Generator(place, threads=1).generate("hello", max_tokens=5)
    assert json.loads(capsys.readouterr().out)["tokens"] == wanted.tokens
    assert run(place, *sound) == USAGE


def test_grammars_are_files(folder, tmp_path, capsys):
    pytest.importorskip("llguidance")
    for name, text in (("a.json", '{"enum": ["cat"]}'), ("a.lark", 'start: "cat"'), ("a.txt", "")):
        (tmp_path / name).write_text(text)
    for name, wanted in (("a.json", '"cat"\n'), ("a.lark", "cat\n")):
        assert run(folder, "-p", "a", "--grammar", str(tmp_path / name)) == OK
        assert capsys.readouterr().out == wanted
    for name, message in (("a.txt", "must end in .json"), ("b.json", "cannot be read")):
        assert run(folder, "-p", "a", "--grammar", str(tmp_path / name)) == USAGE
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments, message", [
    (("-p", ""), "heddle generate: the prompt is empty"),
    (("-p", "a", "--top-p", "0"), "heddle generate: 'top_p' is 0.0, but must be a number above 0"),
    (("-p", "a", "--temperature", "nan"), "'temperature' is nan"),
    (("-p", "a", "--stop", ""), "'stop' has ''"),
    (("-p", "z" * 300), "the prompt has 300 tokens, but"),
    (("-p", "a", "--max-length", "999"), "'max_length' is 999, but"),
])
def test_refusals(folder, capsys, arguments, message):
    assert run(folder, *arguments) == USAGE
    told = capsys.readouterr()
    assert message in told.err and not told.out


def start(folder, *arguments, **more):
    return subprocess.Popen([sys.executable, "-m", "heddle.generate", folder, "--threads", "1",
                             *arguments], stderr=subprocess.PIPE, text=True, **more)


def test_a_signal_ends_it_cleanly(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        done = start(folder, "-p", "a", "--max-tokens", "100000", "--max-length", "256",
                     stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        done.stdout.read(1)  # it has begun
        done.send_signal(number)
        _, errors = done.communicate(timeout=60)
        assert done.returncode in (0, 128 + number) and "Traceback" not in errors


def test_a_reader_that_leaves_is_no_error(folder):
    done = start(folder, "-p", "abc", "--max-tokens", "200", stdout=subprocess.PIPE)
    done.stdout.close()
    assert done.wait(60) == OK and "Traceback" not in done.stderr.read()


def test_a_terminal_is_a_chat(folder):
    ours, theirs = pty.openpty()
    done = start(folder, "--max-tokens", "4", "--stats", stdin=theirs, stdout=theirs)
    os.close(theirs)
    os.write(ours, b"hello\n\nagain\n\x04")
    errors = done.communicate(timeout=60)[1]
    assert done.returncode == OK, errors
    lines = [line for line in errors.splitlines() if "prompt:" in line]
    assert len(lines) == 2 and "(0 of them known)" in lines[0]
    assert "(0 of them known)" not in lines[1]
    os.close(ours)


@needs_heddle
def test_the_program_hands_over(folder):
    done = heddle("generate", folder, "-p", "abc", "--max-tokens", "2", "--json")
    assert done.status == OK and len(done.json["tokens"]) <= 2


def test_keys_and_values_of_fewer_bits(folder, capsys):
    """The command's flag is the generator's option."""
    options = ("-p", "abc", "--max-tokens", "3", "--json", "--kv-cache-type", "int8")
    assert run(folder, *options) == OK
    made = capsys.readouterr().out
    generator = Generator(folder, threads=1, kv_cache_type="int8")
    assert json.loads(made)["tokens"] == generator.generate("abc", max_tokens=3).tokens
    assert "tensor(int8)" in {value.type for value in generator.model.layout.pasts}
