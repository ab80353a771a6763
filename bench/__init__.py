"""Measurements: the models, the kernels, and how the peers are run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this checkout's package
