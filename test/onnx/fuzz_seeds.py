"""fuzz_seeds: small models of ONNX's own suite, for the fuzzer of the importer to begin from.

    python test/onnx/fuzz_seeds.py build/fuzz/corpus

SPDX-License-Identifier: Apache-2.0
"""

import argparse
from pathlib import Path

import onnx.backend.test

LARGEST_BYTES = 4096  # longer ones only slow the fuzzer down


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    data = Path(onnx.backend.test.__file__).parent / "data"
    written = 0
    for model in sorted(data.glob("*/*/model.onnx")):
        content = model.read_bytes()
        if len(content) <= LARGEST_BYTES:
            (folder / f"{model.parent.parent.name}-{model.parent.name}.onnx").write_bytes(content)
            written += 1
    print(f"{written} models in {folder}")


if __name__ == "__main__":
    main()
