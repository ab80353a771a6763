"""Registers of the kernels of transformers, as ptxas counts them: one layer of the published sizes.

A processor has 65536 of them, and kernels of products and attention 128 threads a block.
"""

import onnx
import pytest
from gpu import assembled

import heddle
from bench.networks import transformers

pytestmark = pytest.mark.usefixtures("compiler")
WORDS = 1003  # odd, as GPT-2's are; a layer does not depend on it
MOST = 248  # two blocks a processor
ATTENTION = {"fast": 168, "bf16": 200}  # three, and two


@pytest.mark.parametrize("name", [name for name in transformers.NETWORKS if name != "resnet50"])
def test_no_kernel_spills_and_each_leaves_room_for_another_block(tmp_path, name):
    onnx.save(transformers.make(name, layers=1, words=WORDS).model(), tmp_path / "m.onnx")
    path = tmp_path / "k.ptx"
    for chip in ("sm_80", "sm_90"):
        for math in ("fast", "bf16"):
            made = heddle.compile(tmp_path / "m.onnx", target=chip, math=math, opt_level=3,
                                  output=path, load=False)
            found = assembled(path, chip)
            mechanisms = {kernel["name"]: group["mechanism"]
                          for group in made.explanation["groups"] if group["device"]
                          for kernel in group["device"]["kernels"]}
            assert {"contraction", "attention"} <= set(mechanisms.values()), mechanisms
            for kernel, (registers, spilled) in found.items():
                mechanism = mechanisms.get(kernel, "")
                what = f"{chip} {math} {kernel} {mechanism}: {registers} registers"
                assert spilled == 0, f"{what}, {spilled} bytes spilled"
                assert registers <= (ATTENTION[math] if mechanism == "attention" else MOST), what
