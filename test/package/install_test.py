"""`cmake --install` and the wheel: projects in C and C++ that find the package, or are told by
`heddle config`, and run a model with it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from heddle.onnx_graph import make_model, make_node

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(user C CXX)
find_package(heddle 0.1 REQUIRED)
add_executable(in_c main.c)
target_link_libraries(in_c PRIVATE heddle::runtime)
add_executable(in_cpp main.cpp)
target_compile_features(in_cpp PRIVATE cxx_std_17)
target_link_libraries(in_cpp PRIVATE heddle::heddle)
add_executable(in_one main.cpp)
target_compile_features(in_one PRIVATE cxx_std_17)
target_link_libraries(in_one PRIVATE heddle::pool_static heddle::runtime_static)
"""
IN_C = r"""
#include <heddle/runtime.h>
#include <stdio.h>
int main(int count, char **words) {
  heddle_module_t *module;
  heddle_status_t *status = heddle_module_load(words[1], &module);
  if (status) { puts(heddle_status_message(status)); return 1; }
  printf("%zu %s\n", heddle_module_input_count(module), heddle_module_input(module, 0)->name);
  heddle_module_destroy(module);
  return 0;
}
"""
IN_CPP = r"""
#include <heddle/heddle.hpp>
#include <cstdio>
int main(int count, char **words) {
  heddle::Module module(words[1], /*verify=*/true);
  heddle::Session session(module, 1);
  float x[] = {1, -2, 3};
  std::vector<heddle::Tensor> results = session.run({heddle::view(x, {3})});
  heddle::Tensor y = std::move(results[0]);
  for (int i = 0; i < 3; ++i)
    std::printf("%g ", y.data<float>()[i]);
  try { y.data<double>(); } catch (const heddle::Error &error) { std::puts(error.what()); }
  try { session.run({}); } catch (const heddle::Error &error) { std::puts(error.what()); }
  return 0;
}
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          **options)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


def installed(folder):
    prefix = folder / "prefix"
    run("cmake", "--install", ROOT / "build/release", "--prefix", prefix)
    return prefix


def from_wheel(folder):
    wheels = sorted((ROOT / "build" / "wheel").glob("heddle-*.whl"))
    if not wheels:
        pytest.skip("there is no wheel; './dev wheel' makes it")
    run(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target",
        folder / "site", wheels[-1])
    return folder / "site" / "heddle"


@pytest.fixture(scope="module", params=[installed, from_wheel])
def prefix(request, tmp_path_factory):
    if not (ROOT / "build/release/bin/heddle").exists() or not shutil.which("cmake"):
        pytest.skip("needs cmake and a build; './dev build' makes it")
    return request.param(tmp_path_factory.mktemp("install"))


@pytest.fixture(scope="module")
def artefact(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    onnx.save(make_model([make_node("Neg", "x", "y")], {"x": ["n"]}, {"y": ["n"]}, opset=21),
              folder / "m.onnx")
    run(prefix / "bin" / "heddle", "compile", folder / "m.onnx", "-o", folder / "m.so")
    return folder / "m.so"


@pytest.fixture(scope="module")
def programs(prefix, tmp_path_factory):
    project = tmp_path_factory.mktemp("project")
    for name, text in (("CMakeLists.txt", PROJECT), ("main.c", IN_C), ("main.cpp", IN_CPP)):
        (project / name).write_text(text, encoding="utf-8")
    package = run(prefix / "bin" / "heddle", "config", "--cmakedir").strip()
    run("cmake", "-S", project, "-B", project / "build", f"-Dheddle_DIR={package}")
    run("cmake", "--build", project / "build")
    return project / "build"


def test_a_program_in_c(programs, artefact):
    assert run(programs / "in_c", artefact) == "1 x\n"


@pytest.mark.parametrize("name", ["in_cpp", "in_one"])
def test_a_program_in_cpp(programs, artefact, name):
    first, *others = run(programs / name, artefact).splitlines()
    assert first == "-1 2 -3 the tensor holds float32, but float64 is asked for"
    assert "input" in " ".join(others)


def test_what_a_compiler_is_told(prefix, artefact, tmp_path):
    (tmp_path / "main.c").write_text(IN_C, encoding="utf-8")
    line = f"cc main.c $('{prefix}/bin/heddle' config --cflags --libs) -o program"
    run("sh", "-c", line, cwd=tmp_path)
    assert run(tmp_path / "program", artefact) == "1 x\n"


def test_a_checkout_tells_a_compiler_too(tmp_path):
    heddle = ROOT / "build/release/bin/heddle"
    if not heddle.exists():
        pytest.skip("'./dev build' makes the command")
    flags, libraries = (run(heddle, "config", option).strip() for option in ("--cflags", "--libs"))
    told = json.loads(run(heddle, "config", "--cflags", "--libs", "--json"))
    assert told == {"cflags": flags, "libs": libraries}
    assert flags == f"-I{ROOT}/include" and f"{ROOT}/build/release/lib/" in libraries
    done = subprocess.run([heddle, "config", "--cmakedir"], capture_output=True, text=True)
    assert done.returncode == 2 and "cmake --install build/release --prefix DIR" in done.stderr
    assert subprocess.run([heddle, "config"], capture_output=True).returncode == 2


def test_a_command_of_the_lab_says_what_it_lacks(prefix):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([prefix / "bin" / "heddle", "fuzz"], capture_output=True, text=True,
                          env={**environment, "HEDDLE_PYTHON": sys.executable}, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("heddle fuzz: is part of the Python package heddle_lab, which")


def test_python_knows_where_the_headers_are(prefix):
    package = prefix.parent if (prefix / "__init__.py").exists() else ROOT / "python"
    folder = run(sys.executable, "-c", "import heddle; print(heddle.get_include())",
                 env={**os.environ, "PYTHONPATH": str(package)}).strip()
    assert (Path(folder) / "heddle" / "runtime.h").exists()
    assert Path(folder).is_relative_to(prefix) == (package == prefix.parent)
