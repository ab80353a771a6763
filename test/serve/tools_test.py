"""Tools of a chat: what the template gets, and calls in answers."""

import json

import pytest
from heddle import UsageError
from heddle.generate import Generator
from heddle.serve import tools
from heddle.serve.protocol import parse

import tiny
from serve_test import ask, serve  # noqa: F401: a fixture

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers", "jinja2"):
    pytest.importorskip(package)
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
         for name in ("add", "look_up")]
TEMPLATE = ("{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m['role'] }}"
            "{% for c in m.get('tool_calls', []) %}{{ c.function.arguments.x }}{% endfor %}:"
            "{{ m['content'] }}\n{% endfor %}")


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    return Generator(tiny.write(tmp_path_factory.mktemp("models") / "m", "mistral"), threads=1)


def named(calls):
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


@pytest.mark.parametrize("text, rest, calls", [
    ('<tool_call>\n{"name": "add", "arguments": {"x": 1}}\n</tool_call>', None,
     [("add", {"x": 1})]),
    ('I add.<tool_call>{"name": "add", "arguments": {"x": 1}}</tool_call><tool_call>{"name": '
     '"look_up", "arguments": {}}</tool_call>', "I add.", [("add", {"x": 1}), ("look_up", {})]),
    ('<tool_call>{"name": "add", "arguments": "{}"}', None, [("add", {})]),
    ('{"name": "look_up", "parameters": {"q": "\u00fc"}}', None, [("look_up", {"q": "\u00fc"})]),
    ('[TOOL_CALLS] [{"name": "add", "arguments": {}}, {"name": "add", "arguments": {}}]', None,
     [("add", {}), ("add", {})]),
    (' [{"name": "add"}] ', None, [("add", {})]),
    ('{"name": "remove", "arguments": {}}', '{"name": "remove", "arguments": {}}', []),
    ('<tool_call>{"name": "add", "arg</tool_call>', '<tool_call>{"name": "add", "arg</tool_call>',
     []),
    ('<tool_call>{"name": "add"}</tool_call><tool_call>{', '<tool_call>{"name": "add"}</tool_call>'
     '<tool_call>{', []),
    ('{"name": ["add"]}', '{"name": ["add"]}', []),
    ('{"name": "add", "arguments": 3}', '{"name": "add", "arguments": 3}', []),
    ("[]", "[]", []), ("3", "3", []), ("", "", []), ("[" * 100000, "[" * 100000, []),
])
def test_calls_are_read(text, rest, calls):
    found, made = tools.read(text, TOOLS)
    assert found == rest and named(made) == calls
    assert len({each["id"] for each in made}) == len(made)


def test_an_answer_with_calls(serve, generator):  # noqa: F811
    pytest.importorskip("llguidance")
    server, _ = serve(template=TEMPLATE)
    messages = [{"role": "user", "content": "a"}]
    call = '<tool_call>{"name": "add", "arguments": {"x": 5}}</tool_call>'
    body = {"messages": messages, "max_tokens": 80, "temperature": 0, "tools": TOOLS,
            "grammar": {"lark": f"start: {json.dumps(call)}"}}
    status, made = ask(server, "/v1/chat/completions", body)
    choice, = made["choices"]
    assert status == 200 and choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert named(choice["message"]["tool_calls"]) == [("add", {"x": 5})]
    prompt = json.dumps(TOOLS, ensure_ascii=False) + "user:a\n"
    assert made["usage"]["prompt_tokens"] == len(generator.tokenizer.encode(prompt, special=False))
    # As a stream, in one piece.
    status, text = ask(server, "/v1/chat/completions", {**body, "stream": True})
    events = [json.loads(line[6:]) for line in text.split("\n\n")[:-2]]
    assert len(events) == 2 and events[1]["choices"][0]["finish_reason"] == "tool_calls"
    delta = events[1]["choices"][0]["delta"]
    assert named(delta["tool_calls"]) == [("add", {"x": 5})]
    assert delta["tool_calls"][0]["index"] == 0
    # Calls and results of before, whose arguments the template gets as an object.
    later = [*messages, {**choice["message"]}, {"role": "tool", "content": "6"}]
    body |= {"messages": later, "tool_choice": "none"}
    _, made = ask(server, "/v1/chat/completions", body)
    assert made["choices"][0]["message"] == {"role": "assistant", "content": call}
    prompt = "user:a\nassistant5:None\ntool:6\n"
    assert made["usage"]["prompt_tokens"] == len(generator.tokenizer.encode(prompt, special=False))


def test_a_format_holds(serve):  # noqa: F811
    pytest.importorskip("llguidance")
    server, _ = serve()
    schema = {"type": "object", "properties": {"x": {"enum": [1, 22]}}, "required": ["x"],
              "additionalProperties": False}
    for seed in range(4):
        body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 150, "seed": seed,
                "response_format": {"type": "json_schema", "json_schema": {"name": "n",
                                                                           "schema": schema}}}
        _, made = ask(server, "/v1/chat/completions", body)
        assert json.loads(made["choices"][0]["message"]["content"])["x"] in (1, 22)
        assert made["choices"][0]["finish_reason"] == "stop"
    _, made = ask(server, "/v1/completions", {"prompt": "a", "max_tokens": 20, "response_format": {
        "type": "json_object"}})
    assert made["choices"][0]["text"].lstrip().startswith("{")
    status, made = ask(server, "/v1/chat/completions", {**body, "response_format": {
        "type": "json_schema", "json_schema": {"schema": {"type": "strange"}}}})
    assert status == 400 and "is no json_schema that is supported" in made["error"]["message"]


@pytest.mark.parametrize("body, message", [
    ({"tools": {}}, "'tools' must be a list"), ({"tools": [3]}, "tool 0 must be"),
    ({"tools": [TOOLS[0], {"type": "function"}]}, "tool 1 must be"),
    ({"tools": [{"type": "web", "function": {"name": "a"}}]}, "tool 0 must be"),
    ({"tools": TOOLS, "tool_choice": "required"}, "'tool_choice' is 'required', but must be"),
    ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "'tool_choice' is"),
])
def test_bad_tools_are_told(body, message):
    with pytest.raises(UsageError, match=message):
        tools.tools_of(parse(json.dumps(body)))


@pytest.mark.parametrize("calls", [3, [3], [{"function": {}}], [{"function": {
    "name": "a", "arguments": "{"}}], [{"function": {"name": "a", "arguments": "[" * 100000}}]])
def test_bad_calls_of_messages_are_told(calls):
    with pytest.raises(UsageError, match="'tool_calls' of a message|'arguments' of a call"):
        tools.known({"role": "assistant", "tool_calls": calls})
