"""Parties of a real federation that audit themselves: a whole run of real processes, then nothing but their folders."""

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from digits import make_digits

from dvfl.audit.party.guest_audit import trained_guest
from dvfl.audit.party.guest_replay import replayed
from dvfl.audit.party.owner_audit import owner_recording
from dvfl.audit.party.party_audit import audited_party
from dvfl.audit.party.party_recordings import feedback, wire_summary
from dvfl.audit.readers.readers import SMALL, Effort, ridge
from dvfl.audit.recordings.measured import Measured, r2
from dvfl.audit.recordings.recording import Recording
from dvfl.errors import UserError
from dvfl.federation.guest.guest_release import Release
from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.prediction.predicting import predict

PATIENCE_S = 120.0
PARTIES = ("guest-1", "guest-2", "host-1", "owner")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation that recorded itself through training and some predictions; guest-2 sends noise."""
    folder = make_digits(tmp_path_factory.mktemp("audit") / "practice", hosts=1)
    for party in PARTIES:
        change(folder / party, "record = false", "record = true")
    change(folder / "guest-2", "noise = 0.0", "clip = 1.0\nnoise = 1.0")
    supervisor = Supervisor(folder)
    supervisor.start()
    try:
        until = time.monotonic() + PATIENCE_S
        while not supervisor.result.exists():
            assert time.monotonic() < until, [supervisor.last_words(party) for party in supervisor.roles]
            supervisor.watch()
            time.sleep(0.1)
        table = folder / "guest-1" / "table.parquet"
        pd.read_parquet(table).iloc[::-1].to_parquet(table)  # rows that have moved: hosts have to ask again
        until, ids = time.monotonic() + 60, pd.read_parquet(folder / "owner" / "test_labels.parquet")["id"].tolist()
        while not any(row["kind"] == "Fresh" for row in wire_summary(folder / "guest-1")["messages"]):
            assert time.monotonic() < until
            predict(folder / "owner", ids[:30])
    finally:
        supervisor.stop()
    return folder


def change(folder: Path, before: str, after: str) -> None:
    path = folder / "party.toml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def passed(folder: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["kind"], row["direction"], row["other"]): row for row in wire_summary(folder)["messages"]}


def explained(seen: Recording, known: int = 400) -> float:
    """How much of the columns of rows that it does not know a linear attacker gets, who knows some others."""
    own, rows = seen.guests[0], seen.known(known, "test")
    read = ridge(own.z[:, rows[0]], own.x[rows[0]][None])
    return float(r2(own.x[None, seen.rows.victim], read(own.z[:, seen.rows.victim])))


# Lines.


@pytest.mark.parametrize("party", PARTIES)
def test_nothing_with_a_floating_point_array_went_to_a_guest(run: Path, party: str) -> None:
    assert feedback(run / party) == []
    assert wire_summary(run / party)["floating_to_guests"] == 0


def test_the_summary_of_a_guest_has_training_and_prediction_with_the_floating_arrays_that_it_sent(run: Path) -> None:
    found = passed(run / "guest-1")
    pushed, asked = found["Encodings", "sent", "host"], found["Ask", "received", "host"]
    assert pushed["floating"] == ["values"] and pushed["floating_numbers"] >= 5 * 1437
    assert found["Fresh", "sent", "host"]["floating"] == ["values"] and asked["floating"] == []
    assert found["Letter", "received", "owner"]["bytes"] > 0 and found["Letter", "received", "owner"]["floating"] == []
    assert {kind for (kind, direction, _), row in found.items() if row["floating"]} == {"Encodings", "Fresh"}


def test_both_ends_of_a_line_tell_the_same(run: Path) -> None:
    here, there = passed(run / "owner"), passed(run / "host-1")
    for kind in ("Chunk", "Predicted"):
        came, went = here[kind, "received", "host"], there[kind, "sent", "owner"]
        assert 0 < came["count"] <= went["count"] <= came["count"] + 2  # one may have come too late
        assert came["bytes"] <= went["bytes"] and came["floating"] == went["floating"]


def test_a_floating_point_array_on_its_way_to_a_guest_is_found_at_either_end(run: Path, tmp_path: Path) -> None:
    line = {
        "at_ms": 5,
        "kind": "Gradients",
        "bytes": 99,
        "arrays": [["slots", "int32", [2]], ["values", "float32", [2, 3]]],
    }
    for party, direction, other in (("guest-1", "received", "host-1"), ("host-1", "sent", "guest-1")):
        folder = tmp_path / party
        shutil.copytree(run / party, folder, ignore=shutil.ignore_patterns("state", "broker"))
        with (folder / "recorded" / "messages.jsonl").open("a") as file:
            file.write(json.dumps({**line, "direction": direction, "other": other}) + "\n")
        assert [(entry.kind, entry.floating) for entry in feedback(folder)] == [("Gradients", ("values",))]
        assert wire_summary(folder)["floating_to_guests"] == 1


@pytest.mark.parametrize(("before", "right"), [("record = false", "party.toml is right"), ("record = true", "is set")])
def test_a_folder_without_recordings_is_told_the_file_and_the_switch(
    run: Path, tmp_path: Path, before: str, right: str
) -> None:
    folder = tmp_path / "guest-1"
    shutil.copytree(run / "guest-1", folder, ignore=shutil.ignore_patterns("recorded", "state"))
    change(folder, "record = true", before)
    with pytest.raises(UserError) as refused:
        audited_party(folder, SMALL)
    said = str(refused.value)
    assert "messages.jsonl" in said and "record = true" in said and right in said and "\n" not in said


def test_a_host_is_audited_by_its_lines(run: Path) -> None:
    assert audited_party(run / "host-1", SMALL) == ([], {"wire": wire_summary(run / "host-1")})


# A guest's own encodings.


def test_a_guest_records_its_rows_and_what_it_sends_of_them(run: Path) -> None:
    seen = trained_guest(run / "guest-1").recording()
    assert (seen.rows.pool, seen.rows.victims, seen.rows.tests) == (1437 - 287, 287, 360)
    own = seen.guests[0]
    assert own.x.shape == (seen.rows.count, 32) and own.z.shape[:2] == (1, seen.rows.count)
    assert torch.isfinite(own.z).all() and not seen.y.any() and seen.outputs.shape == (1, seen.rows.count, 1)
    again = trained_guest(run / "guest-1").recording()
    assert torch.equal(again.guests[0].x, own.x) and torch.equal(again.guests[0].z, own.z)


def test_what_it_pushed_before_is_told_by_training_again(run: Path) -> None:
    for party, some in (("guest-1", 1), ("guest-2", 2)):  # its first push; means of all noisy ones and of the last
        guest = trained_guest(run / party)
        seen = guest.recording()
        own, every = seen.guests[0], seen.with_earlier()
        assert own.earlier is not None and own.earlier.shape == (1, seen.rows.count, some * own.z.shape[2])
        assert every is not None and torch.isfinite(own.earlier).all()
        assert not torch.allclose(own.earlier[:, : seen.rows.trained, : own.z.shape[2]], own.z[:, : seen.rows.trained])
    again = guest._training()  # of the one with noise, whose pushes are all looked at
    replayed(again, guest.plan, guest.table.slots[:10].copy(), noisy=True)
    trained = guest._training()
    trained.guest.learner.restore(guest.saved.tensors)
    assert again.encoder_hash == trained.encoder_hash


def test_noise_that_is_drawn_anew_in_every_epoch_is_averaged(run: Path) -> None:
    guest = replace(trained_guest(run / "guest-1"), release=Release(clip=5.0, noise=0.1, secret=bytes(32)))
    seen = guest.recording()
    every = seen.with_earlier()
    assert every is not None
    last, all_releases = explained(seen), explained(every)
    assert all_releases > last + 0.03


def test_too_long_a_training_is_not_repeated(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dvfl.audit.party.guest_replay._MOST", 1000)
    guest = trained_guest(run / "guest-2")
    assert guest.recording().guests[0].earlier is None
    assert guest.about()["earlier_releases_attacked"] is False


def test_what_it_records_is_what_the_host_holds_of_it(run: Path) -> None:
    seen = trained_guest(run / "guest-2").recording().guests[0].z[0]
    held = np.fromfile(next((run / "host-1" / "state").glob("*guest-2*.values.table")), np.float32)
    held = held.reshape(-1, seen.shape[1])
    nearest = [np.abs(held - row.numpy()).max(1).min() for row in seen[:40]]
    assert max(nearest) < 1e-4  # its noise too


def test_an_attacker_gets_more_from_raw_columns_and_less_from_a_guest_that_sends_noise(run: Path) -> None:
    plain, noisy = trained_guest(run / "guest-1").recording(), trained_guest(run / "guest-2").recording()
    controls = trained_guest(run / "guest-1").controls(plain)
    assert explained(controls["raw features"]) > 0.999
    assert explained(plain) > 0.3 and explained(noisy) < 0.5 * explained(plain)
    random = controls["random encoder"].guests[0]
    assert random.z.shape == plain.guests[0].z.shape and not torch.allclose(random.z, plain.guests[0].z)


def test_a_guest_is_attacked_beside_its_controls_with_as_many_known_rows_as_there_are(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(seen: Recording, effort: Effort) -> list[Measured]:
        return [
            Measured("inversion", "ridge", "", "", count, "columns", "", "R2", (explained(seen, count),))
            for count in effort.known
        ]

    monkeypatch.setattr("dvfl.audit.party.guest_audit.measure", measure)
    found, about = audited_party(run / "guest-2", replace(SMALL, known=(100, 1000, 10_000)))
    repeated = "ridge, earlier releases too"
    kinds = [("ridge", ""), (repeated, ""), ("ridge", "raw features"), ("ridge", "random encoder")]
    assert [(one.way, one.control, one.known) for one in found] == [
        (*kind, known) for kind in kinds for known in (100, 1000)
    ]
    assert found[5].values[0] > 0.999 > found[1].values[0]
    assert about["wire"]["role"] == "guest" and about["guest"]["tests_trained_on"] is False
    assert (about["guest"]["clip"], about["guest"]["noise"], about["guest"]["releases"]) == (1.0, 1.0, 5)


def test_more_known_rows_than_a_guest_has_are_refused_and_any_of_a_party_without_columns(run: Path) -> None:
    with pytest.raises(UserError, match=r"--known 100000: at most [\d,]+, the rows that an attacker can know"):
        audited_party(run / "guest-2", SMALL, known=(10, 100_000))
    with pytest.raises(UserError, match="is no guest's folder"):
        audited_party(run / "host-1", SMALL, known=(10,))


def test_a_guest_that_is_not_trained_is_refused(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "guest-1"
    shutil.copytree(run / "guest-1", folder)
    path = folder / "state" / "checkpoint.json"
    saved = json.loads(path.read_text())
    path.write_text(json.dumps({**saved, "values": {**saved["values"], "epoch": 2}}))
    with pytest.raises(UserError, match="guest-1 is at epoch 2 of 4"):
        trained_guest(folder).recording()
    shutil.rmtree(folder / "state")
    with pytest.raises(UserError, match="no run has begun"):
        trained_guest(folder).recording()
    with pytest.raises(UserError, match="is the folder of a host"):
        trained_guest(run / "host-1").recording()


def test_without_rows_that_are_only_encoded_some_that_were_trained_on_stand_in(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "guest-1"
    shutil.copytree(run / "guest-1", folder)
    change(folder, 'test_table = "test_table.parquet"\n', "")
    rows = trained_guest(folder).recording().rows
    assert (rows.tests, rows.count) == (143, 1437)


# The owner.


def test_the_owner_has_hosts_encodings_beside_labels_and_its_own_outputs(run: Path) -> None:
    seen = owner_recording(run / "owner")
    assert [guest.name for guest in seen.guests] == ["host-1"] and seen.guests[0].x.shape == (seen.rows.count, 0)
    assert seen.classes == 10 and (seen.rows.pool, seen.rows.victims, seen.rows.tests) == (1150, 287, 360)
    right = (seen.outputs[0, seen.rows.test].argmax(1) == seen.y[seen.rows.test]).float().mean()
    result = json.loads((run / "owner" / "result.json").read_text())
    assert 100 * float(right) == pytest.approx(result["accuracy_mean"], abs=0.01)
    read = ridge(
        seen.guests[0].z[:, : seen.rows.pool],
        torch.nn.functional.one_hot(seen.y[: seen.rows.pool], 10)[None].float(),
    )
    guess = read(seen.guests[0].z[:, seen.rows.victim])[0].argmax(1)
    assert (guess == seen.y[seen.rows.victim]).float().mean() > 0.25  # a guess is right in a tenth


def test_the_owner_is_attacked_by_who_has_hosts_encodings_and_by_who_sees_predictions(run: Path) -> None:
    # Four epochs, with noise at one of two guests: how much a few labels tell is luck, and a hundred of each class not.
    found, about = audited_party(run / "owner", replace(SMALL, labels=(1, 100)))
    assert about == {"wire": wire_summary(run / "owner")}
    told = {(one.attack, one.known): one for one in found if not one.control and one.way != "neighbours"}
    few, many = told["probing", 1], told["probing", 100]
    assert many.mean > max(20.0, few.mean) and many.saw == few.saw == "encodings of all hosts"  # a guess: 10
    assert {one.way for one in found if one.attack == "membership"} == {"confidence", "loss", "network"}
    assert all(0.3 < one.mean < 0.8 for one in found if one.attack == "membership")


def test_without_test_labels_nobody_can_say_who_was_not_trained_on(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "owner"
    shutil.copytree(run / "owner", folder)
    change(folder, 'test_labels = "test_labels.parquet"\n', "")
    assert owner_recording(folder).rows.tests == 0
    assert {one.attack for one in audited_party(folder, SMALL)[0]} == {"probing"}


def test_of_an_owner_that_is_not_trained_there_are_its_lines_and_the_reason(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "owner"
    shutil.copytree(run / "owner", folder)
    shutil.rmtree(folder / "state")
    found, about = audited_party(folder, SMALL)
    assert found == [] and about["wire"]["role"] == "owner"
    assert "an audit needs its trained head" in about["unmeasured"]


def test_an_owner_that_is_not_trained_is_refused(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "owner"
    shutil.copytree(run / "owner", folder)
    shutil.rmtree(folder / "state")
    with pytest.raises(UserError, match="an audit needs its trained head"):
        owner_recording(folder)
