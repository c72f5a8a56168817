"""The paper's hyperparameters and ours."""

from dataclasses import replace

import numpy as np
import pytest

from dvfl.data.split.vertical import GuestTable, Split, SplitRule, VerticalData
from dvfl.errors import UserError
from dvfl.parties.networks.sizes import sizes
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.parties.objectives.warps import Strip
from dvfl.settings.training import AnySettings, FedVSSettings, Settings, SplitSettings
from dvfl.strategies.presets import for_absence, for_noise, preset, settled


def data(rule: str, rows: int, columns: int = 196, *, classes: bool = True) -> VerticalData:
    table = np.zeros((rows, columns), np.float32)
    guests = tuple(GuestTable(f"guest-{number}", table, table[:1]) for number in range(1, 5))
    labels = np.zeros(rows, np.int64)
    return VerticalData("made", guests, labels, labels[:1], ("a", "b") if classes else None, rule)


def test_the_papers_preset_for_mnist_is_its_appendix() -> None:
    s = preset("paper", data("mnist", 60_000))
    assert s.guest_rule == s.host_rule == Adam(2e-3, weight_decay=1e-5, beta1=0.9, beta2=0.999)
    assert s.owner_rule == Sgd(8e-2)
    assert (s.batch, s.guest_epochs, s.host_epochs, s.owner_epochs, s.hosts) == (64, 20, 40, 60, 4)
    assert s.validation > 0  # early stopping
    assert not s.standardise
    assert s.owner_dropout == s.guest_dropout == s.host_dropout == 0


@pytest.mark.parametrize(
    ("rule", "guest", "host", "owner"),
    [
        ("handwritten", 2e-3, 1e-3, 3e-3),
        ("caltech7", 5e-4, 1e-2, 3e-5),
        ("parkinsons", 5e-3, 4e-3, 5e-4),
        ("credit_card", 1e-3, 1e-3, 1e-3),
    ],
)
def test_the_papers_preset_for_tables_has_its_learning_rates(
    rule: str, guest: float, host: float, owner: float
) -> None:
    s = preset("paper", data(rule, 1000))
    assert (s.guest_rule.rate, s.host_rule.rate, s.owner_rule.rate) == (guest, host, owner)
    assert isinstance(s.guest_rule, Adam)
    assert isinstance(s.host_rule, Adam)
    assert isinstance(s.owner_rule, Sgd)
    assert s.owner_rule.momentum == 0.5
    assert s.hosts == 1


@pytest.mark.parametrize("rows", [50, 1437, 60_000])
def test_the_tuned_preset_never_trains_less_than_the_paper(rows: int) -> None:
    ours, theirs = preset("tuned", data("table", rows)), preset("paper", data("table", rows))
    assert ours.guest_epochs >= theirs.guest_epochs
    assert ours.host_epochs >= theirs.host_epochs
    assert ours.owner_epochs >= theirs.owner_epochs


@pytest.mark.parametrize("name", ["paper", "tuned"])
def test_fedvs_leaves_its_code_to_the_number_of_guests(name: str) -> None:
    s = preset(name, data("table", 1000), "fedvs")
    assert isinstance(s, FedVSSettings)
    assert (s.segments, s.colluders, s.stragglers, s.squares, s.w_g) == (1, 1, None, None, None)


@pytest.mark.parametrize(("rows", "epochs"), [(50, 80), (1600, 60), (24_000, 20)])
def test_fedvs_makes_few_rounds_that_cost_much(rows: int, epochs: int) -> None:
    s = preset("tuned", data("table", rows), "fedvs")
    assert isinstance(s, FedVSSettings) and s.epochs == epochs


def test_an_unknown_preset_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'tuned'"):
        preset("tune", data("mnist", 1))


def test_a_presets_batch_is_no_larger_than_the_data() -> None:
    assert preset("paper", data("table", 10)).batch == preset("tuned", data("table", 10)).batch == 10


def test_few_rows_still_get_some_steps() -> None:
    s = preset("tuned", data("table", 50))
    assert (s.guest_epochs, s.host_epochs, s.owner_epochs) == (150, 150, 300)


def test_narrow_guests_get_encodings_of_some_width() -> None:
    s = preset("tuned", data("table", 1000, columns=2))
    widths = sizes("table", (2, 2, 2, 2), s.w_g, s.w_h)
    assert min(widths.guest_latent) >= 32
    assert widths.host_latent >= 64


