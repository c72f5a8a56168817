"""What an audit records of a federation with noise: the very encodings that left the guests."""

import torch

from dvfl.audit.recordings.cases import Case, controls, rows_of
from dvfl.audit.recordings.recorder import recorded
from dvfl.data import load
from dvfl.data.split.vertical import fewer_rows
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl

SHORT = Settings(hosts=0, guest_epochs=1, owner_epochs=1, validation=0.0, clip=1.0, noise=0.3)


def test_a_recording_has_the_noise_that_the_owner_got_and_predictions_have() -> None:
    data = fewer_rows(load("digits"), 300)
    case = Case("dvfl", data, SHORT, (3, 8), torch.device("cpu"))
    training, recording = recorded(case)
    simulation = training.simulation
    assert isinstance(simulation, Dvfl)
    rows, train, test = rows_of(data)
    joint = torch.cat([guest.z for guest in recording.guests], 2)
    torch.testing.assert_close(joint[:, : rows.trained], simulation.collect()[:, train])
    torch.testing.assert_close(recording.outputs[:, rows.test], simulation.outputs()[:, test])
    noise = joint[0] - joint[0].mean()
    assert noise.std() > 0.25  # 0.3 of noise on encodings that are no longer than 1


def test_the_control_with_encoders_that_were_never_trained_is_noisy_too() -> None:
    case = Case("dvfl", fewer_rows(load("digits"), 300), SHORT, (3,), torch.device("cpu"))
    _, recording = recorded(case)
    random = controls(case, recording)["random encoder"]
    lengths = torch.cat([guest.z.norm(dim=2).flatten() for guest in random.guests])
    assert (lengths > 1.0).float().mean() > 0.3  # noise alone makes them longer than the clip
