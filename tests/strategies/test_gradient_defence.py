"""Defences of the gradients that split networks send back: what they do to rows, and that training goes on."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from split_networks import SETTINGS, learned

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import SplitSettings
from dvfl.strategies.split.gradient_defence import equally_long, noisy, signs
from dvfl.strategies.split.split_training import EndToEnd
from dvfl.strategies.split.splitnn import SplitNN
from dvfl.strategies.split.vafl import Vafl
from dvfl.strategies.split.vfb2 import Vfb2

QUICK = SplitSettings(epochs=20, guest_rule=Adam(5e-3), host_rule=Adam(5e-3), validation=0.0)
ALGORITHMS: dict[str, Callable[[], Any]] = {"splitnn": lambda: SplitNN("zeros"), "vafl": Vafl, "vfb2": Vfb2}
DEFENCES: list[dict[str, Any]] = [
    {"gradient_noise": 0.5},
    {"gradient_defence": "max_norm"},
    {"gradient_defence": "sign"},
    {"gradient_noise": 0.5, "gradient_defence": "max_norm"},
]
GRADIENTS = torch.randn(3, 500, 24, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 0, 500)[:, None]


def trained(data: VerticalData, settings: SplitSettings, seeds: tuple[int, ...], algorithm: str) -> EndToEnd:
    simulation = EndToEnd(data, settings, seeds, algorithm=ALGORITHMS[algorithm]())
    simulation.run()
    return simulation


def test_noise_is_as_long_as_asked_in_proportion_to_the_batchs_gradients() -> None:
    draw = torch.randn(GRADIENTS.shape, generator=torch.Generator().manual_seed(1))
    noise = noisy(GRADIENTS, draw, 0.7) - GRADIENTS
    expected = 0.7 * GRADIENTS.norm(dim=2).mean(1)
    torch.testing.assert_close(noise.norm(dim=2).mean(1), expected, rtol=0.03, atol=0)


def test_rows_keep_their_line_and_come_to_the_longest_rows_expected_squared_length() -> None:
    draws = torch.randn(2000, 3, 500, 1, generator=torch.Generator().manual_seed(1))
    sent = torch.stack([equally_long(GRADIENTS, draw)[:, ::50] for draw in draws])
    squares = sent.square().sum(-1).mean(0)
    longest = GRADIENTS.norm(dim=2).amax(1, keepdim=True).square()
    torch.testing.assert_close(squares, longest.expand_as(squares), rtol=0.2, atol=0)
    cosines = torch.nn.functional.cosine_similarity(sent[0], GRADIENTS[:, ::50], dim=-1)
    torch.testing.assert_close(cosines.abs(), torch.ones_like(cosines))


def test_rows_without_a_gradient_get_none_and_no_nan() -> None:
    draw = torch.ones(3, 500, 1)
    assert torch.equal(equally_long(torch.zeros_like(GRADIENTS), draw), torch.zeros_like(GRADIENTS))


def test_signs_have_one_size_and_keep_the_batchs_mean_absolute_value() -> None:
    sent = signs(GRADIENTS)
    assert torch.equal(sent.sign(), GRADIENTS.sign())
    for own, gradients in zip(sent, GRADIENTS, strict=True):
        assert len(own.abs().unique()) == 1
        torch.testing.assert_close(own.abs().mean(), gradients.abs().mean())


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_defended_replica_of_a_stack_is_that_seed_alone_and_not_an_undefended_one(
    digits: VerticalData, algorithm: str, defence: dict[str, Any]
) -> None:
    settings = replace(QUICK, epochs=2, **defence)
    stack = trained(digits, settings, (5, 11), algorithm)
    alone, bare = (trained(digits, one, (11,), algorithm) for one in (settings, replace(QUICK, epochs=2)))
    for ours, theirs in zip(learned(stack), learned(alone), strict=True):
        assert (ours[1] - theirs[0]).norm() <= 1e-4 * theirs[0].norm()
    for theirs, undefended in zip(alone.model.learners, bare.model.learners, strict=True):
        assert (theirs.parameters - undefended.parameters).norm() > 1e-2 * theirs.parameters.norm()


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
def test_digits_are_learned_from_defended_gradients(digits: VerticalData, defence: dict[str, Any]) -> None:
    assert trained(digits, replace(QUICK, **defence), (5,), "splitnn").scores().min() > 65


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gradient_noise": -0.1}, "gradient_noise -0.1: 0 or more"),
        ({"gradient_noise": float("nan")}, "gradient_noise nan: 0 or more"),
        ({"gradient_defence": "max"}, "gradient_defence max: one of none, max_norm, sign"),
    ],
)
def test_what_is_no_defence_is_refused(digits: VerticalData, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        trained(digits, replace(SETTINGS, **change), (5,), "splitnn")
