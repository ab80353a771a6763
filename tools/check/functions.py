"""No function so long that it says more than one thing: the limit on its lines.

C and C++ are laid out by clang-format, so a function is from a line that opens a block after `)` to
the line that closes it at the same column; what is inside of it, a lambda or a loop, counts as part
of it.
"""

import ast
import re
from pathlib import Path

LIMIT = 100
OPENS = re.compile(r"\s*(?!namespace|class|struct|union|enum|extern|using)[^#/*\s].*\).*[^=]\{$")


RAW = re.compile(r'R"\((.*?)\)"', re.DOTALL)


def c_functions(text):
    """First line, last line of each function, from 1."""
    lines = RAW.sub(lambda text: "\n" * text.group().count("\n"), text).splitlines()
    end = -1
    for number, line in enumerate(lines):
        if number <= end or not OPENS.match(line):
            continue
        # Arguments over several lines: the block opens after the last one.
        first, closed = number, line.count(")") - line.count("(")
        while closed > 0 and first > 0:
            first -= 1
            closed += lines[first].count(")") - lines[first].count("(")
        closing = lines[first][:len(lines[first]) - len(lines[first].lstrip())] + "}"
        end = next((i for i in range(number + 1, len(lines)) if lines[i].startswith(closing)),
                   number)
        yield first + 1, end + 1


def python_functions(text):
    """First line, last line of each function, from 1."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno


def check(root, files):
    """Functions over the limit, as `file:line: why`."""
    problems = []
    for path in files:
        if path.suffix not in (".c", ".cpp", ".h", ".py"):
            continue
        text = (Path(root) / path).read_text(encoding="utf-8", errors="replace")
        for first, last in (python_functions if path.suffix == ".py" else c_functions)(text):
            if last - first + 1 > LIMIT:
                problems.append(f"{path}:{first}: a function of {last - first + 1} lines, "
                                f"{LIMIT} are allowed; give its parts names")
    return problems
