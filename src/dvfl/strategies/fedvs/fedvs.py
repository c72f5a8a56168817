"""FedVS: guests compute on secret shares of each other's columns, and the server decodes the sum of their outputs.

Li, Yao and Liu, "FedVS: straggler-resilient and privacy-preserving vertical federated learning for split models" (ICML
2023). There, every client rounds its columns into a prime field, cuts the rows into K segments and shares them once by
Lagrange coding with T random masks (`lagrange`); it shares its rounded weights in every round. Each client
evaluates the polynomial networks of all clients on the shares it holds and sends the sum. That is a value of a
polynomial whose degree is K + T - 1 times the networks' degree in columns and weights together, so any degree + 1
results give the sums of all clients' outputs for all K segments, and L = N - (degree + 1) clients may be missing. T
clients that put their shares together learn nothing; the server sees sums alone. It goes on with a head of its own and
sends everybody the gradient of the sum; each client takes its step on its own columns.

The DVFL paper trains no FedVS. It cites accuracies read off the graphs of the FedVS paper, without faults: 81.99 on
Credit Card, 81.83 on Parkinson's, 95.98 on CalTech-7, 98.25 on Handwritten.

Where this one differs. The networks are ours: one linear layer to a common width (32), its outputs squared inside the
code where six guests or more leave room for that (degree 4, with a straggler to spare), on columns and their squares
where they do not (degree 2; agreement.py). Sums are added up, not averaged. Weights are rounded to the nearest. A guest
or connection that is down in a round withholds that guest's result. Up to L of them change nothing; more, or a server
that is down, and the round cannot be decoded: the training stalls, as `splitnn-wait` does. Shares travel while guests
are up, right after an update; a guest that gets no gradient skips its step, and its shares stay good. Test rows and
held-out rows go through the code too, and meet no faults.
"""

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data.split.vertical import VerticalData, intersection
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import NO_FAULTS
from dvfl.parties.numerics.operations import Activation
from dvfl.parties.numerics.randomness import bits
from dvfl.settings.training import FedVSSettings
from dvfl.simulation.cpu_threads import suited
from dvfl.simulation.replica_data import GivenData, ReplicaData, with_common_labels
from dvfl.simulation.rounds import Round
from dvfl.simulation.simulation import FLOAT32, Flow
from dvfl.simulation.stack_faults import PerReplica
from dvfl.strategies.fedvs.code import Coding, agree, coded
from dvfl.strategies.fedvs.coded_parties import Clients, Server, shared
from dvfl.strategies.fedvs.polynomials import PolynomialNet, degree
from dvfl.strategies.split.split_training import EndToEnd, Masks
from dvfl.strategies.split.splitnn import Requests, both

WIDTH = 32  # of the sum, unless w_g says otherwise
_VALUES_AT_ONCE = 1 << 20  # of one intermediate tensor while whole tables are evaluated


