"""Many clients of a server beside llama.cpp's: first tokens, and tokens.

    ./dev bench serving [--sizes 100m 500m] [--kinds int8] [--clients 1 4 8] [--threads 1]

Weights are random, layers are Llama's (network.py), and all servers read one GGUF file. By turns,
each has so many clients for a while, which ask for texts one after the other: streams of 32 tokens
after 64 random ones. `llama-server` is llama.cpp's own, if it is on the PATH; `llama_cpp.server`
is that of its Python package, which computes one text at a time. Figures are the seconds to a
text's first token (the median of a turn), those of a token of all clients together, and those of
the server's CPU for a token, in which others that share the cores hardly count. Ratios are theirs
over Heddle's.
"""

import functools
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from bench.kernels import report
from bench.kernels.turns import ratio
from bench.llm import gguf_model, network
from bench.peers.member import Failed

PROMPT, ANSWER = 64, 32  # tokens
CONTEXT = 128  # tokens that a text may have
LIMIT = 600  # seconds for an answer, and for a server to compile and to start
REST = 0.3  # seconds before a turn
FIGURES = {"first": "first token", "token": "token of all", "cpu": "token's CPU"}


def heddle(model, port, threads, clients):
    return [sys.executable, "-m", "heddle.serve", model, "--port", port, "--threads", threads,
            "--slots", clients, "--max-length", CONTEXT, "--quiet"]


def llama_server(model, port, threads, clients):
    return ["llama-server", "-m", model, "--port", port, "--threads", threads, "--threads-batch",
            threads, "--parallel", clients, "--ctx-size", CONTEXT * clients]


def llama_cpp_server(model, port, threads, clients):
    return [sys.executable, "-m", "llama_cpp.server", "--model", model, "--port", port,
            "--n_threads", threads, "--n_threads_batch", threads, "--n_ctx", CONTEXT,
            "--interrupt_requests", False]


ENGINES = {"heddle": heddle, "llama-server": llama_server, "llama_cpp.server": llama_cpp_server}


class Server:
    """A server as a process."""

    def __init__(self, name, model, threads, clients, words):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.words, self.log = words, model.with_name(f"{name}.log")
        command = [str(each) for each in ENGINES[name](model, self.port, threads, clients)]
        if not shutil.which(command[0]):
            raise Failed(f"there is no {command[0]} on the PATH")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            self._wait()
        except Failed:
            self.close()
            raise

    def _wait(self):
        """Waits until it answers."""
        end = time.monotonic() + LIMIT
        while True:
            try:
                self.text(np.random.default_rng(0))
                return
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > end:
                    said = self.log.read_text(errors="replace").split("\n")
                    last = next((line for line in reversed(said) if line.strip()), "")
                    raise Failed(f"{error}; it said: {last[:200]}") from error
            time.sleep(0.2)

    def text(self, draw):
        """(Seconds to the first token of a text, its tokens)."""
        tokens = draw.integers(len(gguf_model.CONTROLS), self.words, PROMPT)
        prompt = "".join(map(gguf_model.word, tokens.tolist()))
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        begin, first, count = time.perf_counter(), None, 0
        try:
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": prompt, "max_tokens": ANSWER, "temperature": 0, "stream": True,
                 "ignore_eos": True}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status == 503:
                raise ConnectionError("the server is not ready")
            if answer.status != 200:
                raise Failed(f"status {answer.status}: {answer.read(200).decode(errors='replace')}")
            for line in answer:
                if line.startswith(b"data: {") and json.loads(line[6:])["choices"][0]["text"]:
                    first = first or time.perf_counter() - begin
                    count += 1
        finally:
            connection.close()
        if not count:
            raise Failed("a text has no tokens")
        return first, count

    def cpu(self):
        """Seconds of the CPU that the process has had."""
        values = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")

    def turn(self, clients, seconds):
        """The FIGURES of clients that ask for texts, until so many seconds have gone."""
        texts, failures = [], []

        def client(number):
            draw = np.random.default_rng([number, time.monotonic_ns()])
            try:
                while not failures and (not texts or time.perf_counter() < begin + seconds):
                    texts.append(self.text(draw))
            except (OSError, ValueError, LookupError, http.client.HTTPException, Failed) as error:
                failures.append(error)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
        begin, cpu = time.perf_counter(), self.cpu()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise Failed(f"{type(failures[0]).__name__}: {failures[0]}")
        count = sum(each for _, each in texts)
        return {"first": statistics.median(first for first, _ in texts),
                "token": (time.perf_counter() - begin) / count, "cpu": (self.cpu() - cpu) / count}

    def close(self):
        self.process.kill()
        self.process.wait()


def measure_clients(servers, clients, given):
    """{figure: {name: one of each turn}}"""
    turns = {figure: {name: [] for name in servers} for figure in FIGURES}
    draw = np.random.default_rng(clients)
    for _ in range(given.rounds):
        for name in draw.permutation(list(servers)).tolist():
            time.sleep(REST)
            for figure, value in servers[name].turn(clients, given.turn / 1e3).items():
                turns[figure][name].append(value)
    return turns


def measure(given):
    for size in given.sizes:
        for kind in given.kinds:
            with tempfile.TemporaryDirectory(prefix="heddle-serving-") as folder:
                yield from measure_model(Path(folder), size, kind, given)


def measure_model(folder, size, kind, given):
    (folder / "config.json").write_text(json.dumps(network.config(size, CONTEXT)))
    made, model, servers = network.decoder(folder), folder / "model.gguf", {}
    gguf_model.write(made, network.Random(made, kind), kind, model, CONTEXT, has_words=True)
    try:
        for name in given.engines:
            try:
                servers[name] = Server(name, model, given.threads, max(given.clients), made.words)
            except Failed as failure:
                print(f"{name} is left out: {failure}", file=sys.stderr, flush=True)
        if "heddle" not in servers:
            raise SystemExit("bench: heddle serve has not started")
        for clients in given.clients:
            row = {"what": f"{size} {kind}", "clients": clients, "load": os.getloadavg()[0],
                   "turns": measure_clients(servers, clients, given)}
            print(json.dumps(row), file=sys.stderr, flush=True)
            yield row
    finally:
        for server in servers.values():
            server.close()


def lines(found):
    names = list(dict.fromkeys(name for row in found for name in row["turns"]["first"]))
    for figure, title in FIGURES.items():
        rows = []
        for row in found:
            turns = row["turns"][figure]
            beside = functools.partial(ratio, turns, under="heddle")
            rows.append((row["what"], row["clients"], f"{row['load']:.0f}", *(
                "-" if name not in turns else report.spread(beside(name)) if name != "heddle"
                else f"{1e3 * statistics.median(turns[name]):.1f}" for name in names)))
        yield from report.table(
            ("model", "clients", "load", *(f"{title}: heddle, ms" if name == "heddle" else name
                                           for name in names)), rows)
        yield ""


def main():
    options = report.arguments(__doc__, 5, 5000)
    options.add_argument("--sizes", nargs="+", choices=network.SIZES, default=["100m"])
    options.add_argument("--kinds", nargs="+", choices=network.BITS, default=["int8"])
    options.add_argument("--clients", nargs="+", type=int, default=[1, 4, 8])
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    report.tell("serving", options.parse_args(), measure, lines)


if __name__ == "__main__":
    main()
