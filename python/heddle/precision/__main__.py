"""Chooses precisions for `heddle compile --tolerance`, which asks in JSON and is answered so.

SPDX-License-Identifier: Apache-2.0
"""

import json
import sys

from .. import library
from ..custom import load_custom_ops
from ..stops import Stops
from . import choose_precision

KEYWORDS = ("tolerance", "batch", "each", "untimed")


def _keywords(compiled):
    """The keywords of heddle.compile for those that the command has written down."""
    found = dict(compiled)
    found["in_place"] = dict(text.split("=", 1) for text in found.pop("in_place", ()))
    return found


def _answer(request, stops):
    for path in request["custom_ops"]:
        load_custom_ops(path)
    reports = []

    def progress(line):
        stops.check()
        print(line, file=sys.stderr)

    plan = choose_precision(
        request["model"], request["data"] or None, report=reports.append,
        progress=progress,
        **{name: request[name] for name in KEYWORDS}, **_keywords(request["compile"]))
    return {"plan": plan, "math": reports[0].facts["math"], "facts": reports[0].facts,
            "text": str(reports[0])}


def main(arguments=None):
    request = json.loads((sys.argv[1:] if arguments is None else arguments)[0])
    stops, code = Stops(), 0
    try:
        answer = _answer(request, stops)
    except library.Error as error:
        answer, code = {"error": str(error)}, error.code
    except MemoryError as error:
        answer, code = {"error": f"out of memory: {error}"}, 4
    except KeyboardInterrupt:
        stops.ignore()
        answer, code = {"error": "stopped; nothing was written"}, 128 + stops.number
    with open(request["answer"], "w", encoding="utf-8") as file:
        json.dump(answer, file)
    return code


if __name__ == "__main__":
    sys.exit(main())
