"""The owner's part: making a federation, admitting, renewing, taking out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clinics import HEAD, NAME, ROWS, TESTED, TRAINING, Clinics, chosen

from dvfl.errors import UserError
from dvfl.federation.custody.admission import admit, check_request, create, remove
from dvfl.federation.custody.enrolment import read_admission, read_invitation, read_request
from dvfl.federation.custody.founding import write_federation
from dvfl.federation.keys.authority import names
from dvfl.federation.keys.credentials import (
    authority_path,
    certificate_path,
    check_certificate,
    key_path,
    read_certificate,
    read_plan_key,
)
from dvfl.federation.owner.labels import open_labels
from dvfl.federation.owner.owner import OwnerParty
from dvfl.federation.party.configuration import read
from dvfl.federation.party.settings import (
    PARTY,
    REQUEST,
    Alignment,
    GuestEntry,
    GuestFile,
    OwnerData,
    OwnerFile,
    Slots,
    read_federation,
    read_owner,
)
from dvfl.federation.party.storage import DiskStorage


@pytest.fixture
def clinics(tmp_path: Path) -> Clinics:
    return Clinics(tmp_path).create()


# Making it.


def test_a_new_federation_has_an_owner_and_nobody_else(clinics: Clinics) -> None:
    federation = read_federation(clinics.owner)
    assert (federation.name, federation.guests, federation.hosts, federation.version) == (NAME, {}, (), 1)
    assert read_owner(clinics.owner, federation).hosts == {}
    found = sorted(str(path.relative_to(clinics.owner)) for path in clinics.owner.rglob("*") if path.is_file())
    keys = ["keys/authority.key", "keys/client.key", "keys/client.pem", "keys/plan.key"]
    assert found == ["authority.pem", "federation.toml", "invitation.toml", *keys, "party.toml"]
    assert all((clinics.owner / key).stat().st_mode & 0o777 == 0o600 for key in keys if key.endswith(".key"))
    check_client(clinics.owner, "owner")
    assert read_certificate(certificate_path(clinics.owner, "client")).not_valid_after_utc > datetime.now(
        UTC
    ) + timedelta(days=3600)


def check_client(folder: Path, party: str) -> None:
    check_certificate(
        certificate_path(folder, "client"),
        key_path(folder, "client"),
        authority_path(folder),
        party=party,
        federation=NAME,
        usage="client",
        now=datetime.now(UTC),
    )


@pytest.mark.parametrize("there", [[], ["guest-1"], ["host-1"]])
def test_without_guests_or_hosts_no_run_can_begin(clinics: Clinics, there: list[str]) -> None:
    for party in there:
        clinics.enter(party)
    with pytest.raises(UserError, match=r"no (hosts|guests) yet; the run can begin when dvfl admit has entered them"):
        read_federation(clinics.owner).plan("0" * 32, Slots(1))


def test_the_keys_of_an_owner_are_never_overwritten(clinics: Clinics) -> None:
    before = key_path(clinics.owner, "authority").read_bytes()
    (clinics.owner / PARTY).unlink()
    with pytest.raises(UserError, match="is the folder of a party already"):
        clinics.create()
    assert key_path(clinics.owner, "authority").read_bytes() == before


def test_labels_may_lie_in_the_folder_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "labels.parquet").write_bytes(b"")
    create(tmp_path, NAME, TRAINING, HEAD, OwnerData(), {}, Alignment(), now=datetime.now(UTC))
    assert (tmp_path / PARTY).exists()


def test_a_name_that_no_certificate_can_bear_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="lower-case letters"):
        Clinics(tmp_path).create("St. Mary's")
    assert not (tmp_path / "ministry").exists()


# Admitting.


def test_every_admission_enters_one_party_and_raises_the_version(clinics: Clinics) -> None:
    clinics.join("guest-1")
    clinics.join("host-1", port=4999)
    first, second = clinics.admit("guest-1"), clinics.admit("host-1")
    assert (first.version, first.others) == (2, ())
    assert (second.version, second.others) == (3, ("guest-1",))
    federation = read_federation(clinics.owner)
    assert federation.guests == {"guest-1": GuestEntry(6)} and federation.hosts == ("host-1",)
    assert read_owner(clinics.owner, federation).hosts == {"host-1": "127.0.0.1:4999"}


def test_a_guest_gets_one_certificate_and_a_host_two(clinics: Clinics) -> None:
    for party, kinds in (("guest-1", {"client"}), ("host-1", {"client", "server"})):
        clinics.enter(party)
        check_client(clinics.folder(party), party)
        assert {path.stem for path in (clinics.folder(party) / "keys").glob("*.pem")} == kinds
        for path in (clinics.folder(party) / "keys").glob("*.pem"):
            assert names(read_certificate(path)) == [f"{party}.{NAME}.dvfl"]


def test_no_key_of_another_party_comes_to_the_owner(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    clinics.enter("host-1")
    secrets = [path.read_bytes() for party in ("guest-1", "host-1") for path in clinics.folder(party).rglob("*.key")]
    kept = b"".join(path.read_bytes() for path in clinics.owner.rglob("*") if path.is_file())
    assert len(secrets) == 3 and not any(secret.splitlines()[1] in kept for secret in secrets)


@pytest.mark.parametrize("name", ["guest-1", "owner"])
def test_a_name_that_is_taken_is_refused(clinics: Clinics, name: str, tmp_path: Path) -> None:
    clinics.enter("guest-1")
    before = read_federation(clinics.owner)
    with pytest.raises(UserError, match=rf"^{name} (was admitted with another key|is in federation.toml already)"):
        another(clinics, name, tmp_path / "elsewhere").admit(name)
    assert read_federation(clinics.owner) == before


def another(clinics: Clinics, party: str, place: Path) -> Clinics:
    """The same owner, and a party of that name that made its keys in another place."""

    class Elsewhere(Clinics):
        @property
        def owner(self) -> Path:
            return clinics.owner

    elsewhere = Elsewhere(place)
    elsewhere.join(party)
    return elsewhere


def test_a_request_for_another_federation_is_refused(clinics: Clinics, tmp_path: Path) -> None:
    others = Clinics(tmp_path / "others").create()
    others.join("guest-1")
    with pytest.raises(UserError, match="guest-1 answers another invitation; that of clinics is right"):
        check_request(clinics.owner, read_request(others.folder("guest-1") / REQUEST), replacing=False)


def test_only_the_owner_admits_and_removes(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    request = clinics.join("guest-2")
    for attempt in (
        lambda folder: check_request(folder, request, replacing=False),
        lambda folder: admit(folder, request, chosen, now=datetime.now(UTC)),
        lambda folder: remove(folder, "guest-1", chosen),
    ):
        with pytest.raises(UserError, match="is not the folder of an owner"):
            attempt(clinics.folder("guest-1"))


def test_the_same_request_again_renews_the_certificate_and_changes_nothing_else(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    clinics.enter("host-1")
    before = read_federation(clinics.owner)
    later = datetime.now(UTC) + timedelta(days=300)
    changed = clinics.admit("guest-1", now=later)
    assert (changed.version, changed.others) == (before.version, ())
    assert read_federation(clinics.owner) == before
    clinics.take("guest-1", changed.file, now=later)
    ends = read_certificate(certificate_path(clinics.folder("guest-1"), "client")).not_valid_after_utc
    assert ends > later + timedelta(days=390)


def test_a_host_that_moved_keeps_its_new_address_when_it_is_renewed(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    clinics.enter("host-1", port=4001)
    path = clinics.owner / PARTY
    path.write_text(path.read_text().replace("127.0.0.1:4001", "moved.example.org:4001"))
    clinics.take("guest-1", clinics.admit("host-1").file)
    assert read(GuestFile, clinics.folder("guest-1") / PARTY).hosts == {"host-1": "moved.example.org:4001"}


def test_a_party_that_lost_its_key_comes_back_under_its_name_when_the_owner_says_so(
    clinics: Clinics, tmp_path: Path
) -> None:
    clinics.enter("guest-1")
    before = read_federation(clinics.owner)
    elsewhere = another(clinics, "guest-1", tmp_path / "new-disk")
    elsewhere.take("guest-1", elsewhere.admit("guest-1", replacing=True).file)
    check_client(elsewhere.folder("guest-1"), "guest-1")
    assert read_federation(clinics.owner) == before


def test_a_preset_s_widths_follow_the_guests(clinics: Clinics) -> None:
    federation = read_federation(clinics.owner)
    write_federation(clinics.owner, replace(federation, training=replace(TRAINING, w_g=None, w_h=None)))

    def widths(columns: object) -> tuple[int | None, int | None]:
        return (10 * len(list(columns)), 7) if columns else (None, None)  # type: ignore[call-overload]

    for party in ("guest-1", "guest-2"):
        admit(clinics.owner, clinics.join(party), widths, now=datetime.now(UTC))
    training = read_federation(clinics.owner).training
    assert (training.w_g, training.w_h) == (20, 7)
    remove(clinics.owner, "guest-2", widths)
    assert read_federation(clinics.owner).training.w_g == 10


def test_widths_that_the_owner_chose_stay(clinics: Clinics) -> None:
    admit(clinics.owner, clinics.join("guest-1"), lambda columns: (99, 99), now=datetime.now(UTC))
    training = read_federation(clinics.owner).training
    assert (training.w_g, training.w_h) == (TRAINING.w_g, TRAINING.w_h)


def test_what_the_owner_wrote_into_its_files_stays(clinics: Clinics) -> None:
    for file, old, new in (("federation.toml", "guests = 1", "guests = 2"), (PARTY, "epochs = 20", "epochs = 33")):
        path = clinics.owner / file
        path.write_text(path.read_text().replace(old, new))
    clinics.enter("host-1")
    assert read_federation(clinics.owner).quorum.guests == 2
    assert read(OwnerFile, clinics.owner / PARTY).head.epochs == 33


# Taking out.


def test_a_party_that_was_taken_out_is_in_no_file_any_more(clinics: Clinics) -> None:
    for party in ("guest-1", "guest-2", "host-1", "host-2"):
        clinics.enter(party)
    for party in ("guest-1", "host-2"):
        changed = clinics.remove(party)
    assert changed.version == 7 and changed.others == ("guest-2", "host-1")
    federation = read_federation(clinics.owner)
    assert (list(federation.guests), federation.hosts) == (["guest-2"], ("host-1",))
    assert list(read_owner(clinics.owner, federation).hosts) == ["host-1"]
    paper = read_admission(changed.file, read_invitation(clinics.invitation))
    assert (paper.party, paper.client, paper.federation) == ("host-2", None, federation)


def test_who_is_not_there_cannot_be_taken_out(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    with pytest.raises(UserError, match="no guest or host 'guest-7'; did you mean 'guest-1'"):
        clinics.remove("guest-7")
    with pytest.raises(UserError, match="no guest or host 'owner'"):
        clinics.remove("owner")


def test_the_name_of_a_party_that_was_taken_out_goes_to_nobody_else(clinics: Clinics, tmp_path: Path) -> None:
    clinics.enter("guest-1")
    clinics.remove("guest-1")
    with pytest.raises(UserError, match="guest-1 was taken out of the federation; its name is not used again"):
        another(clinics, "guest-1", tmp_path / "elsewhere").admit("guest-1", replacing=True)


def test_who_was_taken_out_can_come_back_with_its_own_key(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    clinics.remove("guest-1")
    changed = clinics.admit("guest-1")
    assert changed.version == 4
    clinics.take("guest-1", changed.file)


# A run under way.


def owner_party(clinics: Clinics) -> OwnerParty:
    federation = read_federation(clinics.owner)
    labels = open_labels(
        clinics.owner / "labels.parquet", id_column="id", label_column=None, slots=clinics.owner / "slots.parquet"
    )
    return OwnerParty(
        "owner",
        labels,
        None,
        HEAD.settings(),
        federation.plan("0" * 32, Slots(ROWS, TESTED)),
        read_plan_key(key_path(clinics.owner, "plan")),
        DiskStorage(clinics.owner / "state"),
        collect_deadline_s=60,
        now_ms=0,
        log=print,
    )


def test_a_run_goes_on_as_planned_when_parties_come_and_go(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    clinics.enter("host-1")
    clinics.write_labels()
    plan = owner_party(clinics).plan
    assert clinics.enter("guest-2").begun
    assert owner_party(clinics).plan == plan
    assert clinics.remove("guest-1").begun
    assert owner_party(clinics).plan == plan


def test_a_run_does_not_go_on_with_other_settings(clinics: Clinics) -> None:
    clinics.enter("guest-1")
    clinics.enter("host-1")
    clinics.write_labels()
    owner_party(clinics)
    federation = read_federation(clinics.owner)
    write_federation(clinics.owner, replace(federation, training=replace(federation.training, batch=8)))
    with pytest.raises(UserError, match="have changed since this run began"):
        owner_party(clinics)
