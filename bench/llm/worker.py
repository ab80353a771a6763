"""One engine with one decoder in a process of its own: `python -m bench.llm.worker JOB`."""

import sys
import time

import numpy as np

from bench.llm.engines import ENGINES
from bench.peers import worker


class Worker:
    """The answers; each method is a question."""

    def __init__(self, job):
        self.engine = ENGINES[job.engine](job)

    def prepare(self):
        self.engine.prepare()
        return {}

    def load(self):
        self.engine.load()
        return {}

    def start(self, past):
        """Has so many tokens before the next."""
        self.engine.start(past)
        return {}

    def logits(self, path, length=0):
        """Writes those of the next token, or of the last one of a prompt."""
        np.save(path, self.engine.prefill(length) if length else self.engine.token())
        return {}

    def run(self, times, length=0):
        """Seconds of so many tokens, or of prompts of a length: of one thread those of the CPU, in
        which others that share the core do not count."""
        engine, found = self.engine, []
        now = time.process_time if engine.threads == 1 else time.perf_counter
        for _ in range(times):
            if not length:
                engine.fresh()
            begin = now()
            if length:
                engine.prefill(length)
            else:
                engine.token()
            found.append(now() - begin)
        return {"seconds": found}

    def peak(self):
        """The most bytes that were resident so far."""
        return {"bytes": worker.memory_of("VmHWM")}


if __name__ == "__main__":
    worker.main(sys.argv[1], Worker)
