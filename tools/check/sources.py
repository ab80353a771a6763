"""The sources that the checks look at: what git knows or could add, without what it ignores."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Version of clang, LLVM and MLIR.
LLVM = (ROOT / "cmake/llvm-version").read_text(encoding="utf-8").strip()


def sources(root, *suffixes):
    """Paths relative to root, sorted, of the files that have one of the suffixes (all if none)."""
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode == 0:
        names = [Path(name) for name in listed.stdout.decode().split("\0") if name]
    else:  # an exported tree, without git
        names = [p.relative_to(root) for p in Path(root).rglob("*")
                 if p.is_file() and p.relative_to(root).parts[0] not in ("build", ".git")]
    return sorted({name for name in names
                   if (not suffixes or name.suffix in suffixes) and (Path(root) / name).is_file()})
