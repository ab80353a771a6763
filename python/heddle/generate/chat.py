"""chat: messages as the text that a model was trained with, by its template.

A template is a program that came with a model: it runs in jinja2's immutable sandbox, has no
loader, and ends with an error after a number of lines, not of seconds, so that the verdict is the
same on each machine. SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import datetime
import functools
import json
import sys

from ..library import RefusedError, UsageError
from ..packages import need

MOST_LINES = 2_000_000  # of Python, that a template may carry out
MOST_TEXT = 16 << 20  # characters
MOST_NUMBER = 1 << 20  # as an argument: of a range, a width or a count


class Limit(Exception):
    """A template went over a limit."""


def _raise(message):
    raise RefusedError(f"the chat template refuses the messages: {message}")


def _small(values):
    for value in values:
        if isinstance(value, int) and abs(value) > MOST_NUMBER:
            raise Limit(f"{value} is more than {MOST_NUMBER}")


def _guarded(function):
    """The filter, which takes no large numbers."""
    @functools.wraps(function)
    def call(*values, **named):
        _small([*values, *named.values()])
        return function(*values, **named)
    return call


def _as_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """As transformers has it: no escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


@functools.cache
def _environment():
    sandbox = need("jinja2.sandbox", "a chat template", "generate")

    class Environment(sandbox.ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["+", "*", "**", "%"])

        def call(self, context, function, *values, **named):
            _small([*values, *named.values()])
            return super().call(context, function, *values, **named)

        def wrap_str_format(self, value):
            if super().wrap_str_format(value) is not None:
                raise Limit("str.format, whose widths have none")

        def call_binop(self, context, operator, left, right):
            if operator in ("*", "**"):
                _small([left, right])
                sizes = [len(side) if hasattr(side, "__len__") else 1 for side in (left, right)]
                count = next((side for side in (left, right) if isinstance(side, int)), 1)
                if operator == "*" and max(sizes) * abs(count) > MOST_TEXT and max(sizes) > 1:
                    raise Limit(f"a text of more than {MOST_TEXT} characters")
                if operator == "**" and isinstance(right, int) and abs(right) > 64:
                    raise Limit(f"a power of {right}")
            if operator == "%" and isinstance(left, str):
                raise Limit("the operator % of texts")
            if operator == "+" and isinstance(left, str) and len(left) > MOST_TEXT:
                raise Limit(f"a text of more than {MOST_TEXT} characters")
            return super().call_binop(context, operator, left, right)

    made = Environment(trim_blocks=True, lstrip_blocks=True,
                       extensions=["jinja2.ext.loopcontrols"])
    made.filters = {name: _guarded(function) for name, function in made.filters.items()
                    if name not in ("format", "pprint")}
    made.filters["tojson"] = _as_json
    made.globals["raise_exception"] = _raise
    made.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return made


@contextlib.contextmanager
def _limited():
    """Ends what runs in this thread after MOST_LINES lines."""
    before, left = sys.gettrace(), MOST_LINES

    def trace(frame, event, _):
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                raise Limit(f"more than {MOST_LINES} lines were carried out")
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _check(messages):
    """Messages as a list of dictionaries."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if not isinstance(messages, (list, tuple)) or not messages:
        raise UsageError("messages must be a list of {'role': ..., 'content': ...}, and not empty")
    for i, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise UsageError(f"message {i} must be {{'role': 'user', 'content': ...}}")
        content = message.get("content")
        if content is not None and not isinstance(content, (str, list)):
            raise UsageError(f"message {i}: 'content' is of type {type(content).__name__}, but "
                             "must be a text")
    return list(messages)


def render(template, messages, tokens, where, **more):
    """The text of messages. `tokens` are those that templates name, as bos_token."""
    messages = _check(messages)
    if template is None:
        raise UsageError(f"{where}: has no chat template; give `template=`, or a prompt to "
                         "`generate`")
    jinja2 = need("jinja2", "a chat template", "generate")
    try:
        with _limited():
            text, size = [], 0
            for piece in _environment().from_string(template).generate(
                    **{"messages": messages, "add_generation_prompt": True, **tokens, **more}):
                size += len(piece)
                if size > MOST_TEXT:
                    raise Limit(f"a text of more than {MOST_TEXT} characters")
                text.append(piece)
        return "".join(text)
    except jinja2.exceptions.SecurityError as error:
        raise RefusedError(f"{where}: the chat template does what it may not: {error}") from error
    except jinja2.TemplateError as error:
        raise RefusedError(f"{where}: the chat template is wrong: {error}") from error
    except (Limit, MemoryError, RecursionError) as error:
        raise RefusedError(f"{where}: the chat template goes over a limit: {error}") from error
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise RefusedError(f"{where}: the chat template fails: {type(error).__name__}: "
                           f"{error}") from error