class FedVS(EndToEnd):
    """One stacked simulation."""

    settings: FedVSSettings

    def __init__(
        self,
        data: GivenData,
        settings: FedVSSettings | Sequence[FedVSSettings],
        seeds: Sequence[int],
        *,
        faults: PerReplica = NO_FAULTS,
        device: torch.device | str = "cpu",
    ) -> None:
        given = ReplicaData(with_common_labels(data), len(seeds))
        self._each = [intersection(one) for one in given.distinct()]
        data = self._each[0]
        guests = len(data.guests)
        each = [settings] * len(seeds) if isinstance(settings, FedVSSettings) else list(settings)
        each = [replace(one, w_g=one.w_g or guests * WIDTH) for one in each]
        if each[0].copies:
            raise UserError(f"copies {each[0].copies}: fedvs codes the rows as they are; 0 is right")
        self.agreement = agree(each[0], guests)
        self.segments = self.agreement.segments
        if self.segments > data.rows:
            raise UserError(
                f"segments {self.segments}: at most {data.rows}, the training rows of {data.name}, is right"
            )
        columns = [
            [self.agreement.columns(torch.from_numpy(one.guests[guest].train)) for one in self._each]
            for guest in range(guests)
        ]
        latent = max(1, (each[0].w_g or 0) // guests)
        # Replicas with data of their own share one code, in which the longest row of all fits; each rounds for itself.
        names, longest = [guest.name for guest in data.guests], [torch.cat(own) for own in columns]
        self.coding = coded(self.agreement, names, longest, latent, device)
        self._own_codings = [coded(self.agreement, names, one, latent, device) for one in zip(*columns, strict=True)]
        rounded = [
            [coding.rounded(one, guest) for coding, one in zip(self._own_codings, own, strict=True)]
            for guest, own in enumerate(columns)
        ]
        algorithm = CodedRounds(self.coding, rounded)
        coded_data = [self._with_tables(number, rounded) for number in range(len(self._each))]
        super().__init__(
            coded_data[0] if given.shared else coded_data,
            each,
            seeds,
            algorithm=algorithm,
            faults=faults,
            device=device,
        )
        self.data = data  # as it was given: reports and resumed runs know it so
        self.clients, self.server = algorithm.clients, algorithm.server

    def network(
        self, columns: int, hidden: int, latent: int, activations: tuple[Activation, Activation]
    ) -> PolynomialNet:
        """A guest's."""
        return self.agreement.network(columns, latent)

    def advance(self) -> None:
        super().advance()
        shortened = int(self.clients.shortened.sum()) if self.finished else 0
        if shortened:
            warnings.warn(
                f"fedvs: units' weights were too long for the field and were shortened, {shortened} times in all;"
                " fewer data_bits or weight_bits are right",
                stacklevel=2,
            )

    @torch.no_grad()
    def outputs(self, guests: Collection[int] | None = None) -> Tensor:
        """The trained model's outputs for the test rows, coded as in training: (replicas, test rows, outputs)."""
        if guests is not None:
            raise ValueError("fedvs decodes the sum of all guests; without one there is nothing to predict from")
        with suited(self.device, self.rows.batch * max(learner.parameters.numel() for learner in self.model.learners)):
            return self.predict(self._sums([[guest.test for guest in one.guests] for one in self._each]))

    def predict(self, sums: Tensor) -> Tensor:
        """What the server makes of sums (replicas, rows, latent): (replicas, rows, outputs)."""
        return self.server.predict(sums) * self.model.target_spread + self.model.target_centre

    def sums(self, tables: Sequence[Tensor]) -> Tensor:
        """What the server decodes of aligned tables, (rows, columns) a guest: (replicas, rows, latent)."""
        own = [table.cpu().numpy() for table in tables]
        return self._sums([own] * len(self._each))

    def rounded(self, tables: Sequence[Tensor]) -> list[Tensor]:
        """Aligned tables as guests' networks read them: (replicas, rows, columns), or (rows, columns) for all alike."""
        made = []
        for guest, table in enumerate(tables):
            own = self.agreement.columns(table.cpu())
            each = [coding.rounded(own, guest) for coding in self._own_codings]
            made.append(torch.stack(each) if len(each) > 1 else each[0])
        return made

    def read(self, rows: Tensor, t: Round) -> Tensor:
        numbers = rows.cpu().numpy()
        return self._sums([[guest.train[numbers] for guest in one.guests] for one in self._each])

    def flows(self) -> list[Flow]:
        """Shares of columns once; in every round shares of weights, a result, and a gradient back."""
        rounds, element = self.rows.iterations * self.epoch, self.coding.field.storage.itemsize
        others, latent = self.agreement.guests - 1, self.model.latents[0]
        sizes = {guest: group.net for group in self.model.groups for guest in group.members}
        flows = []
        for guest, name in enumerate(self.guest_names):
            weights = others * sizes[guest].size
            sent = rounds * (weights + self.rows.batch // self.segments * latent) * element / 1e6
            flows.append(Flow(name, "other guests, host-1", "in training", rounds * (others + 1), sent, "guests"))
            columns = others * self.rows.rows * sizes[guest].in_width * element / 1e6
            flows.append(Flow(name, "other guests", "once, before it", others, columns, "guests"))
            back = rounds * self.rows.batch * latent * FLOAT32 / 1e6
            flows.append(Flow("host-1", name, "in training", rounds, back, "back"))
        return flows

    def _epoch(self) -> None:
        rounds = self.rows.iterations
        self.feed.load("sharing", self.epoch * rounds + np.arange(rounds))
        super()._epoch()

    def _score(self, held: Tensor) -> Tensor:
        coded_rows = self.rows.first(held)
        weights = self.clients.share_weights(-1 - self.epoch)
        scores = []
        for rows in coded_rows.split(self._rows_at_once(), 1):
            sums = self.server.decode(self.clients.answer(weights, self.clients.held(rows)), self._decoding)
            scores.append(self.server.score(sums, self.rows.followed(rows)) * rows.shape[1])
        return torch.stack(scores).sum(0) / coded_rows.shape[1]

    def _sums(self, tables: Sequence[Sequence[NDArray[np.float32]]]) -> Tensor:
        """The decoded sums of the guests' outputs for tables of each of the data: (replicas, rows, latent)."""
        rows, replicas = len(tables[0][0]), len(self.seeds)
        filled = -(-rows // self.segments) * self.segments  # rows of zeros complete the last segment
        shares = []
        for group in self.model.groups:
            each = []
            for guest in group.members:
                own = [self._shares(guest, number, one[guest], filled) for number, one in enumerate(tables)]
                each.append(torch.stack(own))
            shares.append(torch.stack(each, 2).flatten(1, 2))  # (data, clients x members, coded rows, columns)
        weights = self.clients.share_weights(-1 - self.settings.epochs)
        sums = []
        for start in range(0, filled // self.segments, self._rows_at_once()):
            pieces = [share[:, :, start : start + self._rows_at_once()] for share in shares]
            inputs = [piece.expand(replicas, -1, -1, -1).flatten(0, 1) for piece in pieces]
            decoded = self.server.decode(self.clients.answer(weights, inputs), self._decoding)
            sums.append(decoded.unflatten(1, (self.segments, -1)))
        return torch.cat(sums, 2).flatten(1, 2)[:, :rows]

    def _with_tables(self, number: int, rounded: Sequence[Sequence[Tensor]]) -> VerticalData:
        """One of the data, with the columns that its guests share in place of their own."""
        one = self._each[number]
        tables = [replace(guest, train=own[number].numpy()) for guest, own in zip(one.guests, rounded, strict=True)]
        return replace(one, guests=tuple(tables))

    def _shares(self, guest: int, number: int, table: NDArray[np.float32], filled: int) -> Tensor:
        """Every client's share of a guest's rows that it was not trained with: (clients, coded rows, columns)."""
        own = self.agreement.columns(torch.from_numpy(table))
        own = torch.nn.functional.pad(self._own_codings[number].rounded(own, guest), (0, 0, 0, filled - len(own)))
        return shared(self.coding, own, bits(self.seeds[number], "test columns", guest), self.device)

    @property
    def _decoding(self) -> Tensor:
        """Where everyone answers."""
        everyone = self.coding.code.decoding(range(self.agreement.guests), degree(self.agreement.squares))
        return everyone.expand(len(self.seeds), -1, -1).to(self.device)

    def _rows_at_once(self) -> int:
        widest = max(group.net.in_width * len(group.members) for group in self.model.groups)
        return max(16, _VALUES_AT_ONCE // (len(self.seeds) * self.agreement.guests * widest))


class CodedRounds:
    """One round of FedVS."""

    summed, apart = True, False
    repeated: NDArray[np.int64] | None = None

    def __init__(self, coding: Coding, columns: Sequence[Sequence[Tensor]]) -> None:
        self._coding, self._columns = coding, columns
        self._known: dict[tuple[int, ...], NDArray[np.int64]] = {}

    def open(self, training: EndToEnd) -> None:
        self._training, self._requests = training, Requests(training)
        self._stalled = np.full(len(training.seeds), -1, np.int64)
        model, coding = training.model, self._coding
        self.clients = Clients(coding, model.groups, training.tables, self._columns, training.seeds, training.device)
        self.server = Server(coding.code, coding.scale, model.supervision, model.host, training.rows)

    @property
    def stalled(self) -> list[int | None]:
        return [int(at) if at >= 0 else None for at in self._stalled]

    def masks(self, start: int, count: int) -> Masks:
        """Whose result was `heard`, who was `told` back (rounds, replicas, guests), who did `learn` (rounds, replicas).

        And `decoding`, what each result adds to each segment (rounds, replicas, segments, guests): nothing of a round
        that cannot be decoded, which is where a replica stalls for good.
        """
        if not self._requests:
            return {}
        shape = (count, *self._requests.shape)
        heard, told, learn = np.zeros(shape, bool), np.zeros(shape, bool), np.zeros(shape[:2], bool)
        decoding = np.zeros((*shape[:2], self._coding.agreement.segments, shape[2]), np.int64)
        for number in range(count):
            t, going = start + number, self._stalled < 0
            asked = np.repeat(going[:, None], shape[2], 1)
            reached = self._requests.reach(t, asked)
            up = self._requests.host_up(t, going)
            learn[number] = through = up & ((asked & ~reached).sum(1) <= self._coding.agreement.stragglers)
            heard[number] = reached & through[:, None]
            told[number] = self._requests.reach(t, np.repeat(through[:, None], shape[2], 1))
            self._stalled[going & ~through] = t
            for replica in np.flatnonzero(through):
                decoding[number, replica] = self._coefficients(tuple(np.flatnonzero(heard[number, replica]).tolist()))
        return {"heard": heard, "told": told, "learn": learn, "decoding": decoding}

    def check(self, going: NDArray[np.bool_]) -> None:
        """Who lacks results stalls."""

    def part(self, replicas: slice) -> Callable[[Round], Tensor]:
        run, masked = self._training, self._training.masked
        feed, clients, server = run.feed, self.clients.part(replicas), self.server.part(replicas)
        alive = run.alive(replicas)  # not stopped early
        guests_alive = None if alive is None else alive[:, None].expand(-1, self._coding.agreement.guests)
        everyone = torch.from_numpy(self._coefficients(tuple(range(self._coding.agreement.guests)))).to(run.device)
        everyone = everyone.expand(replicas.stop - replicas.start, -1, -1)

        def body(t: Round) -> Tensor:
            rows = run.rows.at(feed, t)
            weights = clients.share_weights(feed.at("sharing", t))
            results = clients.answer(weights, clients.held(run.rows.first(rows)))
            decoding, learn, told = everyone, alive, guests_alive
            if masked:
                heard, decoding = feed.at("heard", t)[replicas], feed.at("decoding", t)[replicas]
                results = results.masked_fill(~heard[..., None, None], 0)  # what is missing does not reach the server
                learn, told = both(feed.at("learn", t)[replicas], learn), both(feed.at("told", t)[replicas], told)
            sums = server.decode(results, decoding)
            loss, dx = server.learn(sums, rows[replicas], run.keep(t, replicas))
            dx = dx if run.defence is None else run.defence.sent(dx, t, replicas)
            server.update(run.rate("host rate", t, replicas), learn)
            clients.learn(rows, dx, run.rate("guest rate", t, replicas), told)
            return loss if learn is None else loss * learn

        return body

    def state(self) -> dict[str, Tensor]:
        requests = {f"requests.{key}": value for key, value in self._requests.state().items()}
        return {**requests, "stalled": torch.from_numpy(self._stalled.copy())}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._requests.restore({key.removeprefix("requests."): v for key, v in state.items() if "requests." in key})
        self._stalled = state["stalled"].numpy().copy()

    def _coefficients(self, heard: tuple[int, ...]) -> NDArray[np.int64]:
        """What the results of those who were heard add to each segment: (segments, guests)."""
        if heard not in self._known:
            decoding = self._coding.code.decoding(heard, degree(self._coding.agreement.squares))
            self._known[heard] = decoding.numpy()
        return self._known[heard]
