"""What is promised of a real guest's noise before it begins."""

from pathlib import Path

import pytest
from digits import make_digits

from dvfl.audit.party.party_promise import party_promise
from dvfl.cli import main
from dvfl.release.accounting import DELTA, epsilon_of_release


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_digits(tmp_path_factory.mktemp("promise") / "practice", hosts=1)


def test_a_guest_with_noise_is_told_what_all_its_releases_promise(
    practice: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")
    path = practice / "guest-1" / "party.toml"
    path.write_text(path.read_text().replace("noise = 0.0", "clip = 1.0\nnoise = 9.0"))
    told = party_promise(practice / "guest-1")
    assert told is not None and told.startswith(f"epsilon {epsilon_of_release(9.0, 5, DELTA):.3g} at delta 1e-05")
    assert "sent 5 times" in told
    main(["doctor", str(practice / "guest-1")])
    assert f"ok    noise: {told}" in capsys.readouterr().out


def test_without_noise_and_of_other_roles_there_is_nothing_to_promise(practice: Path, tmp_path: Path) -> None:
    for folder in (practice / "guest-2", practice / "host-1", practice / "owner", tmp_path):
        assert party_promise(folder) is None
