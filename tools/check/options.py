"""The options of a compilation are what the table include/heddle/compile_options.def says:
`options.py --write` makes the structure of C, the keywords of heddle.compile and the page of it.

C++ includes the table; these three are kept as text, for who reads them.
"""

import ast
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from sources import ROOT

TABLE = Path("include/heddle/compile_options.def")
HEADER = Path("include/heddle/compiler.h")
STRUCTURE = Path("python/heddle/options.py")
FUNCTION = Path("python/heddle/compiler.py")
PAGE = Path("docs/generated/options.md")
COLUMNS = 100
POSITIONAL = ("model", "target", "threads", "shapes", "plan", "output")

COLUMNS_OF = {
    "HEDDLE_OPTION": "kind field member value domain group flag keyword about",
    "HEDDLE_OPTION_BY_HAND": "kind field domain group flag keyword about",
    "HEDDLE_LIST": "field count member group flag keyword about",
    "HEDDLE_CALLBACK": "field arguments keyword about",
    "HEDDLE_KEYWORD": "keyword about"}
# Kind -> type in C, type in ctypes.
TYPES = {"Number": ("int ", "c_int"), "Bytes": ("int64_t ", "c_int64"), "Flag": ("int ", "c_int"),
         "List": ("const char *const *", "POINTER(c_char_p)")}
MOST = {"Number": 2**31 - 1, "Bytes": 2**63 - 1}

STRUCTURE_TEXT = '''"""options: those of `compile`, as include/heddle/compile_options.def has them.

Written by `tools/check/options.py --write`. SPDX-License-Identifier: Apache-2.0
"""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

Progress = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_double)
Print = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


class CompileOptions(ctypes.Structure):
    """`heddle_compile_options_t`."""

    _fields_ = [
{fields}
    ]


# Keyword of `compile` -> field, kind, and the count of a list or the most that a number may be.
ROWS = {{
{rows}
}}
'''

PAGE_TEXT = """# Options of a compilation

Written by `tools/check/options.py --write` from `include/heddle/compile_options.def`. Fields are
those of `heddle_compile_options_t`, where zero and NULL are the defaults; flags are those of
`heddle compile` and other commands that compile; keywords are those of `heddle.compile`.

| field | flag | keyword | environment | about |
|---|---|---|---|---|
"""


@dataclass
class Row:
    """A row of the table; a column that its macro does not have is empty."""

    kind: str = ""
    field: str = ""
    count: str = ""
    arguments: str = ""
    member: str = ""
    value: str = ""
    domain: str = ""
    group: str = ""
    flag: str = ""
    keyword: str = ""
    about: str = ""

    @property
    def name(self):
        """The keyword without its default."""
        return self.keyword.split("=")[0]

    def text(self, language=None):
        """The description for readers of one language, or of all."""
        lines = [re.fullmatch(r"(?:(C|Python): )?(.*)", line).groups()
                 for line in self.about.splitlines()]
        if language is None:
            return " ".join(f"In {of}: {said}" if of else said for of, said in lines)
        return " ".join(said for of, said in lines if of in (None, language))


def rows(root):
    """The rows of the table, in its order."""
    text = (Path(root) / TABLE).read_text(encoding="utf-8")
    code = "\n".join("" if line.startswith(("#", "//")) else line for line in text.splitlines())
    found = []
    for statement in ast.parse(code).body:
        call = statement.value
        columns = COLUMNS_OF[call.func.id].split()
        values = [each.value if isinstance(each, ast.Constant) and isinstance(each.value, str)
                  else ast.unparse(each) for each in call.args]
        row = Row(**dict(zip(columns, values, strict=True)))
        if call.func.id == "HEDDLE_LIST":
            row.kind = "List"
        found.append(row)
    return found


def _listed(items, indent):
    """Items that are not torn, with commas, as many on a line as there is room for."""
    lines, line = [], ""
    for item in items:
        longer = f"{line} {item}," if line else f"{' ' * indent}{item},"
        if len(longer) > COLUMNS:
            lines.append(line)
            longer = f"{' ' * indent}{item},"
        line = longer
    return "\n".join([*lines, line])