def test_wide_guests_keep_the_widths_of_their_rule() -> None:
    s = preset("tuned", data("mnist", 1000))
    assert (s.w_g, s.w_h) == (None, None)


def test_a_regression_learns_more_slowly() -> None:
    assert preset("tuned", data("table", 1000, classes=False)).owner_rule.rate == 0.04


def test_the_papers_preset_for_simclr_is_its_appendix_on_time() -> None:
    s = preset("paper", data("mnist", 60_000), guest_objective="simclr")
    assert isinstance(s, Settings)
    assert s.guest_rule == Adam(4e-3, weight_decay=1e-5, beta1=0.9, beta2=0.999)
    assert s.owner_rule == Sgd(0.1, momentum=0.9)
    assert (s.batch, s.guest_epochs, s.owner_epochs, s.hosts) == (600, 5, 60, 0)
    assert (s.guest_objective, s.host_objective) == ("simclr", "reconstruction")


@pytest.mark.parametrize("strategy", ["dvfl", "fedonce"])
@pytest.mark.parametrize("name", ["paper", "tuned"])
def test_guests_that_learn_by_simclr_hide_no_values(name: str, strategy: str) -> None:
    s = preset(name, data("mnist", 60_000), strategy, "simclr")
    assert s.guest_noise == 0


PAPERS_TABLES = ("handwritten", "caltech7", "parkinsons", "credit_card")


@pytest.mark.parametrize("rule", PAPERS_TABLES)
def test_the_papers_tables_have_one_host_in_both_presets(rule: str) -> None:
    assert preset("tuned", data(rule, 1000)).hosts == preset("paper", data(rule, 1000)).hosts == 1


def test_many_speech_columns_get_wide_encodings() -> None:
    s = preset("tuned", data("parkinsons", 600))
    assert (s.w_g, s.w_h) == (800, 320)


def by(rule: SplitRule, strategy: str, table: str = "parkinsons") -> AnySettings:
    return preset("tuned", replace(data(table, 600), split=Split(rule)), strategy)


def test_who_is_scored_on_other_people_learns_for_a_shorter_time_and_more_slowly() -> None:
    people, rows = by("subject", "dvfl"), by("random", "dvfl")
    assert isinstance(people, Settings) and isinstance(rows, Settings)
    assert people.owner_epochs < rows.owner_epochs and people.owner_rule.rate < rows.owner_rule.rate
    assert (people.w_g, people.w_h, people.guest_rule) == (rows.w_g, rows.w_h, rows.guest_rule)
    split, split_rows = by("subject", "splitnn-wait"), by("random", "splitnn-wait")
    assert isinstance(split, SplitSettings) and isinstance(split_rows, SplitSettings)
    assert split.epochs < split_rows.epochs and split.host_rule.rate < split_rows.host_rule.rate


@pytest.mark.parametrize("strategy", ["dvfl", "splitnn-wait"])
@pytest.mark.parametrize("table", ["table", "credit_card"])
def test_a_split_by_subject_changes_nothing_where_none_was_tuned(strategy: str, table: str) -> None:
    assert by("subject", strategy, table) == by("random", strategy, table)


def test_credit_cards_are_learnt_in_few_epochs_from_all_their_values() -> None:
    s, split = (preset("tuned", data("credit_card", 24_000, 6), name) for name in ("dvfl", "splitnn-wait"))
    assert (s.guest_epochs, s.host_epochs, s.owner_epochs, s.guest_noise) == (10, 20, 25, 0.0)
    assert (split.epochs, split.guest_noise) == (20, 0.0)


@pytest.mark.parametrize("rule", PAPERS_TABLES)
def test_split_networks_that_go_on_without_a_guest_share_the_settings_of_those_that_wait(rule: str) -> None:
    wait, zeros, mean = (preset("tuned", data(rule, 1000), f"splitnn-{name}") for name in ("wait", "zeros", "mean"))
    assert wait == zeros == mean


@pytest.mark.parametrize("strategy", ["splitnn-skip", "splitnn-buffer", "vafl", "vfb2", "fedonce", "fedvs"])
@pytest.mark.parametrize("rule", PAPERS_TABLES)
def test_strategies_that_were_not_tuned_on_the_papers_tables_train_there_as_on_any(strategy: str, rule: str) -> None:
    theirs, any_table = (preset("tuned", data(name, 1000), strategy) for name in (rule, "table"))
    widths = {"w_g": None, "w_h": None}
    assert replace(theirs, **widths) == replace(any_table, **widths)


