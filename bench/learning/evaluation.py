"""How well do models of costs order candidates of networks that they have not seen?

    ./dev bench cost-models [CORPUS] [--folds N] [--epochs N] [--models NAME...] [--write]

CORPUS is a file of tuning records of this machine, which `./dev bench corpus` makes; without one,
the corpus that is kept beside this file, of the machine that its records name. A roofline, boosted
trees and the graph network that Heddle trains and compiles are trained on the same splits: networks
are left out whole. `--write` makes docs/generated/cost.md and its pictures.
"""

import argparse
import json
import lzma
import shutil
import sqlite3
import sys
from pathlib import Path

from bench.models import tool
from heddle_lab.cost import Corpus
from heddle_lab.cost import evaluate

KEPT = Path(__file__).with_name("corpus.db.xz")
PAGE = tool.ROOT / "docs" / "generated" / "cost.md"

HEAD = """# How well are costs predicted?

Written by `./dev bench cost-models --write`. {head}
Networks are left out whole, each once, with all groups that they have; groups whose default takes
less than {least} us, or with fewer than three candidates, are not judged. *tau* is Kendall's over
the candidates of a group, the mean over groups; *clear pairs* are those that differ by 5 % at
least. *top-k* is how much slower the fastest of a model's k favourites is than the fastest of all,
the mean over groups, and *models top-k* that of the sums over a network's groups. *rules* is the
default choice.

```
{table}
```
"""


def _options():
    parser = argparse.ArgumentParser(prog="./dev bench cost-models",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("corpus", nargs="?", type=Path, metavar="CORPUS")
    parser.add_argument("--folds", default="10", help="'models', or a number (default 10)")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--models", nargs="+", default=list(evaluate.NAMES),
                        choices=evaluate.NAMES)
    parser.add_argument("--least", type=float, default=2e-6, metavar="S")
    parser.add_argument("--most", type=int, metavar="N", help="groups at most, for a short run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    return parser


def unpacked(folder):
    """The kept corpus as a file of records."""
    path = folder / "corpus.db"
    folder.mkdir(parents=True, exist_ok=True)
    with lzma.open(KEPT) as packed, open(path, "wb") as file:
        shutil.copyfileobj(packed, file)
    return path


def target_of(path):
    """The one target of a file of records, whichever machine this is."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    found = [target for target, in database.execute("SELECT DISTINCT target FROM trial")]
    database.close()
    return found[0] if len(found) == 1 else None


def write(options, text):
    """The page of what was found."""
    head, *table = text.splitlines()
    page = HEAD.format(head=head + ".", least=round(1e6 * options.least, 3),
                       table="\n".join(table))
    PAGE.write_text(page, encoding="utf-8")


def main():
    options = _options().parse_args()
    options.output = tool.RESULTS / "learning"
    path = options.corpus or unpacked(options.output)
    corpus = Corpus.read(path, target_of(path) if not options.corpus else None)
    if options.most:
        corpus.groups = evaluate.usable(corpus, options.least)[:options.most]
    print(json.dumps(corpus.about["left_out"]), file=sys.stderr)
    text = evaluate.evaluate(corpus, options, lambda line: print(line, file=sys.stderr))
    print(text)
    print(f"pictures in {options.output}")
    if options.write:
        write(options, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
