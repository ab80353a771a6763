"""The corpus of measured candidates that models of costs are trained with.

    ./dev bench corpus [-o FILE] [--time S] [--collect N] [--drawn N] [--published N]
                       [--catalogue N] [--fuzz N]

For each model, `heddle tune --collect N` draws candidates of each of its groups from all that the
cards allow, and times them; all go into one file of tuning records (docs/spec/records.md). The
file says which models had which group. What is known is not measured again: the same command goes
on after it was ended, however that was. One thread is measured by default: its time does not count
what other processes take of its core.
"""

import argparse
import json
import lzma
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.learning import sources
from bench.models import catalogue, tool

DEFAULT = tool.RESULTS / "corpus.db"


class Ended(Exception):
    """A signal asks for the end."""


def _options():
    parser = argparse.ArgumentParser(prog="./dev bench corpus", description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=DEFAULT, metavar="FILE",
                        help="the file of records (default %(default)s)")
    parser.add_argument("--time", type=float, metavar="S", help="stop after S seconds")
    parser.add_argument("--model-time", type=float, default=60, metavar="S",
                        help="that one model may take (default %(default)s)")
    parser.add_argument("--collect", type=int, default=24, metavar="N",
                        help="candidates of each group (default %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pack", type=Path, metavar="FILE.xz",
                        help="measure nothing, but write the file of records compressed")
    for kind, count in (("drawn", 220), ("published", 64), ("catalogue", 100), ("fuzz", 60)):
        parser.add_argument(f"--{kind}", type=int, default=count, metavar="N",
                            help=f"models of this kind (default at most {count})")
    return parser


def collect(path, options, seconds):
    """One model, within so many seconds: the JSON of the command, or the first line of its
    message."""
    command = [tool.find_heddle(), "tune", path, "--records", options.output, "--threads",
               options.threads, "--collect", options.collect, "--time", seconds, "--json"]
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    try:  # a planning that does not end counts as a failure
        output, errors = child.communicate(timeout=10 * seconds + 60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return "it took too long"
    except Ended:
        child.send_signal(signal.SIGINT)  # what it found stays
        child.communicate()
        raise
    return json.loads(output) if child.returncode == 0 else (errors.strip() or "?").split("\n")[0]


def counts_of(path):
    """(groups, trials that have a time, trials that failed) of a file of records."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    [row] = database.execute("SELECT count(DISTINCT key), count(*) FILTER (WHERE failure = ''), "
                             "count(*) FILTER (WHERE failure <> '') FROM trial")
    database.close()
    return row


def pack(path, into):
    """The file of records as it is at this moment, small."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "corpus.db"
        source, target = sqlite3.connect(f"file:{path}?mode=ro", uri=True), sqlite3.connect(copy)
        source.backup(target)
        target.execute("VACUUM")
        for database in (source, target):
            database.close()
        into.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def _end(*_):
    raise Ended


def run(options):
    """Collects until the models or the time are over."""
    options.output.parent.mkdir(parents=True, exist_ok=True)
    begin, done = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        counts = {kind: getattr(options, kind) for kind in sources.MAKERS}
        for name, path_of in sources.models(counts, folder):
            left = options.time - (time.monotonic() - begin) if options.time else float("inf")
            if left <= 5:
                break
            try:
                path = path_of()
            except catalogue.Missing as missing:
                print(f"{name}: left out: {missing}", flush=True)
                continue
            found = collect(path, options, min(options.model_time, left))
            if isinstance(found, str):
                print(f"{name}: {found}", flush=True)
            else:
                done += 1
                print(f"{name}: {len(found['groups'])} groups, {found['trials']} trials now, ended "
                      f"by {found['ended']}", flush=True)
            if folder in str(path):
                Path(path).unlink()
    return done


def main():
    options = _options().parse_args()
    if options.pack:
        pack(options.output, options.pack)
        print(f"{options.pack}: {options.pack.stat().st_size} bytes")
        return 0
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    try:
        print(f"{run(options)} models", flush=True)
    except Ended:
        print("ended; the same command goes on", flush=True)
    if not options.output.exists():
        return 1
    groups, timed, failed = counts_of(options.output)
    print(f"{options.output}: {groups} groups, {timed} candidates with a time, {failed} that "
          "failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
