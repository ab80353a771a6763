"""Heddle: `heddle compile` into a shared library, which the C API runs.

The artefact takes all the sizes that the model leaves open.
"""

import hashlib
import os
from pathlib import Path

from bench.models import tool
from bench.peers.engines import Loaded

KEPT = False  # it is what changes: each contest compiles anew

def version():
    """The library's content is its version: it has no other between releases."""
    from heddle import library
    with open(library.library()._name, "rb") as file:
        return f"heddle {hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"


def prepare(job):
    """Compiles with the command, which is a process of its own."""
    done = tool.checked("compile", job.model, "-o", job.path("model.so"), "--threads", job.threads,
                        *job.options.get("arguments", []))
    return {"seconds": done.seconds, "compiler_peak_bytes": done.peak_bytes}


def start(_job):
    """Loads the runtime alone where there is one: an artefact needs no compiler."""
    from heddle import library
    places = [Path(path).with_name("libheddle_runtime.so")
              for path in (os.environ.get("HEDDLE_LIBRARY"), *library.candidates()) if path]
    alone = next((path for path in places if path.exists()), None)
    if alone:
        os.environ["HEDDLE_LIBRARY"] = str(alone)
    library.library()


def load(job):
    """Runs through the C API: inputs described once, outputs into memory that is kept, where their
    sizes are known before the run."""
    import heddle
    from heddle import arrays, library

    session = heddle.Session(str(job.path("model.so")), threads=job.threads)
    infos, feeds = session.get_inputs(), job.inputs()
    feeds = {info.name: feeds[info.name] for info in infos}
    inputs, alive = (library.Tensor * len(infos))(), []
    for i, info in enumerate(infos):
        inputs[i], value = arrays.feed(feeds[info.name], info)
        alive.append(value)
    session.run(None, feeds)  # wrong feeds get their message here
    function, number = library.function("heddle_session_run"), len(infos)

    def caller():
        """A run into outputs of its own."""
        results = session.run(None, feeds)
        count = len(results)
        outputs = (library.Tensor * count)()
        library.call("heddle_session_output_shapes", session._handle, inputs, number, outputs,
                     count)
        if any(tensor.bytes < 0 for tensor in outputs):
            return lambda: session.run(None, feeds)
        for tensor, value in zip(outputs, results):
            tensor.data, tensor.bytes = value.ctypes.data, value.nbytes

        def run():
            if function(session._handle, inputs, number, outputs, count):
                raise RuntimeError("heddle_session_run gave a status")
            return results

        return run

    caller.alive = alive
    return Loaded(caller(), list, caller)
