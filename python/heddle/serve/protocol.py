"""protocol: fields of OpenAI's requests, and of the answers to them.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import json
import math
import time
import uuid

from ..generate import chat
from ..generate.batch import tokens_of
from ..generate.sample import Settings
from ..library import UsageError
from . import tools

SETTINGS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty",
            "frequency_penalty", "seed", "stop", "logit_bias", "ignore_eos")
# Fields that would change the answer, and what they are where they change nothing.
UNSUPPORTED = {"echo": False, "suffix": None, "best_of": 1, "functions": None, "audio": None}
MOST_CHOICES = 16
LEAST = -9999.0  # the logarithm of no probability, as OpenAI has it


class NoModelError(UsageError):
    """A request names another model."""


@dataclasses.dataclass
class Request:
    """One request: prompts as tokens, settings, and the form of its answer."""

    is_chat: bool
    prompts: list
    settings: Settings
    is_stream: bool
    has_usage: bool  # in a stream
    name: str
    tools: list  # that a chat's answer may call

    def __post_init__(self):
        self.id = f"{'chatcmpl' if self.is_chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())


def parse(data):
    """The dictionary of a request's body."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise UsageError(f"the body is a {type(body).__name__}, but must be an object")
    return {key: value for key, value in body.items() if value is not None}


def _integer(body, field, default, least, most):
    value = body.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"'{field}' is {value!r}, but must be an integer from {least} to {most}")
    return value


def _flag(body, field):
    value = body.get(field, False)
    if not isinstance(value, bool):
        raise UsageError(f"'{field}' is {value!r}, but must be true or false")
    return value


def _grammar(body):
    """The setting of a response_format, or of the field `grammar`."""
    form = body.get("response_format", {"type": "text"})
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "text":
        return body.get("grammar")
    if "grammar" in body:
        raise UsageError("'response_format' and 'grammar' both say what the text is; give one")
    if kind == "json_object":
        return "json"
    schema = form.get("json_schema") if kind == "json_schema" else None
    if not isinstance(schema, dict) or not isinstance(schema.get("schema"), dict):
        raise UsageError("'response_format' must be {\"type\": \"text\"}, {\"type\": "
                         "\"json_object\"}, or {\"type\": \"json_schema\", \"json_schema\": "
                         "{\"schema\": {...}}}")
    return {"json_schema": schema["schema"]}


def _settings(body, is_chat, most_tokens):
    settings = {name: body[name] for name in SETTINGS if name in body}
    settings.setdefault("temperature", 1.0)
    settings["grammar"] = _grammar(body)
    field = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    default = most_tokens if is_chat else min(16, most_tokens)
    settings["max_tokens"] = _integer(body, field, default, 0, most_tokens)
    if is_chat:
        if _flag(body, "logprobs"):
            settings["logprobs"] = _integer(body, "top_logprobs", 0, 0, 20)
    elif "logprobs" in body:
        settings["logprobs"] = _integer(body, "logprobs", 0, 0, 20)
    return Settings.of(settings)


def check_model(body, known):
    """Refuses a request of another model."""
    name = body.get("model", known)
    if name != known:
        raise NoModelError(f"there is no model {name!r}; this server has '{known}'")


def request_of(body, is_chat, server):
    """The Request of a body."""
    for field, neutral in UNSUPPORTED.items():
        if body.get(field, neutral) not in (neutral, [], False):
            raise UsageError(f"'{field}' is not supported")
    check_model(body, server.name)
    model = server.engine.model
    given_tools = tools.tools_of(body) if is_chat else []
    if is_chat:
        if "messages" not in body:
            raise UsageError("'messages' is missing: a list of {\"role\": ..., \"content\": ...}")
        messages = [tools.known(_flat(each)) for each in body["messages"]] if isinstance(
            body["messages"], list) else body["messages"]
        if isinstance(messages, str):
            raise UsageError("'messages' must be a list of {\"role\": ..., \"content\": ...}")
        prompts = [_chat_tokens(model, server.template, messages, given_tools)]
    else:
        given = body.get("prompt")
        if given is None:
            raise UsageError("'prompt' is missing: a text, a list of tokens, or a list of these")
        is_one = isinstance(given, str) or (isinstance(given, list) and all(
            isinstance(each, int) for each in given))
        if not is_one and not isinstance(given, list):
            raise UsageError("'prompt' must be a text, a list of tokens, or a list of these")
        prompts = [tokens_of(model, each) for each in ([given] if is_one else given)]
    count = _integer(body, "n", 1, 1, MOST_CHOICES)
    if len(prompts) * count > MOST_CHOICES:
        raise UsageError(f"{len(prompts)} prompts and 'n' of {count} make more than "
                         f"{MOST_CHOICES} choices")
    options = body.get("stream_options", {})
    if not isinstance(options, dict):
        raise UsageError("'stream_options' must be an object")
    return Request(is_chat, [each for each in prompts for _ in range(count)],
                   _settings(body, is_chat, server.most_tokens), _flag(body, "stream"),
                   _flag(options, "include_usage"), server.name, given_tools)


