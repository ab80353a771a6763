"""Dependencies point one way: checks the #include lines against LAYERS.

A line of LAYERS is `folder: folders it may use`, for the folders of compiler/. Beyond it: the
runtime sees nothing of the compiler, and tools, python and tuner see the public API in
include/heddle only (tools/heddle-opt, which shows the passes, may see all of compiler/). In
compiler/, only targets write LLVM's dialect; what comes before them writes that of
compiler/program; and compiler/api alone reads the environment.

A backend, a folder of compiler/target with a Backend.h, is named by its own sources, by the table
of backends and by tests; all others ask compiler/target/Backend.h.
"""

import re
from pathlib import Path

INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
LLVM = re.compile(r"\bLLVM::|mlir/Dialect/LLVMIR|\"!?llvm\.")
ENVIRONMENT = re.compile(r"\b(secure_)?getenv\(|\bProcess::GetEnv\(")
TABLE = Path("compiler/target/Backends.cpp")
TESTS = ("compiler/target/testing/", "test/")
# Pages that list the folders of compiler/, and how.
LISTS = {"README.md": re.compile(r"^ {5}(\w+)/ ", re.MULTILINE),
         "DESIGN.md": re.compile(r"^\| `compiler/(\w+)", re.MULTILINE)}
OUTSIDE = ("compiler/", "runtime/", "tools/", "python/")


def read_layers(path):
    """The arrows of LAYERS: {folder: set of folders that it may use}."""
    arrows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.split("#", 1)[0].strip()
        if line:
            folder, _, allowed = line.partition(":")
            arrows[folder.strip()] = set(allowed.split())
    return arrows


def _used(included):
    """The folder of an include as LAYERS names it; None for what lies in compiler/ itself."""
    parts = included.split("/")
    if parts[0] == "compiler":
        return parts[1] if len(parts) > 2 else None
    return "include/heddle" if parts[0] == "heddle" else "/".join(parts[:2])


def _of_compiler(path, included, arrows):
    folder, used = path.parts[1], _used(included)
    if folder not in arrows:
        return f"'{folder}' has no line in LAYERS; add one that says what it may use"
    allowed = arrows[folder]
    if used in (None, folder) or used in allowed:
        return None
    listed = ", ".join(sorted(allowed)) or "nothing"
    return f"'{folder}' may not use '{used}'; LAYERS lets it use only: {listed}"


def problem_of(path, included, arrows):
    """Why `path` may not include `included`, or None when it may."""
    if not included.startswith(OUTSIDE):
        return None
    top = path.parts[0]
    if top == "compiler" and len(path.parts) > 2:
        return _of_compiler(path, included, arrows)
    if top == "runtime" and not included.startswith("runtime/"):
        return f"the runtime may not use '{included}'; it stands alone"
    inside = included.startswith(f"{top}/")
    shows_passes = path.parts[:2] == ("tools", "heddle-opt") and included.startswith("compiler/")
    if top in ("tools", "python") and not inside and not shows_passes:
        return f"'{top}' may not use '{included}'; it sees include/heddle only"
    if top == "include":
        return f"a public header may not use '{included}'"
    return None


def _writes_llvm(path, line):
    """Tells whether a line in compiler/, but in no target, writes LLVM's dialect."""
    inside = path.parts[0] == "compiler" and len(path.parts) > 2 and path.parts[1] != "target"
    return inside and LLVM.search(line.split("//", 1)[0])


def _reads_environment(path, line):
    """Tells whether a line in compiler/, but not in api, reads a variable; tests may."""
    inside = path.parts[:1] == ("compiler",) and path.parts[1] != "api"
    return inside and "testing" not in path.parts and ENVIRONMENT.search(line.split("//", 1)[0])


def backends_of(files):
    """The names of all backends."""
    return sorted(path.parts[2] for path in files
                  if path.parts[:2] == ("compiler", "target") and path.name == "Backend.h"
                  and len(path.parts) == 4)


# A backend that lowers as another one does, and wraps it.
BUILT_ON = {"gpu": "cpu"}


def backend_named(path, line, backends):
    """The backend that a line names, by its namespace or by its headers, where it may not."""
    if path == TABLE or path.as_posix().startswith(TESTS):
        return None
    code = line.split("//", 1)[0]
    for name in backends:
        folder = f"compiler/target/{name}/"
        own = path.parts[2] if len(path.parts) > 3 else ""
        if own == name or BUILT_ON.get(own) == name:
            continue
        if re.search(rf"(?<!\w){name}::", code) or f'"{folder}' in code:
            return name
    return None


def _misplaced(arrows):
    """Folders of LAYERS that precede one that they use."""
    order = list(arrows)
    return [f"LAYERS: '{folder}' uses '{other}', which comes after it; a folder follows all "
            "that it uses"
            for folder, allowed in arrows.items() for other in sorted(allowed)
            if other in arrows and order.index(other) > order.index(folder)]


def _out_of_order(root, order):
    """Pages that list the folders in another order than LAYERS."""
    for page, listed in LISTS.items():
        path = Path(root) / page
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        found = [name for name in listed.findall(text) if name in order]
        if found != sorted(found, key=order.index):
            wanted = ", ".join(sorted(found, key=order.index))
            yield f"{page}: its folders are in another order than in LAYERS: {wanted}"


def check(root, files):
    """The forbidden includes, as `file:line: why`, the arrows that no include needs, and folders
    that are out of order."""
    arrows = read_layers(Path(root) / "LAYERS")
    problems, used, backends = [], set(), backends_of(files)
    for path in files:
        if path.suffix not in (".h", ".cpp", ".c", ".cc"):
            continue
        text = (Path(root) / path).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            found = INCLUDE.match(line)
            if found and path.parts[0] == "compiler":
                used.add((path.parts[1], _used(found.group(1))))
            why = problem_of(path, found.group(1), arrows) if found else None
            if _writes_llvm(path, line):
                why = "only targets write LLVM's dialect; use the ops of compiler/program"
            if _reads_environment(path, line):
                why = "only compiler/api reads the environment; take the value as an option"
            if backend := backend_named(path, line, backends):
                why = f"only the table of backends names '{backend}'; ask compiler/target/Backend.h"
            if why:
                problems.append(f"{path}:{number}: {why}")
    problems += [f"LAYERS: '{folder}' may use '{other}', but nothing in it does; take it out"
                 for folder, allowed in arrows.items() for other in sorted(allowed)
                 if (folder, other) not in used]
    return [*problems, *_misplaced(arrows), *_out_of_order(root, list(arrows))]
