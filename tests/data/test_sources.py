import functools
import gzip
import hashlib
import http.server
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dvfl.data import sources
from dvfl.data.fetch import MNIST_FILES
from dvfl.data.sources import SOURCES, Source, find, read_arrays
from dvfl.errors import UserError

SMALL = "credit_card.npz"


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
def use_address(monkeypatch: pytest.MonkeyPatch):
    def use(address: str) -> None:
        monkeypatch.setenv("no_proxy", "*")
        prepared = SOURCES["mnist.npz"]
        changed = Source(prepared.size, prepared.sha256, address)
        monkeypatch.setattr(sources, "SOURCES", {**SOURCES, "mnist.npz": changed})

    return use


def publish_mnist(real_data: Path, folder: Path) -> None:
    with np.load(real_data / "mnist.npz") as arrays:
        for name, file in MNIST_FILES.items():
            raw = file.header + arrays[name].tobytes()
            (folder / f"{file.name}.gz").write_bytes(gzip.compress(raw, 1))


def test_the_given_folder_comes_before_the_environment_and_the_cache(tmp_path, cache, monkeypatch):
    for folder in (tmp_path / "given", tmp_path / "environment", cache):
        folder.mkdir(parents=True)
        (folder / SMALL).write_bytes(b"")
    monkeypatch.setenv("DVFL_DATA", str(tmp_path / "environment"))
    assert find(SMALL, tmp_path / "given").parent == tmp_path / "given"
    assert find(SMALL).parent == tmp_path / "environment"
    monkeypatch.delenv("DVFL_DATA")
    assert find(SMALL).parent == cache


def test_a_folder_without_the_file_is_passed_over(tmp_path, real_data, monkeypatch):
    monkeypatch.setenv("DVFL_DATA", str(real_data))
    assert find(SMALL, tmp_path) == real_data / SMALL


def test_a_relative_xdg_cache_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert sources.cache_folder() == Path.home() / ".cache" / "dvfl"


def test_a_file_found_nowhere_is_reported_with_the_three_places_and_the_address(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("DVFL_DATA", str(tmp_path / "environment"))
    with pytest.raises(UserError) as caught:
        find(SMALL, tmp_path / "given")
    message = str(caught.value)
    for part in (tmp_path / "given", tmp_path / "environment", cache, SOURCES[SMALL].address):
        assert str(part) in message
    assert "\n" not in message


def test_the_prepared_file_loads_with_its_arrays(real_data):
    arrays = read_arrays(SMALL, real_data)
    assert arrays["X"].shape == (30000, 23)
    assert np.bincount(arrays["y"]).tolist() == [23364, 6636]


def test_a_truncated_copy_is_refused_by_its_size(tmp_path, real_data):
    (tmp_path / SMALL).write_bytes((real_data / SMALL).read_bytes()[:-1])
    with pytest.raises(UserError, match=rf"{SMALL} has 1013708 bytes, expected 1013709"):
        read_arrays(SMALL, tmp_path)


def test_a_changed_byte_is_refused_by_the_checksum(tmp_path, real_data):
    content = bytearray((real_data / SMALL).read_bytes())
    content[5000] ^= 1
    (tmp_path / SMALL).write_bytes(content)
    with pytest.raises(UserError, match=rf"{SMALL} has sha256 [0-9a-f]{{64}}, expected {SOURCES[SMALL].sha256}"):
        read_arrays(SMALL, tmp_path)


def test_a_note_beside_the_file_counts_only_in_the_cache(tmp_path):
    (tmp_path / SMALL).write_bytes(b"x" * SOURCES[SMALL].size)
    (tmp_path / f"{SMALL}.sha256").write_text(hashlib.sha256(b"x" * SOURCES[SMALL].size).hexdigest())
    with pytest.raises(UserError, match="expected 3ab898"):
        read_arrays(SMALL, tmp_path)


def test_mnist_is_fetched_once_and_then_read_from_the_cache(real_data, cache, site, use_address):
    folder, address = site
    publish_mnist(real_data, folder)
    use_address(address)
    fetched = read_arrays("mnist.npz")
    assert sorted(path.name for path in cache.iterdir()) == ["mnist.npz", "mnist.npz.sha256"]
    shutil.rmtree(folder)
    again = read_arrays("mnist.npz")
    with np.load(real_data / "mnist.npz") as prepared:
        for name in prepared.files:
            assert np.array_equal(fetched[name], prepared[name])
            assert np.array_equal(again[name], prepared[name])
    (cache / "mnist.npz").write_bytes((cache / "mnist.npz").read_bytes()[:-10])
    with pytest.raises(UserError, match="remove it to fetch it again"):
        read_arrays("mnist.npz")


def test_a_prepared_file_is_taken_from_the_cache_without_a_note(real_data, cache):
    cache.mkdir(parents=True)
    shutil.copy(real_data / SMALL, cache / SMALL)
    assert read_arrays(SMALL)["X"].shape == (30000, 23)


def test_other_bytes_from_the_source_are_refused_and_nothing_is_kept(cache, site, use_address):
    folder, address = site
    for file in MNIST_FILES.values():
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(b"not the digits"))
    use_address(address)
    with pytest.raises(UserError, match="expected ba891046"):
        find("mnist.npz")
    assert not cache.exists()


def test_a_cut_off_download_is_refused(cache, site, use_address):
    folder, address = site
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(range(256)) * 40)[:100])
    use_address(address)
    with pytest.raises(UserError, match="did not arrive whole"):
        find("mnist.npz")
    assert not cache.exists()


def test_a_source_that_lost_the_file_is_named_with_its_answer(site, use_address):
    use_address(site[1])
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte.gz answered 404"):
        find("mnist.npz")


def test_offline_mnist_is_reported_with_the_places_and_the_address(cache, use_address):
    with socket.socket() as unused:  # bound and not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        use_address(address)
        with pytest.raises(UserError) as caught:
            find("mnist.npz")
    message = str(caught.value)
    assert "none given" in message and "$DVFL_DATA (not set)" in message and str(cache) in message
    assert address in message and "no connection" in message and "\n" not in message
