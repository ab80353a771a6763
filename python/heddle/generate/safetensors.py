"""safetensors: weights of a folder, mapped and read tensor by tensor.

Reads bf16, which the package of this name gives to torch alone, and checks sizes before anything is
read. SPDX-License-Identifier: Apache-2.0
"""

import json
import mmap
from pathlib import Path

import numpy as np

from ..library import RefusedError

TYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2"),
         "F64": np.dtype("<f8")}
MOST_HEADER = 100 << 20  # bytes, as the format has it


def widen(array):
    """bf16, as its bits in u16, as f32."""
    return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)


class File:
    """One file: a header in JSON, and the tensors after it."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            size = path.stat().st_size
            if size < 8:
                raise RefusedError(f"'{path}': is no safetensors file: it has {size} bytes")
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        length = int.from_bytes(self.map[:8], "little")
        if length > min(size - 8, MOST_HEADER):
            raise RefusedError(f"'{path}': is no safetensors file, or not whole: its header would "
                               f"have {length} bytes")
        try:
            self.entries = json.loads(self.map[8:8 + length])
            self.entries.pop("__metadata__", None)
            for entry in self.entries.values():
                entry["dtype"], entry["shape"], entry["data_offsets"]  # noqa: B018: they are there
        except (ValueError, AttributeError, KeyError, TypeError) as error:
            raise RefusedError(f"'{path}': the header is damaged: {error}") from error
        self.start, self.size = 8 + length, size - 8 - length

    def read(self, name):
        """The tensor, of the file's type; bf16 as f32."""
        entry = self.entries[name]
        kind, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
        if kind not in TYPES:
            raise RefusedError(f"'{self.path}': '{name}' is of type {kind}; supported: "
                               f"{', '.join(TYPES)}")
        try:
            count = int(np.prod([int(dim) for dim in shape], dtype=object)) if shape else 1
            begin, end = map(int, place)
        except (TypeError, ValueError) as error:
            raise RefusedError(f"'{self.path}': '{name}': {error}") from error
        if min([0, *shape]) < 0 or not 0 <= begin <= end <= self.size or (
                end - begin != count * TYPES[kind].itemsize):
            raise RefusedError(f"'{self.path}': '{name}' is {kind}{shape} at bytes {begin} to "
                               f"{end} of {self.size}, which does not fit")
        array = np.frombuffer(self.map, TYPES[kind], count, self.start + begin).reshape(shape)
        return widen(array) if kind == "BF16" else array


class Safetensors:
    """Tensors of all files of a folder, by name."""

    def __init__(self, folder):
        folder = Path(folder)
        index = folder / "model.safetensors.index.json"
        if index.exists():
            try:
                places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
                names = sorted(set(places.values()))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise RefusedError(f"'{index}': is damaged: {error}") from error
            for name in names:
                if Path(name).name != name or not (folder / name).exists():
                    raise RefusedError(f"'{index}': names '{name}', which is not in the folder")
        else:
            names = sorted(path.name for path in folder.glob("*.safetensors"))
        self.files = [folder / name for name in names]
        self._of = {}
        for path in self.files:
            file = File(path)
            self._of |= dict.fromkeys(file.entries, file)

    def _name(self, name):
        """The name in the files, which may lack that of the whole: 'model.', 'transformer.'."""
        if name in self._of:
            return name
        _, _, rest = name.partition(".")
        return rest if rest in self._of else None

    def __contains__(self, name):
        return self._name(name) is not None

    def read(self, name):
        """The tensor as f32."""
        found = self._name(name)
        if found is None:
            raise RefusedError(f"{self.where}: there is no tensor '{name}', which config.json's "
                               "'model_type' has")
        return np.asarray(self._of[found].read(found), np.float32)

    def quantised(self, name):
        """The Codes of a matrix; here none has any."""
        return None

    @property
    def where(self):
        return f"'{self.files[0].parent}'"
