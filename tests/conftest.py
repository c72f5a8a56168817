"""Where the tests find the real data sets, how many threads they compute with, and what needs an extra."""

import os
from pathlib import Path

import matplotlib.font_manager  # noqa: F401  writes its cache now, not into a test's own cache folder
import pytest
import torch

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

if SHARED.is_dir():
    os.environ.setdefault("DVFL_DATA", str(SHARED))

# Many small operations: two threads gain little alone, and cost tenfold where something else wants the cores.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def star_needs_its_library(request: pytest.FixtureRequest) -> None:
    """openmined-psi has no wheels for some processors; everything else is tested there all the same."""
    case = getattr(request.node, "callspec", None)
    if case is not None and case.params.get("way") == "star":
        pytest.importorskip("private_set_intersection", reason="the extra dvfl[psi] is not installed")
