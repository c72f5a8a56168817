"""Where files are looked for, and that only the right ones are read."""

import gzip
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dvfl.data import load
from dvfl.data.sets import sources
from dvfl.data.sets.catalogue import SOURCES
from dvfl.data.sets.sources import read_arrays
from dvfl.errors import UserError

Public = Callable[[str], dict[str, bytes]]
Trust = Callable[..., None]

SMALL = "credit_card.npz"
PREPARED = {name: source.prepared for name, source in SOURCES.items() if source.prepared is not None}


def write(folder: Path, contents: dict[str, bytes], *, compress: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = folder / (f"{name}.gz" if compress else name)
        path.write_bytes(gzip.compress(content, 1) if compress else content)


def refused(name: str, data_dir: Path | None = None) -> str:
    with pytest.raises(UserError) as caught:
        read_arrays(name, data_dir)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_given_folder_comes_before_the_environment_and_the_cache(tmp_path, cache, monkeypatch):
    for folder in (tmp_path / "given", tmp_path / "environment", cache):
        write(folder, {SMALL: b""})
    monkeypatch.setenv("DVFL_DATA", str(tmp_path / "environment"))
    assert refused("credit_card", tmp_path / "given").startswith(str(tmp_path / "given" / SMALL))
    assert refused("credit_card").startswith(str(tmp_path / "environment" / SMALL))
    monkeypatch.delenv("DVFL_DATA")
    assert refused("credit_card").startswith(str(cache / SMALL))


def test_a_folder_without_the_file_is_passed_over(tmp_path, real_data, monkeypatch):
    monkeypatch.setenv("DVFL_DATA", str(real_data))
    assert read_arrays("credit_card", tmp_path)["X"].shape == (30000, 23)


def test_a_relative_xdg_cache_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert sources.cache_folder() == Path.home() / ".cache" / "dvfl"


@pytest.fixture
def offline(use_address):
    """Nobody listens at the public addresses."""
    with socket.socket() as unused:  # bound and not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        for name, source in SOURCES.items():
            if source.published is not None and source.published.address is not None:
                use_address(name, address)
        yield address


@pytest.mark.parametrize("name", SOURCES)
def test_a_data_set_found_nowhere_is_reported_with_the_three_places_and_an_address(
    name, tmp_path, cache, monkeypatch, offline
):
    monkeypatch.setenv("DVFL_DATA", str(tmp_path / "environment"))
    message = refused(name, tmp_path / "given")
    for part in (tmp_path / "given", tmp_path / "environment", cache):
        assert str(part) in message
    published = sources.SOURCES[name].published
    if published is None or published.address is None:
        assert "https://" in message
    else:
        assert f"fetching from {offline} failed: no connection for {offline}" in message
    for file in (*((PREPARED[name],) if name in PREPARED else ()), *(published.files if published else ())):
        assert file.name in message
    assert not cache.exists()


def test_places_that_are_not_set_are_said_to_be(offline):
    message = refused("mnist")
    assert "none given" in message and "$DVFL_DATA (not set)" in message


def test_how_to_unpack_parkinsons_is_said(tmp_path):
    message = refused("parkinsons", tmp_path)
    assert "https://archive.ics.uci.edu/static/public/470/parkinson+s+disease+classification.zip" in message
    assert "bsdtar -xf pd_speech_features.rar" in message and "put pd_speech_features.csv in one of them" in message


def test_that_no_public_file_gives_caltech7_is_said(tmp_path):
    assert "no public file converts to it" in refused("caltech7", tmp_path)


@pytest.mark.parametrize("name", PREPARED)
def test_a_truncated_prepared_file_is_refused_by_its_size(name, tmp_path):
    file = PREPARED[name]
    write(tmp_path, {file.name: b"x" * (file.size - 1)})
    message = refused(name, tmp_path)
    assert f"{tmp_path / file.name} has {file.size - 1} bytes, expected {file.size}: truncated" in message
    assert SOURCES[name].page in message


@pytest.mark.parametrize("name", PREPARED)
def test_a_changed_byte_in_a_prepared_file_is_refused_by_the_checksum(name, tmp_path, real_data):
    file = PREPARED[name]
    content = bytearray((real_data / file.name).read_bytes())
    content[5000] ^= 1
    write(tmp_path, {file.name: bytes(content)})
    message = refused(name, tmp_path)
    assert f"{file.name} has sha256 " in message and f"expected {file.sha256}" in message


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.published is not None])
def test_public_files_with_other_bytes_are_refused_by_the_checksum(name, tmp_path):
    files = SOURCES[name].published.files
    write(tmp_path, {file.name: b"x" * (file.size or 1000) for file in files})
    message = refused(name, tmp_path)
    assert f"{tmp_path / files[0].name} has sha256 " in message and f"expected {files[0].sha256}" in message


