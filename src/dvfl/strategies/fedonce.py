"""FedOnce: guests train without labels, then send the encodings of all rows once to the host that has the labels.

Wu, Li and He, "Practical vertical federated learning with unsupervised representation learning" (2022). There, guests
learn by predicting fixed random targets, the host has columns of its own, and the one sending is taken to succeed.

The DVFL paper's variant, simulated here: guests are DVFL's (autoencoders), the host trains what DVFL without hosts
would have at the owner. Guests may fail while they train. The sending goes batch by batch, a request each, and is lost
when its connection or the host is down: `fedonce` asks until it is heard, and counts; `fedonce-zeros` puts zeros there.
Guest faults do not act in the sending: the paper's figures under guest faults hardly depend on R_u, as they otherwise
would.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.errors import UserError
from dvfl.parties.faults.chains import Chains
from dvfl.parties.faults.fault_set import NO_FAULTS, Faults
from dvfl.settings.training import Settings
from dvfl.simulation.replica_data import GivenData, with_common_labels
from dvfl.simulation.simulation import Flow
from dvfl.simulation.stack_faults import PerReplica, cannot_progress, chains
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.decoupled.owner_phase import OwnerPhase


class FedOnce(Dvfl):
    """DVFL without hosts on the way, whose one sending may fail; the label holder is called host-1 here."""

    def __init__(
        self,
        data: GivenData,
        settings: Settings | Sequence[Settings],
        seeds: Sequence[int],
        *,
        insists: bool,  # asks again until every message is heard
        faults: PerReplica = NO_FAULTS,
        device: torch.device | str = "cpu",
    ) -> None:
        self._insists = insists
        each = [settings] * len(seeds) if isinstance(settings, Settings) else settings
        if any(one.entity_augmentation for one in each):
            raise UserError("entity_augmentation goes with --strategy dvfl alone")
        super().__init__(
            with_common_labels(data), [replace(one, hosts=0) for one in each], seeds, faults=faults, device=device
        )
        for fault in self.faults:
            if fault.lateness is not None or fault.corruption is not None:
                raise UserError(f"--faults {fault.texts[-1]}: only dvfl defines what late or wrong messages do")
        if insists:
            self.repeated = np.zeros(len(self.seeds), np.int64)

    @property
    def host_count(self) -> int:
        return 1

    @property
    def host_names(self) -> list[str]:
        return ["host-1"]

    def open_owner(self) -> OwnerPhase:
        """The one sending; what was lost of it is a gap."""
        if self.owner is None:
            self.owner = self._owner_phase(lossy=not self._insists)
        return self.owner

    def flows(self) -> list[Flow]:
        """The encodings of all rows, once."""
        return [replace(flow, receivers="host-1") for flow in super().flows() if flow.leg == "guests"]

    def collect(self) -> Tensor:
        """The encodings of the labelled rows as they reach the host, no numbers where they did not."""
        joint = super().collect()
        if self._insists:
            self.repeated = np.array([self._insist(replica) for replica in range(len(self.seeds))])
            return joint
        lost = self._lost()
        sender = torch.arange(len(self.stack.latents)).repeat_interleave(torch.tensor(self.stack.latents))
        for replica, encodings in enumerate(joint if lost.any() else ()):
            rows = np.repeat(lost[:, replica], self.settings.batch, 0)[: joint.shape[1]]  # (rows, guests)
            encodings.masked_fill_(torch.from_numpy(rows)[:, sender].to(joint.device), torch.nan)
        return joint

    @property
    def _start(self) -> int:
        """The round at which the sending begins: the clock goes on where the guests ended."""
        return self.settings.guest_epochs * self.guests.iterations

    @property
    def _messages(self) -> int:
        """Of each guest in the sending."""
        return -(-len(self.data.y_train) * (1 + self.settings.copies) // self.settings.batch)

    def _lost(self) -> NDArray[np.bool_]:
        """Which messages (messages, replicas, guests) are lost."""
        links, host = self._chains(self.known_faults, self.seeds)
        count, start = self._messages, self._start
        lost = np.zeros((count, len(self.seeds), len(self.data.guests)), bool)
        if links is not None:
            lost |= ~links.draw(start, count)
        if host is not None:
            lost |= ~host.draw(start, count)
        return lost

    def _insist(self, replica: int) -> int:
        """How many requests one replica makes again until every message is heard."""
        seeds = self.seeds[replica : replica + 1]
        links, host = self._chains(self.known_faults[replica : replica + 1], seeds)
        t, repeated = self._start, 0
        for _ in range(self._messages if links or host else 0):
            missing = np.ones((1, len(self.data.guests)), bool)
            while missing.any():
                reached = missing
                for kind, one, asked in (("connection", links, missing), ("host", host, np.ones((1, 1), bool))):
                    if one is not None:
                        reached = reached & one.request(t, asked)
                        cannot_progress(one.gone(), np.asarray((missing & one.gone()).any(1)), kind, seeds)
                missing = missing & ~reached
                repeated += int(missing.sum())
                t += 1
        return repeated

    def _chains(self, faults: Sequence[Faults], seeds: Sequence[int]) -> tuple[Chains | None, Chains | None]:
        """Of the connections and of the host."""
        links = chains("connection", faults, seeds, [f"{guest.name}>host-1" for guest in self.data.guests])
        return links, chains("host", faults, seeds, self.host_names)
