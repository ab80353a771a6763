"""Messages by templates, which may not do all that programs can."""

import sys

import pytest
from heddle.generate import Generator, chat

import heddle
import tiny

pytest.importorskip("jinja2")
MESSAGES = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"},
            {"role": "user", "content": "abc"}]


def render(template, messages=MESSAGES, **more):
    return chat.render(template, messages, {"bos_token": "<s>"}, "'m'", **more)


def test_templates_see_what_those_of_transformers_see():
    assert render(tiny.TEMPLATE) == "<user>hi\n<assistant>yes\n<user>abc\n<assistant>"
    assert render(tiny.TEMPLATE, "hi") == "<user>hi\n<assistant>"
    assert render("{{ bos_token }}{{ messages[0] | tojson }}{{ tools }}", tools=["<t>"]) == (
        '<s>{"role": "user", "content": "hi"}[\'<t>\']')
    assert render("{% for m in messages %}\n  {% if loop.first %}{% continue %}{% endif %}\n"
                  "{{ m.content }}{% endfor %}") == "yesabc"
    assert render("{% set x = namespace(n=0) %}{% for m in messages %}{% set x.n = x.n + 1 %}"
                  "{% endfor %}{{ x.n }}{{ 'a,b'.split(',')[1] | trim }}") == "3b"


@pytest.mark.parametrize("template, message", [
    ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
     "goes over a limit: more than 2000000 lines"),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "goes over a limit"),
    ("{% for a in range(900) %}{{ 'x' * 90000 }}{% endfor %}", "a text of more than"),
    ("{{ 'x' * 99999999 }}", "goes over a limit: 99999999 is more than"),
    ("{{ ('x' * 999999) * 999999 }}", "a text of more than"),
    ("{{ 9 ** 9999 }}", "a power of 9999"),
    ("{{ '%9999999999d' % 1 }}", "the operator % of texts"),
    ("{{ 'x' | center(99999999999) }}", "goes over a limit"),
    ("{{ 'x'.ljust(99999999999) }}", "goes over a limit"),
    ("{{ range(99999999) | list }}", "goes over a limit"),
    ("{{ ''.__class__.__mro__ }}", "does what it may not: access to attribute '__class__'"),
    ("{{ messages.append(1) }}", "does what it may not"),
    ("{{ '{:99999999999}'.format(1) }}", "goes over a limit: str.format"),
    ("{{ ('{0.__class__}' | attr('format'))(1) }}", "goes over a limit: str.format"),
    ("{% include 'x' %}", "no loader"), ("{{ raise_exception('roles must alternate') }}",
                                         "refuses the messages: roles must alternate"),
    ("{% if %}", "the chat template is wrong"),
    ("{{ 'a' | nothing }}", "the chat template is wrong"),
    ("{{ 1 / 0 }}", "the chat template fails: ZeroDivisionError"),
    ("{{ messages[0].content + 1 }}", "the chat template fails: TypeError"),
])
def test_bad_templates_are_told(template, message):
    before = sys.gettrace()
    with pytest.raises(heddle.RefusedError, match=message):
        render(template)
    assert sys.gettrace() is before


@pytest.mark.parametrize("messages, message", [
    ([], "and not empty"), ({}, "messages must be a list"), ([3], "message 0 must be"),
    ([{"role": "user", "content": 4}], "'content' is of type int"),
    ([{"content": ""}], "message 0"),
])
def test_bad_messages_are_told(messages, message):
    with pytest.raises(heddle.UsageError, match=message):
        render(tiny.TEMPLATE, messages)


@pytest.mark.usefixtures("compiler")
def test_a_chat_computes_the_last_message_only(tmp_path):
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    folder = tiny.write(tmp_path / "m", "qwen3")
    generator = Generator(folder, threads=1)
    tokens = generator.prompt_of(MESSAGES)
    assert generator.tokenizer.decode(tokens) == render(tiny.TEMPLATE)
    first = generator.chat(MESSAGES[:1], max_tokens=6, ignore_eos=True)
    assert first.stats["reused_tokens"] == 0
    whole = generator.chat(MESSAGES, max_tokens=6, ignore_eos=True)
    assert whole.stats["reused_tokens"] >= len(generator.prompt_of(MESSAGES[:1]))
    assert whole.tokens == Generator(generator.model).generate(tokens, max_tokens=6,
                                                               ignore_eos=True).tokens
    assert "".join(generator.chat(MESSAGES, max_tokens=6, ignore_eos=True, stream=True)
                   ) == whole.text
    (folder / "tokenizer_config.json").unlink()
    bare = Generator(folder, threads=1)
    with pytest.raises(heddle.UsageError, match="has no chat template; give `template=`"):
        bare.chat("hi")
    mine = Generator(bare.model, template="{{ messages[0].content }}!")
    assert mine.tokenizer.decode(mine.prompt_of("hi")) == "hi!"
