"""No class that does more than one thing: the limit on its methods.

Methods are what a class's body declares with parentheses, whether it defines them there or not:
each overload is one, data members and friends are none. Nested classes are counted for themselves.
"""

import re
from pathlib import Path

LIMIT = 40
IGNORED = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|'
                     r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
CLASS = re.compile(r"\b(?<!enum )(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?([A-Za-z_][\w:]*)"
                   r"(?:\s+final)?(?:\s*:(?!:)[^;{}]*)?\s*\{")
ANGLES = re.compile(r"<[^<>()]*(?:\([^()]*\)[^<>()]*)*>")
NO_METHOD = re.compile(r"(?:using|friend|typedef|static_assert|enum|class|struct|union)\b")


def cleaned(text):
    """The text without comments, literals and directives, its lines as they are."""
    return IGNORED.sub(lambda found: "0" + "\n" * found.group().count("\n"), text)


def is_method(head):
    """Tells whether a member declares a function, by the text before its body or `;`."""
    head = re.sub(r"\b(?:public|protected|private)\s*:", " ", head)
    head = re.sub(r"\boperator\s*(?:\(\)|[^\w\s(]+)", "operator_", head)
    while (plain := ANGLES.sub(" ", head)) != head:
        head = plain
    head = re.sub(r"\[\[.*?\]\]|\balignas\([^)]*\)|\btemplate\b", " ", head).strip()
    before, parenthesis, after = head.partition("(")
    return bool(parenthesis and not NO_METHOD.match(head) and "=" not in before and
                not after.lstrip().startswith(("*", "&")) and re.search(r"\w\s*$", before))


def end_of_block(text, start):
    """The place after the `}` that closes the block which opens at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return place + 1
    return len(text)


def methods(body):
    """How many methods a class's body declares, which is between its braces."""
    count, begin, place = 0, 0, 0
    while place < len(body):
        if body[place] == "{":
            head, place = body[begin:place], end_of_block(body, place)
            # A block after a function's head ends it, but for those of its initialisers.
            if is_method(head) and not re.match(r"\s*[,{]", body[place:]):
                count, begin = count + 1, place
            continue
        if body[place] == ";":
            count, begin = count + is_method(body[begin:place]), place + 1
        place += 1
    return count


def check(root, files):
    """Classes over the limit, as `file:line: why`."""
    problems = []
    for path in files:
        if path.suffix not in (".cpp", ".h"):
            continue
        text = cleaned((Path(root) / path).read_text(encoding="utf-8", errors="replace"))
        for found in CLASS.finditer(text):
            opens = found.end() - 1
            count = methods(text[opens + 1:end_of_block(text, opens) - 1])
            if count > LIMIT:
                line = text.count("\n", 0, found.start()) + 1
                problems.append(f"{path}:{line}: class '{found[1]}' has {count} methods, {LIMIT} "
                                "are allowed; cut it into parts that each have what they need")
    return problems
