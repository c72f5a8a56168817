"""What leaves a guest that clips its encodings and adds noise."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clinics import Clinics
from test_guest import made_plan, tables, trained, welcome
from world import MemoryStorage, plan_key

from dvfl.errors import UserError
from dvfl.federation.guest.guest import GuestParty
from dvfl.federation.guest.guest_answers import GuestAnswers
from dvfl.federation.guest.guest_release import Release, guest_release, read_release
from dvfl.federation.party.configuration import built
from dvfl.federation.party.runtime import Here
from dvfl.federation.party.settings import GuestFile, read_federation, read_guest
from dvfl.federation.protocol.wire import Ask, Encodings, Fresh, decode, encode

SECRET = bytes(range(32))
BARE, NOISY = Release(0.2, 0.0, SECRET), Release(0.2, 2.0, SECRET)
FILE = GuestFile("guest-1", {"host-1": "127.0.0.1:4222"}, clip=0.5, noise=2.0)


def made(release: Release | None, storage: MemoryStorage | None = None) -> GuestParty:
    """A guest that knows the plan; it pushes in every epoch of three."""
    table, test = tables()
    key = plan_key().public_key()
    guest = GuestParty(
        "guest-1",
        table,
        test,
        storage or MemoryStorage(),
        key,
        federation="f" * 64,
        now_ms=1000,
        log=lambda text: None,
        lineage=77,
        release=release,
    )
    guest.welcomed("host-1", welcome(made_plan(guest_epochs=3, period=1)))
    return guest


def rows(messages: list[Encodings] | Iterator[Encodings]) -> dict[tuple[int, int], list[float]]:
    """What left, by epoch and slot."""
    return {
        (message.epoch, int(slot)): values.tolist()
        for message in messages
        for slot, values in zip(message.slots, message.values, strict=True)
    }


def asked(guest: GuestParty, *slots: int) -> dict[int, list[float]]:
    """What it answers a host with."""
    question = encode(Ask(made_plan().run, 5000, np.array(slots, np.int32)))
    answer = decode(asyncio.run(GuestAnswers(guest, Here(), None)._answer("host-1", question)), Fresh)
    return {int(slot): values.tolist() for slot, values in zip(answer.slots, answer.values, strict=True)}


def test_without_noise_nothing_that_leaves_is_longer_than_the_clip() -> None:
    guest, plain = made(BARE), made(None)
    pushed, bare = rows(trained(guest)), rows(trained(plain))
    swept = rows(guest.sweep())
    lengths = [np.linalg.norm(one) for one in (*pushed.values(), *swept.values(), *asked(guest, 0, 5, 9).values())]
    assert max(lengths) <= 0.2 * (1 + 1e-5)
    assert max(np.linalg.norm(one) for one in bare.values()) > 0.3  # it had something to do


def test_a_guest_may_make_all_directions_of_its_encodings_equally_strong() -> None:
    flat, plain = made(Release(1e6, 0.0, SECRET, flatten=True)), made(None)
    pushed, _ = rows(trained(flat)), trained(plain)
    swept, bare = (np.array(list(rows(guest.sweep()).values())) for guest in (flat, plain))
    spread, before = (np.linalg.eigvalsh(np.cov(own.T)) for own in (swept, bare))
    assert spread[-1] / np.median(spread) < 3 < before[-1] / np.median(before)
    assert len(pushed) and np.isfinite(list(pushed.values())).all()
    again = rows(flat.sweep())
    assert np.array_equal(np.array(list(again.values())), swept)


def test_training_is_the_same_with_and_without() -> None:
    guest, plain = made(NOISY), made(None)
    trained(guest), trained(plain)
    assert guest.losses == plain.losses and guest.encoder_hash == plain.encoder_hash


def test_a_row_that_is_swept_again_or_asked_for_leaves_with_the_same_noise_in_whatever_company() -> None:
    guest = made(NOISY)
    trained(guest)
    first, second = rows(guest.sweep()), rows(guest.sweep())
    assert first == second
    of_slot = {slot: values for (_, slot), values in first.items()}
    for company in ((3,), (3, 7), tuple(range(40))):
        assert asked(guest, *company)[3] == pytest.approx(of_slot[3], abs=1e-5)


def test_a_guest_that_was_killed_and_trains_again_pushes_the_same() -> None:
    disk = MemoryStorage()
    first = made(NOISY, disk)
    before = rows(trained(first))
    again = made(NOISY, disk)  # nothing was saved: it begins anew
    assert rows(trained(again)) == before
    swept = rows(first.sweep())
    first.save()
    assert rows(made(NOISY, disk).sweep()) == swept


def test_other_rows_other_epochs_and_other_settings_have_noise_of_their_own() -> None:
    guest = made(NOISY)
    pushed = rows(trained(guest))
    noise = noises(pushed)
    for one, other in (((1, 3), (1, 4)), ((1, 3), (2, 3))):
        assert abs(np.corrcoef(noise[one], noise[other])[0, 1]) < 0.9
    assert len({tuple(one) for one in noise.values()}) == len(noise)
    weaker = noises(rows(trained(made(replace(NOISY, noise=1.0)))))
    assert np.abs(np.array(noise[1, 3]) - 2 * np.array(weaker[1, 3])).max() > 0.1  # else both together would be bare


def noises(left: dict[tuple[int, int], list[float]]) -> dict[tuple[int, int], list[float]]:
    bare = rows(trained(made(BARE)))
    return {place: (np.array(values) - np.array(bare[place])).tolist() for place, values in left.items()}


def test_noise_is_as_large_as_the_settings_say() -> None:
    x, slots = np.zeros((400, 3), np.float32), np.arange(400, dtype=np.int32)
    left = NOISY.leaving(np.zeros((400, 51), np.float32), x, slots, "e")
    assert left.shape == (400, 51) and left.std() == pytest.approx(2.0 * 0.2, rel=0.02)
    assert abs(left.mean()) < 0.02 and abs(np.corrcoef(left.T) - np.eye(51)).max() < 0.3
    changed = NOISY.leaving(np.zeros((400, 51), np.float32), x + 1, slots, "e")
    assert abs(np.corrcoef(left.ravel(), changed.ravel())[0, 1]) < 0.05


def test_hosts_can_tell_that_a_guest_has_other_settings_now() -> None:
    plain, bare, noisy = (made(release) for release in (None, BARE, NOISY))
    origins = {guest.training.origin(guest.tables) for guest in (plain, bare, noisy) if guest.training is not None}
    assert len(origins) == 3


# The secret and the settings.


def test_the_secret_is_made_once_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    first = guest_release(tmp_path, FILE)
    path = tmp_path / "keys" / "noise.key"
    assert first is not None and len(first.secret) == 32 and path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert guest_release(tmp_path, FILE) == first == read_release(tmp_path, FILE)


def test_looking_makes_no_secret_and_without_a_clip_there_is_nothing_to_do(tmp_path: Path) -> None:
    found = read_release(tmp_path, FILE)
    assert found is not None and not (tmp_path / "keys").exists()
    assert guest_release(tmp_path, replace(FILE, clip=None, noise=0.0)) is None and not (tmp_path / "keys").exists()


def test_a_secret_that_is_cut_off_is_named(tmp_path: Path) -> None:
    guest_release(tmp_path, FILE)
    (tmp_path / "keys" / "noise.key").write_bytes(b"short")
    with pytest.raises(UserError, match=r"noise\.key has 5 bytes, 32 are right"):
        guest_release(tmp_path, FILE)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"clip": 0.0}, "clip = 0.0"),
        ({"clip": -1.0}, "clip = -1.0"),
        ({"clip": float("inf")}, "clip = inf"),
        ({"clip": float("nan")}, "clip = nan"),
        ({"clip": 1.0, "noise": float("nan")}, "noise = nan"),
        ({"clip": 1.0, "noise": float("inf")}, "noise = inf"),
        ({"clip": 1.0, "noise": -0.5}, "noise = -0.5"),
        ({"noise": 0.5}, "noise = 0.5 without clip"),
        ({"clip": "much"}, "clip is 'much'"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(given: dict[str, object], named: str) -> None:
    with pytest.raises(UserError) as refused:
        built(GuestFile, {"party": "guest-1", "hosts": {}, **given}, "party.toml")
    assert named in str(refused.value) and "\n" not in str(refused.value)


def test_a_guest_reads_them_from_its_own_file(tmp_path: Path) -> None:
    clinics = Clinics(tmp_path)
    clinics.write_label_files()
    clinics.create()
    for party in ("guest-1", "host-1"):
        clinics.enter(party)
    folder = clinics.folder("guest-1")
    path = folder / "party.toml"
    text = path.read_text()
    assert "noise = 0.0" in text and "record = false" in text
    path.write_text(text.replace("noise = 0.0", "clip = 3\nnoise = 0.25"))
    party = read_guest(folder, read_federation(folder))
    assert (party.clip, party.noise) == (3.0, 0.25)
