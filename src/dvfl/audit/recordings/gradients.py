"""What the host of a split network sends back to its guests."""

import torch
from torch import Tensor

from dvfl.simulation.cpu_threads import suited
from dvfl.strategies.split.split_training import EndToEnd


@torch.no_grad()
def sent_back(simulation: EndToEnd, rows: Tensor) -> list[Tensor]:
    """What each guest would be sent of training rows (count,) as the simulation stands: (replicas, count, latent).

    It is the gradient of a batch's mean loss with respect to the guest's encodings, after the host's defences. Dropout
    and noise are those of the rounds of the last epoch. Everyone is heard, and nobody learns from it.
    """
    if not simulation.epoch:
        raise ValueError("no epoch has been run; gradients are those of rounds like its own")
    model, batch, everyone = simulation.model, simulation.rows.batch, slice(0, len(simulation.seeds))
    part = model.part(everyone)
    rounds = -(-len(rows) // batch)
    full = rows.repeat(-(-rounds * batch // len(rows)))[: rounds * batch]  # all batches are, in training too
    sent = []
    with suited(simulation.device, batch * max(learner.parameters.numel() for learner in model.learners)):
        for number, own in enumerate(full.view(rounds, batch)):
            t, each = number % simulation.rows.iterations, own.expand(len(simulation.seeds), -1)
            x = simulation.read(own, t)
            _, dx = part.learn(x, simulation.rows.labels_of(each), simulation.keep(t, everyone))
            sent.append(dx if simulation.defence is None else simulation.defence.sent(dx, t, everyone))
    joint = torch.cat(sent, 1)[:, : len(rows)]
    return [joint] * len(model.latents) if model.summed else list(joint.split(model.latents, 2))
