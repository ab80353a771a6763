"""The layout of C and C++ sources is clang-format's, so that no review is about it."""

import shutil
import subprocess

from sources import LLVM

TOOL = f"clang-format-{LLVM}"


def find_tool():
    """clang-format of the version that the project is laid out with, or None."""
    return shutil.which(TOOL)


def check(root, files):
    """The first line of each source that clang-format would change."""
    tool = find_tool()
    if not tool:
        return [f"{TOOL} is not installed; `./dev check` installs it"]
    sources = [str(path) for path in files if path.suffix in (".cpp", ".c", ".h")]
    if not sources:
        return []
    command = [tool, "--dry-run", "--Werror", "--ferror-limit=1", "--fno-color-diagnostics"]
    done = subprocess.run([*command, *sources], cwd=root, capture_output=True, text=True,
                          check=False)
    found = [line for line in done.stderr.splitlines() if "error:" in line]
    if done.returncode and not found:
        return [done.stderr.strip()]
    return [line.split(" error:")[0] + f" {TOOL} -i would change it" for line in found]
