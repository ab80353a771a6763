"""A text classifier by torch.compile: checked against eager torch, timed, and trained.

    python torch_compile.py
"""

import statistics
import time

import heddle.torch  # noqa: F401: tells torch of the backend where Heddle is not installed
import torch
from torch import nn


class Classifier(nn.Module):
    """Tells whether a text has more of one letter than of another, by a layer of attention."""

    def __init__(self, words=16, size=32):
        super().__init__()
        self.words = nn.Embedding(words, size)
        self.layer = nn.TransformerEncoderLayer(size, 4, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(size, 2)

    def forward(self, texts):
        return self.out(self.layer(self.words(texts)).mean(1))


def batch(count, length=12):
    texts = torch.randint(0, 16, (count, length))
    return texts, ((texts == 1).sum(1) > (texts == 2).sum(1)).long()


def microseconds(call, runs=200):
    found = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(found)


def train(model, steps=200):
    compiled = torch.compile(model, backend="heddle", options={"fallback": "raise"})
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(steps):
        texts, classes = batch(64)
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(compiled(texts), classes)
        loss.backward()
        optimiser.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


def main():
    torch.manual_seed(0)
    model = Classifier()
    train(model)
    model.eval()
    fast = torch.compile(model, backend="heddle", options={"freeze": True, "fallback": "raise"})
    with torch.no_grad():
        texts, classes = batch(500)
        found = fast(texts)
        print(f"difference {float((found - model(texts)).abs().max()):.1e}")
        print(f"right {100 * float((found.argmax(1) == classes).float().mean()):.1f}%")
        one = texts[:2]
        fast(one)
        print(f"eager {microseconds(lambda: model(one)):.0f} us, "
              f"Heddle {microseconds(lambda: fast(one)):.0f} us")
    heddle.torch.export(model, (one,), dynamic_shapes=({0: torch.export.Dim("batch")},),
                        output="classifier.so")


if __name__ == "__main__":
    main()
