"""Documents point at what exists: checks the links and the paths in backquotes of the .md files.

Where a generator exists (tools/heddle-opt and the like name theirs in GENERATORS), docs/generated
has to be what it prints today.
"""

import re
import subprocess
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")
QUOTED = re.compile(r"`((?:\./)?[\w.-]+(?:/[\w.*-]+)+/?)`")
# Folders whose paths have to exist when a document names one; others are examples.
OURS = ("bench", "cmake", "compiler", "docs", "examples", "include", "python", "runtime",
        "schedules", "test", "tools")

# Page of docs/generated -> command that prints it, run in the root of the project.
GENERATORS = {
    "supported-ops.md": ["build/release/bin/heddle", "ops", "--markdown"],
}


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


def _stale_pages(root):
    for page, command in GENERATORS.items():
        kept, tool = Path(root) / "docs" / "generated" / page, Path(root) / command[0]
        if not kept.exists() or not tool.exists():
            continue
        printed = subprocess.run([str(tool), *command[1:]], cwd=root, capture_output=True,
                                 text=True, check=False)
        if printed.returncode == 0 and printed.stdout != kept.read_text(encoding="utf-8"):
            yield f"docs/generated/{page}: is not what `{' '.join(command)}` prints; write it again"


def check(root, files):
    """Links and paths that lead nowhere, and generated pages that are out of date."""
    problems = []
    for path in files:
        if path.suffix == ".md" and path.parts[:2] != ("docs", "generated"):
            text = (Path(root) / path).read_text(encoding="utf-8")
            problems += _broken_links(root, path, text)
    return problems + list(_stale_pages(root))
