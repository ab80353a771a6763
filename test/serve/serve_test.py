"""The server, as its clients see it."""

import http.client
import json
import socket
import threading
import time

import numpy as np
import pytest
from heddle.generate import Generator
from heddle.serve import Engine, Server
from heddle.serve.engine import Counts
from heddle.serve.web import Handler

import tiny

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers", "jinja2"):
    pytest.importorskip(package)
PROMPT, TOKENS = "hello abcd", 12
WAIT = 60  # seconds, after which something will not happen


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    return Generator(tiny.write(tmp_path_factory.mktemp("models") / "m", "mistral"), threads=1)


class Gate:
    """Holds the engine before each step while it is closed."""

    def __init__(self, engine):
        self._open, step = threading.Event(), engine._step
        self._open.set()
        engine._step = lambda: (self._open.wait(WAIT), step())
        self.close, self.open = self._open.clear, self._open.set


@pytest.fixture
def serve(generator):
    """Starts a server: (server, Gate)."""
    started = []

    def start(slots=3, waiting=8, seconds=WAIT, **options):
        engine = Engine(generator.model, slots, waiting, seconds)
        gate = Gate(engine)
        server = Server(engine, port=0, **{"most_tokens": 150, **options})
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        started.append((server, gate, thread))
        return server, gate

    yield start
    for server, gate, thread in started:
        gate.open()
        server.shutdown()
        server.end(0)
        thread.join()


def ask(server, path, body=None, headers=None, method=None):
    """(status, answer) of one request."""
    connection = http.client.HTTPConnection(*server.server_address, timeout=WAIT)
    data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
    kind = {} if body is None else {"Content-Type": "application/json"}
    connection.request(method or ("GET" if body is None else "POST"), path, data,
                       {**kind, **(headers or {})})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text) if "json" in answer.getheader("Content-Type") else text


def complete(server, **body):
    return ask(server, "/v1/completions", {"prompt": PROMPT, "temperature": 0, "max_tokens": TOKENS,
                                           "ignore_eos": True, **body})


def metric(server, name):
    _, text = ask(server, "/metrics")
    return next(float(line.split()[1]) for line in text.splitlines()
                if line.startswith(f"heddle_{name} "))


def until(what):
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def alone(generator, prompt=PROMPT, **settings):
    return Generator(generator.model).generate(
        prompt, **{"max_tokens": TOKENS, "ignore_eos": True, **settings})


def test_a_completion_is_the_generators(serve, generator):
    server, _ = serve()
    wanted = alone(generator)
    status, made = complete(server)
    assert status == 200 and made["object"] == "text_completion" and made["model"] == "m"
    choice, = made["choices"]
    assert (choice["text"], choice["finish_reason"], choice["index"]) == (wanted.text, "length", 0)
    count = len(generator.tokenizer.encode(PROMPT))
    assert made["usage"] == {"prompt_tokens": count, "completion_tokens": TOKENS,
                             "total_tokens": count + TOKENS}
    settings = {"temperature": 0.8, "seed": 3, "top_p": 0.9, "repetition_penalty": 1.1,
                "logit_bias": {"50": 2}}
    _, made = complete(server, **settings)
    assert made["choices"][0]["text"] == alone(generator, **settings).text
    _, made = complete(server, prompt=[[5, 6], [7, 8, 9]], n=2)
    assert [each["text"] for each in made["choices"]] == [
        alone(generator, tokens).text for tokens in ([5, 6], [5, 6], [7, 8, 9], [7, 8, 9])]


def test_a_chat_goes_by_the_template(serve, generator):
    server, _ = serve()
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    wanted = generator.chat("hi", max_tokens=TOKENS, ignore_eos=True)
    body = {"messages": messages, "temperature": 0, "max_completion_tokens": TOKENS,
            "ignore_eos": True, "model": "m"}
    status, made = ask(server, "/v1/chat/completions", body)
    assert status == 200 and made["object"] == "chat.completion"
    assert made["choices"][0]["message"] == {"role": "assistant", "content": wanted.text}
    _, made = ask(server, "/v1/chat/completions", {**body, "logprobs": True, "top_logprobs": 2})
    told = made["choices"][0]["logprobs"]["content"]
    assert len(told) == TOKENS and all(len(each["top_logprobs"]) == 2 for each in told)
    assert all(each["logprob"] == each["top_logprobs"][0]["logprob"] < 0 for each in told)
    assert bytes(told[0]["bytes"]).decode() == told[0]["token"]


