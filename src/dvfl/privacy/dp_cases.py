"""A federation whose guests' encoders were trained by DP-SGD, one seed after the other on the CPU."""

from dataclasses import replace

import torch

from dvfl.parties.randomness import bits
from dvfl.privacy.cases import Case, recording_of
from dvfl.privacy.recording import GuestRecording, Recording
from dvfl.strategies.dvfl import Dvfl
from dvfl.strategies.settings import Settings


def dp_recorded(case: Case, epsilon: float) -> tuple[tuple[float, ...], Recording]:
    """Test accuracy of each seed, and what was sent."""
    from dvfl.privacy.dpsgd import DpAutoencoder

    assert isinstance(case.settings, Settings)
    widths = case.simulation().stack.latents  # type: ignore[attr-defined]
    scores, recordings = [], []
    for seed in case.seeds:
        encoders = [
            DpAutoencoder(latent=width, epsilon=epsilon, unit=guest.unit, seed=bits(seed, "dp encoder", number))
            for number, (width, guest) in enumerate(zip(widths, case.data.guests, strict=True))
        ]
        simulation = Dvfl(case.data, case.settings, [seed], device=case.device, encoders=encoders)
        simulation.run()
        scores += simulation.scores().tolist()
        recordings.append(recording_of(simulation, case.strategy))
    return tuple(scores), _together(recordings)


def _together(recordings: list[Recording]) -> Recording:
    """Recordings of the same rows, replica after replica."""
    first = recordings[0]
    guests = tuple(
        GuestRecording(own[0].name, own[0].x, torch.cat([one.z for one in own]))
        for own in zip(*(one.guests for one in recordings), strict=True)
    )
    seeds = tuple(seed for one in recordings for seed in one.seeds)
    return replace(first, seeds=seeds, guests=guests, outputs=torch.cat([one.outputs for one in recordings]))
