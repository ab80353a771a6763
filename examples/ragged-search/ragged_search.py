"""A service that embeds texts and finds those nearest to a question, padded and ragged.

    python examples/ragged-search/ragged_search.py [--texts FILE.md...] [--ask QUESTION...]
    python examples/ragged-search/ragged_search.py --model minilm.onnx --tokenizer tokenizer.json

Texts arrive in batches and are embedded twice: by the model as it is, each batch padded to its
longest text, and by the model compiled with `ragged`. Both must find the same. Exit status 1 when
their embeddings differ.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if (ROOT / "python" / "heddle").is_dir():  # in the source tree; elsewhere pip has installed it
    sys.path.insert(0, str(ROOT / "python"))

import onnx  # noqa: E402

import encoder  # noqa: E402
import picture  # noqa: E402
import texts  # noqa: E402

import heddle  # noqa: E402

QUESTIONS = ["how are kernels tiled and vectorised", "the memory of a run", "which CPU can run it"]


class Service:
    """A compiled encoder: texts in, vectors of length 1 out."""

    def __init__(self, model, is_ragged, threads):
        places = {place.name: place for place in model.graph.input}
        batch, sequence = (dim.dim_param for dim in
                           places["attention_mask"].type.tensor_type.shape.dim)
        rows = f"{batch}:{sequence}=attention_mask" if is_ragged else None
        self.session = heddle.Session(heddle.compile(model, threads=threads, ragged=rows),
                                      threads=threads)
        self.others = [name for name in places if name not in ("input_ids", "attention_mask")]

    def embed(self, ids, mask):
        """The vectors of a batch."""
        zeros = {name: np.zeros_like(ids) for name in self.others}  # token_type_ids: one sentence
        found = self.session.run(None, {"input_ids": ids, "attention_mask": mask, **zeros})[0]
        if found.ndim == 3:  # the vectors of tokens: a text's is their mean
            kept = mask[:, :, None].astype(np.float32)
            found = (found * kept).sum(axis=1) / kept.sum(axis=1)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def timed(services, batch, rounds):
    """The vectors of a batch by each service, and the median milliseconds, taken by turns."""
    found = {name: service.embed(*batch) for name, service in services.items()}
    times = {name: [] for name in services}
    for _ in range(rounds):
        for name, service in services.items():
            start = time.perf_counter()
            service.embed(*batch)
            times[name].append(1e3 * (time.perf_counter() - start))
    return found, {name: float(np.median(times[name])) for name in services}


def arguments():
    parser = argparse.ArgumentParser(description="embed texts and search them, padded and ragged")
    parser.add_argument("--ask", nargs="+", default=QUESTIONS, metavar="QUESTION")
    parser.add_argument("--texts", nargs="+", type=Path, help="Markdown files (default: the docs)")
    parser.add_argument("--model", type=Path, help="an ONNX file that takes input_ids and "
                        "attention_mask, such as MiniLM's (default: one made here)")
    parser.add_argument("--tokenizer", type=Path, help="the model's tokenizer.json")
    parser.add_argument("--layers", type=int, default=6, help="of the model made here")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--batches", type=int, default=24, help="at most")
    parser.add_argument("--longest", type=int, default=256, help="tokens of a text that count")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--picture", type=Path, default=Path("ragged-search.svg"))
    given = parser.parse_args()
    if (given.model is None) != (given.tokenizer is None):
        parser.error("--model and --tokenizer come together")
    given.texts = given.texts or [file for where in ("*.md", "docs/guide/*.md", "docs/spec/*.md")
                                  for file in sorted(ROOT.glob(where))]
    return given


def main():
    """Embeds all, tells the times, draws them, answers; 0 when both agree."""
    given = arguments()
    held = texts.paragraphs(given.texts)
    np.random.default_rng(3).shuffle(held)  # they come from many callers, in no order
    held = held[:given.batch * given.batches]
    if not held:
        sys.exit("ragged_search: no texts; --texts names Markdown files")
    tokenizer = texts.Trained(given.tokenizer) if given.tokenizer else texts.Hashes()
    model = (onnx.load(given.model) if given.model else
             encoder.Encoder(tokenizer.rarity(held), layers=given.layers).whole())
    services = {name: Service(model, name == "ragged", given.threads)
                for name in ("padded", "ragged")}
    times, vectors, furthest = {name: [] for name in services}, [], 0.0
    print("batch  texts  longest  tokens  padding  padded, ms  ragged, ms")
    for start in range(0, len(held), given.batch):
        rows = [tokenizer(text, given.longest) for text in held[start:start + given.batch]]
        batch = texts.padded(rows)
        found, took = timed(services, batch, given.rounds)
        furthest = np.maximum(furthest, abs(found["padded"] - found["ragged"]).max())
        vectors.append(found["ragged"])
        for name, ms in took.items():
            times[name].append(ms)
        print(f"{start // given.batch + 1:5}  {len(rows):5}  {batch[0].shape[1]:7}  "
              f"{batch[1].sum():6}  {1 - batch[1].mean():7.0%}  {took['padded']:10.2f}  "
              f"{took['ragged']:10.2f}")
    padded, ragged = sum(times["padded"]), sum(times["ragged"])
    print(f"\nall {len(held)} texts: padded {padded:.1f} ms, ragged {ragged:.1f} ms, "
          f"{padded / ragged:.2f} times less; embeddings differ by at most {furthest:.1g}")
    picture.draw(times, given.picture)
    print(f"{given.picture} shows each batch")
    index = np.concatenate(vectors)
    for question in given.ask:
        near = index @ services["ragged"].embed(*texts.padded([tokenizer(question,
                                                                         given.longest)]))[0]
        print(f"\n{question}?")
        for place in near.argsort()[:-4:-1]:
            print(f"   {near[place]:.2f}  {held[place][:85]}")
    return 0 if furthest < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