def few(labels: int, rows: int, *, images: bool) -> VerticalData:
    whole = data("mnist", rows)
    strips = [Strip(7, 28, 7 * number, 28) if images else None for number in range(4)]
    guests = tuple(replace(guest, image=strip) for guest, strip in zip(whole.guests, strips, strict=True))
    where = np.tile(np.arange(labels), (4, 1))
    return replace(whole, guests=guests, y_train=whole.y_train[:labels], labelled=where)


@pytest.mark.parametrize("labels", [128, 256, 512, 1024])
def test_few_labels_of_images_are_copied_and_learned_in_about_as_many_steps(labels: int) -> None:
    s, split = (
        preset("tuned", few(labels, 15_000, images=True)),
        preset("tuned", few(labels, 15_000, images=True), "vfb2"),
    )
    assert isinstance(s, Settings) and isinstance(split, SplitSettings)
    assert s.guest_objective == "simclr" and s.copies == split.copies > 0
    steps = s.owner_epochs * -(-labels * (1 + s.copies) // s.batch)
    assert 600 <= steps < 700
    assert 600 <= s.guest_epochs * -(-15_000 // s.batch) < 630
    assert preset("tuned", few(labels, 15_000, images=True), "fedonce").copies == s.copies


@pytest.mark.parametrize(("labels", "images"), [(128, False), (6000, True), (15_000, True)])
def test_other_labels_are_not_copied(labels: int, images: bool) -> None:
    for strategy in ("dvfl", "splitnn-wait", "fedonce"):
        assert preset("tuned", few(labels, 15_000, images=images), strategy).copies == 0


def test_few_labels_get_as_many_steps_as_a_small_table() -> None:
    """Rows without labels are none of the owner's."""
    s, split = (preset("tuned", few(128, 15_000, images=False), name) for name in ("dvfl", "splitnn-wait"))
    assert isinstance(s, Settings) and s.owner_epochs == 150
    assert isinstance(split, SplitSettings) and split.epochs == 1500


def test_for_absence_hides_parties_in_training_and_changes_nothing_else() -> None:
    plain = preset("tuned", data("mnist", 60_000))
    made = for_absence(plain)
    assert isinstance(made, Settings)
    assert made.guest_dropout > 0 and made.host_dropout > 0 and made.partial > 0
    assert replace(made, guest_dropout=0.0, host_dropout=0.0, partial=0) == plain
    assert for_absence(made) == made


def test_for_absence_makes_no_passes_where_no_host_learns_and_hides_no_only_host() -> None:
    plain = preset("tuned", data("mnist", 60_000))
    assert isinstance(plain, Settings)
    for change in ({"host_model": "concatenate"}, {"hosts": 0}):
        made = for_absence(replace(plain, **change))
        assert isinstance(made, Settings) and made.guest_dropout > 0 and made.partial == 0
    made = for_absence(replace(plain, hosts=1))
    assert isinstance(made, Settings) and made.host_dropout == 0 and made.partial > 0


def test_for_absence_keeps_what_hides_more_already() -> None:
    made = for_absence(Settings(guest_dropout=0.6, host_dropout=0.5, partial=9))
    assert isinstance(made, Settings)
    assert (made.guest_dropout, made.host_dropout, made.partial) == (0.6, 0.5, 9)


def test_for_absence_hides_guests_from_split_networks() -> None:
    assert for_absence(SplitSettings()).guest_dropout > 0


def test_an_owner_of_noisy_encodings_has_more_dropout_unless_it_is_told_otherwise() -> None:
    usual = preset("paper", data("mnist", 100))
    assert isinstance(usual, Settings) and for_noise(usual).owner_dropout == 0.5
    assert for_noise(replace(usual, owner_dropout=0.7)).owner_dropout == 0.7
    noisy: dict[str, object] = {"clip": 1.0, "noise": 0.1}
    for overrides, dropout in (({}, 0.0), (noisy, 0.5), ({**noisy, "owner_dropout": 0.1}, 0.1)):
        settings = settled("paper", data("mnist", 100), overrides)
        assert isinstance(settings, Settings) and settings.owner_dropout == dropout
