"""`dvfl serve`: tokens, and what it refuses before it listens."""

import hashlib
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from dvfl.cli import main

pytest.importorskip("fastapi", reason="the extra dvfl[serve] is not installed")
pytest.importorskip("nats", reason="the extra dvfl[federation] is not installed")


@pytest.fixture
def owner(tmp_path: Path) -> Path:
    folder = tmp_path / "owner"
    folder.mkdir()
    (folder / "party.toml").write_text("[head]\n")
    return folder


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["serve", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_a_new_token_is_alone_on_stdout_and_its_hash_in_the_owners_folder(
    owner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(owner), "--new-token", "ward-3"]) == 0
    captured = capsys.readouterr()
    secret = captured.out.strip()
    name, digest, _ = (owner / "tokens").read_text().split()
    assert (name, digest) == ("ward-3", hashlib.sha256(secret.encode()).hexdigest())
    assert secret not in captured.err and "ward-3 may ask until" in captured.err


def test_an_address_open_to_others_needs_more_than_an_address(owner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--token-file FILE or --client-ca FILE" in refused(capsys, owner, "--listen", "0.0.0.0:8080")
    main(["serve", str(owner), "--new-token", "ward-3"])
    capsys.readouterr()
    assert "--tls-cert and --tls-key are needed" in refused(capsys, owner, "--listen", "0.0.0.0:8080")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--listen", "8080"), "HOST:PORT is right"),
        (("--client-ca", "ca.pem"), "--client-ca needs both"),
        (("--token-file", "missing"), "cannot be read"),
        (("--new-token", "a b"), "are right"),
        (("--rate", "0"), "--rate"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    owner: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    assert said in refused(capsys, owner, *options)


def test_a_folder_that_is_not_the_owners_is_refused(
    owner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no such folder" in refused(capsys, tmp_path / "nowhere")
    (owner / "party.toml").write_text("")
    for options in ((), ("--new-token", "ward-3")):
        assert f"such as {owner}" in refused(capsys, tmp_path, *options)
        assert "is the folder of a guest; that of the owner is right" in refused(capsys, owner, *options)
    assert not list(tmp_path.rglob("tokens"))


def test_a_token_cannot_be_added_to_what_is_no_file_of_them(owner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (owner / "binary").write_bytes(b"\xff\x00")
    for name, said in ((".", "Is a directory"), ("no/tokens", "is not there"), ("binary", "no text in UTF-8")):
        assert said in refused(capsys, owner, "--new-token", "ward-3", "--token-file", owner / name)


def test_without_the_extra_its_name_is_said(
    owner: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == "fastapi" else found(name, package)

    monkeypatch.setattr("dvfl.orders.extras.find_spec", without)
    assert "pip install 'dvfl[serve]' is right" in refused(capsys, owner)
