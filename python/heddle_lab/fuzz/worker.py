"""worker: a process in which models are checked, so that a crash or a hang is only a finding.

SPDX-License-Identifier: Apache-2.0
"""

import importlib
import multiprocessing
import os
import resource
import signal
import tempfile
import traceback

import onnx

from .check import AGREES, Outcome

MEMORY_BYTES = 12 << 30
TAIL = 3000  # characters of what a dying process said


def judge_of(kind):
    """The function that checks a model of this kind."""
    module = {"node": ".nodes.judge", "model": ".check"}.get(kind, f".{kind}")
    judge = "check" if kind == "model" else "judge"
    return getattr(importlib.import_module(module, __package__), judge)


def serve(pipe, log, is_peer_working, kind):
    """The child: answers requests until the pipe closes."""
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    from .evaluate import on_peer

    judge = judge_of(kind)
    on_peer[0] = lambda is_working: setattr(is_peer_working, "value", is_working)
    while True:
        try:
            data, cases, threads = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(judge(onnx.load_from_string(data), cases, threads))
        except Exception:  # noqa: BLE001: a mistake of the check, or an odd answer of a library
            pipe.send(Outcome("check failed", traceback.format_exc()))


class Worker:
    """One such process, started again after it died. One model at a time: begin, then finish."""

    def __init__(self, kind="model"):
        self.kind = kind  # that of a Campaign
        self.process = self.pipe = self.log = self.is_peer_working = None

    def start(self):
        context = multiprocessing.get_context("fork")
        self.log = tempfile.TemporaryFile()
        self.pipe, theirs = context.Pipe()
        self.is_peer_working = context.Value("b", False, lock=False)
        self.process = context.Process(
            target=serve, args=(theirs, self.log.fileno(), self.is_peer_working, self.kind),
            daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, data, cases, threads=1):
        if self.process is None or not self.process.is_alive():
            self.stop()
            self.start()
        self.pipe.send((data, cases, threads))

    def finish(self, seconds):
        """The Outcome, waited for at most this long."""
        if not self.pipe.poll(seconds):
            is_theirs = self.is_peer_working.value
            self.stop()
            if is_theirs:
                return Outcome(AGREES, "another engine gave no answer within the limit")
            return Outcome("hang", "no answer within the limit")
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            return self.obituary()

    def obituary(self):
        code = self.process.exitcode
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        size = self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, size - TAIL))
        tail = self.log.read().decode(errors="replace")
        is_theirs = self.is_peer_working.value
        self.stop()
        if is_theirs:
            return Outcome(AGREES, f"another engine died of {name}")
        return Outcome("crash", f"{name}\n{tail}")

    def check(self, model, cases, seconds, threads=1):
        self.begin(model.SerializeToString(), cases, threads)
        return self.finish(seconds)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.log.close()
        self.process = self.pipe = self.log = None
