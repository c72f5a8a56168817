"""Where the tests find the real data sets, and how many threads they compute with."""

import os
from pathlib import Path

import torch

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

if SHARED.is_dir():
    os.environ.setdefault("DVFL_DATA", str(SHARED))

# Many small operations: two threads gain little alone, and cost tenfold where something else wants the cores.
torch.set_num_threads(1)
