"""The near end of a worker: starts it, asks it, and takes its end or its silence for an answer."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Failed(Exception):
    """A worker could not answer; the text is for the report."""


class Late(Failed):
    """It did not answer in time."""


def environment(job):
    """The same number of threads said in each library's own way, and caches that are the job's."""
    threads = str(job.threads)
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS")
    return os.environ | {name: threads for name in names} | {
        "TVM_BIND_THREADS": "0",  # all of the process is bound to its cores already
        "CXX": os.environ.get("CXX", "g++"),  # what TorchInductor compiles with
        "TORCHINDUCTOR_CACHE_DIR": str(job.path("inductor")),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1",
    }


class Member:
    """A worker process with an engine in it."""

    def __init__(self, job, module="bench.peers.worker"):
        path = job.write()
        self.log = job.path("log")
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, path], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, cwd=ROOT, env=environment(job),
                start_new_session=True)
        self.unread = b""

    def ask(self, do, limit_seconds, **details):
        """The answer to one question; Failed when there is none in time, or it is an error."""
        try:
            self.process.stdin.write(json.dumps({"do": do} | details).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._end()) from None
        answer = json.loads(self._line(do, time.monotonic() + limit_seconds, limit_seconds))
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def _line(self, do, deadline, limit_seconds):
        stream = self.process.stdout.fileno()
        while b"\n" not in self.unread:
            ready, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                self.close()
                raise Late(f"no answer to '{do}' within {limit_seconds:.0f} s")
            chunk = os.read(stream, 1 << 16)
            if not chunk:
                raise Failed(self._end())
            self.unread += chunk
        line, self.unread = self.unread.split(b"\n", 1)
        return line

    def _end(self):
        """How the process ended, with the last thing that it said."""
        status = self.process.wait()
        said = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return f"died with {how}" + (f": {said[-1].strip()[:200]}" if said else "")

    def close(self):
        """Ends the process and what it has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
