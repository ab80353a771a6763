"""heddle.precision: which products of a model may be of smaller numbers, by a budget of error.

    plan = heddle.choose_precision("model.onnx", "samples.npz", tolerance=1e-2, report=print)
    module = heddle.compile("model.onnx", plan=plan, math="bf16")

`heddle compile --tolerance` does both (docs/guide/precision.md). search.py has the search,
choices.py what can be chosen, report.py what it tells. Samples are those of heddle.quantize.
SPDX-License-Identifier: Apache-2.0
"""

__all__ = ["choose_precision"]


def choose_precision(model, feeds=None, *, tolerance, math="bf16", report=None, progress=None,
                     each=False, untimed=False, batch=1, samples=None, dim=(), **options):
    """The plan of the model whose products are of smaller numbers where that saves time and no
    output is further than `tolerance` from the model in f32, relative to the output's largest
    number.

    model      A path, the bytes of a model, or an onnx.ModelProto.
    feeds      Samples of the inputs, as heddle.quantize takes them. None: random numbers, about
               which the report has a word.
    tolerance  Greatest error of an output, relative to its largest number; above 0.
    math       'bf16', which a target without such products refuses, 'bf16-emulated', or 'int8'.
    report     Called with the Report: `str(report)` is for people, `report.facts` for programs.
    progress   Called with a line for each compilation.
    each       Measure the error of each product alone, at a compilation each.
    untimed    Time nothing: the chooser says which products are faster, and estimates by how much.
    batch      Samples of a run, where the model leaves that open.
    samples    Use the first N samples at most.
    dim        Sizes of random inputs that the model leaves open: 'height=224'.
    options    Those of heddle.compile, but for `plan`, and what writes or loads files.
    """
    from .search import run

    plan, told = run(model, feeds, tolerance, progress, (batch, samples, tuple(dim)),
                     {**options, "math": math}, each=each, untimed=untimed)
    if report is not None:
        report(told)
    return plan
