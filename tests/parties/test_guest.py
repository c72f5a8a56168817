"""A guest's step and what a guest that is no network gives."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from dvfl.parties.guest import FittedGuest, Guest
from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.networks.projector import Projector
from dvfl.parties.numerics.learner import Adam
from dvfl.parties.objectives.contrastive import Contrastive
from dvfl.parties.objectives.objective import Reconstruction


def guest(stack: int) -> Guest:
    objective = Reconstruction(Mlp((6, 3), ("relu",)), Mlp((3, 6), ("identity",)))
    generator = torch.Generator().manual_seed(0)
    return Guest(objective, torch.stack([objective.init(generator) for _ in range(stack)]), Adam(0.05))


def test_what_is_pushed_was_encoded_before_the_update() -> None:
    trained, x = guest(2), torch.randn(2, 5, 6)
    before = trained.encode(x)
    code, _ = trained.step(x, 0.05)
    assert torch.equal(code, before)
    assert not torch.equal(code, trained.encode(x))


def test_steps_lower_the_loss() -> None:
    trained, x = guest(1), torch.randn(1, 20, 6)
    losses = [float(trained.step(x, 0.05)[1]) for _ in range(100)]
    assert losses[-1] < 0.8 * losses[0]


def test_a_fitted_guest_encodes_as_its_model_transforms() -> None:
    x = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    model = PCA(2).fit(x)
    codes = FittedGuest([model], 2).encode(torch.from_numpy(x))
    assert codes.dtype == torch.float32
    np.testing.assert_allclose(codes.numpy(), model.transform(x), rtol=1e-5)


def test_replicas_may_have_models_or_rows_of_their_own_or_both() -> None:
    x = np.random.default_rng(0).normal(size=(2, 30, 6)).astype(np.float32)
    models = [PCA(2).fit(own) for own in x]
    shared, own = FittedGuest(models[:1], 2), FittedGuest(models, 2)
    rows = torch.from_numpy(x)
    for codes, model, seen in (
        (shared.encode(rows)[1], models[0], x[1]),
        (own.encode(rows[0])[1], models[1], x[0]),
        (own.encode(rows)[1], models[1], x[1]),
    ):
        np.testing.assert_allclose(codes.numpy(), model.transform(seen), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="2 replicas have a model each"):
        _ = own.model


def test_a_model_that_gives_another_width_than_it_said_is_refused() -> None:
    x = np.eye(6, dtype=np.float32)
    with pytest.raises(ValueError, match=r"PCA gave \(6, 2\); \(6, 3\) is right"):
        FittedGuest([PCA(2).fit(x)], 3).encode(torch.from_numpy(x))


def contrasting(stack: int) -> Guest:
    objective = Contrastive(Mlp((6, 3), ("relu",)), Projector((3, 4, 2)), 0.5)
    generator = torch.Generator().manual_seed(0)
    return Guest(objective, torch.stack([objective.init(generator) for _ in range(stack)]), Adam(0.05))


def test_a_guest_that_compares_copies_pushes_the_encoding_of_the_row_itself() -> None:
    trained, x = contrasting(2), torch.randn(2, 5, 6)
    before = trained.encode(x)
    code, _ = trained.step(x, 0.05, seen=torch.randn(2, 10, 6))
    assert torch.equal(code, before)
    assert not torch.equal(code, trained.encode(x))


def test_steps_tell_rows_apart() -> None:
    trained, x = contrasting(1), torch.randn(1, 20, 6)
    losses = [float(trained.step(x, 0.05, seen=x.repeat(1, 2, 1) + 0.1 * torch.randn(1, 40, 6))[1]) for _ in range(100)]
    assert losses[-1] < 0.8 * losses[0]


def test_a_guest_that_compares_copies_needs_them() -> None:
    with pytest.raises(ValueError, match="compares copies of its input, and none are given"):
        contrasting(1).step(torch.randn(1, 5, 6), 0.05)
