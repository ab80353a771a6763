"""The wheel in a root file system that has Python and libc and nothing of ours: installed with pip,
then README's first example. Skipped where no such root can be made: it takes root and apt."""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node

ROOT = Path(__file__).resolve().parents[2]
# Debian's python3 with what its interpreter is linked with; what NumPy's wheel asks for besides.
PACKAGES = ("libc6", "libc-bin", "dash", "python3.11-minimal", "libpython3.11-minimal",
            "libpython3.11-stdlib", "libexpat1", "zlib1g", "libssl3", "libbz2-1.0", "libffi8",
            "liblzma5", "libuuid1", "libcrypt1", "libgcc-s1", "libstdc++6")
SCRIPT = """
import heddle, numpy
session = heddle.Session("/work/model.so", threads=2)
x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
y, = session.run(None, {"x": x})
assert numpy.array_equal(y, numpy.maximum(x @ numpy.ones((3, 4), numpy.float32) - 5, 0)), y
z, = heddle.compile("/work/model.onnx", cache=False)(x),
assert numpy.array_equal(y, z)
import heddle.onnxruntime as ort
z, = ort.InferenceSession("/work/model.onnx").run(None, {"x": x})
assert numpy.array_equal(y, z)
print("ok")
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel():
    found = sorted((ROOT / "build" / "wheel").glob("heddle-*.whl"))
    if not found:
        pytest.skip("there is no wheel; './dev wheel' makes it")
    return found[-1]


@pytest.fixture(scope="module")
def lab(wheel):
    (found,) = wheel.parent.glob("heddle_lab-*.whl")
    return found


@pytest.fixture(scope="module")
def bare_root(tmp_path_factory, wheel, lab):
    may_mount = subprocess.run(["unshare", "--mount", "true"], check=False,
                               capture_output=True).returncode == 0
    if os.geteuid() != 0 or not shutil.which("apt-get") or not may_mount:
        pytest.skip("a root file system is made of Debian's packages by a root who may mount")
    folder = tmp_path_factory.mktemp("root")
    packages, root = folder / "packages", folder / "root"
    for place in (packages, root / "wheels", root / "work", root / "tmp", root / "proc"):
        place.mkdir(parents=True)
    packages.chmod(0o777)
    run("apt-get", "download", "-q", *PACKAGES, cwd=packages)
    for package in packages.iterdir():
        run("dpkg-deb", "-x", str(package), str(root))
    run(sys.executable, "-m", "pip", "download", "-q", "-d", str(root / "wheels"), "numpy", "pip",
        "--python-version", "3.11", "--only-binary", ":all:")
    for each in (wheel, lab):
        shutil.copy(each, root / "wheels")

    # A loader looks into /proc for where a program lies.
    enter = ('mount --bind /proc "$0/proc" && '
             'PATH=/usr/local/bin:/usr/bin HOME=/tmp /usr/sbin/chroot "$0" "$@"')

    def inside(*command):
        return run("unshare", "--mount", "sh", "-c", enter, str(root), *command)

    inside.folder = root
    pip = next((root / "wheels").glob("pip-*.whl")).name
    inside("/usr/bin/python3.11", f"/wheels/{pip}/pip", "install", "-q", "--no-index",
           "--find-links", "/wheels", "--break-system-packages", "heddle", "heddle_lab")
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in
               (("w", np.ones((3, 4), np.float32)), ("b", np.full(4, -5, np.float32)))]
    nodes = [make_node("Gemm", "x w b", "h"), make_node("Relu", "h", "y")]
    model = make_model(nodes, {"x": ["batch", 3]}, {"y": ["batch", 4]}, weights, opset=21)
    onnx.save(model, root / "work" / "model.onnx")
    return inside


def test_readmes_first_example(bare_root):
    work = bare_root.folder / "work"
    np.save(work / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    bare_root("heddle", "compile", "/work/model.onnx", "-o", "/work/model.so")
    bare_root("heddle", "run", "/work/model.so", "--input", "x=@/work/x.npy", "--output",
              "y=@/work/y.npy")
    assert np.load(work / "y.npy").tolist() == [[0] * 4, [7] * 4]
    (work / "try.py").write_text(SCRIPT, encoding="utf-8")
    assert bare_root("/usr/bin/python3.11", "/work/try.py").strip() == "ok"


def test_other_machines(bare_root):
    """The linker in the wheel writes artefacts for AArch64 too."""
    bare_root("heddle", "compile", "/work/model.onnx", "-o", "/work/arm.so", "--target", "aarch64")
    header = (bare_root.folder / "work" / "arm.so").read_bytes()[:20]
    assert header[:4] == b"\x7fELF" and header[18] == 183


def test_the_lab_has_its_simulator(bare_root):
    script = ("from heddle_lab.go import Machine, Simulator, generate, heft\n"
              "simulator = Simulator(generate('gnmt', layers=1), Machine(devices=2))\n"
              "plan = heft(simulator)\n"
              "print(simulator.run(plan.device, plan.priority, plan.fuse).is_valid.tolist())\n")
    (bare_root.folder / "work" / "go.py").write_text(script, encoding="utf-8")
    assert bare_root("/usr/bin/python3.11", "/work/go.py").strip() == "[True]"


def test_the_two_wheels_are_apart(wheel, lab):
    names = [set(zipfile.ZipFile(each).namelist()) for each in (wheel, lab)]
    assert not names[0] & names[1] and "heddle_lab/lib/simulator.so" in names[1]
    assert {name.split("/")[0].split("-")[0] for name in names[0]} == {"heddle"}
    assert {name.split("/")[0].split("-")[0] for name in names[1]} == {"heddle_lab"}
    assert "-py3-none-manylinux" in lab.name


def test_what_a_wheel_is_called(wheel):
    assert "-cp310-abi3-manylinux" in wheel.name and wheel.stat().st_size < 60 << 20


def test_one_wheel_serves_every_python(wheel):
    """Names that its extension asks of Python are in the stable interface of 3.10."""
    abi3info = pytest.importorskip("abi3info", reason="abi3info comes with './dev wheel'")
    with zipfile.ZipFile(wheel) as files, tempfile.NamedTemporaryFile(suffix=".so") as extension:
        extension.write(files.read("heddle/lib/extension.abi3.so"))
        extension.flush()
        lines = run("nm", "-D", "--undefined-only", extension.name).splitlines()
    asked = {line.split()[-1] for line in lines}
    asked = {name for name in asked if name.startswith(("Py", "_Py"))}
    stable = {symbol.name: known.added for table in (abi3info.FUNCTIONS, abi3info.DATAS)
              for symbol, known in table.items()}
    assert "PyList_New" in asked
    newer = {name: str(stable.get(name)) for name in asked
             if name not in stable or (stable[name].major, stable[name].minor) > (3, 10)}
    assert not newer, newer
