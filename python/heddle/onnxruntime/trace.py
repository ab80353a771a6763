"""trace: what runs took, as a Chrome trace that Perfetto and chrome://tracing open.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import threading
import time

MOST = 1_000_000  # events, as many as ONNX Runtime keeps


class Trace:
    """Events of one session: each run, and within it each group of ops."""

    def __init__(self, module, prefix):
        self.start = time.perf_counter_ns()
        self._path = f"{prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}.json"
        self._events, self._names = [], self._names_of(module)

    @staticmethod
    def _names_of(module):
        """Of each group its name and ops; none for an artefact that was loaded."""
        if module.compiled is None:
            return []
        return [(group.get("name", ""), " ".join(group.get("ops", [])))
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
                "dur": nanoseconds / 1e3, "ts": (begin - self.start) / 1e3, "ph": "X",
                "name": name, "args": about})

    def write(self):
        partial = f"{self._path}.{os.getpid()}.tmp"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(sorted(self._events, key=lambda event: event["ts"]), file)
        os.replace(partial, self._path)
        return self._path
