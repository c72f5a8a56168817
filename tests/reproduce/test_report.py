"""report.html: one file that needs nothing else and says what happened."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dvfl.data import load
from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults
from dvfl.runs import run_folder
from dvfl.settings.training import Settings
from dvfl.simulation.simulation import megabytes_sent_per_guest
from dvfl.strategies.decoupled.dvfl import Dvfl

SETTINGS = Settings(guest_epochs=2, host_epochs=3, owner_epochs=2)


def page(data: VerticalData, settings: Settings, folder: Path, seeds: int = 1, faults: Faults = NO_FAULTS) -> str:
    simulation = Dvfl(data, settings, range(seeds), faults=faults)
    simulation.run()
    simulation.watch.seconds["total"] = 1.0
    made = run_folder.create(folder, run_folder.config(simulation, "dvfl", "paper", {"dataset": data.name}))
    made.finish(simulation)
    return (folder / run_folder.REPORT).read_text()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    faults = Faults((Fault("connection", 0.3, 0.5),))
    return page(load("digits"), SETTINGS, tmp_path_factory.mktemp("runs") / "r", seeds=2, faults=faults)


def test_nothing_is_fetched_from_elsewhere(digits: str) -> None:
    addresses = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", digits) + re.findall(r"url\(([^)]*)", digits)
    assert addresses and all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.search(r"<(script|link|iframe)\b|@import", digits)


def test_light_and_dark_and_phones_are_served(digits: str) -> None:
    assert "prefers-color-scheme: dark" in digits and 'name="viewport"' in digits


def test_every_role_has_its_curves(digits: str) -> None:
    for role in ("guests", "hosts", "owner"):
        assert f'<svg class="figure {role}"' in digits


def test_the_held_out_score_is_not_drawn_as_a_loss(digits: str) -> None:
    assert "held-out rows: accuracy, %" in digits


def test_ids_inside_the_page_are_unique_where_they_are_referred_to(digits: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', digits)
    for target in set(re.findall(r"url\(#([^)]+)\)", digits)) | set(re.findall(r'href="#([^"]+)"', digits)):
        assert ids.count(target) == 1, target


def test_images_are_shown_over_their_reconstructions(digits: str) -> None:
    assert digits.count('src="data:image/png;base64,') == 24


def test_it_says_that_nothing_flows_back_and_that_faults_lost_messages(digits: str) -> None:
    assert "Nothing flows back" in digits and "faults lost some" in digits
    assert "connections: a live one dies with 0.3, a dead one rejoins with 0.5" in digits


def test_a_confusion_matrix_counts_every_test_row_of_every_seed(digits: str) -> None:
    matrix = digits[digits.index('<table class="matrix">') :]
    cells = re.findall(r"<td style[^>]*>(\d*)</td>", matrix[: matrix.index("</table>")])
    assert len(cells) == 100 and sum(int(cell or 0) for cell in cells) == 2 * 360


def test_a_regression_shows_predicted_against_true(tmp_path: Path) -> None:
    html = page(load("diabetes"), SETTINGS, tmp_path / "r")
    assert '<svg class="figure fit"' in html and '<table class="matrix">' not in html


def test_names_from_the_users_tables_are_escaped(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(80, 3)).astype(np.float32) for _ in range(2)]
    y = rng.integers(0, 2, 80)
    evil = "<script>alert(1)</script>"
    guests = tuple(GuestTable(f"{evil}{n}", table, table) for n, table in enumerate(tables))
    html = page(VerticalData(evil, guests, y, y, (evil, "b")), SETTINGS, tmp_path / "r")
    assert "<script" not in html and "&lt;script" in html


def test_many_guests_are_drawn_as_a_crowd(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(80, 1)).astype(np.float32)
    guests = tuple(GuestTable(f"guest-{n}", table, table) for n in range(30))
    y = rng.integers(0, 2, 80)
    html = page(VerticalData("crowd", guests, y, y, ("a", "b")), SETTINGS, tmp_path / "r")
    assert "30 parties" in html


def test_losses_that_are_not_finite_still_make_a_report(tmp_path: Path) -> None:
    data: Any = load("wine")
    wild = replace(data, guests=tuple(replace(g, train=g.train * np.float32(1e25)) for g in data.guests))
    assert "<svg" in page(wild, SETTINGS, tmp_path / "r")


def test_what_is_sent_is_the_papers_sum_on_mnist_sizes() -> None:
    rows = 640
    tables = tuple(
        GuestTable(f"g{n}", np.zeros((rows, 196), np.float32), np.zeros((1, 196), np.float32)) for n in range(4)
    )
    y = np.arange(rows) % 10
    data = VerticalData("like mnist", tables, y, y[:1], tuple("0123456789"), sizes="mnist")
    simulation = Dvfl(data, Settings(), [0])
    # The appendix on communication: H x floor(N / K) x rows x 80 x 32 bits.
    assert megabytes_sent_per_guest(simulation.flows()) == pytest.approx(4 * 20 * rows * 80 * 32 / 8 / 1e6)
    collected = [flow.sender for flow in simulation.flows() if flow.leg == "hosts"]
    assert collected == ["host-1", "host-2", "host-3", "host-4"]


def test_hosts_without_parameters_are_sent_encodings_only_once() -> None:
    simulation = Dvfl(load("wine"), replace(SETTINGS, host_model="concatenate", hosts=2), [0])
    sent = [flow for flow in simulation.flows() if flow.leg == "guests"]
    assert {flow.when for flow in sent} == {"once, after it"}
    assert sent[0].messages == 2
