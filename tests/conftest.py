"""Where the tests find the real data sets, and how many threads they compute with."""

import os
from pathlib import Path

import matplotlib.font_manager  # noqa: F401  writes its cache now, not into a test's own cache folder
import torch

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

if SHARED.is_dir():
    os.environ.setdefault("DVFL_DATA", str(SHARED))

# Many small operations: two threads gain little alone, and cost tenfold where something else wants the cores.
torch.set_num_threads(1)
