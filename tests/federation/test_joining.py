"""A guest's or host's part: keys that stay, a request that is right, and answers that are taken or refused."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from clinics import Clinics

from dvfl.errors import UserError
from dvfl.federation.custody.enrolment import read_request
from dvfl.federation.custody.founding import placed, write_federation
from dvfl.federation.custody.joining import join_as_guest, join_as_host
from dvfl.federation.keys.credentials import certificate_path, key_path
from dvfl.federation.party.configuration import read
from dvfl.federation.party.settings import (
    PARTY,
    REQUEST,
    BrokerEntry,
    GuestData,
    GuestFile,
    read_federation,
    read_guest,
    read_host,
)
from dvfl.federation.tables.table import open_table


@pytest.fixture
def clinics(tmp_path: Path) -> Clinics:
    return Clinics(tmp_path).create()


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# Joining.


def test_keys_are_made_in_the_party_s_folder_and_nobody_else_can_read_them(clinics: Clinics) -> None:
    clinics.join("host-1")
    folder = clinics.folder("host-1")
    made = ["authority.pem", "invitation.toml", "keys/client.key", "keys/server.key", "party.toml", "request.toml"]
    assert files(folder) == made
    for key in folder.rglob("*.key"):
        assert key.stat().st_mode & 0o777 == 0o600
    assert (folder / "keys").stat().st_mode & 0o777 == 0o700


def test_a_guest_asks_with_the_columns_that_its_table_gives(clinics: Clinics, tmp_path: Path) -> None:
    request = clinics.join("guest-1")
    folder = clinics.folder("guest-1")
    table = open_table(
        folder / "table.parquet",
        id_column="id",
        slots=folder / "slots.parquet",
        prepared=tmp_path / "prepared",
        values="standardise",
        schema=None,
    )
    assert (request.columns, request.values) == (table.width, "standardise") == (6, "standardise")
    assert read_request(folder / REQUEST) == request


def test_before_alignment_a_guest_joins_without_slots(clinics: Clinics) -> None:
    clinics.write_table("guest-1")
    (clinics.folder("guest-1") / "slots.parquet").unlink()
    request = join_as_guest(clinics.folder("guest-1"), clinics.invitation, "guest-1", GuestData(), "standardise")
    assert request.columns == 6


@pytest.mark.parametrize(
    ("data", "values", "says"),
    [
        (GuestData(id="patient"), "standardise", "no column 'patient' to join on"),
        (GuestData("nowhere.csv"), "standardise", "nowhere.csv"),
        (GuestData(), "unit", "holds"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_nothing_is_left(
    clinics: Clinics, data: GuestData, values: str, says: str
) -> None:
    clinics.write_table("guest-1")
    before = files(clinics.folder("guest-1"))
    with pytest.raises(UserError, match=says):
        join_as_guest(clinics.folder("guest-1"), clinics.invitation, "guest-1", data, values)  # type: ignore[arg-type]
    assert files(clinics.folder("guest-1")) == before


def test_rows_without_a_slot_are_refused(clinics: Clinics) -> None:
    slots = clinics.write_table("guest-1").with_name("slots.parquet")
    pd.read_parquet(slots)[:50].to_parquet(slots, index=False)
    with pytest.raises(UserError, match="without a slot"):
        join_as_guest(clinics.folder("guest-1"), clinics.invitation, "guest-1", GuestData(), "standardise")


@pytest.mark.parametrize(
    ("name", "listen", "address", "says"),
    [
        ("Host", "0.0.0.0:4222", "h.example.org:4222", "cannot name a party"),
        ("host-1", "4222", "h.example.org:4222", "--listen: cannot listen on '4222'"),
        ("host-1", "0.0.0.0:4222", "0.0.0.0:4222", "--address: '0.0.0.0:4222' cannot be dialled"),
    ],
)
def test_a_host_that_nobody_could_reach_is_refused(
    clinics: Clinics, name: str, listen: str, address: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        join_as_host(clinics.folder("host-1"), clinics.invitation, name, BrokerEntry(listen), address)
    assert not clinics.folder("host-1").exists()


def test_a_party_does_not_join_twice_in_one_folder(clinics: Clinics) -> None:
    clinics.join("guest-1")
    before = key_path(clinics.folder("guest-1"), "client").read_bytes()
    with pytest.raises(UserError, match="is the folder of a party already"):
        clinics.join("guest-1")
    assert key_path(clinics.folder("guest-1"), "client").read_bytes() == before


def test_what_is_no_invitation_is_refused(clinics: Clinics, tmp_path: Path) -> None:
    for text, says in (("x =", "is no TOML"), ('party = "guest-1"', "unknown field 'party'")):
        (tmp_path / "invitation.toml").write_text(text)
        with pytest.raises(UserError, match=says):
            join_as_host(tmp_path / "h", tmp_path / "invitation.toml", "host-1", BrokerEntry("0.0.0.0:1"), "h:1")


def test_files_in_the_folder_are_named_so_that_it_can_move(tmp_path: Path) -> None:
    assert placed(tmp_path / "guest-1", tmp_path / "guest-1" / "table.csv") == "table.csv"
    assert placed(tmp_path / "guest-1", tmp_path / "table.csv") == str(tmp_path.resolve() / "table.csv")


# Taking the owner's answer.


def test_before_it_is_admitted_a_party_is_told_what_to_do(clinics: Clinics) -> None:
    clinics.join("guest-1")
    with pytest.raises(UserError, match=r"not admitted yet; send request.toml to the owner"):
        read_federation(clinics.folder("guest-1"))


def test_everyone_ends_with_the_same_file_and_the_addresses_of_all_hosts(clinics: Clinics) -> None:
    for party, port in (("guest-1", 0), ("host-1", 4001), ("guest-2", 0), ("host-2", 4002)):
        clinics.enter(party, port=port)
    federation = read_federation(clinics.owner)
    for party in ("guest-1", "guest-2", "host-1", "host-2"):
        assert read_federation(clinics.folder(party)).hash == federation.hash
    for guest in ("guest-1", "guest-2"):
        addresses = read_guest(clinics.folder(guest), federation).hosts
        assert addresses == {"host-1": "127.0.0.1:4001", "host-2": "127.0.0.1:4002"}
    assert read_host(clinics.folder("host-2"), federation).broker.listen == "127.0.0.1:4002"


def test_the_admission_of_another_is_no_use_before_ones_own(clinics: Clinics) -> None:
    clinics.join("guest-1")
    clinics.join("host-1")
    early = clinics.admit("host-1")
    with pytest.raises(UserError, match="is the admission of host-1; that of guest-1 is right"):
        clinics.take("guest-1", early.file)
    own = clinics.admit("guest-1")
    late = clinics.admit("host-1", now=datetime.now(UTC))
    with pytest.raises(UserError, match="is the admission of host-1; that of guest-1 comes first"):
        clinics.take("guest-1", late.file)
    clinics.take("guest-1", own.file)
    clinics.take("guest-1", late.file)


def test_nobody_goes_back_to_an_older_federation(clinics: Clinics) -> None:
    first = clinics.enter("guest-1")
    clinics.enter("host-1")
    before = read_federation(clinics.folder("guest-1"))
    with pytest.raises(UserError, match=r"has version 2 of federation.toml, and .* has 3 already"):
        clinics.take("guest-1", first.file)
    assert read_federation(clinics.folder("guest-1")) == before


def test_two_files_of_one_version_are_not_both_believed(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    federation = read_federation(clinics.owner)
    write_federation(clinics.owner, replace(federation, deadlines=replace(federation.deadlines, stall_s=5.0)))
    changed = clinics.admit("guest-1")
    with pytest.raises(UserError, match="both of version 2; the owner must add one"):
        clinics.take("guest-1", changed.file)


def test_an_admission_of_another_federation_is_refused(clinics: Clinics, tmp_path: Path) -> None:
    clinics.enter("guest-1")
    others = Clinics(tmp_path / "others").create()
    foreign = others.enter("guest-1")
    before = files(clinics.folder("guest-1"))
    with pytest.raises(UserError, match="is of another federation than this folder's invitation"):
        clinics.take("guest-1", foreign.file)
    assert files(clinics.folder("guest-1")) == before


def test_an_admission_for_another_key_is_refused(clinics: Clinics) -> None:
    clinics.join("guest-1")
    changed = clinics.admit("guest-1")
    shutil.rmtree(clinics.folder("guest-1"))
    clinics.join("guest-1")
    with pytest.raises(UserError, match=r"does not belong to .*client.key; send the owner .*request.toml"):
        clinics.take("guest-1", changed.file)
    assert not certificate_path(clinics.folder("guest-1"), "client").exists()


def test_an_admission_whose_certificates_have_ended_is_refused(clinics: Clinics) -> None:
    clinics.join("guest-1")
    changed = clinics.admit("guest-1")
    with pytest.raises(UserError, match=r"its certificates ended on .*ask the owner for new ones"):
        clinics.take("guest-1", changed.file, now=datetime.now(UTC) + timedelta(days=500))


def test_a_removal_is_taken_by_the_others_and_refused_by_the_one_it_names(clinics: Clinics) -> None:
    for party in ("guest-1", "host-1"):
        clinics.enter(party)
    changed = clinics.remove("guest-1")
    clinics.take("host-1", changed.file)
    assert read_federation(clinics.folder("host-1")).guests == {}
    with pytest.raises(UserError, match="guest-1 was taken out of the federation"):
        clinics.take("guest-1", changed.file)


def test_a_folder_that_did_not_join_takes_no_admission(clinics: Clinics, tmp_path: Path) -> None:
    changed = clinics.enter("guest-1")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="was not made by dvfl join"):
        Clinics(tmp_path / "empty").take("guest-1", changed.file)


def test_what_a_guest_wrote_into_its_file_stays(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    path = clinics.folder("guest-1") / PARTY
    path.write_text(path.read_text().replace('"table.parquet"', '"other.parquet"'))
    clinics.enter("host-1")
    assert read(GuestFile, path).data.table == "other.parquet" and read(GuestFile, path).hosts
