"""DP-SGD for encoders: what it promises is what it does, and a federation takes it as any other encoder."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import Ridge

from dvfl.audit.dpsgd import DpAutoencoder
from dvfl.data import load
from dvfl.errors import UserError
from dvfl.estimators import DVFLClassifier
from dvfl.parties.numerics.learner import Adam
from dvfl.release.accounting import epsilon_of_training
from dvfl.settings.training import Settings
from dvfl.simulation.cpu_threads import threads
from dvfl.strategies.decoupled.dvfl import Dvfl

opacus = pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")


@pytest.fixture(scope="module")
def table() -> NDArray[np.float32]:
    return load("digits").guests[1].train


def test_it_has_the_epsilon_it_was_asked_for_and_a_delta_by_its_rows(table: NDArray[np.float32]) -> None:
    model = DpAutoencoder(seed=4, epsilon=3.0, steps=20).fit(table)
    assert 3.0 * 0.99 < model.epsilon_ <= 3.0
    assert model.delta_ == pytest.approx(len(table) ** -1.1)
    assert DpAutoencoder(seed=4, epsilon=3.0, steps=20, delta=1e-6).fit(table).noise_ > model.noise_


def test_rows_take_part_by_chance_and_steps_clip_and_add_the_noise_that_was_counted(
    table: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[torch.Tensor] = []
    given: list[dict[str, Any]] = []
    modules: list[Any] = []

    class Module(opacus.grad_sample.GradSampleModuleFastGradientClipping):  # type: ignore[misc, name-defined]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            modules.append(self)

        def forward(self, x: torch.Tensor) -> Any:
            taken.append(x)
            return super().forward(x)

    class Watched(opacus.optimizers.DPOptimizerFastGradientClipping):  # type: ignore[misc, name-defined]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            given.append(kwargs)
            super().__init__(*args, **kwargs)

        def accumulate(self) -> None:
            super().accumulate()
            summed = torch.cat([p.summed_grad.flatten() for p in self.params])
            assert summed.norm() <= len(taken[-1]) * self.max_grad_norm * (1 + 1e-4)
            if len(taken) == 1:
                torch.testing.assert_close(summed, one_by_one(modules[0]._module, self.params, taken[0], 1e-3))

    monkeypatch.setattr(opacus.grad_sample, "GradSampleModuleFastGradientClipping", Module)
    monkeypatch.setattr(opacus.optimizers, "DPOptimizerFastGradientClipping", Watched)
    model = DpAutoencoder(seed=4, epsilon=3.0, steps=60, batch=100, bound=1e-3).fit(table)
    assert len(taken) == 60
    assert (given[0]["noise_multiplier"], given[0]["max_grad_norm"]) == (model.noise_, 1e-3)
    assert model.epsilon_ == epsilon_of_training(100 / len(table), model.noise_, 60, model.delta_)
    counts = [len(rows) for rows in taken]
    assert abs(np.mean(counts) - 100) < 5 and 6 < np.std(counts) < 14  # binomial: 9.6


def one_by_one(
    module: torch.nn.Module, params: list[torch.nn.Parameter], x: torch.Tensor, bound: float
) -> torch.Tensor:
    """The sum of rows' gradients, each by itself and scaled down to the bound."""
    plain = [torch.nn.Parameter(p.detach().clone()) for p in params]
    net = copy.deepcopy(module)
    for part in net.modules():  # opacus does not look at these
        part._forward_hooks.clear()
        part._backward_hooks.clear()
    names = dict(zip(dict(net.named_parameters()), plain, strict=True))
    total = torch.zeros(sum(p.numel() for p in plain))
    for row in x:
        loss = (torch.func.functional_call(net, names, (row[None],)) - row).square().mean()
        flat = torch.cat([one.flatten() for one in torch.autograd.grad(loss, plain)])
        total += flat * (bound / flat.norm()).clamp(max=1)
    return total


