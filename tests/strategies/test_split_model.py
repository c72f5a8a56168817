"""A split network's two halves: what guests encode, and what the head makes of it."""

import pytest
import torch
from split_networks import made

from dvfl.data.vertical import VerticalData


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
