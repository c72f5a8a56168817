"""`dvfl predict` and the Python call, with real processes and brokers that are killed and come back."""

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from digits import make_digits

from dvfl.cli.app import main
from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.prediction.host_watch import VOUCHED_S
from dvfl.federation.prediction.predicting import FederationPredictor, opened, predict, predict_all

PATIENCE_S = 120.0
GUESTS, HOSTS = ("guest-1", "guest-2"), ("host-1", "host-2")


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    """A trained federation; every test leaves all of it running."""
    supervisor = Supervisor(make_digits(tmp_path_factory.mktemp("predict") / "practice"))
    supervisor.start()
    try:
        until(supervisor.result.exists)
        yield supervisor
    finally:
        supervisor.stop()


def until(holds: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < last
        time.sleep(0.05)


def owner(practice: Supervisor) -> Path:
    return practice.folder / "owner"


def labelled(practice: Supervisor) -> pd.DataFrame:
    return pd.read_parquet(owner(practice) / "test_labels.parquet")


def kill(practice: Supervisor, party: str) -> None:
    practice.processes[party].send_signal(signal.SIGKILL)
    practice.processes[party].wait()


def again(practice: Supervisor, *parties: str) -> None:
    """Starts them, and waits until predictions rest on everybody."""
    for party in parties:
        practice.start_party(party)
    ids = labelled(practice)["id"].tolist()[:2]
    until(lambda: not predict(owner(practice), ids)["degraded"].any())


def asked(practice: Supervisor) -> pd.DataFrame:
    return predict(owner(practice), labelled(practice)["id"].tolist()[:20])


def test_all_rows_are_predicted_as_the_result_says(
    practice: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again(practice)
    rows = labelled(practice)
    listed = pd.concat([rows[["id"]], pd.DataFrame({"id": ["nobody knows"]})])
    listed.to_csv(tmp_path / "ids.csv", index=False)
    command = ["predict", str(owner(practice)), "--ids", str(tmp_path / "ids.csv"), "--pad", "64"]
    assert main([*command, "--out", str(tmp_path / "out.parquet"), "--deadline", "10"]) == 0
    said = capsys.readouterr().out
    assert f"predicted  {len(rows)} of {len(rows) + 1}, 0 degraded" in said
    assert f"1 ids have no slot (lines {len(rows) + 2})" in said and "nobody" not in said
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found["id"].tolist() == listed["id"].tolist() and found["class"].isna().tolist()[-1]
    known = found[: len(rows)]
    assert (known["guest-1"] == "fresh").all() and (known["guest-2_age_s"] <= VOUCHED_S).all()
    result = json.loads(practice.result.read_text())
    accuracy = 100 * (known["class"].to_numpy() == rows["label"].to_numpy()).mean()
    assert accuracy == pytest.approx(result["accuracy_mean"], abs=0.01)
    assert set(result["calibration"]) == {"temperature", "error"} and result["calibration"]["error"] < 0.5
    probabilities = known[[column for column in known if column.startswith("p_")]]
    assert probabilities.sum(axis=1).to_numpy() == pytest.approx(1.0)
    assert (probabilities.max(axis=1) == known["confidence"]).all()


@pytest.mark.parametrize("party", [*GUESTS, "host-1", "owner"])
def test_predictions_go_on_without_one_that_was_killed_and_with_it_when_it_is_back(
    practice: Supervisor, party: str
) -> None:
    again(practice)
    whole = asked(practice)
    kill(practice, party)
    time.sleep(VOUCHED_S)
    found = asked(practice)
    assert found["class"].notna().all()
    assert found["degraded"].all() == (party != "owner")
    if party in GUESTS:
        assert (found[party] == "cached").all() and (found[f"{party}_age_s"] > 0).all()
        assert found["class"].tolist() == whole["class"].tolist()
    again(practice, party)
    again_whole = asked(practice)
    ages = [f"{guest}_age_s" for guest in GUESTS]
    assert not again_whole["degraded"].any()
    pd.testing.assert_frame_equal(again_whole.drop(columns=ages), whole.drop(columns=ages))


def test_with_everything_down_there_is_an_answer_in_time(
    practice: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again(practice)
    for party in practice.roles:
        kill(practice, party)
    (tmp_path / "ids.txt").write_text("\n".join(labelled(practice)["id"].tolist()[:3]))
    began = time.monotonic()
    command = ["predict", str(owner(practice)), "--ids", str(tmp_path / "ids.txt"), "--out", str(tmp_path / "out.csv")]
    assert main([*command, "--deadline", "1.5"]) == 0
    assert time.monotonic() - began < 1.5 + 2.0  # with what reading the folder takes
    said = capsys.readouterr().out
    assert "predicted  0 of 3, 3 degraded" in said and "no answer in 3 rows" in said
    assert pd.read_csv(tmp_path / "out.csv")["class"].isna().all()
    again(practice, *practice.roles)


def test_a_kill_is_seen_within_two_seconds(practice: Supervisor) -> None:
    again(practice)

    async def seen(predictor: FederationPredictor, kind: str, party: str, up: bool, within_s: float) -> None:
        last = time.monotonic() + within_s
        while predictor.status()[kind][party]["up"] != up:
            assert time.monotonic() < last, f"{party} after {within_s} s"
            await asyncio.sleep(0.02)

    async def story() -> None:
        async with opened(owner(practice)) as predictor:
            for kind, party in (("guests", "guest-1"), ("hosts", "host-2")):
                await seen(predictor, kind, party, True, PATIENCE_S)
                practice.processes[party].send_signal(signal.SIGKILL)
                await seen(predictor, kind, party, False, 2.0)
                practice.processes[party].wait()
                practice.start_party(party)
                await seen(predictor, kind, party, True, PATIENCE_S)
            status = predictor.status()
            assert status["ready"] and status["phase"] == "done" and status["owner"]["up"]
            assert status["hosts"]["host-2"]["restarts"] >= 1 and status["accuracy"] > 20
            assert set(status["guests"]["guest-1"]["hosts"]) == set(HOSTS)

    asyncio.run(story())


def test_rows_that_came_later_are_predicted_once_they_are_aligned(practice: Supervisor) -> None:
    again(practice)
    like = labelled(practice)["id"].tolist()[0]
    files = dict.fromkeys(GUESTS, "test_table.parquet") | {"owner": "test_labels.parquet"}
    for party, file in files.items():
        path = practice.folder / party / file
        table = pd.read_parquet(path)
        newcomer = table[table["id"] == like].assign(id="newcomer")
        pd.concat([table, newcomer]).to_parquet(path, index=False)
    assert not predict(owner(practice), ["newcomer"])["class"].notna().any()
    practice.processes["owner"].terminate()
    practice.processes["owner"].wait()
    assert main(["align", str(owner(practice))]) == 0
    practice.start_party("owner")
    until(lambda: not predict(owner(practice), ["newcomer"])["degraded"].any())
    found = predict(owner(practice), [like, "newcomer"])
    assert found["class"][0] == found["class"][1]
    assert (found["guest-1"] == "fresh").all()


def test_a_guest_whose_rows_are_wrong_is_left_out_and_named(practice: Supervisor, tmp_path: Path) -> None:
    again(practice)
    ids = labelled(practice)["id"].tolist()[:128]
    files = [practice.folder / "guest-2" / name for name in ("table.parquet", "test_table.parquet")]
    for path in files:
        shutil.copy2(path, tmp_path / path.name)
        table = pd.read_parquet(path)
        values = [name for name in table if name != "id"]
        table[values] = 1 - table[values]  # as if its camera gave negatives
        table.to_parquet(path, index=False)

    def named() -> bool:
        found, _ = asyncio.run(predict_all(owner(practice), ids, deadline_s=10.0))
        assert all(one.answered for one in found)
        parts = [one.guests["guest-2"] for one in found]
        return all(part.suspected and part.state == "absent" for part in parts) and all(one.degraded for one in found)

    until(named)
    for path in files:
        shutil.copy2(tmp_path / path.name, path)
    again(practice)


def test_a_guest_that_lost_its_disk_is_absent(practice: Supervisor, tmp_path: Path) -> None:
    again(practice)
    state = practice.folder / "guest-2" / "state"
    practice.processes["guest-2"].terminate()
    practice.processes["guest-2"].wait()
    shutil.copytree(state, tmp_path / "state")
    for file in state.glob("checkpoint*"):
        os.unlink(file)
    practice.start_party("guest-2")
    until(lambda: bool((asked(practice)["guest-2"] == "absent").all()))
    found = asked(practice)
    assert found["degraded"].all() and found["class"].notna().all() and (found["guest-1"] == "fresh").all()
    practice.processes["guest-2"].terminate()
    practice.processes["guest-2"].wait()
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "state", state)  # a backup mends it
    again(practice, "guest-2")


# Refusals.


def refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    (tmp_path / "ids.txt").write_text("a\n")
    command = ["predict", str(folder), "--ids", str(tmp_path / "ids.txt"), "--out", str(tmp_path / "o.csv"), *options]
    assert main(command) == 2
    assert not (tmp_path / "o.csv").exists()
    return capsys.readouterr().err


def test_another_partys_folder_is_refused(
    practice: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is the folder of a guest; that of the owner is right" in refused(
        practice.folder / "guest-1", tmp_path, capsys
    )
    assert "no such folder" in refused(practice.folder / "nowhere", tmp_path, capsys)


def test_before_training_it_says_how_far_the_run_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_digits(tmp_path / "practice")
    assert "not trained yet: no run has begun" in refused(folder / "owner", tmp_path, capsys)


def test_a_state_of_another_federation_is_refused(
    practice: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_digits(tmp_path / "practice")
    shutil.copytree(owner(practice) / "state", other / "owner" / "state")
    assert "of another federation" in refused(other / "owner", tmp_path, capsys)


@pytest.mark.parametrize("deadline", ["0", "-1", "nan", "inf", "1e9"])
def test_a_deadline_that_is_none_is_refused(
    deadline: str, practice: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(owner(practice), tmp_path, capsys, "--deadline", deadline)
    assert "more than 0 and at most 3600 s is right" in said
