"""A split network's two halves: what guests encode, and what the head makes of it."""

from dataclasses import replace

import pytest
import torch
from split_networks import SETTINGS, made, trained

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.numerics.learner import Sgd


@pytest.mark.parametrize("table", ["digits", "unequal_digits"])
def test_the_head_predicts_from_what_guests_encode(request: pytest.FixtureRequest, table: str) -> None:
    data: VerticalData = request.getfixturevalue(table)
    model = made(data, "zeros", seeds=(5, 6)).model
    tables = [torch.from_numpy(guest.test) for guest in data.guests]
    codes = model.encode(tables)
    assert [code.shape for code in codes] == [(2, 400, latent) for latent in model.latents]
    outputs = model.head.forward(model.host.parameters, torch.cat(codes, 2))[-1]
    torch.testing.assert_close(outputs, model.predict(tables))
    without = [torch.zeros_like(code) if guest == 1 else code for guest, code in enumerate(codes)]
    outputs = model.head.forward(model.host.parameters, torch.cat(without, 2))[-1]
    torch.testing.assert_close(outputs, model.predict(tables, guests=(0, 2, 3)))


@pytest.mark.parametrize("table", ["digits", "unequal_digits"])
def test_an_inflated_guest_takes_longer_steps_and_the_others_their_own(
    request: pytest.FixtureRequest, table: str
) -> None:
    data = request.getfixturevalue(table)
    settings = replace(SETTINGS, epochs=1, batch=600, guest_rule=Sgd(1.0))  # one step
    start, plain = made(data, "zeros", settings, (5, 6)), trained(data, "zeros", settings, (5, 6))
    active = trained(data, "zeros", replace(settings, inflated=2, inflation=7.0), (5, 6))
    first, once, faster = (dict(one.model.tensors()) for one in (start, plain, active))
    for guest in range(4):
        for name, values in first[f"guest-{guest + 1}"].items():
            own, other = (one[f"guest-{guest + 1}"][name] - values for one in (faster, once))
            torch.testing.assert_close(own, other * (7 if guest == 2 else 1), rtol=1e-3, atol=1e-6)


def test_replicas_with_rates_of_their_own_keep_them_beside_an_inflated_guest(digits: VerticalData) -> None:
    settings = replace(SETTINGS, epochs=1, inflated=1, inflation=3.0)
    slow = replace(settings, guest_rule=replace(settings.guest_rule, rate=0.2))
    mixed, alone = trained(digits, "zeros", [settings, slow], (5, 6)), trained(digits, "zeros", slow, (6,))
    for (_, ours), (_, theirs) in zip(mixed.model.tensors(), alone.model.tensors(), strict=True):
        for name, values in ours.items():
            torch.testing.assert_close(values[1], theirs[name][0], rtol=1e-4, atol=1e-6)


def test_replicas_of_one_stack_may_have_an_inflated_guest_or_none(digits: VerticalData) -> None:
    plain = replace(SETTINGS, epochs=1)
    active = replace(plain, inflated=1, inflation=3.0)
    mixed = trained(digits, "zeros", [plain, active], (5, 5))
    for number, settings in enumerate((plain, active)):
        alone = trained(digits, "zeros", settings, (5,))
        for (_, ours), (_, theirs) in zip(mixed.model.tensors(), alone.model.tensors(), strict=True):
            for name, values in ours.items():
                torch.testing.assert_close(values[number], theirs[name][0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inflated": 4}, "inflated 4: a guest's number, from 0 to 3"),
        ({"inflated": 0, "inflation": 0.0}, "inflation 0.0: above 0"),
    ],
)
def test_an_inflation_that_cannot_be_is_refused(digits: VerticalData, change: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        made(digits, "zeros", replace(SETTINGS, **change))