def test_a_truncated_public_csv_is_refused_by_its_size(tmp_path, public):
    write(tmp_path, {"data.csv": public("credit_card")["data.csv"][:-1]})
    assert "data.csv has 2897079 bytes, expected 2897080: truncated" in refused("credit_card", tmp_path)


@pytest.mark.parametrize("folder", [".", "credit_card"])
@pytest.mark.parametrize("compress", [False, True])
def test_the_public_csv_of_credit_card_is_as_good_as_the_prepared_file(folder, compress, tmp_path, real_data, public):
    write(tmp_path / folder, public("credit_card"), compress=compress)
    converted, prepared = read_arrays("credit_card", tmp_path), read_arrays("credit_card", real_data)
    for part in ("X", "y"):
        assert np.array_equal(converted[part], prepared[part])


@pytest.mark.parametrize("name", ["parkinsons", "handwritten"])
def test_public_tables_load_as_the_prepared_file_does(name, tmp_path, real_data, public, trust: Trust):
    contents = public(name)
    write(tmp_path, contents)
    trust(name, contents)
    converted, prepared = load(name, data_dir=tmp_path), load(name, data_dir=real_data)
    for a, b in zip(converted.guests, prepared.guests, strict=True):
        assert np.array_equal(a.train, b.train) and np.array_equal(a.test, b.test)


def test_a_public_table_with_another_value_is_refused_by_the_checksum_of_the_arrays(tmp_path, public, trust: Trust):
    contents = {name: content.replace(b",240,", b",241,", 1) for name, content in public("parkinsons").items()}
    write(tmp_path, contents)
    trust("parkinsons", contents)
    message = refused("parkinsons", tmp_path)
    assert "pd_speech_features.csv: converted, this is not parkinsons as prepared" in message


