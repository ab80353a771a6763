"""Several threads of one process that call one loaded model at once."""

import threading
import time


def throughput(loaded, count, seconds):
    """Runs a second of `count` callers, each with outputs of its own, and the median and the 99th
    percentile of how long a call takes, in milliseconds."""
    runs = [loaded.caller() for _ in range(count)]
    for run in runs:
        run()
    taken, failures = [[] for _ in runs], []
    ready = threading.Barrier(count + 1)
    over = threading.Event()

    def call(run, times):
        ready.wait()
        try:
            while not times or not over.is_set():  # one run at least
                start = time.perf_counter_ns()
                run()
                times.append(time.perf_counter_ns() - start)
        except Exception as failure:  # noqa: BLE001: told by the thread that waits for us
            failures.append(failure)

    threads = [threading.Thread(target=call, args=pair) for pair in zip(runs, taken)]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    over.wait(seconds)
    over.set()
    for thread in threads:
        thread.join()
    passed = time.perf_counter() - start
    if failures:
        raise failures[0]
    every = sorted(value for times in taken for value in times)
    return {"runs_per_s": len(every) / passed, "median_ms": every[len(every) // 2] / 1e6,
            "p99_ms": every[int(0.99 * (len(every) - 1))] / 1e6}
