"""Where the real data lie, a cache of each test's own, and data sets' files as their publishers write them."""

import functools
import hashlib
import http.server
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dvfl.data.sets import sources
from dvfl.data.sets.catalogue import SOURCES
from dvfl.data.sets.checksums import File
from dvfl.data.sets.conversion import IDX_FILES, VIEWS

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("DVFL_DATA") or SHARED)  # read before the fixture below hides the variable
FASHION = (DATA / "fashion_mnist", Path("/usr/share/datasets/fashion-mnist"))  # the latter is where Debian puts it


@pytest.fixture
def real_data() -> Path:
    if not (DATA / "mnist.npz").is_file():
        pytest.skip(f"the real data sets are not in {DATA}")
    return DATA


@pytest.fixture
def real_fashion() -> Path:
    for folder in FASHION:
        if (folder / "t10k-labels-idx1-ubyte.gz").is_file():
            return folder
    pytest.skip(f"Fashion-MNIST is not in {' or '.join(map(str, FASHION))}")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; and nothing of the user's environment shows through."""
    monkeypatch.delenv("DVFL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "dvfl"


@pytest.fixture
def public(real_data: Path) -> Callable[[str], dict[str, bytes]]:
    """The files of a data set in the publisher's format, from the prepared arrays."""

    def files(name: str) -> dict[str, bytes]:
        with np.load(real_data / f"{name}.npz") as arrays:
            return WRITERS[name](arrays)

    return files


@pytest.fixture
def small_images() -> dict[str, bytes]:
    """Four idx files as of MNIST, with 100 and 20 images."""
    rng = np.random.default_rng(0)
    arrays = {}
    for part, rows in (("train", 100), ("test", 20)):
        arrays[f"x_{part}"] = rng.integers(0, 256, (rows, 28, 28), np.uint8)
        arrays[f"y_{part}"] = np.arange(rows, dtype=np.uint8) % 10
    return idx_files(arrays)


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes these contents the published ones, since the real bytes of some files are not at hand."""

    def believe(name: str, contents: Mapping[str, bytes]) -> None:
        published = SOURCES[name].published
        assert published is not None
        files = tuple(
            File(file, hashlib.sha256(content).hexdigest(), len(content)) for file, content in contents.items()
        )
        source = replace(sources.SOURCES[name], published=replace(published, files=files))
        monkeypatch.setattr(sources, "SOURCES", {**sources.SOURCES, name: source})

    return believe


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address under which a real server gives out its files."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def use_address(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Has a data set fetched from elsewhere."""

    def use(name: str, address: str) -> None:
        monkeypatch.setenv("no_proxy", "*")
        published = sources.SOURCES[name].published
        assert published is not None
        source = replace(sources.SOURCES[name], published=replace(published, address=address))
        monkeypatch.setattr(sources, "SOURCES", {**sources.SOURCES, name: source})

    return use


Arrays = Mapping[str, np.ndarray]


def idx_files(arrays: Arrays) -> dict[str, bytes]:
    files = {}
    for name, file in IDX_FILES.items():
        shape = arrays[name].shape
        files[file] = bytes((0, 0, 8, len(shape))) + np.array(shape, ">u4").tobytes() + arrays[name].tobytes()
    return files


def credit_card_csv(arrays: Arrays) -> dict[str, bytes]:
    """UCI's: whole numbers, lines that end in CR LF."""
    lines = [",".join(["ID", *(f"X{number}" for number in range(1, 24)), "Y"])]
    for number, (row, y) in enumerate(zip(arrays["X"].astype(int).tolist(), arrays["y"].tolist(), strict=True)):
        lines.append(",".join(map(str, [number + 1, *row, y])))
    return {"data.csv": ("\r\n".join(lines) + "\r\n").encode()}


def parkinsons_csv(arrays: Arrays) -> dict[str, bytes]:
    """UCI's: a line of groups where each begins, a line of names, then the rows."""
    groups = arrays["feature_group"].tolist()
    begins = [group if group != before else "" for before, group in zip(["", *groups], groups, strict=False)]
    lines = [",".join(["", "", *begins[1:], ""]), ",".join(["id", *arrays["feature_names"], "class"])]
    for subject, row, y in zip(arrays["subject_id"], arrays["X"], arrays["y"], strict=True):
        lines.append(f"{subject},{','.join(f'{value:.9g}' for value in row.tolist())},{y}")  # 9 digits hold a float32
    return {"pd_speech_features.csv": ("\n".join(lines) + "\n").encode()}


def handwritten_files(arrays: Arrays) -> dict[str, bytes]:
    """UCI's: whole numbers in columns of fixed width, others with 8 decimals."""
    forms = {"pix": "%3d", "fac": "%5d"}
    files = {}
    for view in VIEWS:
        form = forms.get(view, " %.8f")
        lines = ["".join(form % value for value in row) for row in arrays[view].tolist()]
        files[f"mfeat-{view}"] = ("\n".join(lines) + "\n").encode()
    return files


WRITERS = {
    "mnist": idx_files,
    "credit_card": credit_card_csv,
    "parkinsons": parkinsons_csv,
    "handwritten": handwritten_files,
}
