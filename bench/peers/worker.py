"""One engine in a process of its own: `python -m bench.peers.worker JOB`.

Answers questions, one JSON object a line: it reads them from its standard input and writes to what
was its standard output; what the engine prints goes to standard error. Threads, allocator and
waiting workers of one engine so disturb no other. Dies with the process that started it.
"""

import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import time

import numpy as np

from bench.peers import job as jobs

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def memory_of(field):
    """Bytes of a line of /proc/self/status, such as VmRSS and VmHWM."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field))


def resident_bytes():
    """Bytes resident once the allocator has given back what it holds for later."""
    LIBC.malloc_trim(0)
    return memory_of("VmRSS")


def seconds_of_cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Worker:
    """The answers; each method is a question."""

    def __init__(self, job):
        self.job = job
        self.engine = importlib.import_module(job.engine)
        self.loaded = None

    def prepare(self):
        """Compiles ahead of time, for engines that do; figures of their own take precedence."""
        start = time.perf_counter()
        found = self.engine.prepare(self.job) if hasattr(self.engine, "prepare") else {}
        return {"seconds": time.perf_counter() - start} | (found or {})

    def load(self):
        """Makes the engine ready, up to its first run. Its packages are imported before."""
        if hasattr(self.engine, "start"):
            self.engine.start(self.job)
        base = resident_bytes()
        start = time.perf_counter()
        self.loaded = self.engine.load(self.job)
        seconds = time.perf_counter() - start
        loaded = resident_bytes()
        self.loaded.run()
        return {"seconds": seconds, "base_bytes": base, "loaded_bytes": loaded,
                "first_run_s": time.perf_counter() - start - seconds}

    def outputs(self, path):
        """Writes the outputs of one run, in the model's order."""
        arrays = [np.asarray(value) for value in self.loaded.arrays(self.loaded.run())]
        np.savez(path, **{str(i): value for i, value in enumerate(arrays)})
        return {"count": len(arrays)}

    def run(self, times, warm=0):
        """Milliseconds of each run; `warm` runs before are not counted."""
        run, now, found = self.loaded.run, time.perf_counter_ns, []
        for _ in range(warm):
            run()
        for _ in range(times):
            start = now()
            run()
            found.append((now() - start) / 1e6)
        return {"ms": found}

    def memory(self, times):
        """The peak of resident memory over some runs."""
        LIBC.malloc_trim(0)
        with open("/proc/self/clear_refs", "w", encoding="utf-8") as refs:
            refs.write("5")
        self.run(times)
        return {"peak_bytes": memory_of("VmHWM")}

    def idle(self, seconds):
        """Seconds of CPU that go by while nothing is asked."""
        before = seconds_of_cpu()
        time.sleep(seconds)
        return {"cpu_s": seconds_of_cpu() - before}

    def serve(self, callers, seconds):
        """Runs a second of a few caller threads; see callers.py."""
        from bench.peers import callers as several
        return several.throughput(self.loaded, callers, seconds)


def first_line(failure):
    """One line that says what an exception is."""
    text = " ".join(str(failure).split())
    return f"{type(failure).__name__}: {text[:300]}" if text else type(failure).__name__


def main(path, kind=Worker):
    """Answers until its standard input ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what engines print is no reply
    job = jobs.read(path)
    if job.cores:
        os.sched_setaffinity(0, job.cores)
    worker = None
    for line in sys.stdin:
        question = json.loads(line)
        try:
            worker = worker or kind(job)
            answer = getattr(worker, question.pop("do"))(**question)
        except Exception as failure:  # noqa: BLE001: whatever an engine raises is its result
            answer = {"error": first_line(failure)}
        replies.write(json.dumps(answer) + "\n")
        replies.flush()


if __name__ == "__main__":
    main(sys.argv[1])
