"""trace: what runs took, as a Chrome trace that Perfetto and chrome://tracing open.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import threading
import time

MOST = 1_000_000  # events, as many as ONNX Runtime keeps


class Trace:
    """Events of one session: how it was made, each run, and within it each group of ops. Their
    times are microseconds since `start`, which is in nanoseconds since 1970, as ONNX Runtime's."""

    def __init__(self, prefix):
        self.start, self._begin = time.time_ns(), time.perf_counter_ns()
        second, rest = divmod(self.start, 10**9)
        date = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(second))
        self._path = f"{prefix}_{date}_{rest // 10**6:03}.json"
        self._events, self._names = [], []

    def made(self, module):
        """The session is there. An artefact that was loaded does not name its groups."""
        self._add("session_initialization", "Session", self._begin, self.now() - self._begin, {})
        if module.compiled is not None:
            self._names = [(group.get("name", ""), " ".join(group.get("ops", [])))
                           for group in module.compiled.plan.get("groups", [])]

    def now(self):
        return time.perf_counter_ns()

    def group(self, number, nanoseconds):
        """Called by the runtime after each group."""
        name, ops = self._names[number] if number < len(self._names) else (f"group {number}", "")
        about = {"group": number, "ops": ops}
        self._add(name, "Node", self.now() - nanoseconds, nanoseconds, about)

    def run(self, begin):
        self._add("model_run", "Session", begin, self.now() - begin, {})

    def _add(self, name, category, begin, nanoseconds, about):
        if len(self._events) < MOST:
            self._events.append({
                "cat": category, "pid": os.getpid(), "tid": threading.get_native_id(),
                "dur": nanoseconds // 1000, "ts": (begin - self._begin) // 1000, "ph": "X",
                "name": name, "args": about})

    def write(self):
        partial = f"{self._path}.{os.getpid()}.tmp"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(sorted(self._events, key=lambda event: event["ts"]), file)
        os.replace(partial, self._path)
        return self._path