def test_a_public_table_with_a_column_too_many_is_refused(tmp_path, public, trust: Trust):
    contents = {name: content.replace(b"\n", b",0\n") for name, content in public("parkinsons").items()}
    write(tmp_path, contents)
    trust("parkinsons", contents)
    assert "pd_speech_features.csv has 756 rows of 756 columns, expected 756 of 755" in refused("parkinsons", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.parametrize("compress", [False, True])
def test_images_are_read_from_an_idx_folder(name, compress, tmp_path, small_images, trust: Trust):
    write(tmp_path, small_images, compress=compress)
    trust(name, small_images)
    data = load(name, data_dir=tmp_path)
    assert (data.name, data.sizes, data.rows, len(data.y_test)) == (name, "mnist", 100, 20)
    assert [guest.name for guest in data.guests] == ["rows-0-6", "rows-7-13", "rows-14-20", "rows-21-27"]
    first = np.frombuffer(small_images["train-images-idx3-ubyte"], np.uint8, 784, offset=16)
    together = np.concatenate([guest.train[0] for guest in data.guests])
    assert np.array_equal(np.rint(together * 255), first)


def test_folders_with_the_names_of_the_data_sets_keep_alike_files_apart(tmp_path, small_images, trust: Trust):
    other = {name: content[:-1] + bytes([content[-1] ^ 1]) for name, content in small_images.items()}
    for name, contents in (("mnist", small_images), ("fashion_mnist", other)):
        write(tmp_path / name, contents)
        trust(name, contents)
    labels = [read_arrays(name, tmp_path)["y_test"][-1] for name in ("mnist", "fashion_mnist")]
    assert labels == [9, 8]


def test_an_idx_folder_that_lacks_a_file_is_named(tmp_path, small_images, trust: Trust):
    trust("fashion_mnist", small_images)
    small_images.pop("t10k-labels-idx1-ubyte")
    write(tmp_path, small_images)
    message = refused("fashion_mnist", tmp_path)
    assert f"{tmp_path} has train-images-idx3-ubyte but not t10k-labels-idx1-ubyte" in message


def test_mnist_in_place_of_fashion_mnist_is_refused(tmp_path, public):
    write(tmp_path, public("mnist"))
    assert "train-images-idx3-ubyte has sha256 ba891046" in refused("fashion_mnist", tmp_path)


def test_the_whole_of_fashion_mnist_loads(real_fashion):
    data = load("fashion-mnist", data_dir=real_fashion)
    assert np.bincount(data.y_train).tolist() == [6000] * 10 and np.bincount(data.y_test).tolist() == [1000] * 10
    assert np.mean([guest.train.mean(dtype=np.float64) for guest in data.guests]) == pytest.approx(0.2860, abs=1e-4)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / SMALL
    path.write_bytes(b"")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert refused("credit_card", tmp_path) == f"{path} cannot be read (Permission denied)"


def test_mnist_is_fetched_once_and_then_read_from_the_cache(cache, site, use_address, public, real_data):
    folder, address = site
    write(folder, public("mnist"), compress=True)
    use_address("mnist", address)
    fetched = read_arrays("mnist")
    names = sorted(path.name for path in (cache / "mnist").iterdir())
    assert names == [f"{part}-ubyte.gz" for part in ("t10k-images-idx3", "t10k-labels-idx1", "train-images-idx3",
                                                     "train-labels-idx1")]  # fmt: skip
    shutil.rmtree(folder)
    again = read_arrays("mnist")
    with np.load(real_data / "mnist.npz") as prepared:
        for name in prepared.files:
            assert np.array_equal(fetched[name], prepared[name])
            assert np.array_equal(again[name], prepared[name])


def test_credit_card_is_fetched_once_and_then_read_from_the_cache(cache, site, use_address, public):
    folder, address = site
    write(folder, public("credit_card"))
    use_address("credit_card", address)
    first = read_arrays("credit_card")
    shutil.rmtree(folder)
    assert np.array_equal(read_arrays("credit_card")["X"], first["X"])
    path = cache / "credit_card" / "data.csv"
    path.write_bytes(path.read_bytes()[:-10])
    assert f"{path} has 2897070 bytes, expected 2897080: truncated" in refused("credit_card")


def test_what_a_fetch_that_was_cut_short_left_is_completed(cache, site, use_address, small_images, trust: Trust):
    folder, address = site
    trust("fashion_mnist", small_images)
    use_address("fashion_mnist", address)
    write(folder, small_images, compress=True)
    labels = "t10k-labels-idx1-ubyte"
    write(cache / "fashion_mnist", {labels: small_images[labels]}, compress=True)
    (folder / f"{labels}.gz").unlink()  # so that only the others can be fetched
    assert read_arrays("fashion_mnist")["x_test"].shape == (20, 28, 28)


def test_a_prepared_file_is_taken_from_the_cache(real_data, cache):
    cache.mkdir(parents=True)
    shutil.copy(real_data / SMALL, cache / SMALL)
    assert read_arrays("credit_card")["X"].shape == (30000, 23)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "credit_card", "handwritten"])
def test_other_bytes_from_the_source_are_refused_and_nothing_is_kept(name, cache, site, use_address):
    folder, address = site
    published = SOURCES[name].published
    write(folder, {file.name: b"other" for file in published.files}, compress=published.suffix == ".gz")
    use_address(name, address)
    first = published.files[0]
    message = refused(name)
    assert f"{address}{first.name}{published.suffix} has 5 bytes" in message and f"expected {first.size}" in message
    assert not cache.exists()


def test_a_cut_off_download_is_refused(cache, site, use_address):
    folder, address = site
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(range(256)) * 40)[:100])
    use_address("mnist", address)
    assert "train-images-idx3-ubyte.gz is truncated or broken" in refused("mnist")
    assert not cache.exists()


def test_a_source_that_lost_the_file_is_named_with_its_answer(site, use_address):
    use_address("mnist", site[1])
    assert "train-images-idx3-ubyte.gz answered 404" in refused("mnist")
