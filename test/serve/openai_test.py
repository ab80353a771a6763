"""OpenAI's own client against the server."""

import threading

import numpy as np
import pytest
from heddle.generate import Embedder, Generator
from heddle.serve import EmbedEngine, Engine, Server

import small_encoders
import tiny

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers", "jinja2"):
    pytest.importorskip(package)
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "temperature": 0}


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    return Generator(tiny.write(tmp_path_factory.mktemp("models") / "m", "qwen2"), threads=1)


def started(engine):
    server = Server(engine, port=0)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60)
    yield client
    client.close()
    server.shutdown()
    server.end(0)
    thread.join()


@pytest.fixture(scope="module")
def client(generator):
    yield from started(Engine(generator.model, 3))


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    embedder = Embedder(small_encoders.write(tmp_path_factory.mktemp("models") / "e"), threads=1)
    for client in started(EmbedEngine(embedder)):
        yield client, embedder


def test_chats_and_streams(client, generator):
    wanted = Generator(generator.model).chat("hello", max_tokens=12)
    made = client.chat.completions.create(**CHAT, max_completion_tokens=12, logprobs=True)
    assert made.choices[0].message.content == wanted.text
    assert len(made.choices[0].logprobs.content) == made.usage.completion_tokens
    with client.chat.completions.create(**CHAT, max_tokens=12, stream=True, stream_options={
            "include_usage": True}) as stream:
        chunks = list(stream)
    assert "".join(each.choices[0].delta.content or "" for each in chunks[:-1]) == wanted.text
    assert chunks[-1].usage.total_tokens == made.usage.total_tokens
    assert [each.id for each in client.models.list()] == ["m"]


def test_completions(client, generator):
    made = client.completions.create(model="m", prompt=["abc", [5, 6, 7]], max_tokens=9,
                                     temperature=0, logprobs=2)
    for choice, prompt in zip(made.choices, ("abc", [5, 6, 7])):
        assert choice.text == Generator(generator.model).generate(prompt, max_tokens=9).text


def test_a_stream_that_is_left_frees_its_place(client):
    for _ in range(5):
        with client.chat.completions.create(**CHAT, max_tokens=200, stream=True) as stream:
            next(iter(stream))
    assert client.chat.completions.create(**CHAT, max_tokens=2).choices


def test_formats_and_tools(client):
    pytest.importorskip("llguidance")
    pydantic = pytest.importorskip("pydantic")

    class Pair(pydantic.BaseModel):
        left: bool
        right: bool

    made = client.chat.completions.parse(**CHAT, max_tokens=200, response_format=Pair)
    assert isinstance(made.choices[0].message.parsed, Pair)
    tools = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
    made = client.chat.completions.create(**CHAT, max_tokens=90, tools=tools, extra_body={
        "grammar": {"lark": 'start: "{\\"name\\": \\"add\\", \\"arguments\\": {}}"'}})
    call, = made.choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("add", "{}")


def test_errors_are_the_clients(client):
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt'"):
        client.chat.completions.create(**{**CHAT, "model": "gpt"})
    with pytest.raises(openai.BadRequestError, match="'temperature' is 101"):
        client.chat.completions.create(**{**CHAT, "temperature": 101})
    with pytest.raises(openai.NotFoundError, match="there is no POST '/v1/embeddings'"):
        client.embeddings.create(model="m", input="a")


def test_vectors(vectors):
    client, embedder = vectors
    made = client.embeddings.create(model="e", input=["hello", "abc"])  # by base64
    np.testing.assert_allclose([each.embedding for each in made.data],
                               embedder.embed(["hello", "abc"]), atol=1e-6)
    made = client.embeddings.create(model="e", input="abc", encoding_format="float")
    np.testing.assert_allclose(made.data[0].embedding, embedder.embed("abc"), atol=1e-6)
