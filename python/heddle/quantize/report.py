"""report: what quantisation has done, as text and as JSON.

SPDX-License-Identifier: Apache-2.0
"""


def _bytes(count):
    return f"{count / 2**20:.2f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


class Report:
    """`facts`: a dictionary of plain values; the text is made of it."""

    def __init__(self, facts):
        self.facts = facts
        self.bits = facts.get("weights") and f"weights of {facts['weights']}"

    def __str__(self):
        return "\n".join([*self._head(), *self._tuned(), *self._outputs(), *self._layers(),
                          *self._left()])

    def _head(self):
        facts, data = self.facts, self.facts["data"]
        where = (f"{data['held_out']} others" if data["held_out"] else
                 "the same one: with two or more, errors are measured on samples of their own")
        result = "ranges" if self.bits is None else "errors"
        what = f"random inputs: real ones give other {result}" if data["random"] else "given"
        layers = "layers as 8-bit integers" if self.bits is None else f"layers with {self.bits}"
        yield (f"{facts['model']}: {len(facts['layers'])} {layers}, "
               f"{len(facts['left'])} in f32; {_bytes(facts['bytes_before'])} became "
               f"{_bytes(facts['bytes_after'])} in {facts['seconds']:.1f} s")
        yield f"samples ({what}): {data['calibration']} to calibrate with, errors of {where}"
        for note in facts["notes"]:
            yield f"note: {note}"

    def _tuned(self):
        facts = self.facts.get("finetune")
        if facts is None:
            return
        epochs = facts["epochs"]
        yield ""
        yield (f"fine-tuned with {facts['trained_with']} samples, {len(epochs)} times, in "
               f"{epochs[-1]['seconds'] if epochs else 0:.1f} s; the loss of "
               f"{facts['validated_with']} that were not trained with was {facts['before']:.4g}, "
               f"and {facts['after']:.4g} at its best")
        if facts["stopped"]:
            yield f"  it ended early: {facts['stopped']}"
        if not facts["kept"]:
            yield "  nothing that was better: the model is the one before fine-tuning"
        for each in facts["outputs_before"]:
            yield f"  before: {each['name']}  {each['error']:.3g}  {each['decibels']:.1f} dB"

    def _outputs(self):
        yield ""
        yield "output: greatest error beside the largest number, and signal to noise"
        for each in self.facts["outputs"]:
            yield f"  {each['name']}  {each['error']:.3g}  {each['decibels']:.1f} dB"

    def _layers(self):
        alone = any("alone" in each for each in self.facts["layers"])
        what = ("range of what it reads, signal to noise of its own error" if self.bits is None
                else "bits of its weight, signal to noise of " + (
                    "that" if self.facts["method"] == "rtn" else "its own error"))
        yield ""
        yield f"layer: type, {what}" + (", error of the outputs with it alone" if alone else "")
        for each in self.facts["layers"]:
            text = f"  {each['name']}  {each['type']}  {self._how(each)}  {each['decibels']:.1f} dB"
            yield text + (f"  {each['alone']:.3g}" if alone else "")

    def _how(self, layer):
        """The range of what a layer reads, or the bits of its weight."""
        if self.bits is not None:
            return f"int{layer['bits']}"
        low, high = self.facts["tensors"][layer["input"]]["range"]
        return f"[{low:.4g}, {high:.4g}]"

    def _left(self):
        if self.facts["left"]:
            yield ""
            yield "left in f32:"
        for each in self.facts["left"]:
            yield f"  {each['name']}: {each['why']}"
