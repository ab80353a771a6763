"""apart: compilation in a process of its own, whose memory goes back to the system when it ends.

The parent writes the pickled arguments of `heddle.compile` to the child's standard input, and reads
lines of JSON: {"progress": [stage, fraction]}, and last {"report": ...} or {"error": [type, text]}.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

from . import compiler, library, session, workplace


def compile(model, *, progress=None, threads=None, **options):  # noqa: A001: as heddle.compile
    """heddle.compile without a trace of the compiler in this process: (module, its report). Where
    Python is a part of another program, there is no other process to be had."""
    if not sys.executable:
        module = compiler.compile(model, progress=progress, threads=threads, **options)
        return module, module.compiled.report
    with workplace.folder() as folder:
        output = os.path.join(folder, "model.so")
        options = {**options, "model": model, "threads": threads, "output": output}
        report = _ask(options, progress)
        return session.load(output, threads=threads), report


def _ask(options, progress):
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=False, env=environment) as child:
        try:
            with contextlib.suppress(BrokenPipeError), child.stdin:  # its end tells more
                pickle.dump({**options, "tells": progress is not None}, child.stdin)
            told = {}
            for line in child.stdout:
                told = json.loads(line)
                if "progress" in told:
                    progress(*told["progress"])
        except BaseException:
            child.kill()
            raise
    if "error" in told:
        kind, text = told["error"]
        raise getattr(library, kind)(text)
    if "report" not in told:
        raise library.InternalError(f"the process that compiles ended with {child.returncode}")
    return told["report"]


def main():
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what else is printed is no answer

    def tell(**what):
        try:
            print(json.dumps(what), file=answers, flush=True)
        except BrokenPipeError:  # the parent has ended
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent tells of it
    try:
        options = pickle.load(sys.stdin.buffer)
    except (EOFError, pickle.UnpicklingError):  # the parent has ended
        return
    if options.pop("tells"):
        options["progress"] = lambda *given: tell(progress=given)
    try:
        tell(report=compiler.compile(**options, load=False).report)
    except library.Error as error:
        tell(error=[type(error).__name__, str(error)])


if __name__ == "__main__":
    main()
