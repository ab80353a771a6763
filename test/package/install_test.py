"""`cmake --install`, and projects in C and C++ that find the package and run a model with it."""

import shutil
import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import helper

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


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    if not (ROOT / "build/release/bin/heddle").exists() or not shutil.which("cmake"):
        pytest.skip("needs cmake and a build; './dev build' makes it")
    folder = tmp_path_factory.mktemp("install")
    prefix, project = folder / "prefix", folder / "project"
    run("cmake", "--install", ROOT / "build/release", "--prefix", prefix)
    project.mkdir()
    for name, text in (("CMakeLists.txt", PROJECT), ("main.c", IN_C), ("main.cpp", IN_CPP)):
        (project / name).write_text(text, encoding="utf-8")
    run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", project / "build")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", 1, ["n"])],
                              [helper.make_tensor_value_info("y", 1, ["n"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                                ir_version=10), folder / "m.onnx")
    run(prefix / "bin" / "heddle", "compile", folder / "m.onnx", "-o", folder / "m.so")
    return project / "build", folder / "m.so"


def test_a_program_in_c(programs):
    build, artefact = programs
    assert run(build / "in_c", artefact) == "1 x\n"


@pytest.mark.parametrize("name", ["in_cpp", "in_one"])
def test_a_program_in_cpp(programs, name):
    build, artefact = programs
    first, *others = run(build / name, artefact).splitlines()
    assert first == "-1 2 -3 the tensor holds float32, but float64 is asked for"
    assert "input" in " ".join(others)
