"""The command `heddle`, as `python -m heddle` and as the console script of the wheel.

SPDX-License-Identifier: Apache-2.0
"""

import os
import sys
from pathlib import Path


def main():
    """Becomes the program; commands that need Python take the one that runs this."""
    here = Path(__file__).resolve().parent
    found = [path for path in (here / "bin" / "heddle",
                               here.parents[1] / "build" / "release" / "bin" / "heddle")
             if path.exists()]
    if not found:
        print(f"heddle: the program is not in '{here / 'bin'}'; './dev build' makes it",
              file=sys.stderr)
        return 2
    os.environ.setdefault("HEDDLE_PYTHON", sys.executable)
    os.execv(found[0], ["heddle", *sys.argv[1:]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
