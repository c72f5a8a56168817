"""What a run sent where: every message of a training, counted from its settings."""

from dataclasses import dataclass

from dvfl.strategies.dvfl import Dvfl

_FLOAT32 = 4  # bytes


@dataclass(frozen=True)
class Flow:
    """What one party sends in one direction, whoever was down to lose some of it."""

    sender: str
    receivers: str
    when: str
    messages: int  # to all receivers together
    megabytes: float


@dataclass(frozen=True)
class Traffic:
    """Everything that a training sends. Nothing is sent back to anyone."""

    pushes: list[Flow]  # guests to hosts while they train, one a guest
    encodings: list[Flow]  # of all training rows, once, by guests where there are hosts on the way, else to the owner
    collected: list[Flow]  # by hosts to the owner, once


def traffic(simulation: Dvfl) -> Traffic:
    """Every round's messages, and the encodings that the owner collects once."""
    s, stack, rows = simulation.settings, simulation.stack, simulation.data.rows
    guests = list(zip((guest.name for guest in simulation.data.guests), stack.latents, strict=True))
    receivers = "owner" if s.hosts == 0 else "host-1" if s.hosts == 1 else f"each of {s.hosts} hosts"
    # Hosts that learn: those without parameters need nothing before the owner asks.
    messages = s.hosts * s.communicated * simulation.guests.iterations if simulation.hosts.wanted else 0
    copies = max(1, s.hosts)
    return Traffic(
        [
            Flow(name, receivers, "in training", messages, messages * s.batch * latent * _FLOAT32 / 1e6)
            for name, latent in guests
            if messages
        ],
        [
            Flow(name, receivers, "once, after it", copies, copies * rows * latent * _FLOAT32 / 1e6)
            for name, latent in guests
        ],
        [
            Flow(f"host-{number + 1}", "owner", "once, after it", 1, rows * width * _FLOAT32 / 1e6)
            for number, width in enumerate(stack.owner_widths if s.hosts else ())
        ],
    )


def megabytes_sent_per_guest(simulation: Dvfl) -> float:
    """What a guest sends to train, on average: its pushes (the paper's measure); where none are made, its encodings."""
    sent = traffic(simulation)
    flows = sent.pushes or sent.encodings
    return sum(flow.megabytes for flow in flows) / len(flows)
