"""Writes the texts of docs/guide/walk.md: what each stage makes of its example.

    python tools/check/walk.py [--write]

Between `<!-- STAGE -->` and `<!-- end -->` the page has what `heddle compile --print-after=STAGE`
prints, shortened to what a reader needs: long lines are cut; of `lower` the first kernel and the
program around it begin, cleaned by heddle-opt and without constants; of `emit` there is what
surrounds the first multiply-add. Without --write, says whether the page is what the compiler prints
now; exit status 1 when it is not.
"""

import argparse
import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "walk.md"
BIN = ROOT / "build" / "release" / "bin"
STAGES = ("import", "simplify", "partition", "plan", "lower", "emit")
COLUMNS = 118
SHOWN = 34  # lines of a kernel, of the program, of assembly
BLOCK = re.compile(r"(<!-- (\w+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def example():
    """y = relu(x W^T + b), with numbers that need no file."""
    weights = np.arange(4 * 6, dtype=np.float32).reshape(4, 6) / 8
    nodes = [helper.make_node("Gemm", ["x", "W", "b"], ["sum"], "dense", transB=1),
             helper.make_node("Relu", ["sum"], ["y"], "relu")]
    graph = helper.make_graph(
        nodes, "walk", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(weights, "W"),
         numpy_helper.from_array(np.ones(4, np.float32), "b")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def printed(model):
    """{stage: text} of the example."""
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, Path(folder) / "walk.onnx")
        done = subprocess.run(
            [BIN / "heddle", "compile", "walk.onnx", "-o", "walk.so", "--target", "x86-64-v3",
             "--threads", "1", "--no-cache", "--print-after", ",".join(STAGES)],
            cwd=folder, capture_output=True, text=True, check=True)
    parts = done.stderr.split("// after ")[1:]
    return {part.split(None, 1)[0]: part.split("\n", 1)[1] for part in parts}


def begin_of(lines, count=SHOWN):
    """The first lines, and that there are more."""
    return lines if len(lines) <= count else [*lines[:count], f"  // ... {len(lines) - count} more"]


def functions(text):
    """The first lines of a kernel and of the program around it, cleaned, without constants."""
    done = subprocess.run([BIN / "heddle-opt", "-", "--canonicalize", "--cse"], input=text,
                          capture_output=True, text=True, check=True)
    text = re.sub(r"^ *%\S+ = arith\.constant .*\n", "", done.stdout, flags=re.MULTILINE)
    found = re.findall(r"^  func\.func .*?^  }$", text, re.DOTALL | re.MULTILINE)
    kernel = next(each for each in found if "@kernel_" in each)
    program = next(each for each in found if "@heddle_program_run" in each)
    return [line for each in (kernel, program) for line in begin_of(each.splitlines())]


def assembly(text):
    """Lines around the first product of two vectors."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith((".", "#"))]
    first = next(i for i, line in enumerate(lines) if "vfmadd" in line)
    return lines[max(0, first - SHOWN // 2):first + SHOWN // 2]


def shown(stage, text):
    """The block of a stage."""
    lines = {"lower": functions, "emit": assembly}.get(stage, str.splitlines)(text)
    lines = [line if len(line) <= COLUMNS else line[:COLUMNS - 4] + " ..." for line in lines]
    return "\n".join([f"```{'asm' if stage == 'emit' else 'mlir'}", *lines, "```", ""])


def page(text):
    """The page with what the compiler prints now."""
    texts = printed(example())
    return BLOCK.sub(lambda block: block[1] + shown(block[2], texts[block[2]]) + block[4], text)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--write", action="store_true", help="write the page again")
    given = options.parse_args()
    kept = PAGE.read_text(encoding="utf-8")
    now = page(kept)
    if given.write:
        PAGE.write_text(now, encoding="utf-8")
    elif now != kept:
        sys.stdout.writelines(difflib.unified_diff(
            kept.splitlines(True), now.splitlines(True), "docs/guide/walk.md", "printed now", n=1))
        print("docs/guide/walk.md is old: run python tools/check/walk.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
