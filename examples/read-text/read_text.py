"""Reads the lines of text in an image with three trained networks compiled by Heddle.

    ./dev demo        (or: python examples/read-text/read_text.py [--engine onnxruntime])

PP-OCRv4 finds the lines (det), says which are upside down (cls), and reads them (rec). The models
come from a PyPI package; the page is drawn here. Each line of text has another width, and one
artefact serves all of them. Exit status 1 when a line was misread.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import onnx  # noqa: E402
import onnxruntime  # noqa: E402

import pages  # noqa: E402
from bench.models import catalogue  # noqa: E402

CACHE = ROOT / "build" / "demo"
STAGES = {"det": "ppocr_det", "cls": "ppocr_cls", "rec": "ppocr_rec"}


def open_onnxruntime(path, threads):
    """A session of ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def open_heddle(path, threads):
    """A session of a model's artefact, compiled when model or compiler is newer than it."""
    import heddle

    artefact = CACHE / (path.stem + ".so")
    compiler = (ROOT / "build" / "release" / "lib").glob("libheddle.so")
    newest = max(file.stat().st_mtime for file in (path, *compiler))
    if not artefact.exists() or artefact.stat().st_mtime < newest:
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"   compiling {path.name} ...", end=" ", flush=True)
        start = time.perf_counter()
        heddle.compile(str(path), output=str(artefact))
        print(f"{time.perf_counter() - start:.1f} s")
    return heddle.Session(str(artefact), threads=threads)


class Reader:
    """The three networks in one engine; `seconds` sums the time spent in each."""

    def __init__(self, open_session, paths, alphabet, threads):
        self.sessions = {stage: open_session(path, threads) for stage, path in paths.items()}
        self.alphabet = alphabet
        self.seconds = dict.fromkeys(paths, 0.0)

    def run(self, stage, tensor):
        """The first output of a stage's network."""
        session = self.sessions[stage]
        feeds = {session.get_inputs()[0].name: np.ascontiguousarray(tensor)}
        start = time.perf_counter()
        outputs = session.run(None, feeds)
        self.seconds[stage] += time.perf_counter() - start
        return outputs[0]

    def read(self, page):
        """The lines of a page, top to bottom."""
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        lines = []
        for left, top, right, bottom in pages.find_boxes(
                self.run("det", pages.to_tensor(page))[0, 0]):
            line = page[top:bottom, left:right]
            upright, turned = self.run("cls", pages.to_tensor(pages.fit(line, 48, 192)))[0]
            if turned > max(upright, 0.9):
                line = line[::-1, ::-1]
            scores = self.run("rec", pages.to_tensor(pages.fit(line, 48)))[0]
            lines.append(pages.decode(scores, self.alphabet))
        return lines


def read_timed(reader, page, rounds):
    """The lines, and the median milliseconds of each stage over some rounds after a first one."""
    lines, times = reader.read(page), []
    for _ in range(rounds):
        reader.read(page)
        times.append(list(reader.seconds.values()))
    return lines, 1e3 * np.median(times, axis=0)


def main():
    """Reads the page with each engine; 0 when every line is right."""
    parser = argparse.ArgumentParser(description="read the text of an image")
    parser.add_argument("--engine", choices=["heddle", "onnxruntime"],
                        help="only this one instead of both, side by side")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds (default 5)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="of each engine (default: all that this process may use)")
    options = parser.parse_args()
    paths = {stage: catalogue.find(name).path() for stage, name in STAGES.items()}
    openers = {"heddle": open_heddle, "onnxruntime": open_onnxruntime}
    engines = [options.engine] if options.engine else list(openers)
    readers = {}
    for engine in engines:
        readers[engine] = Reader(openers[engine], paths, read_alphabet(paths["rec"]),
                                 options.threads)
    page, wrong, times = pages.make_page(), 0, {}
    for engine, reader in readers.items():
        lines, times[engine] = read_timed(reader, page, options.rounds)
        print(f"\n{engine} read:")
        for number in range(max(len(lines), len(pages.LINES))):
            got = lines[number] if number < len(lines) else "(nothing)"
            want = pages.LINES[number] if number < len(pages.LINES) else "(nothing)"
            wrong += got != want
            print(f"   {got}" + (f"      <- wrong: the page says '{want}'" if got != want else ""))
    print(f"\n{'ms a page':12}" + "".join(f"{stage:>10}" for stage in STAGES) + f"{'all':>10}")
    for engine, row in times.items():
        print(f"{engine:12}" + "".join(f"{t:10.1f}" for t in (*row, row.sum())))
    print(f"\n{'all lines are right' if not wrong else f'{wrong} lines are wrong'}")
    return 1 if wrong else 0


def read_alphabet(path):
    """Blank, the characters that the recogniser's file carries, and the space."""
    properties = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    return ["", *properties["character"].splitlines(), " "]


if __name__ == "__main__":
    sys.exit(main())