def events(server, path, body):
    """The events of a stream, without the last one."""
    status, text = ask(server, path, {**body, "stream": True, "temperature": 0})
    assert status == 200
    found = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert found.pop() == "[DONE]"
    return [json.loads(each) for each in found]


def test_streams_are_the_same_text(serve, generator):
    server, _ = serve()
    body = {"prompt": PROMPT, "max_tokens": TOKENS, "ignore_eos": True, "logprobs": 1}
    made = events(server, "/v1/completions", {**body, "stream_options": {"include_usage": True}})
    assert made.pop()["usage"]["completion_tokens"] == TOKENS
    assert "".join(each["choices"][0]["text"] for each in made) == alone(generator).text
    reasons = [each["choices"][0]["finish_reason"] for each in made]
    assert reasons[-1] == "length" and set(reasons[:-1]) == {None}
    assert sum(len(each["choices"][0]["logprobs"]["tokens"]) for each in made) == TOKENS
    assert len({each["id"] for each in made}) == 1
    made = events(server, "/v1/chat/completions", {
        "messages": [{"role": "user", "content": "hi"}], "max_tokens": TOKENS, "ignore_eos": True,
        "n": 2})
    for index in (0, 1):
        deltas = [each["choices"][0]["delta"] for each in made
                  if each["choices"][0]["index"] == index]
        assert deltas[0] == {"role": "assistant", "content": ""}
        assert "".join(each.get("content", "") for each in deltas) == generator.chat(
            "hi", max_tokens=TOKENS, ignore_eos=True).text


def test_pieces_are_sent_at_once(serve, monkeypatch):
    server, _ = serve()
    seen, event = [], Handler._event

    def looks(handler, body):
        seen.append(handler.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        event(handler, body)

    monkeypatch.setattr(Handler, "_event", looks)
    assert events(server, "/v1/completions", {"prompt": PROMPT})
    assert seen and all(seen)


def test_requests_beside_each_other_are_as_alone(serve, generator):
    server, gate = serve(slots=3)
    gate.close()
    prompts = [np.random.default_rng(i).integers(3, 299, 5 + 9 * i).tolist() for i in range(7)]
    lengths = [4 + 5 * (i % 3) for i in range(7)]
    made = [None] * 7

    def go(i):
        made[i] = complete(server, prompt=prompts[i], max_tokens=lengths[i])[1]

    threads = [threading.Thread(target=go, args=(i,)) for i in range(7)]
    for thread in threads:
        thread.start()
    until(lambda: metric(server, "requests_total") == 7)
    gate.open()
    for thread in threads:
        thread.join()
    for prompt, length, each in zip(prompts, lengths, made):
        assert each["choices"][0]["text"] == alone(generator, prompt, max_tokens=length).text
    assert metric(server, "generated_tokens_total") == sum(lengths)
    assert metric(server, "steps_total") < sum(lengths)
    assert metric(server, "finished_total") == 7


def test_a_conversation_costs_its_own_tokens(serve, generator):
    server, _ = serve(slots=1)
    messages, texts = [], []
    for said in ("hello there", "and then?", "what else?"):
        messages.append({"role": "user", "content": said})
        prompt = generator.prompt_of(messages)
        before, waits = (metric(server, f"{name}_tokens_total") for name in ("reused", "prompt"))
        status, made = ask(server, "/v1/chat/completions", {
            "messages": messages, "temperature": 0, "max_tokens": TOKENS})
        texts.append(made["choices"][0]["message"]["content"])
        assert status == 200 and texts[-1] == alone(generator, prompt, ignore_eos=False).text
        assert metric(server, "prompt_tokens_total") - waits == len(prompt)
        reused = metric(server, "reused_tokens_total") - before
        known = len(generator.prompt_of(messages[:-2])) if messages[1:] else 0
        assert reused >= known and bool(reused) == bool(known)
        messages.append({"role": "assistant", "content": texts[-1]})
    whole = [5 + i for i in range(40)]
    for _ in range(2):  # the second time all but the last token is known
        assert complete(server, prompt=whole)[1]["choices"][0]["text"] == alone(
            generator, whole).text
    assert complete(server, prompt=whole[:20] + [9])[1]["choices"][0]["text"] == alone(
        generator, whole[:20] + [9]).text
    assert metric(server, "reused_tokens_total") >= 39 + 20


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_leaves_frees_its_place(serve, is_stream):
    server, gate = serve(slots=1)
    gate.close()
    body = json.dumps({"prompt": PROMPT, "max_tokens": 140, "ignore_eos": True,
                       "stream": is_stream})
    sockets = []
    for _ in range(2):  # one is computed, one waits
        sockets.append(socket.create_connection(server.server_address))
        sockets[-1].sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                            b"application/json\r\nContent-Length: %d\r\n\r\n%b"
                            % (len(body), body.encode()))
    until(lambda: metric(server, "running") == 1 and metric(server, "waiting") == 1)
    for each in sockets:
        each.close()
    until(lambda: all(ticket.is_cancelled for ticket in [
        *server.engine._waiting, *server.engine._tickets.values(), server.engine._prefill[0]]))
    gate.open()
    until(lambda: metric(server, "cancelled_total") == 2)
    assert metric(server, "running") == 0 == metric(server, "waiting")
    assert complete(server)[0] == 200


