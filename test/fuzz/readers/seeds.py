"""seeds: valid files of all kinds that Heddle reads, for the fuzzer of the readers to begin from.

    python test/fuzz/readers/seeds.py build/fuzz/corpus/heddle-reader-fuzz

The first byte says which reader (reader_fuzz.cpp). SPDX-License-Identifier: Apache-2.0
"""

import io
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from heddle.onnx_graph import make_model, make_node
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[3]
HEDDLE = ROOT / "build" / "release" / "bin" / "heddle"
TYPES = ("f4", "f8", "f2", "u1", "i1", "i2", "i4", "i8", "?", "c8")


def arrays():
    yield from (np.arange(6).astype(name).reshape(2, 3) for name in TYPES)
    yield np.asfortranarray(np.ones((2, 2), np.float32))
    yield np.zeros((0, 3), np.int64)
    yield np.float32(1).reshape(())


def npy():
    for array in (*arrays(), np.ones(2, ml_dtypes.bfloat16), np.ones(2, ml_dtypes.float8_e5m2)):
        file = io.BytesIO()
        np.save(file, array)
        wanted = 16 if array.dtype == ml_dtypes.bfloat16 else 22 if array.dtype == np.int8 else 1
        yield bytes([wanted]) + file.getvalue()


def tensors():
    for array in arrays():
        yield b"-" + numpy_helper.from_array(array).SerializeToString()
        made = helper.make_tensor("t", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape,
                                  array.ravel().tolist())
        yield b"-" + made.SerializeToString()
    for number in (16, 17, 20, 21, 22, 23, 25, 26):
        if number in helper.get_all_tensor_dtypes():
            yield b"-" + helper.make_tensor("t", number, [3], [1, 0, 1]).SerializeToString()
    yield b"-" + helper.make_tensor("t", 8, [2], [b"a", b"bc"]).SerializeToString()


def of_models():
    """Plans and records of a small model."""
    nodes = [make_node("MatMul", "x w", "m"), make_node("Softmax", "m", "y")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(make_model(nodes, {"x": ["n", 64]}, {"y": ["n", 64]},
                             {"w": np.ones((64, 64), np.float32)}),
                  folder / "m.onnx")
        for target in ("host", "c"):
            subprocess.run([HEDDLE, "plan", "m.onnx", "--target", target, "-o", f"{target}.plan"],
                           cwd=folder, check=True)
            yield b"p-" + (folder / f"{target}.plan").read_bytes()
        subprocess.run([HEDDLE, "plan", "m.onnx", "--exact-plan", "-o", "exact.plan"],
                       cwd=folder, check=True)
        yield b"p-" + (folder / "exact.plan").read_bytes()
        subprocess.run([HEDDLE, "tune", "m.onnx", "--time", "2", "--dim", "n=4", "--records",
                        "r.db", "--no-cache"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with sqlite3.connect(folder / "r.db") as database:
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("PRAGMA page_size = 512")
            database.execute("DELETE FROM trial WHERE id > 4")
            database.commit()
            database.execute("VACUUM")
        database.close()
        yield b"r-" + (folder / "r.db").read_bytes()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cards = (b"c-" + path.read_bytes() for path in (ROOT / "schedules").rglob("*.mlir"))
    kinds = [*(b"n" + seed for seed in npy()), *(b"t" + seed for seed in tensors()), *of_models(),
             *cards]
    for i, seed in enumerate(kinds):
        (folder / f"seed-{i}").write_bytes(seed)
    print(f"{len(kinds)} files in {folder}")


if __name__ == "__main__":
    main()