def test_it_trains_on_one_thread_and_gives_back_the_callers(
    table: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    met: set[int] = set()

    class Module(opacus.grad_sample.GradSampleModuleFastGradientClipping):  # type: ignore[misc, name-defined]
        def forward(self, x: torch.Tensor) -> Any:
            met.add(torch.get_num_threads())
            return super().forward(x)

    monkeypatch.setattr(opacus.grad_sample, "GradSampleModuleFastGradientClipping", Module)
    with threads(2):
        DpAutoencoder(seed=4, steps=5).fit(table)
        assert torch.get_num_threads() == 2
    assert met == {1}


def test_the_same_seed_gives_the_same_encoder_and_another_seed_another(table: NDArray[np.float32]) -> None:
    first, again, other = (DpAutoencoder(steps=5, seed=seed).fit(table).transform(table) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def test_without_a_seed_noise_is_drawn_where_nobody_can_guess_it(table: NDArray[np.float32]) -> None:
    first, second = (DpAutoencoder(steps=5).fit(table).transform(table) for _ in range(2))
    assert not np.allclose(first, second)


def test_more_epsilon_learns_more(table: NDArray[np.float32]) -> None:
    kept = []
    for epsilon in (0.5, 20.0):
        codes = DpAutoencoder(seed=4, epsilon=epsilon, latent=6, unit=True, steps=400).fit(table).transform(table)
        kept.append(Ridge(1e-2).fit(codes, table).score(codes, table))
    assert kept[0] + 0.05 < kept[1]


def test_widths_follow_the_sizing_rule_unless_they_are_given(table: NDArray[np.float32]) -> None:
    assert DpAutoencoder(seed=4, steps=1).fit(table).transform(table[:3]).shape == (3, 12)
    model = DpAutoencoder(seed=4, steps=1, latent=5, hidden=9).fit(table)
    assert model.layers_[0] == (16, 9, 5)
    assert model.transform(table[:3]).dtype == np.float32


def test_steps_in_which_no_row_takes_part_are_steps_too() -> None:
    rows = np.random.default_rng(0).random((3, 4), np.float32)
    assert np.isfinite(DpAutoencoder(seed=4, steps=30, batch=1).fit(rows).transform(rows)).all()


def test_a_federation_takes_it_as_any_other_encoder() -> None:
    digits = load("digits")
    rules = {"guest_rule": Adam(1e-2), "host_rule": Adam(1e-2), "owner_rule": Adam(5e-3)}
    settings = Settings(hosts=1, guest_epochs=4, host_epochs=8, owner_epochs=15, standardise=True, **rules)  # type: ignore[arg-type]
    encoders = [DpAutoencoder(seed=4, epsilon=8.0, latent=12, steps=300), None, None, None]
    simulation = Dvfl(digits, settings, (0,), encoders=encoders)
    simulation.run()
    assert simulation.stack.latents[0] == 12
    assert simulation.scores().min() > 60
    assert not hasattr(encoders[0], "epsilon_")  # the user's own is left alone


def test_an_estimator_takes_it_and_says_that_it_cannot_be_saved_without_pickle(tmp_path: Path) -> None:
    digits = load("digits")
    tables, short = [guest.train[:300] for guest in digits.guests], {"guest_epochs": 2, "host_epochs": 2}
    model = DVFLClassifier(encoders=[DpAutoencoder(seed=4, steps=20, latent=6)] * 4, owner_epochs=5, **short)  # type: ignore[arg-type]
    model = clone(model).fit(tables, digits.y_train[:300])
    assert model.predict(tables).shape == (300,)
    with pytest.raises(ValueError, match="cannot be saved without pickle"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0.0}, {"delta": 1.0}, {"steps": 0}, {"batch": 0}, {"latent": 0}, {"rate": 0.0}, {"bound": -1.0}],
)
def test_what_means_nothing_is_refused(wrong: dict[str, Any], table: NDArray[np.float32]) -> None:
    with pytest.raises(UserError, match=rf"{next(iter(wrong))} .* is right"):
        DpAutoencoder(**wrong).fit(table)


def test_without_the_extra_its_name_is_told(table: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dvfl.release.accounting.find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs the extra"):
        DpAutoencoder().fit(table)
