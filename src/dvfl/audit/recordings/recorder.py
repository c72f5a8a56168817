"""Looks at a training epoch by epoch, and keeps what its parties saw of each other."""

from collections.abc import Mapping

import torch
from torch import Tensor

from dvfl.audit.recordings.cases import Case, Training, Variation, recording_of, rows_of
from dvfl.audit.recordings.gradients import sent_back
from dvfl.audit.recordings.recording import Recording
from dvfl.audit.recordings.releases import earlier, kept
from dvfl.release.release import Origin
from dvfl.simulation.simulation import Simulation
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.split.split_training import EndToEnd


def recorded(case: Case, beside: Mapping[str, Variation] | None = None) -> tuple[Training, Recording]:
    """A case trained, with variations of it beside it, and what its own parties saw of each other."""
    recorder = Recorder(slice(0, len(case.seeds)))
    training = case.trained(beside, recorder.look)
    return training, recorder.recording(training.simulation, case.strategy)


class Recorder:
    """Of one training. Gradients are kept twice, early and at its end; of noisy pushes their means, of others two."""

    def __init__(self, replicas: slice = slice(None)) -> None:
        self._replicas = replicas  # that are looked at
        self._back: list[list[Tensor]] = []  # of each moment, what every guest is sent
        self._pushed: list[Tensor] = []  # (replicas, trained rows, W_g) of each epoch of pushes that is kept
        self._epoch = 0

    def look(self, simulation: Simulation) -> None:
        """After an epoch."""
        if isinstance(simulation, EndToEnd) and (not self._back or simulation.finished):
            rows = torch.from_numpy(rows_of(simulation.data)[1]).to(simulation.device)
            self._back.append([one[self._replicas] for one in sent_back(simulation, rows)])
        if isinstance(simulation, Dvfl) and simulation.guests.epoch > self._epoch:
            self._epoch = simulation.guests.epoch
            s = simulation.settings
            if simulation.hosts.wanted and kept(self._epoch, s.guest_epochs, s.period, noisy=s.noise > 0):
                self._pushed.append(_pushed(simulation, self._epoch)[self._replicas])

    def recording(self, simulation: Simulation, name: str) -> Recording:
        """Of the training when it is over."""
        back = [torch.stack(each) for each in zip(*self._back, strict=True)]
        noisy = isinstance(simulation, Dvfl) and simulation.settings.noise > 0
        return recording_of(simulation, name, self._replicas, back or None, earlier(self._pushed, noisy=noisy))


@torch.no_grad()
def _pushed(simulation: Dvfl, epoch: int) -> Tensor:
    """What guests pushed of the recorded rows in an epoch that is just over, with noise like that of the epoch."""
    stack, data = simulation.stack, simulation.data
    train = rows_of(data)[1]
    tables = [torch.from_numpy(data.train_of(guest, train)).to(simulation.device) for guest in range(len(data.guests))]
    stack.fit_flattenings(simulation.tables.train())  # as they are now; they are fitted anew for the owner
    with stack.suited(len(train)):
        return stack.encode_guests(tables, Origin(f"pushed {epoch}", train))
