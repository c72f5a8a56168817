"""Where the real data lie, and a cache of each test's own."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("DVFL_DATA") or SHARED)  # read before the fixture below hides the variable


@pytest.fixture
def real_data() -> Path:
    if not (DATA / "mnist.npz").is_file():
        pytest.skip(f"the real data sets are not in {DATA}")
    return DATA


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; and nothing of the user's environment shows through."""
    monkeypatch.delenv("DVFL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "dvfl"
