"""Language models whose weights have 4 bits, by Heddle's methods and by those of others.

    ./dev bench weights [--steps N] [--only TEXT...]

The network is a GPT of single bytes, trained on the language reference of Python, which comes with
Python; a tenth of the text is held out. All take the same batches to calibrate with, blocks of 32
and MatMul alone. All models are run by Heddle. `kl` is the mean divergence of the distributions of
the next byte from those of the f32 model, `perplexity` that of the text.
"""

import argparse
import contextlib
import copy
import json
import logging
import math
import pydoc_data.topics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from heddle.quantize import measure, observe
from onnxruntime import quantization
from onnxruntime.quantization import matmul_nbits_quantizer as nbits

import heddle
from bench.kernels import report
from bench.models import tool
from bench.networks import trained

STORE = tool.RESULTS / "weights.json"
LENGTH, BATCH, BLOCK, OPSET = 128, 16, 32, 21
HELD = 8  # batches
SIZES = {"words": 256, "length": LENGTH, "width": 256, "heads": 4, "layers": 4}


def texts():
    """(bytes to train with, bytes that are held out)."""
    topics = pydoc_data.topics.topics
    text = np.frombuffer("\n".join(topics[name] for name in sorted(topics)).encode(), np.uint8)
    cut = len(text) * 9 // 10
    return text[:cut].astype(np.int64), text[cut:].astype(np.int64)


def batches(text, count, seed):
    """Batches of a text, each [BATCH, LENGTH + 1]."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        starts = random.integers(0, len(text) - LENGTH - 1, BATCH)
        yield np.stack([text[at:at + LENGTH + 1] for at in starts])


def network(steps):
    """The trained network, which is kept."""
    torch.manual_seed(0)
    made, path = trained.Gpt(**SIZES), tool.RESULTS / f"gpt_bytes_{steps}.pt"
    if path.exists():
        made.load_state_dict(torch.load(path))
        return made.eval()
    optimizer = torch.optim.AdamW(made.parameters(), 2e-3, weight_decay=0.1)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps + 1)
    for ids in batches(texts()[0], steps, 0):
        ids = torch.from_numpy(ids)
        loss = torch.nn.functional.cross_entropy(made(ids[:, :-1]).flatten(0, 1),
                                                 ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
        rate.step()
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(made.state_dict(), path)
    return made.eval()


def exported(made):
    """The network as ONNX."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = str(Path(folder) / "gpt.onnx")
        torch.onnx.export(made, (torch.zeros(BATCH, LENGTH, dtype=torch.long),), path,
                          input_names=["ids"], output_names=["logits"], opset_version=17,
                          dynamo=False, dynamic_axes={"ids": {0: "batch"}, "logits": {0: "batch"}})
        return onnx.load(path)


class Reader(quantization.CalibrationDataReader):
    """Samples as ONNX Runtime asks for them."""

    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def by_onnxruntime(model, feeds, how):
    """A model of ONNX Runtime's MatMulNBitsQuantizer."""
    form = quantization.QuantFormat.QOperator
    algorithm = {
        "rtn": lambda: nbits.DefaultWeightOnlyQuantConfig(BLOCK, True, quant_format=form),
        "rtn, zero points": lambda: nbits.DefaultWeightOnlyQuantConfig(BLOCK, False,
                                                                       quant_format=form),
        "hqq": lambda: nbits.HQQWeightOnlyQuantConfig(BLOCK, quant_format=form),
        "gptq": lambda: nbits.GPTQWeightOnlyQuantConfig(Reader(feeds), block_size=BLOCK),
    }[how]()
    given = copy.deepcopy(model)
    maker = nbits.MatMulNBitsQuantizer(given, BLOCK, how == "rtn", algo_config=algorithm)
    maker.process()
    return maker.model.model


def by_nncf(model, feeds, more):
    """A model of NNCF's compress_weights."""
    import nncf

    given = onnx.version_converter.convert_version(model, OPSET)
    given.ir_version = 10
    return nncf.compress_weights(
        given, mode=nncf.CompressWeightsMode.INT4_SYM, ratio=1.0, group_size=BLOCK, all_layers=True,
        dataset=nncf.Dataset(feeds) if more else None, ignored_scope=nncf.IgnoredScope(
            types=["Gather"]), **more)


def by_torch(made, feeds):
    """The reference of GPTQ in torch: layer by layer, each on inputs of those quantised before,
    columns by their inputs, scales of a block beforehand. Weights stay f32 numbers."""
    made = copy.deepcopy(made)
    layers = [each for each in made.modules() if isinstance(each, torch.nn.Linear)]
    with torch.no_grad():
        for layer in layers:
            total = torch.zeros(layer.in_features, layer.in_features, dtype=torch.float64)

            def add(_, inputs, total=total):
                rows = inputs[0].flatten(0, -2).double()
                total += rows.T @ rows
            hook = layer.register_forward_pre_hook(add)
            for feed in feeds:
                made(torch.from_numpy(feed["ids"]))
            hook.remove()
            layer.weight.copy_(_gptq(layer.weight.double(), total))
    return exported(made)