def _declarations(listed):
    """The fields of the structure of C, a comment before each."""
    for row in listed:
        if not row.field:
            continue
        wrapped = textwrap.wrap(f"/* {row.text('C')}\u00a0*/", COLUMNS, initial_indent="  ",
                                subsequent_indent="     ", break_on_hyphens=False)
        wrapped[-1] = wrapped[-1].replace("\u00a0", " ")
        if row.arguments:
            fields = [f"void (*{row.field})(void *data, {row.arguments})",
                      f"void *{row.field}_data"]
        else:
            fields = [TYPES.get(row.kind, ("const char *",))[0] + row.field]
            fields += [f"size_t {row.count}"] if row.count else []
        yield from [*wrapped, *[f"  {each};" for each in fields]]


def header(root, listed):
    """The header with the table's structure."""
    text = (Path(root) / HEADER).read_text(encoding="utf-8")
    begin = "  size_t size; /* sizeof(heddle_compile_options_t) */\n"
    before, rest = text.split(begin)
    after = rest[rest.index("} heddle_compile_options_t;"):]
    return before + begin + "\n".join(_declarations(listed)) + "\n" + after


def structure(listed):
    """The structure for ctypes."""
    fields, keywords = ['("size", c_size_t)'], []
    for row in listed:
        if row.arguments:
            fields += [f'("{row.field}", {row.field.capitalize()})',
                       f'("{row.field}_data", c_void_p)']
        elif row.field:
            fields.append(f'("{row.field}", {TYPES.get(row.kind, ("", "c_char_p"))[1]})')
            fields += [f'("{row.count}", c_size_t)'] if row.count else []
        if row.keyword and row.kind:
            most = re.fullmatch(r"range\(.*, (\d+)\)", row.domain)
            last = f'"{row.count}"' if row.count else most[1] if most else MOST.get(row.kind)
            keywords.append(f'"{row.name}": ("{row.field}", "{row.kind}", {last})')
    return STRUCTURE_TEXT.format(fields=_listed(fields, 8), rows=_listed(keywords, 4))


def function(root, listed):
    """compiler.py with the table's keywords and what they are."""
    text = (Path(root) / FUNCTION).read_text(encoding="utf-8")
    known = {row.name: row for row in listed if row.keyword}
    names = [*POSITIONAL, *[name for name in known if name not in POSITIONAL]]
    given = [known[name].keyword.replace("'", '"') for name in names]
    given.insert(len(POSITIONAL), "*")
    about = []
    for name in names:
        about += textwrap.wrap(f"{name:9}  {known[name].text('Python')}", COLUMNS,
                               initial_indent="    ", subsequent_indent=" " * 15,
                               break_on_hyphens=False)
    begin = "def compile(  # noqa: A001: the package's own word\n"
    end = "\n\n    The result's `compiled`"
    return "".join([
        text[:text.index(begin)], begin, _listed(given, 4),
        '\n):\n    """Compiles an ONNX model and returns a Module ready to run.\n\n',
        "\n".join(about), text[text.index(end):]])


def page(listed):
    """The page of all options."""
    lines = []
    for row in listed:
        if row.field or row.keyword:
            variable = re.fullmatch(r"variable\('(\w+)'\)", row.domain)
            cells = [row.field, row.flag, row.keyword, variable[1] if variable else ""]
            shown = [f"`{cell}`" if cell else "" for cell in cells] + [row.text()]
            lines.append("| " + " | ".join(each.replace("|", r"\|") for each in shown) + " |\n")
    return PAGE_TEXT + "".join(lines)


def texts(root):
    """The files that the table makes: {path: text}."""
    listed = rows(root)
    return {HEADER: header(root, listed), STRUCTURE: structure(listed),
            FUNCTION: function(root, listed), PAGE: page(listed)}


def check(root, _files):
    """Files that the table would make otherwise."""
    return [f"{path}: is not what {TABLE} says; 'tools/check/options.py --write' writes it again"
            for path, text in texts(root).items()
            if not (Path(root) / path).exists()
            or (Path(root) / path).read_text(encoding="utf-8") != text]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: options.py --write")
    for written, content in texts(ROOT).items():
        (ROOT / written).write_text(content, encoding="utf-8")
