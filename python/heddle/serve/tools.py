"""tools: functions that a chat may call: into the template, and out of the answer's text.

Models write calls as they were trained to. Two forms are read, which serve most of them: objects
between <tool_call> and </tool_call> (Hermes, Qwen), and an answer that is one object or a list of
them (Llama 3, Mistral), each with a name and arguments, or parameters. All else is text.
SPDX-License-Identifier: Apache-2.0
"""

import json
import re
import uuid

from ..library import UsageError

TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)
MISTRAL = "[TOOL_CALLS]"


def tools_of(body):
    """The tools of a request that its answer may call."""
    choice = body.get("tool_choice", "auto")
    if choice not in ("auto", "none"):
        raise UsageError(f"'tool_choice' is {choice!r}, but must be auto or none; 'response_format'"
                         " with a schema makes a model answer in a form")
    tools = body.get("tools", [])
    if not isinstance(tools, list):
        raise UsageError("'tools' must be a list of {\"type\": \"function\", \"function\": ...}")
    for i, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type") != "function" or not isinstance(
                function.get("name"), str):
            raise UsageError(f"tool {i} must be {{\"type\": \"function\", \"function\": "
                             "{\"name\": ...}}")
    return tools if choice == "auto" else []


def known(message):
    """A message whose calls have arguments as templates take them: objects, not their JSON."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not calls:
        return message
    made = []
    for call in calls if isinstance(calls, list) else [calls]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise UsageError("'tool_calls' of a message must be a list of {\"function\": "
                             "{\"name\": ..., \"arguments\": ...}}")
        given = function.get("arguments", {})
        if isinstance(given, str):
            try:
                given = json.loads(given or "{}")
            except (ValueError, RecursionError) as error:
                raise UsageError(f"'arguments' of a call of '{function['name']}' are no JSON: "
                                 f"{error}") from error
        made.append({**call, "function": {**function, "arguments": given}})
    return {**message, "tool_calls": made}


def _call(value, names):
    """The call that an object says, or None."""
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in names:
        return None
    given = value.get("arguments", value.get("parameters", {}))
    if isinstance(given, str):
        text = given
    elif isinstance(given, dict):
        text = json.dumps(given, ensure_ascii=False)
    else:
        return None
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function",
            "function": {"name": name, "arguments": text}}


def _calls(text, names):
    """The calls that a text in JSON says, or None if it is something else."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    values = values if isinstance(values, list) else [values]
    made = [_call(each, names) for each in values]
    return made if made and None not in made else None


def read(text, tools):
    """(text, calls) of an answer: what is no call stays text, also where one is damaged."""
    names = {tool["function"]["name"] for tool in tools}
    tagged = [_calls(each[1], names) for each in TAGGED.finditer(text)]
    if tagged and None not in tagged:
        return TAGGED.sub("", text).strip() or None, [each for some in tagged for each in some]
    calls = _calls(text.strip().removeprefix(MISTRAL), names) if names else None
    return (None, calls) if calls else (text, [])