def _gptq(weight, products):
    order = torch.argsort(torch.diag(products), descending=True)
    scale = weight.unflatten(1, (-1, BLOCK)).abs().amax(2).repeat_interleave(BLOCK, 1) / 7.5
    weight, scale, products = weight[:, order], scale[:, order], products[order][:, order]
    products += 0.01 * torch.diag(products).mean() * torch.eye(len(products))
    inverse = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(products)),
                                    upper=True)
    for at in range(weight.shape[1]):
        found = (weight[:, at] / scale[:, at]).round().clamp(-8, 7) * scale[:, at]
        error = (weight[:, at] - found) / inverse[at, at]
        weight[:, at + 1:] -= error[:, None] * inverse[at, at + 1:]
        weight[:, at] = found
    return weight[:, torch.argsort(order)].float()


def makers(made, model, feeds):
    """{name: a function that makes a model}."""
    def ours(**options):
        return lambda: heddle.quantize(model, feeds, threads=1, ops=["MatMul"], weights="int4",
                                       block=BLOCK, **options)
    found = {f"heddle {name}": ours(**options) for name, options in {
        "rtn": {}, "rtn, zero points": {"symmetric": False}, "rtn, mse": {"weight_scale": "mse"},
        "gptq": {"method": "gptq"}, "gptq, mse": {"method": "gptq", "weight_scale": "mse"},
        "gptq, act_order": {"method": "gptq", "act_order": True},
        "gptq, mse, zero points": {"method": "gptq", "weight_scale": "mse", "symmetric": False},
        "awq": {"method": "awq"},
        "awq, zero points": {"method": "awq", "symmetric": False}}.items()}
    for how in ("rtn", "rtn, zero points", "hqq", "gptq"):
        found[f"onnxruntime {how}"] = lambda how=how: by_onnxruntime(model, feeds, how)
    found["torch gptq, act_order"] = lambda: by_torch(made, feeds)
    for name, more in {"": {}, ", awq": {"awq": True}, ", scale estimation": {
            "scale_estimation": True}, ", gptq": {"gptq": True}}.items():
        found[f"nncf rtn{name}"] = lambda more=more: by_nncf(model, feeds, more)
    return found


def logs(logits):
    """Logarithms of probabilities."""
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def judged(module, held, wanted):
    """Figures of a model's logits beside those that are wanted."""
    error, losses, divergences = measure.OutputError("logits"), [], []
    for ids, logits in zip(held, wanted):
        found = module.run(None, {"ids": ids[:, :-1]})[0]
        error.add(logits, found)
        ours, theirs = logs(found), logs(logits)
        losses.append(-np.take_along_axis(ours, ids[:, 1:, None], -1).mean())
        divergences.append((np.exp(theirs) * (theirs - ours)).sum(axis=-1).mean())
    return {"decibels": error.decibels, "kl": float(np.mean(divergences)),
            "perplexity": math.exp(np.mean(losses))}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=600, help="of training")
    options.add_argument("--samples", type=int, default=10, help="batches to calibrate with")
    options.add_argument("--only", nargs="+", default=[""], metavar="TEXT")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    made = network(given.steps)
    model, (text, rest) = exported(made), texts()
    feeds = [{"ids": ids[:, :-1]} for ids in batches(text, given.samples, 1)]
    held = list(batches(rest, HELD, 2))
    reference = observe.compiled(model, 1)
    wanted = [reference.run(None, {"ids": ids[:, :-1]})[0] for ids in held]
    found = [{"name": "f32", "seconds": 0.0, "mib": model.ByteSize() / 2**20,
              **judged(reference, held, wanted)}]
    for name, make in makers(made, model, feeds).items():
        if not any(name.startswith(each) for each in given.only):
            continue
        begin = time.perf_counter()
        try:
            with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
                quantised = make()
        except Exception as error:  # a rival's own, of any kind
            print(f"{name} left out: {str(error).strip().splitlines()[-1]}", flush=True)
            continue
        found.append({"name": name, "seconds": time.perf_counter() - begin,
                      "mib": quantised.ByteSize() / 2**20,
                      **judged(observe.compiled(quantised, 1), held, wanted)})
        print(json.dumps(found[-1]), flush=True)
    STORE.parent.mkdir(parents=True, exist_ok=True)
    STORE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"`./dev bench weights`, {given.steps} steps; {report.machine()}.", "", *report.table(
        ["weights", "logits, dB", "KL", "perplexity", "MiB", "s"],
        ((each["name"], f"{each['decibels']:.1f}", f"{each['kl']:.2e}",
          f"{each['perplexity']:.4f}", f"{each['mib']:.2f}", f"{each['seconds']:.1f}")
         for each in found)), sep="\n")


if __name__ == "__main__":
    main()
