"""What an audit comes to, in sentences."""

from dvfl.audit.pages.verdict import verdict
from dvfl.audit.recordings.findings import Finding
from dvfl.audit.recordings.measured import Control, Measured


def inversion(mean: float, control: Control = "", known: int = 50) -> Measured:
    return Measured("inversion", "ridge", "a host", "", known, "columns", "", "R2", (mean,), control)


def gradients(mean: float, *, channel: bool) -> Measured:
    of = "labels of each class"
    return Measured("gradient_labels", "cosine", "a guest", "", 1, of, "", "AUC", (mean,), channel=channel)


def finding(strategy: str, defence: str, accuracy: float, *figures: Measured) -> Finding:
    return Finding(strategy, defence, "words", (accuracy,), figures, 1.0, {}, {})


OURS = finding("dvfl", "none", 98.8, inversion(0.83), inversion(0.95, "raw features"), gradients(0.5, channel=False))
THEIRS = finding("splitnn-wait", "none", 98.9, inversion(0.54), gradients(0.97, channel=True))


def test_what_comes_back_and_what_goes_forward_is_told_of_each_strategy() -> None:
    back, split_back, forward, split_forward = verdict([OURS, THEIRS], "accuracy, %")
    assert back.startswith("dvfl: nothing comes back")
    assert split_back.startswith("splitnn-wait: what comes back") and "97 of 100 pairs" in split_back
    assert "83% of the variance" in forward and "95% if guests sent their columns" in forward
    assert "54%" in split_forward and "if guests sent" not in split_forward


def test_the_defence_that_hides_most_for_little_is_named() -> None:
    cheap = finding("dvfl", "shield-0.5", 98.2, inversion(0.23))
    dear = finding("dvfl", "noise-0.7", 94.0, inversion(0.1))
    useless = finding("dvfl", "once", 98.8, inversion(0.82))
    assert (
        "shield-0.5 hides most (words). The same host then has 23%."
        in verdict([OURS, cheap, dear, useless], "accuracy, %")[-1]
    )
    assert "none that costs at most 1.5 points" in verdict([OURS, dear, useless], "accuracy, %")[-1]


def test_a_defence_of_r2_may_cost_hundredths() -> None:
    ours, cheap = finding("dvfl", "none", 0.48, inversion(0.8)), finding("dvfl", "shield-0.5", 0.46, inversion(0.2))
    assert "none that costs at most 0.015 of R2" in verdict([ours, cheap], "R2")[-1]


def test_what_was_not_measured_is_not_told() -> None:
    assert verdict([finding("dvfl", "none", 98.8, inversion(0.8, known=10))], "accuracy, %") == []
