"""A real federation by its commands, from the first invitation to a result, and what the commands refuse."""

import io
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from clinics import ROWS, TESTED, Clinics

from dvfl.cli import main
from dvfl.federation.party.settings import read_federation

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must end with this status; what it said."""

    def run(*arguments: str | Path, status: int = 0) -> str:
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == status, capsys.readouterr()
        captured = capsys.readouterr()
        if status == 2 and arguments[0] != "doctor":
            (line,) = captured.err.splitlines()
            assert line.startswith("dvfl: ")
        return captured.out + captured.err

    return run


@pytest.fixture
def clinics(empty_folder: Path, said: Callable[..., str]) -> Clinics:
    """Tables and labels in place; only the federation itself is made."""
    made = Clinics(empty_folder)
    made.write_label_files()
    said("federation", "create", made.owner, "--name", "clinics", "--labels", made.owner / "labels.parquet")
    return made


def until(what: Callable[[], bool], seconds: float, *processes: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        for process in processes:
            assert process.poll() is None, process.communicate()
        time.sleep(0.1)


def test_from_the_invitation_to_a_result(clinics: Clinics, said: Callable[..., str], process: Start) -> None:
    owner, host = clinics.owner, clinics.folder("host-1")
    guests = [clinics.folder("guest-1"), clinics.folder("guest-2")]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    invited = ["--invitation", clinics.invitation]
    said("join", host, "--as", "host", "--name", "host-1", *invited, "--listen", address, "--address", address)
    said("admit", owner, host / "request.toml", "--yes")
    for guest in guests:
        table = clinics.write_table(guest.name)
        said("join", guest, "--as", "guest", "--name", guest.name, *invited, "--table", table)
        with_tests = (guest / "party.toml").read_text().replace("[data]", '[data]\ntest_table = "test_table.parquet"')
        (guest / "party.toml").write_text(with_tests)
    said("admit", owner, guests[0] / "request.toml", "--yes")
    for folder, file in (
        (host, "admission-host-1.toml"),
        (guests[0], "admission-guest-1.toml"),
        (host, "admission-guest-1.toml"),
    ):
        said("join", folder, "--admission", owner / file)
    running = [process("host", host), process("guest", guests[0])]
    until((host / "status.json").exists, 30, *running)

    # Another guest, while the host runs.
    assert "These have an older federation.toml than version 4: guest-1, host-1." in said(
        "admit", owner, guests[1] / "request.toml", "--yes"
    )
    for folder in (host, *guests):
        said("join", folder, "--admission", owner / "admission-guest-2.toml")
    assert "the broker does not know guest-2" in said("doctor", guests[1], status=2)
    running[0].send_signal(signal.SIGHUP)
    until(lambda: main(["doctor", str(guests[1])]) == 0, 10, *running)
    mine = (owner / "party.toml").read_text().replace("training = 0", f"training = {ROWS}")
    mine = mine.replace("encode_only = 0", f"encode_only = {TESTED}")
    (owner / "party.toml").write_text(mine.replace("[data]", '[data]\ntest_labels = "test_labels.parquet"'))
    for folder in (owner, host, *guests):
        assert "mend" not in said("doctor", folder)

    running += [process("guest", guests[1]), process("owner", owner)]
    until((owner / "result.json").exists, 60, *running)
    result = json.loads((owner / "result.json").read_text())
    assert result["status"] == "ok" and result["accuracy_mean"] > 80 and result["preset"] == "tuned"
    assert [result["parties"][party]["messages_dropped"] for party in ("guest-1", "guest-2", "host-1")] == [0, 0, 0]
    for folder in (owner, host, *guests):
        assert "process: runs" in said("doctor", folder)

    # One is taken out: the host cuts it off, the others go on.
    said("federation", "remove", owner, "guest-2")
    said("join", host, "--admission", owner / "removal-guest-2.toml")
    running[0].send_signal(signal.SIGHUP)
    until(lambda: main(["doctor", str(guests[1])]) == 2, 10, *running)
    assert "the broker does not know guest-2" in said("doctor", guests[1], status=2)
    said("doctor", guests[0])
    running[0].send_signal(signal.SIGTERM)
    assert running[0].wait(30) == 0


def test_owner_and_party_see_the_same_fingerprints(clinics: Clinics, said: Callable[..., str]) -> None:
    def shown(text: str) -> list[str]:
        return [line for line in text.splitlines() if len(line.split()) == 16 and line.startswith("  ")]

    created = said("federation", "create", "owner", "--name", "other")
    table = clinics.write_table("guest-1")
    asked = ["--as", "guest", "--name", "guest-1", "--invitation", "owner/invitation.toml", "--table", table]
    joined = said("join", "guest-1", *asked, "--slots", table.with_name("slots.parquet"))
    admitted = said("admit", "owner", "guest-1/request.toml", "--yes")
    assert shown(joined) == shown(created) + shown(admitted)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 2)])
def test_the_owner_is_asked_whether_the_fingerprint_is_right(
    clinics: Clinics, said: Callable[..., str], monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    clinics.join("guest-1")
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    said("admit", clinics.owner, clinics.folder("guest-1") / "request.toml", status=status)
    assert ("guest-1" in read_federation(clinics.owner).guests) == (status == 0)


def test_without_a_terminal_nobody_is_admitted_unless_told_so(
    clinics: Clinics, said: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clinics.join("guest-1")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    line = said("admit", clinics.owner, clinics.folder("guest-1") / "request.toml", status=2)
    assert "on a terminal, or with --yes, is right" in line
    assert not read_federation(clinics.owner).guests


def test_the_preset_depends_on_the_labels(clinics: Clinics, said: Callable[..., str]) -> None:
    said("federation", "create", "paper", "--name", "other", "--preset", "paper", "--seed", "7")
    tuned, paper = read_federation(clinics.owner).training, read_federation(Path("paper")).training
    assert (tuned.guest_epochs, tuned.seed) == (75, 0)  # 150 steps of two batches
    assert (paper.guest_epochs, paper.seed) == (20, 7)


def test_tuned_widths_follow_the_guests_that_are_admitted(clinics: Clinics, said: Callable[..., str]) -> None:
    for number, party in enumerate(("guest-1", "guest-2"), 1):
        clinics.join(party)
        said("admit", clinics.owner, clinics.folder(party) / "request.toml", "--yes")
        training = read_federation(clinics.owner).training
        assert (training.w_g, training.w_h) == (32 * number, 64)
    said("federation", "remove", clinics.owner, "guest-1")
    assert read_federation(clinics.owner).training.w_g == 32


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["join", "new"], "--as is not given"),
        (["join", "new", "--as", "guest", "--name", "g"], "--invitation is not given"),
        (["join", "new", "--as", "guest", "--name", "g", "--invitation", "I"], "--table is not given"),
        (["join", "new", "--as", "host", "--name", "h", "--invitation", "I"], "--address is not given"),
        (["join", "new", "--as", "owner"], "owner"),
        (["join", "new", "--admission", "I"], "was not made by dvfl join"),
        (["admit", "O", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["admit", "O", "I"], "unknown field"),
        (["federation", "create", "O", "--name", "again"], "is the folder of a party already"),
        (["federation", "create", "new", "--name", "x", "--preset", "tund"], "did you mean 'tuned'?"),
        (["federation", "create", "new", "--name", "x", "--labels", "nowhere.csv"], "nowhere.csv"),
        (["federation", "remove", "O", "guest-1"], "no guest or host 'guest-1'"),
        (["federation", "remove", "new", "guest-1"], "is not the folder of an owner"),
        (["doctor", "nowhere"], "no such folder"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing_behind(
    clinics: Clinics, said: Callable[..., str], arguments: list[str], says: str
) -> None:
    before = sorted(clinics.root.rglob("*"))
    named = {"I": clinics.invitation, "O": clinics.owner}
    assert says in said(*(named.get(argument, argument) for argument in arguments), status=2)
    assert sorted(clinics.root.rglob("*")) == before


@pytest.mark.parametrize(
    "command", [["join"], ["admit"], ["doctor"], ["federation", "create"], ["federation", "remove"]]
)
def test_every_help_ends_with_an_example(command: list[str], said: Callable[..., str]) -> None:
    last = said(*command, "--help").rstrip().rsplit("\n\n", 1)[-1]
    assert last.strip().startswith(f"Example: dvfl {' '.join(command)} ")
