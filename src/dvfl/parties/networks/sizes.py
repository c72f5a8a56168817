"""How wide each party's networks are: the sizing rules of the paper's appendix, and ours for other tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dvfl.errors import UserError, nearest
from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.numerics.operations import Activation

OWNER_HIDDEN = 40


@dataclass(frozen=True)
class Sizes:
    """Widths and activations of all parties' encoders; decoders mirror them."""

    guest_hidden: tuple[int, ...]  # one a guest
    guest_latent: tuple[int, ...]
    guest_activations: tuple[Activation, Activation]
    host_latent: int  # W_h
    host_activation: Activation


def sizes(
    rule: str, columns: Sequence[int], w_g: int | None = None, w_h: int | None = None, hidden: int | None = None
) -> Sizes:
    """The widths that a rule gives guests with these numbers of columns; `w_g`, `w_h` and guests' `hidden` override its
    own."""
    if rule not in _RULES:
        raise UserError(f"unknown sizing rule '{rule}'{nearest(rule, _RULES)}")
    chosen = _RULES[rule](columns, w_g)
    if hidden is not None:
        chosen = replace(chosen, guest_hidden=(hidden,) * len(columns))
    return chosen if w_h is None else replace(chosen, host_latent=w_h)


def between(inputs: int, outputs: int) -> int:
    """The paper's hidden width of a host: a quarter of its input's and three quarters of its output's."""
    return max(1, (inputs + 3 * outputs) // 4)


def encoder(inputs: int, hidden: int, latent: int, activations: tuple[Activation, Activation]) -> Mlp:
    """Two layers that squeeze."""
    return Mlp((inputs, hidden, latent), activations)


def decoder(mirrored: Mlp, output: Activation) -> Mlp:
    """The layers of an encoder in reverse; the hidden ones are LeakyReLU, the last fits the range of the input."""
    return Mlp(mirrored.widths[::-1], _leaky_until(output, len(mirrored.widths) - 1))


def owner_head(sizes: Sizes, hosts: int, inputs: int, outputs: int) -> Mlp:
    """`W_h*H -> W_h -> 40 -> outputs`; without hosts the owner also squeezes as a host would (the paper's SimCLR)."""
    squeezing = (between(inputs, sizes.host_latent),) if hosts == 0 else ()
    return leaky((inputs, *squeezing, sizes.host_latent, OWNER_HIDDEN, outputs))


def leaky(widths: tuple[int, ...]) -> Mlp:
    """A network with LeakyReLU after every layer but the last."""
    return Mlp(widths, _leaky_until("identity", len(widths) - 1))


def _leaky_until(last: Activation, layers: int) -> tuple[Activation, ...]:
    hidden: list[Activation] = ["leaky_relu"] * (layers - 1)
    return (*hidden, last)


def _mnist(columns: Sequence[int], w_g: int | None) -> Sizes:
    guests = len(columns)
    hidden, latent = max(1, 400 // guests), max(1, (w_g or 320) // guests)
    return Sizes((hidden,) * guests, (latent,) * guests, ("leaky_relu", "relu"), 160, "leaky_relu")


def _tabular(columns: Sequence[int], latent: Sequence[int], w_h: int, host: Activation) -> Sizes:
    hidden = tuple(between(inputs, outputs) for inputs, outputs in zip(columns, latent, strict=True))
    return Sizes(hidden, tuple(latent), ("leaky_relu", "leaky_relu"), max(1, w_h), host)


def _three_quarters(columns: Sequence[int]) -> list[int]:
    return [-(-3 * inputs // 4) for inputs in columns]


def _credit_card(columns: Sequence[int], w_g: int | None) -> Sizes:
    return _tabular(columns, _shared(w_g, columns) or _three_quarters(columns), 10, "leaky_relu")


def _parkinsons(columns: Sequence[int], w_g: int | None) -> Sizes:
    latent = _shared(w_g, columns) or [max(1, inputs // 4) for inputs in columns]
    return _tabular(columns, latent, sum(latent) // 4, "relu")


def _caltech7(columns: Sequence[int], w_g: int | None) -> Sizes:
    return _tabular(columns, _shared(w_g, columns) or [256] * len(columns), 256, "relu")


def _handwritten(columns: Sequence[int], w_g: int | None) -> Sizes:
    latent = _shared(w_g, columns) or _three_quarters(columns)
    return _tabular(columns, latent, 3 * sum(latent) // 4, "relu")


def _shared(w_g: int | None, columns: Sequence[int]) -> list[int] | None:
    return None if w_g is None else [max(1, w_g // len(columns))] * len(columns)


_RULES = {
    "mnist": _mnist,
    "credit_card": _credit_card,
    "parkinsons": _parkinsons,
    "caltech7": _caltech7,
    "handwritten": _handwritten,
    "table": _handwritten,  # other tables: the paper's rule for the set most like them
}
