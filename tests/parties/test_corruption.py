"""Wrong encodings: each way of being wrong, and that each is of the shape of the right ones."""

import pytest
import torch
from torch import Tensor

from dvfl.parties.faults.corruption import HOWS, SCALE, Corruption, How, corrupted

ROWS, LATENT = 64, 32


def given(*leading: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    code = torch.randn(*leading, ROWS, LATENT, generator=generator)
    return code, torch.randperm(ROWS, generator=generator), torch.randn(ROWS, LATENT, generator=generator)


def test_corruption_is_written_as_on_the_command_line() -> None:
    assert str(Corruption("noise", "owner", "guest-2")) == "corrupt:noise:owner:guest-2"


def test_scaled_encodings_are_ten_times_too_large() -> None:
    code, order, noise = given()
    assert SCALE == 10
    assert torch.equal(corrupted(code, "scale", order, noise), code * 10)


def test_the_sign_is_flipped() -> None:
    code, order, noise = given()
    assert torch.equal(corrupted(code, "sign", order, noise) + code, torch.zeros(ROWS, LATENT))


def test_rows_are_permuted_whole() -> None:
    code, order, noise = given(2)
    wrong = corrupted(code, "permute", order, noise)
    for row, source in enumerate(order.tolist()):
        assert torch.equal(wrong[:, row], code[:, source])


def test_noise_is_as_strong_as_the_encodings_of_each_element() -> None:
    code, order, noise = given(3)
    code = code * torch.tensor([0.1, 1.0, 7.0])[:, None, None] + 5
    added = corrupted(code, "noise", order, noise) - code
    for element in range(3):
        assert added[element].std() == pytest.approx(float(code[element].std()), rel=0.1)


def test_equal_encodings_get_no_noise() -> None:
    code = torch.full((1, 1), 3.0)
    assert torch.equal(corrupted(code, "noise", torch.tensor([0]), torch.ones(1, 1)), code)


@pytest.mark.parametrize("how", HOWS)
def test_what_is_wrong_has_the_shape_of_what_is_right_which_stays(how: How) -> None:
    code, order, noise = given(2, 3)
    before = code.clone()
    wrong = corrupted(code, how, order, noise)
    assert wrong.shape == code.shape
    assert wrong.dtype == code.dtype
    assert torch.equal(code, before)
    assert not torch.equal(wrong, code)


@pytest.mark.parametrize("how", HOWS)
def test_elements_are_corrupted_as_each_would_be_alone(how: How) -> None:
    code, order, noise = given(2, 3)
    together = corrupted(code, how, order, noise)
    torch.testing.assert_close(together[1, 2], corrupted(code[1, 2], how, order, noise))
