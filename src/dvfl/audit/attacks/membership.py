"""Someone who sees the owner's outputs tells rows that were trained on from rows that were not.

Yeom et al. (2018) take a row for a member where its loss is small, Shokri et al. (2017) learn the difference with a
network from rows whose membership they know. A model that has learned its rows by heart is surer of them.
"""

import torch
from torch import Tensor

from dvfl.audit.readers.readers import Effort, network
from dvfl.audit.recordings.measured import Measured, auc
from dvfl.audit.recordings.recording import Recording


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """AUC of telling victims from as many test rows; the network is learned on others of both kinds."""
    rows, device = seen.rows, seen.device
    half = rows.tests // 2
    tested, learned = min(rows.victims, rows.tests - half), min(rows.pool, half)
    trained, unseen = torch.arange(rows.trained, device=device), torch.arange(rows.trained, rows.count, device=device)
    judged = torch.cat([trained[rows.pool : rows.pool + tested], unseen[half : half + tested]])
    given = torch.cat([trained[:learned], unseen[:learned]])
    members = (judged < rows.trained).expand(len(seen.seeds), -1)

    traits, loss, certainty = _traits(seen)
    answers = (given < rows.trained).long().expand(len(seen.seeds), -1)
    reader = network(traits[:, given], answers, effort, seen.seeds, classes=2)
    guess = reader(traits[:, judged])

    def figure(way: str, saw: str, scores: Tensor, known: int = 0, known_of: str = "nothing") -> Measured:
        values = tuple(auc(members, scores).tolist())
        who, target = "a user of predictions", "whether a row was trained on"
        return Measured("membership", way, who, saw, known, known_of, target, "AUC", values)

    shown = "class probabilities" if seen.numbers is None else "predicted numbers"
    both = f"{shown}, and the row's label"
    return [
        *([] if certainty is None else [figure("confidence", shown, certainty[:, judged])]),
        figure("loss", both, -loss[:, judged]),
        figure("network", both, guess[..., 1] - guess[..., 0], len(given), "whether they were trained on"),
    ]


def _traits(seen: Recording) -> tuple[Tensor, Tensor, Tensor | None]:
    """What a network looks at (replicas, rows, some), a row's loss (replicas, rows), and how sure the model is of it.

    A predicted number says nothing of that.
    """
    if seen.numbers is not None:
        squares = (seen.outputs[..., 0] - seen.numbers).square()
        logs = squares.clamp(min=1e-12).log()
        return torch.stack([seen.outputs[..., 0], squares, logs], 2).float(), squares, None
    log_p = torch.log_softmax(seen.outputs, 2)
    loss = -log_p.gather(2, seen.y.expand(len(seen.seeds), -1)[..., None])  # (replicas, rows, 1)
    traits = torch.cat([log_p.sort(2).values, log_p.exp().sort(2).values, loss, (-loss).exp()], 2)
    return traits, loss[..., 0], log_p.amax(2)
