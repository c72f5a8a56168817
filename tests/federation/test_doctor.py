"""What the doctor finds in a party's folder, and that it leaves everything as it was."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from clinics import Clinics
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dvfl.federation.custody.founding import write_federation, write_party
from dvfl.federation.keys.authority import make_key
from dvfl.federation.keys.credentials import certificate_path, key_path, write_key
from dvfl.federation.local.connectivity import Finding
from dvfl.federation.local.doctor import examine
from dvfl.federation.party.configuration import read
from dvfl.federation.party.settings import PARTY, GuestFile, HostFile, OwnerFile, Quorum, Slots, read_federation
from dvfl.federation.party.storage import Checkpoint, DiskStorage
from dvfl.federation.tables.table import open_table


@pytest.fixture
def clinics(tmp_path: Path, free_port: Callable[[], int]) -> Clinics:
    """Two guests, a host and the owner, with all they need; nobody runs."""
    made = Clinics(tmp_path).create()
    for party in ("guest-1", "guest-2", "host-1"):
        made.enter(party, port=free_port())
    made.write_labels()
    return made


def place(clinics: Clinics, party: str) -> Path:
    return clinics.owner if party == "owner" else clinics.folder(party)


def found(folder: Path, now: datetime | None = None) -> dict[str, Finding]:
    findings = list(examine(folder, now=now or datetime.now(UTC)))
    assert len({finding.subject for finding in findings}) == len(findings)
    assert all("\n" not in finding.says for finding in findings)
    return {finding.subject: finding for finding in findings}


def ill(findings: dict[str, Finding]) -> list[str]:
    return [subject for subject, finding in findings.items() if not finding.well]


def everything(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file with its mode, time and content."""
    return {
        str(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


# Health.


@pytest.mark.parametrize("party", ["guest-1", "host-1", "owner"])
def test_in_a_federation_that_does_not_run_only_hosts_are_missing(clinics: Clinics, party: str) -> None:
    assert ill(found(place(clinics, party))) == ([] if party == "host-1" else ["host-1"])


@pytest.mark.parametrize("party", ["guest-1", "host-1", "owner"])
def test_the_doctor_touches_nothing(clinics: Clinics, party: str) -> None:
    before = everything(clinics.root)
    found(place(clinics, party))
    assert everything(clinics.root) == before


def test_all_show_the_same_hash_of_the_federation(clinics: Clinics) -> None:
    shown = {found(place(clinics, party))["federation.toml"].says for party in ("guest-1", "host-1", "owner")}
    assert len(shown) == 1 and shown.pop().startswith("version 4, ")


def test_a_party_that_is_not_admitted_is_told_what_to_do(clinics: Clinics) -> None:
    clinics.join("guest-3")
    findings = found(clinics.folder("guest-3"))
    assert ill(findings) == ["files"]
    assert "not admitted yet; send request.toml to the owner" in findings["files"].says


def test_a_folder_of_nobody(tmp_path: Path) -> None:
    assert ill(found(tmp_path)) == ["secrets", "files"]


def test_it_says_whether_the_party_runs(clinics: Clinics) -> None:
    folder = clinics.folder("guest-1")
    assert found(folder)["process"].says == "never ran here"
    (folder / "status.json").write_text('{"state": "training"}')
    assert found(folder)["process"].says == "runs: training"
    os.utime(folder / "status.json", (0, 0))
    assert found(folder)["process"].says == "does not run; training when it last did"


# Illnesses, each with its cure.


def readable_key(clinics: Clinics) -> None:
    key_path(clinics.folder("guest-1"), "client").chmod(0o640)


def open_folder(clinics: Clinics) -> None:
    (clinics.folder("host-1") / "keys").chmod(0o755)


def another_key(clinics: Clinics) -> None:
    write_key(key_path(clinics.folder("guest-1"), "client"), make_key())


def no_certificate(clinics: Clinics) -> None:
    certificate_path(clinics.folder("host-1"), "server").unlink()


def exchanged_certificates(clinics: Clinics) -> None:
    folder = clinics.folder("host-1")
    for kind in ("key", "pem"):
        (folder / "keys" / f"server.{kind}").write_bytes((folder / "keys" / f"client.{kind}").read_bytes())


def certificate_of_another(clinics: Clinics) -> None:
    for kind in ("key", "pem"):
        theirs = clinics.folder("guest-2") / "keys" / f"client.{kind}"
        (clinics.folder("guest-1") / "keys" / f"client.{kind}").write_bytes(theirs.read_bytes())


def another_plan_key(clinics: Clinics) -> None:
    write_key(key_path(clinics.owner, "plan"), Ed25519PrivateKey.generate())


def one_more_column(clinics: Clinics) -> None:
    table = clinics.folder("guest-1") / "table.parquet"
    pd.read_parquet(table).assign(more=range(96)).to_parquet(table, index=False)


def rows_without_slots(clinics: Clinics) -> None:
    slots = clinics.folder("guest-1") / "slots.parquet"
    pd.read_parquet(slots)[:90].to_parquet(slots, index=False)


def no_test_table(clinics: Clinics) -> None:
    (clinics.folder("guest-1") / "test_table.parquet").unlink()


def no_id(clinics: Clinics) -> None:
    table = clinics.folder("guest-1") / "table.parquet"
    pd.read_parquet(table).rename(columns={"id": "patient"}).to_parquet(table, index=False)


def no_labels(clinics: Clinics) -> None:
    (clinics.owner / "labels.parquet").unlink()


def fewer_slots(clinics: Clinics) -> None:
    write_party(clinics.owner, replace(read(OwnerFile, clinics.owner / PARTY), slots=Slots(10, 200)))


def no_alignment(clinics: Clinics) -> None:
    write_party(clinics.owner, replace(read(OwnerFile, clinics.owner / PARTY), slots=Slots(0)))


def too_large_a_quorum(clinics: Clinics) -> None:
    for folder in (clinics.owner, clinics.folder("guest-1")):
        write_federation(folder, replace(read_federation(folder), quorum=Quorum(1, 3)))


def another_port(clinics: Clinics) -> None:
    path = clinics.folder("host-1") / PARTY
    file = read(HostFile, path)
    write_party(path.parent, replace(file, broker=replace(file.broker, listen="192.0.2.1:4222")))


def no_such_server(clinics: Clinics) -> None:
    path = clinics.folder("host-1") / PARTY
    file = read(HostFile, path)
    write_party(path.parent, replace(file, broker=replace(file.broker, server="/nowhere/nats-server")))


def an_address_less(clinics: Clinics) -> None:
    path = clinics.folder("guest-1") / PARTY
    write_party(path.parent, replace(read(GuestFile, path), hosts={}))


@pytest.mark.parametrize(
    ("harm", "party", "subject", "says"),
    [
        (readable_key, "guest-1", "secrets", "chmod 600"),
        (open_folder, "host-1", "secrets", "chmod 700"),
        (another_key, "guest-1", "client certificate", "does not belong to"),
        (no_certificate, "host-1", "server certificate", "server.pem is not there; `dvfl join`"),
        (exchanged_certificates, "host-1", "server certificate", "is not a server certificate"),
        (certificate_of_another, "guest-1", "client certificate", "names guest-2.clinics.dvfl; one for guest-1"),
        (another_plan_key, "owner", "owner's keys", "the one from the backup is right"),
        (one_more_column, "guest-1", "table", "gives 7 columns and federation.toml says 6"),
        (rows_without_slots, "guest-1", "table", "without a slot"),
        (no_test_table, "guest-1", "table", "test_table.parquet is not there"),
        (no_id, "guest-1", "table", "no column 'id' to join on"),
        (no_labels, "owner", "labels", "labels.parquet is not there"),
        (fewer_slots, "owner", "labels", "[slots] gives 10, and labels.parquet has a row with slot 95"),
        (no_alignment, "owner", "plan", "[slots] training = 0"),
        (too_large_a_quorum, "guest-1", "quorum", "[quorum] guests = 3 and there are 2; at most 2 is right"),
        (too_large_a_quorum, "owner", "plan", "this quorum cannot be met"),
        (another_port, "host-1", "port", "is not an address of this machine"),
        (no_such_server, "host-1", "broker", "the path of a NATS server is right"),
        (an_address_less, "guest-1", "files", "[hosts] has no address of host-1"),
    ],
)
def test_it_finds_what_is_wrong_and_says_what_would_be_right(
    clinics: Clinics, harm: Callable[[Clinics], None], party: str, subject: str, says: str
) -> None:
    harm(clinics)
    finding = found(place(clinics, party))[subject]
    assert not finding.well and says in finding.says


@pytest.mark.parametrize(
    ("days", "says"),
    [(380, "the owner renews it with dvfl admit"), (400, "ask the owner for a new one"), (-1, "clock")],
)
def test_a_certificate_that_ends_soon_has_ended_or_has_not_begun(clinics: Clinics, days: int, says: str) -> None:
    later = datetime.now(UTC) + timedelta(days=days)
    finding = found(clinics.folder("guest-1"), later)["client certificate"]
    assert not finding.well and says in finding.says


def test_without_a_right_certificate_no_host_is_asked(clinics: Clinics) -> None:
    another_key(clinics)
    assert "host-1" not in found(clinics.folder("guest-1"))


def test_a_table_that_is_not_that_of_the_checkpoint(clinics: Clinics) -> None:
    folder = clinics.folder("guest-1")
    table = open_table(
        folder / "table.parquet",
        id_column="id",
        slots=folder / "slots.parquet",
        prepared=folder / "state" / "table",
        values="standardise",
        schema=None,
    )
    DiskStorage(folder / "state").save(Checkpoint({}, {"schema": table.schema}))
    assert "as when training began" in found(folder)["table"].says
    frame = pd.read_parquet(folder / "table.parquet").rename(columns={"a": "other"})
    frame.to_parquet(folder / "table.parquet", index=False)
    assert "the column 'a', which was there when training began, is gone" in found(folder)["table"].says
