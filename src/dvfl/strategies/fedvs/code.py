"""What the parties of FedVS agree on before they begin: the code, the network's degree, and numbers that never wrap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dvfl.errors import UserError
from dvfl.settings.training import FedVSSettings
from dvfl.strategies.fedvs.lagrange import Code, threshold
from dvfl.strategies.fedvs.polynomials import PolynomialNet, degree
from dvfl.strategies.fedvs.prime_field import Field
from dvfl.strategies.fedvs.quantisation import quantise

LARGEST = 16.0  # values of columns are cut off at this size; columns are standardised
_FIELDS = (Field(31), Field(61))
_ROOM = 4.0  # length that the weights of every unit must be free to reach; they begin below 1


@dataclass(frozen=True)
class Agreement:
    """The numbers of a code that fit together."""

    guests: int  # N
    segments: int  # K
    colluders: int  # T
    stragglers: int  # L
    squares: int  # square activations inside the code
    data_bits: int  # binary places
    weight_bits: int

    @property
    def needed(self) -> int:
        """Results that the server decodes a round from."""
        return threshold(self.segments, self.colluders, degree(self.squares))

    def network(self, columns: int, latent: int) -> PolynomialNet:
        """Of a guest."""
        return PolynomialNet(columns, latent, self.squares)

    def columns(self, table: Tensor) -> Tensor:
        """What a guest codes of its table (rows, columns).

        A square inside the code takes five results at least. Where guests are too few for that, each squares its own
        columns before it shares them: its network's first layer is then fixed, as hidden layers are that Livni et al.
        build from the data alone. (x^2 - 1) / sqrt(2) has mean 0, deviation 1 and no correlation with a normal x.
        """
        whole = table if self.squares else torch.cat([table, (table.square() - 1) / math.sqrt(2)], 1)
        return whole.clamp(-LARGEST, LARGEST)


@dataclass(frozen=True)
class Coding:
    """An agreement, and numbers that fit into a field."""

    agreement: Agreement
    code: Code
    longest_rows: tuple[float, ...]  # of each guest
    longest_units: tuple[float, ...]  # how long each guest's units may be, so that no sum wraps
    places: int  # binary places of results

    @property
    def field(self) -> Field:
        return self.code.field

    @property
    def scale(self) -> float:
        """What results are to be divided by."""
        return 2.0**self.places

    def rounded(self, columns: Tensor, guest: int) -> Tensor:
        """A guest's columns as they go into the code.

        Rows longer than any that it trains on are shortened to that length, so that they cannot make a sum wrap either.
        """
        longest, as_they_are = self.longest_rows[guest], _rounded(columns, self.agreement.data_bits)
        beyond = as_they_are.norm(dim=1) > longest
        aim = max(0.0, longest - _rounding(columns.shape[1], self.agreement.data_bits))
        share = aim / columns.to(torch.float64).norm(dim=1).clamp(min=1e-30)
        shortened = _rounded(columns * share[:, None], self.agreement.data_bits)
        return torch.where(beyond[:, None], shortened, as_they_are).to(torch.float32)

    def elements(self, columns: Tensor) -> Tensor:
        """Columns as field elements."""
        return quantise(columns, 2.0**self.agreement.data_bits, self.field)


def agree(s: FedVSSettings, guests: int) -> Agreement:
    """The settings' numbers, completed for so many guests; refused where no code has them.

    Without other wishes there is one segment and one colluder, six guests or more have one square inside the code and
    fewer have none, and as many may straggle as the code allows: 0, 1, 2 of 3, 4, 5 guests; 1, 2, 3 of 6, 7, 8.
    """
    for name in ("segments", "colluders", "data_bits", "weight_bits"):
        if getattr(s, name) < 1:
            raise UserError(f"{name} {getattr(s, name)}: at least 1 is right")
    for name in ("stragglers", "squares"):
        if (getattr(s, name) or 0) < 0:
            raise UserError(f"{name} {getattr(s, name)}: 0 or more is right")
    for name, why in (
        ("retries", "results are asked for once"),
        ("guest_noise", "columns are shared once, as they are"),
    ):
        if getattr(s, name):
            raise UserError(f"{name} {getattr(s, name)} does not go with fedvs: {why}; 0 is right")
    made = _completed(s, guests)
    if made is not None:
        return made
    wished = ", ".join(
        f"{name} {value}"
        for name in ("segments", "colluders", "squares", "stragglers")
        if (value := getattr(s, name)) is not None
    )
    for change in ({"squares": 0}, {"stragglers": None}, {"segments": 1}, {"colluders": 1}):
        s = replace(s, **change)
        made = _completed(s, guests)
        if made is not None:
            right = f"segments {made.segments}, colluders {made.colluders}, squares {made.squares}"
            raise UserError(f"{guests} guests cannot have {wished}; {right}, stragglers {made.stragglers} are right")
    raise UserError(f"fedvs shares secrets among 3 guests or more; these are {guests}")


def coded(
    agreement: Agreement, names: Sequence[str], columns: Sequence[Tensor], latent: int, device: torch.device | str
) -> Coding:
    """The smallest field in which no result can wrap, given every guest's columns (rows, columns) to be trained on.

    A result is a sum over N guests, so each keeps its own part within an N-th of the field's positive half. It knows
    the longest of its rows, and so how long its units may be (`PolynomialNet.largest`), rounding included.
    """
    rows = [float(_rounded(own, agreement.data_bits).norm(dim=1).max()) for own in columns]
    nets = [agreement.network(own.shape[1], latent) for own in columns]
    _, places = nets[0].places(agreement.data_bits, agreement.weight_bits)
    for field in _FIELDS:
        most = (field.prime // 2) / (agreement.guests * 2.0**places)
        units = [
            _longest_unit(net, math.hypot(1.0, row), most)
            - _rounding(max(net.in_width, latent) + 1, agreement.weight_bits)
            for net, row in zip(nets, rows, strict=True)
        ]
        if min(units) >= _ROOM:
            code = Code(field, agreement.guests, agreement.segments, agreement.colluders, device)
            return Coding(agreement, code, tuple(rows), tuple(units), places)
    raise UserError(
        f"data_bits {agreement.data_bits} and weight_bits {agreement.weight_bits} make results of {places} binary"
        f" places, beside which the sums of {names[units.index(min(units))]} do not fit into 61 bits; fewer are right"
    )


def _completed(s: FedVSSettings, guests: int) -> Agreement | None:
    """None where there is no such code."""
    squares = s.squares
    if squares is None:
        least = 1 if s.stragglers is None else s.stragglers
        squares = int(threshold(s.segments, s.colluders, degree(1)) + least <= guests)
    possible = guests - threshold(s.segments, s.colluders, degree(squares))
    stragglers = possible if s.stragglers is None else s.stragglers
    if possible < 0 or stragglers > possible:
        return None
    return Agreement(guests, s.segments, s.colluders, stragglers, squares, s.data_bits, s.weight_bits)


def _rounded(x: Tensor, bits: int) -> Tensor:
    return (x.to(torch.float64) * 2.0**bits).round_() * 2.0**-bits


def _rounding(values: int, bits: int) -> float:
    """How much longer a vector of so many values can become by rounding, half a place each at most."""
    return 0.5 * 2.0**-bits * math.sqrt(values)


def _longest_unit(net: PolynomialNet, row: float, most: float) -> float:
    """How long units may be so that outputs stay below `most` for rows, with a 1 for the bias, no longer than `row`."""
    low, high = 0.0, most + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if net.largest(row, middle) <= most else (low, middle)
    return low
