"""heddle.quantize: ONNX models whose products are of 8-bit integers, in QDQ form.

    small = heddle.quantize("model.onnx", "samples.npz", report=print)
    onnx.save(small, "model_int8.onnx")

`heddle quantize` is the same as a command (docs/guide/quantize.md). Both need the package onnx,
which is loaded with the first call. In the order of the work: graph.py reads a model, data.py the
samples; fold.py, equalise.py and smooth.py change weights so that they are easier to quantise;
places.py chooses ops and tensors, observe.py and calibrate.py their ranges; emit.py writes nodes;
branches.py measures single layers, and bias.py takes their mean errors back; mixed.py leaves layers
in f32; student.py and finetune.py train what is rounded. quantizer.py has these steps. With
`weights` those of weightonly/ are taken: lowbit.py rounds to the nearest, gptq.py and awq.py by the
inputs that weights meet; forms.py writes nodes.
SPDX-License-Identifier: Apache-2.0
"""

__all__ = ["quantize"]


def quantize(model, feeds=None, *, report=None, progress=None, **options):
    """The quantised model, an onnx.ModelProto.

    model    A path, the bytes of a model, or an onnx.ModelProto, which is left as it is.
    feeds    Samples of the inputs: an iterable of {name: array}, one run each; a .npz file, a
             folder or a list of them, or {name: array}, whose arrays count the samples in their
             first dimension. None: random numbers, about which the report has a word.
    report   Called with the Report: `str(report)` is for people, `report.facts` for programs.
    progress Called while the model is fine-tuned, first with {"epoch": 0} and the model before,
             and after each epoch with its facts and the model, or None where one before is better.
    options  Those of `heddle quantize --help`, with _ for -.
    """
    from .quantizer import run
    from .settings import Settings

    made, told = run(model, feeds, Settings.of(options), progress)
    if report is not None:
        report(told)
    return made
