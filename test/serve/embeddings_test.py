"""/v1/embeddings, as its clients see it."""

import base64
import http.client
import json
import threading

import numpy as np
import pytest
from heddle.generate import Embedder
from heddle.serve import EmbedEngine, Server
from heddle.serve import __main__ as program

import small_encoders

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers"):
    pytest.importorskip(package)
WAIT = 60


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    return Embedder(small_encoders.write(tmp_path_factory.mktemp("models") / "m"), threads=1)


@pytest.fixture
def serve(embedder):
    started = []

    def start(**options):
        server = Server(EmbedEngine(embedder, **options), port=0)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        started.append((server, thread))
        return server

    yield start
    for server, thread in started:
        server.shutdown()
        server.end(WAIT)
        thread.join()


def ask(server, body, path="/v1/embeddings"):
    connection = http.client.HTTPConnection(*server.server_address, timeout=WAIT)
    connection.request("POST" if body is not None else "GET", path, json.dumps(body),
                       {"Content-Type": "application/json"} if body is not None else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text) if "json" in answer.getheader("Content-Type") else text


def test_vectors_are_the_embedders(serve, embedder):
    server = serve()
    texts = ["hello", "abc", "a longer text"]
    status, made = ask(server, {"input": texts, "model": "m"})
    assert status == 200 and made["object"] == "list" and made["model"] == "m"
    assert [each["index"] for each in made["data"]] == [0, 1, 2]
    wanted = embedder.embed(texts)
    np.testing.assert_array_equal(np.float32([each["embedding"] for each in made["data"]]), wanted)
    count = sum(len(embedder.tokens(each)) for each in texts)
    assert made["usage"] == {"prompt_tokens": count, "total_tokens": count}
    for given in ("hello", embedder.tokens("hello"), [embedder.tokens("hello")]):
        _, made = ask(server, {"input": given, "encoding_format": "base64"})
        row = np.frombuffer(base64.b64decode(made["data"][0]["embedding"]), "<f4")
        np.testing.assert_allclose(row, wanted[0], atol=1e-6)
    assert "heddle_finished_total 6\n" in ask(server, None, "/metrics")[1]


def test_requests_of_many_clients(serve, embedder):
    server, made = serve(slots=2), [None] * 8
    texts = ["x" * (1 + i) for i in range(8)]

    def go(i):
        made[i] = ask(server, {"input": texts[i]})

    threads = [threading.Thread(target=go, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text, (status, answer) in zip(texts, made):
        assert status == 200
        np.testing.assert_array_equal(np.float32(answer["data"][0]["embedding"]),
                                      embedder.embed(text))


@pytest.mark.parametrize("body, status, message", [
    ({}, 400, "'input' must be a text"), ({"input": []}, 400, "has 0 texts"),
    ({"input": ["a"] * 2049}, 400, "has 2049 texts"), ({"input": ""}, 400, "the text is empty"),
    ({"input": [[999]]}, 400, "token 999 is none"), ({"input": [{}]}, 400, "the text is empty"),
    ({"input": "a", "model": "b"}, 404, "there is no model 'b'"),
    ({"input": "a", "encoding_format": "hex"}, 400, "'encoding_format' is 'hex'"),
    ({"input": "a", "dimensions": 5}, 400, "'dimensions' is 5, but the model has 32"),
    ({"input": "a" * 99}, 400, "has 50 tokens, but"),
])
def test_bad_requests_are_told(serve, body, status, message):
    found, made = ask(serve(), body)
    assert found == status and message in made["error"]["message"]


def test_other_paths_a_full_queue_and_the_end(serve, embedder, monkeypatch):
    server = serve(waiting=1)
    status, made = ask(server, {"prompt": "a"}, "/v1/completions")
    assert status == 404 and made["error"]["message"].endswith("POST /v1/embeddings")
    gate, embed = threading.Event(), embedder.embed
    monkeypatch.setattr(embedder, "embed", lambda tokens: gate.wait(WAIT) and embed(tokens))
    threads = [threading.Thread(target=ask, args=(server, {"input": "a"})) for _ in range(2)]
    for thread in threads:
        thread.start()
    while not (server.engine.running == server.engine.queued == 1):
        pass
    status, made = ask(server, {"input": "a"})
    assert status == 503 and "1 requests wait already" in made["error"]["message"]
    gate.set()
    for thread in threads:
        thread.join()
    server.engine.end(WAIT)
    assert "shutting down" in ask(server, {"input": "a"})[1]["error"]["message"]
    late = serve(seconds=0.0)
    late.engine.running = 1
    assert ask(late, {"input": "a"})[0] == 504
    late.engine.running = 0


def test_the_command_finds_out_what_a_folder_is(embedder, monkeypatch):
    found = []

    def listen(engine, **options):
        found.append(engine)
        raise OSError("no")

    monkeypatch.setattr("heddle.stops.Stops", lambda: None)
    monkeypatch.setattr(program, "Server", listen)
    assert program.main([embedder.facts.where.strip("'"), "--threads", "1"]) == 2
    assert isinstance(found[0], EmbedEngine)
