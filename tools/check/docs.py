"""Documents point at what exists: checks the links and the paths in backquotes of the .md files.

docs/generated/onnx-support.md has to name each op that the importer knows.
"""

import re
import subprocess
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")
QUOTED = re.compile(r"`((?:\./)?[\w.-]+(?:/[\w.*-]+)+/?)`")
# Folders whose paths have to exist when a document names one; others are examples.
OURS = ("bench", "cmake", "compiler", "docs", "examples", "include", "python", "runtime",
        "schedules", "test", "tools")

SUPPORT = Path("docs/generated/onnx-support.md")
OP = re.compile(r"^\| (\w+) \| ((?!domain)[\w.]+) \|", re.MULTILINE)


def _broken_links(root, path, text):
    base = (Path(root) / path).parent
    for number, line in enumerate(text.splitlines(), 1):
        for target in LINK.findall(line):
            if "://" not in target and not target.startswith("mailto:") \
                    and not (base / target).exists():
                yield f"{path}:{number}: the link to '{target}' leads nowhere"
        for name in QUOTED.findall(line):
            if name.split("/")[0] in OURS and "*" not in name and not (Path(root) / name).exists():
                yield f"{path}:{number}: there is no '{name}'"


def _unlisted_ops(root):
    """Ops that the importer knows and the page of support does not have."""
    page, tool = Path(root) / SUPPORT, Path(root) / "build/release/bin/heddle"
    if not page.exists() or not tool.exists():
        return
    printed = subprocess.run([str(tool), "ops", "--markdown"], capture_output=True, text=True,
                             check=False).stdout
    for op, domain in sorted(set(OP.findall(printed)) - set(OP.findall(
            page.read_text(encoding="utf-8")))):
        yield f"{SUPPORT}: it lacks {op} of {domain}; write it again by test/onnx/support.py"


def check(root, files):
    """Links and paths that lead nowhere, and ops that no page names."""
    problems = []
    for path in files:
        if path.suffix == ".md" and path.parts[:2] != ("docs", "generated"):
            text = (Path(root) / path).read_text(encoding="utf-8")
            problems += _broken_links(root, path, text)
    return problems + list(_unlisted_ops(root))
