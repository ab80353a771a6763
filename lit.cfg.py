# lit: the .mlir tests that are beside the code, and those of test/ and schedules/.
#
# Run by `./dev test`; CONTRIBUTING.md has the command for one folder.

import os

import lit.formats

root = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(root, "cmake", "llvm-version"), encoding="utf-8") as version:
    llvm = f"/usr/lib/llvm-{version.read().strip()}/bin"
release = os.path.join(root, "build", "release")

config.name = "heddle"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["build", "bench", "docs", "Inputs", "python"]
config.test_source_root = root
config.test_exec_root = os.path.join(root, "build", "lit")

# Our tools first, then FileCheck, not and count of LLVM, then the project's Python.
config.environment["PATH"] = os.pathsep.join([
    os.path.join(release, "bin"), llvm,
    os.path.join(root, "build", "python", "bin"), os.environ["PATH"]])
config.environment["PYTHONPATH"] = os.pathsep.join([os.path.join(root, "python"), root])
config.environment["HEDDLE_CACHE"] = ""  # tests are of the compiler, not of what it once made