def test_a_full_queue_refuses(serve):
    server, gate = serve(slots=1, waiting=1)
    gate.close()
    threads = []
    for waiting in (0, 1):
        threads.append(threading.Thread(target=complete, args=(server,)))
        threads[-1].start()
        until(lambda waiting=waiting: server.engine.running + server.engine.queued == waiting + 1
              and server.engine.running == 1)
    status, made = complete(server)
    assert status == 503 and "1 texts wait already, and 1 may" in made["error"]["message"]
    assert metric(server, "refused_total") == 1
    gate.open()
    for thread in threads:
        thread.join()
    assert complete(server)[0] == 200


def test_time_is_bounded(serve):
    server, gate = serve(seconds=0.0)
    status, made = complete(server)
    assert status == 504 and "took longer than 0 seconds" in made["error"]["message"]
    status, text = ask(server, "/v1/completions", {"prompt": PROMPT, "stream": True})
    assert status == 200 and "took longer" in text and "[DONE]" not in text


def test_an_error_of_one_text_leaves_the_others(serve, monkeypatch):
    server, _ = serve()
    choose = server.engine._batch.choose

    def failing(ends):
        made = choose(ends)
        return [(text, ValueError("odd") if len(text.prompt) == 2 else piece)
                for text, piece in made]

    monkeypatch.setattr(server.engine._batch, "choose", failing)
    status, made = complete(server, prompt=[5, 6], max_tokens=1)
    assert status == 500 and made["error"]["message"].startswith("internal error")
    assert complete(server)[0] == 200 and metric(server, "failed_total") == 1


