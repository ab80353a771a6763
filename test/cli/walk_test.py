"""docs/guide/walk.md shows what the compiler prints."""

import subprocess
import sys
from pathlib import Path

from command import needs_heddle

ROOT = Path(__file__).resolve().parents[2]
pytestmark = needs_heddle


def test_the_walk_is_what_the_compiler_prints():
    done = subprocess.run([sys.executable, ROOT / "tools" / "check" / "walk.py"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
