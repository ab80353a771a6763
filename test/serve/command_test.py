"""`heddle serve`: its start, its end, and what it refuses."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest
from heddle.serve import __main__ as program

import tiny
from command import OK, USAGE, heddle, needs_heddle

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers", "jinja2"):
    pytest.importorskip(package)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.write(tmp_path_factory.mktemp("models") / "m", "qwen2")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_answers_end(folder, number):
    server = subprocess.Popen([sys.executable, "-m", "heddle.serve", folder, "--port", "0",
                               "--threads", "1", "--max-tokens", "200"],
                              stderr=subprocess.PIPE, text=True)
    port = int(re.search(r"'m' is at http://127.0.0.1:(\d+)/v1", server.stderr.readline())[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v1/completions", json.dumps(
        {"prompt": "abc", "max_tokens": 200, "ignore_eos": True, "stream": True}),
        {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.readline()  # it has begun
    server.send_signal(number)
    assert answer.read().endswith(b"data: [DONE]\n\n")
    errors = server.communicate(timeout=60)[1]
    assert server.returncode == OK and errors.endswith("heddle serve: ends\n")
    assert '"POST /v1/completions HTTP/1.1" 200' in errors and "Traceback" not in errors


def test_refusals(folder, capsys, monkeypatch):
    monkeypatch.setattr("heddle.stops.Stops", lambda: None)  # the tests have signals
    assert program.main(["/nowhere/model"]) == USAGE
    assert "heddle serve: '/nowhere/model': there is no such file" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        before = threading.active_count()
        assert program.main([str(folder), "--port", port, "--threads", "1"]) == USAGE
        assert f"cannot listen at 127.0.0.1, port {port}" in capsys.readouterr().err
    for arguments in (("--slots", "0"), ("--timeout", "x"), ("--port", "-1")):
        with pytest.raises(SystemExit, match=str(USAGE)):
            program.main([str(folder), *arguments])
    assert "number from 0 on" in capsys.readouterr().err
    assert threading.active_count() <= before + 1


@needs_heddle
def test_the_program_hands_over(folder):
    done = heddle("serve", "/nowhere/model")
    assert done.status == USAGE and "there is no such file" in done.errors