@pytest.mark.parametrize("path, body, status, message", [
    ("/v1/completions", {}, 400, "'prompt' is missing"),
    ("/v1/completions", {"prompt": ""}, 400, "the prompt is empty"),
    ("/v1/completions", {"prompt": []}, 400, "the prompt is empty"),
    ("/v1/completions", {"prompt": {}}, 400, "'prompt' must be a text, a list of tokens, or"),
    ("/v1/completions", {"prompt": [9999]}, 400, "token 9999 of the prompt is none"),
    ("/v1/completions", {"prompt": "z" * 300}, 400, "the prompt has 300 tokens, but"),
    ("/v1/completions", {"prompt": "a", "max_tokens": 151}, 400, "integer from 0 to 150"),
    ("/v1/completions", {"prompt": "a", "max_tokens": True}, 400, "'max_tokens' is True"),
    ("/v1/completions", {"prompt": "a", "temperature": -1}, 400, "'temperature' is -1"),
    ("/v1/completions", b'{"prompt": "a", "temperature": NaN}', 400, "'temperature' is nan"),
    ("/v1/completions", {"prompt": "a", "stop": ""}, 400, "'stop' has ''"),
    ("/v1/completions", {"prompt": "a", "n": 17}, 400, "'n' is 17"),
    ("/v1/completions", {"prompt": ["a"] * 9, "n": 2}, 400, "more than 16 choices"),
    ("/v1/completions", {"prompt": "a", "echo": True}, 400, "'echo' is not supported"),
    ("/v1/completions", {"prompt": "a", "stream": 1}, 400, "'stream' is 1"),
    ("/v1/completions", {"prompt": "a", "stream_options": 1}, 400, "'stream_options' must be"),
    ("/v1/completions", {"prompt": "a", "model": "gpt-5"}, 404, "there is no model 'gpt-5'"),
    ("/v1/completions", b"{", 400, "the body is no JSON"),
    ("/v1/completions", b"[" * 200000, 400, "the body is no JSON"),
    ("/v1/completions", b"\xff", 400, "the body is no JSON"),
    ("/v1/completions", [1], 400, "the body is a list"),
    ("/v1/completions", b" " * 1000001, 413, "1000001 bytes, but 1000000 are allowed"),
    ("/v1/chat/completions", {}, 400, "'messages' is missing"),
    ("/v1/chat/completions", {"messages": []}, 400, "and not empty"),
    ("/v1/chat/completions", {"messages": "hi"}, 400, "'messages' must be a list"),
    ("/v1/chat/completions", {"messages": [3]}, 400, "message 0 must be"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
     400, "parts of a message must be"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "tools": [{}]}, 400,
     "tool 0 must be"),
    ("/v1/completions", {"prompt": "a", "response_format": {"type": "xml"}}, 400,
     "'response_format' must be"),
    ("/v1/completions", {"prompt": "a", "response_format": 3}, 400, "'response_format' must be"),
    ("/v1/completions", {"prompt": "a", "grammar": "json", "response_format": {
        "type": "json_object"}}, 400, "both say what the text is"),
    ("/v1/completions", {"prompt": "a", "grammar": {"gbnf": ""}}, 400, "'grammar' must be"),
    ("/v1/embeddings", {}, 404, "there is no POST '/v1/embeddings'; there are: GET /v1/models"),
    ("/v1/models", {}, 404, "there is no POST '/v1/models'"),
])
def test_bad_requests_are_told(serve, path, body, status, message):
    server, _ = serve(most_bytes=1_000_000)
    found, made = ask(server, path, body)
    assert found == status and message in made["error"]["message"]
    assert server.engine.running == 0 and complete(server)[0] == 200


def test_what_is_refused_before_it_is_read(serve):
    server, _ = serve()
    json_of = {"Content-Type": "application/json"}
    for headers, status, message in (
            ({**json_of, "Content-Length": str(1 << 30)}, 413, "1073741824 bytes, but 1048576"),
            ({**json_of, "Content-Length": "9" * 40}, 413, "bytes, but"),
            ({**json_of, "Content-Length": "-1"}, 411, "must say its Content-Length"),
            (json_of, 411, "must say its Content-Length"),
            ({**json_of, "Transfer-Encoding": "chunked"}, 411, "must say its Content-Length"),
            ({"Content-Type": "text/plain", "Content-Length": "2"}, 415, "is text/plain, but must"),
            ({**json_of, "Content-Length": "2", "Host": "example.org"}, 403, "'example.org'")):
        connection = http.client.HTTPConnection(*server.server_address, timeout=WAIT)
        connection.putrequest("POST", "/v1/completions", skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == status
        assert message in json.loads(answer.read())["error"]["message"]
        connection.close()


def test_other_pages_and_connections_that_stay(serve):
    server, _ = serve()
    assert ask(server, "/v1/models")[1]["data"][0]["id"] == "m"
    assert ask(server, "/health") == (200, {"status": "ok"})
    text = ask(server, "/metrics")[1]
    for name in Counts.NAMES:
        assert f"# TYPE heddle_{name}_total counter\nheddle_{name}_total 0\n" in text
    connection = http.client.HTTPConnection(*server.server_address, timeout=WAIT)
    for _ in range(3):
        connection.request("POST", "/v1/completions", json.dumps({"prompt": PROMPT}),
                           {"Content-Type": "application/json"})
        assert connection.getresponse().read()
    connection.close()


def test_the_end_waits_for_answers(serve):
    server, gate = serve()
    gate.close()
    made = []
    thread = threading.Thread(target=lambda: made.append(complete(server)))
    thread.start()
    until(lambda: server.engine.running == 1)
    ending = threading.Thread(target=server.end, args=(WAIT,))
    ending.start()
    until(lambda: server.engine._is_ending)
    assert complete(server)[0] == 503
    gate.open()
    ending.join()
    thread.join()
    assert made[0][0] == 200