def _flat(message):
    """A message whose content is a text; parts of it may be a list."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return message
    texts = []
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(
                part.get("text"), str):
            raise UsageError("parts of a message must be {\"type\": \"text\", \"text\": ...}")
        texts.append(part["text"])
    return {**message, "content": "".join(texts)}


def _chat_tokens(model, template, messages, given_tools):
    facts = model.facts
    more = {"tools": given_tools} if given_tools else {}
    text = chat.render(template, messages, facts.tokens, facts.where, **more)
    tokens = model.words.encode(text, special=False)
    if facts.adds_bos and facts.bos is not None and tokens[:1] != [facts.bos]:
        tokens = [facts.bos, *tokens]
    return tokens_of(model, tokens)


def _text_of(model, token):
    return model.words.decode([token], special=True) if model.has_words else str(token)


def _logprobs(model, request, told):
    """Logprobs of a choice, a list of them, as the answer has them."""
    if request.settings.logprobs is None:
        return None
    if request.is_chat:
        def entry(token, logprob):
            text = _text_of(model, token)
            return {"token": text, "logprob": _number(logprob), "bytes": list(text.encode())}

        return {"content": [{**entry(each.token, each.logprob), "top_logprobs": [
            entry(*one) for one in each.top]} for each in told]}
    return {"tokens": [_text_of(model, each.token) for each in told],
            "token_logprobs": [_number(each.logprob) for each in told],
            "top_logprobs": [{_text_of(model, token): _number(logprob)
                              for token, logprob in each.top} for each in told]}


def _number(logprob):
    """JSON has no infinity."""
    return logprob if math.isfinite(logprob) else LEAST


def _usage(tickets):
    prompt = sum(each.text.asked for each in tickets)
    made = sum(len(each.text.result.tokens) for each in tickets)
    return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}


def _whole(request, kind, choices, **more):
    return {"id": request.id, "object": kind, "created": request.created, "model": request.name,
            "choices": choices, **more}


def message(request, result):
    """(content and calls of an answer to a chat, why it ended)."""
    if not request.tools:
        return {"content": result.text}, result.reason
    text, calls = tools.read(result.text, request.tools)
    if not calls:
        return {"content": text}, result.reason
    return {"content": text, "tool_calls": calls}, "tool_calls"


def answer(model, request, tickets):
    """The answer of texts that have ended."""
    choices = []
    for index, ticket in enumerate(tickets):
        result = ticket.text.result
        body, reason = {"text": result.text}, result.reason
        if request.is_chat:
            told, reason = message(request, result)
            body = {"message": {"role": "assistant", **told}}
        choices.append({"index": index, **body, "finish_reason": reason,
                        "logprobs": _logprobs(model, request, result.logprobs)})
    kind = "chat.completion" if request.is_chat else "text_completion"
    return _whole(request, kind, choices, usage=_usage(tickets))


def first_chunk(request, index):
    """The beginning of a chat's choice in a stream."""
    return _whole(request, "chat.completion.chunk", [
        {"index": index, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])


def chunk(model, request, index, piece):
    """A piece of a choice in a stream."""
    told = [piece.logprobs] if piece.logprobs is not None else []
    body = ({"delta": {"content": piece.text} if piece.text else {}} if request.is_chat
            else {"text": piece.text})
    kind = "chat.completion.chunk" if request.is_chat else "text_completion"
    return _whole(request, kind, [{"index": index, **body, "finish_reason": piece.reason,
                                   "logprobs": _logprobs(model, request, told)}])


def message_chunk(model, request, index, result):
    """The whole message of a choice in a stream, where it may be calls."""
    told, reason = message(request, result)
    for i, call in enumerate(told.get("tool_calls", [])):
        call["index"] = i
    return _whole(request, "chat.completion.chunk", [
        {"index": index, "delta": told, "finish_reason": reason,
         "logprobs": _logprobs(model, request, result.logprobs)}])


def last_chunk(request, tickets):
    """The numbers of tokens, after all choices of a stream."""
    kind = "chat.completion.chunk" if request.is_chat else "text_completion"
    return _whole(request, kind, [], usage=_usage(tickets))


def error_of(message, kind="invalid_request_error", code=None):
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
