"""Clients that come, wait and leave: python test/serve/stress.py [--seconds 600] [--clients 32]

Each client asks for texts, whole or as streams, and compares them with those of a generator of its
own; each second one more leaves in the middle of a stream. At the end the server holds no text, and
has as many threads and files and about as much memory as at its start.
"""

import argparse
import http.client
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "generate")]
import tiny  # noqa: E402
from heddle.generate import Generator  # noqa: E402

PROMPTS = ["hello", "abc " * 20, "what is a card?", "xyz", "once upon a time " * 5, "q"]
SETTINGS = [{"temperature": 0}, {"temperature": 0.9, "seed": 5}, {"temperature": 0, "stop": "a"}]
WARM = 0.2  # of the time, after which memory is looked at
ROOM = 24 << 20  # bytes that memory may grow by after that: what an allocator keeps
END = 30  # seconds, in which what was left is cleared away


class Server:
    """`heddle serve` as a process."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "heddle.serve", str(folder), "--port", "0", "--threads", "1",
             "--slots", "8", "--quiet"], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        self.port = int(re.search(r"at http://127.0.0.1:(\d+)/v1", line)[1])

    def ask(self, path, body=None):
        """The connection and the answer of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET" if body is None else "POST", path, body and json.dumps(body),
                           {"Content-Type": "application/json"})
        return connection, connection.getresponse()

    def metrics(self):
        connection, answer = self.ask("/metrics")
        text = answer.read().decode()
        connection.close()
        return {line.split()[0].removeprefix("heddle_"): float(line.split()[1])
                for line in text.splitlines() if not line.startswith("#")}

    def holds(self):
        """Bytes, threads and files of the process."""
        place = Path(f"/proc/{self.process.pid}")
        status = (place / "status").read_text()
        return {"bytes": int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10,
                "threads": int(re.search(r"Threads:\s+(\d+)", status)[1]),
                "files": len(list((place / "fd").iterdir()))}

    def end(self):
        self.process.terminate()
        self.process.communicate(timeout=60)
        return self.process.returncode


class Stress:
    """Counts of texts, and complaints."""

    def __init__(self, folder, seconds, clients):
        model = Generator(folder, threads=1)
        self.cases = [(prompt, settings, count, Generator(model.model).generate(
            prompt, max_tokens=count, ignore_eos=True, **settings).text)
            for (prompt, settings), count in zip(itertools.product(PROMPTS, SETTINGS),
                                                 itertools.cycle((7, 40, 90)))]
        self.server = Server(folder)
        self.end = time.monotonic() + seconds
        self.seconds, self.clients = seconds, clients
        self.texts = self.left = self.full = 0
        self.complaints, self._lock = [], threading.Lock()

    def count(self, name):
        with self._lock:
            setattr(self, name, getattr(self, name) + 1)

    def complain(self, text):
        with self._lock:
            self.complaints.append(text)

    def client(self, number):
        draw = random.Random(number)
        while time.monotonic() < self.end:
            prompt, settings, count, wanted = draw.choice(self.cases)
            is_stream = draw.random() < 0.5
            body = {"prompt": prompt, "max_tokens": count, "ignore_eos": True, "stream": is_stream,
                    **settings}
            try:
                connection, answer = self.server.ask("/v1/completions", body)
                data = answer.read().decode()
                connection.close()
                if answer.status == 503:
                    self.count("full")
                    time.sleep(0.1)
                    continue
                if is_stream:
                    events = [json.loads(each[6:]) for each in data.split("\n\n")[:-2]]
                    text = "".join(each["choices"][0]["text"] for each in events)
                else:
                    text = json.loads(data)["choices"][0]["text"]
            except (OSError, ValueError, LookupError, http.client.HTTPException) as error:
                self.complain(f"client {number}: {type(error).__name__}: {error}")
                continue
            if text != wanted:
                self.complain(f"client {number}: {body} gave {text!r}, not {wanted!r}")
            self.count("texts")

    def leaver(self):
        while time.monotonic() < self.end:
            try:
                connection, answer = self.server.ask("/v1/completions", {
                    "prompt": "leave", "max_tokens": 240, "ignore_eos": True, "stream": True})
                answer.readline()
                connection.close()
                answer.close()
                self.count("left")
            except OSError as error:
                self.complain(f"the client that leaves: {error}")
            time.sleep(min(1.0, max(0.0, self.end - time.monotonic())))

    def run(self):
        """The complaints, and what was counted."""
        before = self.server.holds()
        threads = [threading.Thread(target=self.client, args=(i,)) for i in range(self.clients)]
        threads.append(threading.Thread(target=self.leaver))
        for thread in threads:
            thread.start()
        time.sleep(self.seconds * WARM)
        warm = self.server.holds()
        for thread in threads:
            thread.join()
        end = time.monotonic() + END
        while True:  # connections that were left are seen within a tenth of a second
            numbers, after = self.server.metrics(), self.server.holds()
            is_clear = numbers["running"] == numbers["waiting"] == 0 and (
                after["threads"] <= before["threads"] + 1 and after["files"] <= before["files"] + 1)
            if is_clear or time.monotonic() > end:
                break
            time.sleep(0.1)
        if not is_clear:
            self.complain(f"the server holds {numbers['running']:g} texts, {numbers['waiting']:g} "
                          f"wait, and {after}; at its start {before}")
        if after["bytes"] > warm["bytes"] + ROOM:
            self.complain(f"memory has grown from {warm['bytes'] >> 20} to {after['bytes'] >> 20} "
                          "MiB")
        if numbers["failed_total"] or numbers["finished_total"] < self.texts:
            self.complain(f"{numbers['failed_total']:g} texts failed, "
                          f"{numbers['finished_total']:g} of {self.texts} ended")
        if status := self.server.end():
            self.complain(f"the server has ended with {status}")
        return self.complaints, {
            "texts": self.texts, "left": self.left, "full": self.full, "metrics": numbers,
            "before": before, "warm": warm, "after": after}


def run(seconds, clients):
    with tempfile.TemporaryDirectory() as place:
        return Stress(tiny.write(Path(place) / "m", "mistral"), seconds, clients).run()


def main():
    parser = argparse.ArgumentParser(description="stress heddle serve")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=32)
    options = parser.parse_args()
    complaints, counts = run(options.seconds, options.clients)
    print(json.dumps(counts, indent=1))
    print("\n".join(complaints[:20] or ["no complaints"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
