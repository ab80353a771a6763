"""Two Python packages: heddle_lab uses what is public of heddle, and heddle nothing of heddle_lab.

Public modules are those of the table in docs/guide/python.md; public names of a module are those of
its `__all__`, or without one those that it defines and that begin with no underscore.
"""

import ast
import re
from pathlib import Path

PAGE = "docs/guide/python.md"
ROW = re.compile(r"^\| `(heddle[\w.]*)` \|", re.MULTILINE)
CORE, LAB = ("python", "heddle"), ("python", "heddle_lab")


def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def _source(root, module):
    folder = Path(root) / "python" / module.replace(".", "/")
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _defined(tree):
    """Names that a module defines; what it imports is not its own."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def public_names(root, module):
    """Names to import from a public module, without its public modules."""
    tree = _tree(_source(root, module))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return {name for name in _defined(tree) if not name.startswith("_")}


def _imported(tree):
    """(line, module, name or None) of all imports but relative ones, and (line, "heddle", name) of
    the attributes of heddle that are used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name, None) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, node.module, each.name) for each in node.names)
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "heddle":
            yield node.lineno, "heddle", node.attr


def _foreign_privates(tree):
    """(line, name) of attributes that begin with an underscore and that the file does not make."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    own |= {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    for node in attributes:
        owner = node.value.func if isinstance(node.value, ast.Call) else node.value
        if re.match(r"_(?!_)", node.attr) and node.attr not in own and \
                getattr(owner, "id", "") not in ("self", "cls", "super"):
            yield node.lineno, node.attr


def _of_lab(root, path, tree, public):
    for line, module, name in _imported(tree):
        if module.split(".")[0] != "heddle" or f"{module}.{name}" in public:
            continue
        if module not in public:
            yield f"{path}:{line}: '{module}' is not public; {PAGE} lists: {', '.join(public)}"
        elif name is not None and name not in public_names(root, module):
            yield f"{path}:{line}: '{name}' is no public name of '{module}'"
    yield from (f"{path}:{line}: '{name}' belongs to what defines it; use what is public"
                for line, name in _foreign_privates(tree))


def check(root, files):
    """Imports of the two packages that are not allowed, as `file:line: why`."""
    page = Path(root) / PAGE
    public = ROW.findall(page.read_text(encoding="utf-8")) if page.exists() else []
    problems = [f"{PAGE}: '{module}' is listed, but there is no such module"
                for module in public if not _source(root, module).exists()]
    if problems:
        return problems
    for path in files:
        if path.suffix != ".py" or path.parts[:2] not in (CORE, LAB):
            continue
        if path.stem.endswith("_test"):
            problems.append(f"{path}: tests in Python are in test/, not in what wheels hold")
        tree = _tree(Path(root) / path)
        if path.parts[:2] == LAB:
            problems += _of_lab(root, path, tree, public)
        else:
            problems += [f"{path}:{line}: heddle may not use '{module}'; the lab is built on it"
                         for line, module, _ in _imported(tree)
                         if module.split(".")[0] == "heddle_lab"]
    return problems
