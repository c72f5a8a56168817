"""Encoders that users bring, in place of the paper's."""

from dataclasses import replace

import numpy as np
import torch
from replicas import LEARNED, QUICK, SEEDS, trained
from sklearn.decomposition import PCA

from dvfl.data.split.vertical import VerticalData
from dvfl.strategies.decoupled.dvfl import Dvfl


def test_a_guest_may_be_a_fitted_model(digits: VerticalData) -> None:
    model = PCA(6, random_state=0)
    simulation = trained(digits, QUICK, encoders=[None, model, None, None])
    assert simulation.stack.latents == (12, 6, 12, 12)
    assert not hasattr(model, "components_")  # the user's own is left alone
    assert simulation.scores().min() > LEARNED


def test_replicas_with_rows_of_their_own_have_models_of_their_own(digits: VerticalData) -> None:
    tables = [digits, _mirrored(digits)]
    own = [PCA(6, random_state=0).fit(data.guests[1].train) for data in tables]
    simulation = Dvfl(tables, QUICK, SEEDS, encoders=[None, PCA(6, random_state=0), None, None])
    simulation.run()
    made = simulation.stack.encode_guests([torch.from_numpy(guest.test) for guest in digits.guests])
    for replica, model in enumerate(own):
        sent = torch.from_numpy(model.transform(digits.guests[1].test).astype(np.float32))
        torch.testing.assert_close(made[replica, :, 12:18], sent, atol=1e-4, rtol=1e-4)
    assert simulation.scores().min() > LEARNED


def _mirrored(data: VerticalData) -> VerticalData:
    """The same labels with guest 2's columns in the opposite order, at training and test."""
    guest = data.guests[1]
    turned = replace(guest, train=guest.train[:, ::-1].copy(), test=guest.test[:, ::-1].copy())
    return replace(data, guests=(data.guests[0], turned, *data.guests[2:]))
