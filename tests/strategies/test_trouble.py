"""What faults do to a stack: wrong encodings, late messages, recorded outages, and trainings that cannot go on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from split_networks import recorded
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.corruption import Corruption, How
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults, Kind
from dvfl.parties.faults.lateness import Lateness
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.guest import Guest
from dvfl.parties.host import Host
from dvfl.settings.training import Settings
from dvfl.simulation.stack_faults import per_replica, resolved
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl

SEEDS, GUESTS, HOSTS, ROUNDS, BATCH = (5, 11), 4, 2, 10, 64  # 600 rows
WIDTH = 12  # of a guest's encoding
SETTINGS = Settings(hosts=HOSTS, guest_epochs=2, host_epochs=3, owner_epochs=1, validation=0.0, history_dtype="float32")
HOWS = get_args(How)


def wrong(how: How, phase: Any, guest: str = "guest-2") -> Faults:
    return Faults(corruption=Corruption(how, phase, guest))


def epochs_of_phase_1(data: VerticalData, faults: Any, settings: Settings = SETTINGS, **options: Any) -> Dvfl:
    simulation = Dvfl(data, settings, SEEDS, faults=faults, **options)
    while simulation.phase != "owner":
        simulation.advance()
    return simulation


def stored(simulation: Dvfl) -> Tensor:
    """What the guests pushed: (rounds, replicas, guests, rows, latent)."""
    (store,) = simulation.hosts.stores
    return store.batches[: store.capacity].unflatten(1, (len(SEEDS), GUESTS))


def guests(simulation: Dvfl) -> list[Tensor]:
    return [group.guest.learner.parameters for group in simulation.stack.groups if isinstance(group.guest, Guest)]


def check_wrong(how: How, found: Tensor, right: Tensor) -> None:
    """Encodings (.., rows, latent) that are wrong in just that way."""
    if how == "scale":
        assert torch.equal(found, 10 * right)
    elif how == "sign":
        assert torch.equal(found, -right)
    elif how == "permute":  # whole rows have changed places
        assert not torch.equal(found, right)
        for ours, theirs in zip(found.flatten(0, -3), right.flatten(0, -3), strict=True):
            assert sorted(map(tuple, ours.tolist())) == sorted(map(tuple, theirs.tolist()))
    else:
        strength = (found - right).std((-2, -1)) / right.std((-2, -1), correction=0)
        torch.testing.assert_close(strength, torch.ones_like(strength), rtol=0.15, atol=0)


# Wrong encodings.


@pytest.mark.parametrize("how", HOWS)
def test_hosts_are_sent_wrong_encodings_by_that_guest_of_that_replica_alone(digits: VerticalData, how: How) -> None:
    faulty = epochs_of_phase_1(digits, (NO_FAULTS, wrong(how, "hosts")))
    honest = epochs_of_phase_1(digits, NO_FAULTS)
    found, right = stored(faulty), stored(honest)
    check_wrong(how, found[:, 1, 1], right[:, 1, 1])
    found[:, 1, 1] = right[:, 1, 1]
    assert torch.equal(found, right)


@pytest.mark.parametrize("how", HOWS)
def test_a_guest_that_sends_wrong_encodings_learns_as_if_it_did_not(digits: VerticalData, how: How) -> None:
    faulty, honest = (epochs_of_phase_1(digits, faults) for faults in (wrong(how, "hosts"), NO_FAULTS))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(guests(faulty), guests(honest), strict=True))
    assert isinstance(faulty.stack.host, Host) and isinstance(honest.stack.host, Host)
    assert not torch.equal(faulty.stack.host.learner.parameters, honest.stack.host.learner.parameters)


@pytest.mark.parametrize("how", HOWS)
def test_a_fitted_guests_own_encodings_are_left_alone(digits: VerticalData, how: How) -> None:
    encoders = [None, PCA(6, random_state=0), None, None]
    faulty, honest = (
        epochs_of_phase_1(digits, faults, encoders=encoders) for faults in (wrong(how, "hosts"), NO_FAULTS)
    )
    number = [group.members for group in honest.stack.groups].index((1,))
    found, right = (simulation.hosts.stores[number].batches[: 2 * ROUNDS] for simulation in (faulty, honest))
    check_wrong(how, found, right)  # of the second epoch too: wrong once, not twice


def test_what_hosts_are_sent_wrongly_the_owner_is_sent_rightly(digits: VerticalData) -> None:
    simulation = epochs_of_phase_1(digits, wrong("sign", "hosts"))
    right = simulation.stack.encode([guest.train for guest in digits.guests])
    assert torch.equal(simulation.collect(), right)


@pytest.mark.parametrize("how", HOWS)
def test_the_owner_is_sent_wrong_encodings_by_that_guest_of_that_replica_alone(digits: VerticalData, how: How) -> None:
    settings = Settings(hosts=0, guest_epochs=1, owner_epochs=1)
    simulation = epochs_of_phase_1(digits, (NO_FAULTS, wrong(how, "owner")), settings)
    right = simulation.stack.encode([guest.train for guest in digits.guests])
    found = simulation.collect()
    columns = slice(WIDTH, 2 * WIDTH)
    check_wrong(how, found[1:, :, columns], right[1:, :, columns])
    found[1, :, columns] = right[1, :, columns]
    assert torch.equal(found, right)


def test_wrong_encodings_reach_the_owner_through_the_hosts(digits: VerticalData) -> None:
    simulation = epochs_of_phase_1(digits, wrong("sign", "owner"))
    tables = [torch.from_numpy(guest.train) for guest in digits.guests]
    b = simulation.stack.encode_guests(tables)
    b[..., WIDTH : 2 * WIDTH] *= -1
    torch.testing.assert_close(simulation.collect(), simulation.stack.encode_hosts(b))


@pytest.mark.parametrize("how", HOWS)
def test_what_the_owner_is_sent_wrongly_changes_neither_phase_1_nor_test_rows(digits: VerticalData, how: How) -> None:
    faulty, honest = (epochs_of_phase_1(digits, faults) for faults in (wrong(how, "owner"), NO_FAULTS))
    assert torch.equal(stored(faulty), stored(honest))
    for ours, theirs in zip(faulty.stack.learners[:-1], honest.stack.learners[:-1], strict=True):
        assert torch.equal(ours.parameters, theirs.parameters)
    faulty.run()
    encodings = honest.stack.encode([guest.test for guest in digits.guests])
    assert torch.equal(faulty.outputs(), faulty.stack.predict(encodings))


# What hosts hear, round by round.


@dataclass
class Heard:
    """What the hosts were given to train on, one entry a round."""

    inputs: list[Tensor] = field(default_factory=list)  # (replicas, hosts, rows, guests, latent)
    present: list[Tensor | None] = field(default_factory=list)  # (replicas, hosts, guests)
    alive: list[Tensor | None] = field(default_factory=list)  # (replicas, hosts)

    def listen(self, simulation: Dvfl) -> None:
        def step(b: Tensor, rate: Tensor, *, present: Any, alive: Any, **_: Any) -> Tensor:
            self.inputs.append(b.clone().view(len(SEEDS), HOSTS, BATCH, GUESTS, WIDTH))
            self.present.append(None if present is None else present[:, 0].unflatten(0, (len(SEEDS), HOSTS)))
            self.alive.append(None if alive is None else alive.view(len(SEEDS), HOSTS).clone())
            return torch.zeros(len(b))

        assert isinstance(simulation.stack.host, Host)
        simulation.stack.host.step = step  # type: ignore[method-assign]

    def learns(self, t: int, host: int) -> bool:
        up = self.alive[t]
        return up is None or bool(up[:, host].all())

    def of(self, t: int, host: int, guest: int) -> Tensor:
        return self.inputs[t][:, host, :, guest]


def heard(data: VerticalData, faults: Any, settings: Settings = SETTINGS) -> Heard:
    """Two epochs of guests' messages to the hosts."""
    simulation, found = Dvfl(data, settings, SEEDS, faults=faults), Heard()
    found.listen(simulation)
    for _ in range(settings.guest_epochs):
        simulation.advance()
    return found


@pytest.mark.parametrize("late", [1, 3, 13])
def test_a_delay_gives_hosts_the_batch_of_so_many_rounds_ago(digits: VerticalData, late: int) -> None:
    delayed, prompt = heard(digits, Faults(lateness=Lateness(delay=late))), heard(digits, NO_FAULTS)
    for t in range(2 * ROUNDS):
        for host in range(HOSTS):
            assert delayed.learns(t, host) == (t >= late)
        if t >= late:
            assert torch.equal(delayed.inputs[t], prompt.inputs[t - late])


@pytest.mark.parametrize("history_bytes", [None, 64 * 48 * 4 * 7])
def test_what_overtakes_and_comes_twice_leaves_hosts_with_the_newest_that_has_arrived(
    digits: VerticalData, history_bytes: int | None
) -> None:
    lateness = Lateness(reorder=2, duplicate=3)
    settings = Settings(
        hosts=HOSTS, guest_epochs=2, host_epochs=3, owner_epochs=1, history_dtype="float32", history_bytes=history_bytes
    )
    late, prompt = heard(digits, Faults(lateness=lateness), settings), heard(digits, NO_FAULTS, settings)
    ages = set()
    for t in range(2, 2 * ROUNDS):
        for host in range(HOSTS):
            for guest in range(GUESTS):
                found = late.of(t, host, guest)
                for replica in range(len(SEEDS)):
                    made = [
                        age
                        for age in range(min(t, 2) + 1)
                        if torch.equal(found[replica], prompt.of(t - age, host, guest)[replica])
                    ]
                    assert len(made) == 1, "a message late by 0, 1 or 2 rounds, and not the copy of an older one"
                    ages |= set(made)
    assert ages == {0, 1, 2}


def test_recorded_outages_of_guests_links_and_hosts_act_in_their_own_rounds(digits: VerticalData) -> None:
    faults = recorded(
        Outage("guest-2", 3, 6), Outage("guest-3>host-1", 8, 12), Outage("host-2", 14, 15), Outage("guest-4", 18, None)
    )
    troubled, calm = heard(digits, faults), heard(digits, NO_FAULTS)
    newest = {  # the round whose batch a register holds in round t
        **{(t, host, 1): 2 for t in range(3, 6) for host in range(HOSTS)},
        **{(t, 0, 2): 7 for t in range(8, 12)},
        **{(t, host, 3): 17 for t in range(18, 20) for host in range(HOSTS)},
    }
    for t in range(2 * ROUNDS):
        for host in range(HOSTS):
            assert troubled.learns(t, host) == ((t, host) != (14, 1))
            for guest in range(GUESTS):
                if guest == 1 and t >= 6:
                    continue  # it missed three steps of its own, so it encodes otherwise from then on
                made = newest.get((t, host, guest), t)
                assert torch.equal(troubled.of(t, host, guest), calm.of(made, host, guest)), (t, host, guest)


def test_a_guest_that_is_down_makes_no_steps(digits: VerticalData) -> None:
    simulation = epochs_of_phase_1(digits, (recorded(Outage("guest-2", 3, 6), Outage("guest-4", 18, None)), NO_FAULTS))
    (group,) = simulation.stack.groups
    assert isinstance(group.guest, Guest)
    assert group.guest.learner.steps.view(2, GUESTS).tolist() == [[20, 17, 20, 18], [20] * 4]


def test_hosts_are_down_in_rounds_of_replay_too(digits: VerticalData) -> None:
    replayed = 2 * ROUNDS  # the round at which guests have ended
    simulation = epochs_of_phase_1(digits, recorded(Outage("host-1", replayed + 4, replayed + 7)))
    assert isinstance(simulation.stack.host, Host)
    assert simulation.stack.host.learner.steps.view(2, HOSTS).tolist() == [[27, 30]] * 2


# Trainings that cannot go on.


@pytest.mark.parametrize("kind", ["connection", "guest", "host"])
def test_a_training_that_cannot_progress_says_what_would_be_right(digits: VerticalData, kind: Kind) -> None:
    faults = (NO_FAULTS, Faults((Fault(kind, 1, 0),)))
    with pytest.raises(UserError) as error:
        Dvfl(digits, SETTINGS, SEEDS, faults=faults).run()
    assert str(error.value) == (
        f"training cannot progress: with seed 11 every {kind} is dead for good (R_u is 0, or a recorded outage has no"
        " end); --faults that let the dead rejoin are right"
    )


@pytest.mark.parametrize(
    ("kind", "parties"),
    [
        ("guest", [f"guest-{n}" for n in (1, 2, 3, 4)]),
        ("host", ["host-1", "host-2"]),
        ("connection", [f"guest-{g}>host-{h}" for g in (1, 2, 3, 4) for h in (1, 2)]),
    ],
)
def test_recorded_outages_that_never_end_stop_a_training_once_they_have_everybody(
    digits: VerticalData, kind: str, parties: Sequence[str]
) -> None:
    simulation = Dvfl(digits, SETTINGS, SEEDS, faults=recorded(*(Outage(party, ROUNDS, None) for party in parties)))
    simulation.advance()
    with pytest.raises(UserError, match=f"with seed 5 every {kind} is dead"):
        simulation.advance()


def test_one_that_is_left_is_enough_to_go_on(digits: VerticalData) -> None:
    faults = recorded(*(Outage(f"guest-{number}", 0, None) for number in (1, 2, 3)), Outage("host-1", 0, None))
    simulation = Dvfl(digits, SETTINGS, SEEDS, faults=faults)
    simulation.run()
    assert np.isfinite(simulation.scores()).all()


# Who is not there.


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("party", ["guest-5", "host-9", "guest-1>host-9", "guest-9>host-1", "owner"])
def test_outages_of_unknown_parties_are_refused(digits: VerticalData, name: str, party: str) -> None:
    strategy = STRATEGIES[name]
    with pytest.raises(UserError, match=f"--faults recorded:record: there is no party '{party}'; guests: guest-1, "):
        strategy(digits, strategy.settings(), SEEDS, faults=(NO_FAULTS, recorded(Outage(party, 0, 1))))


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_knows_its_guests_its_host_and_their_links(digits: VerticalData, name: str) -> None:
    strategy = STRATEGIES[name]
    parties = ("guest-1", "host-1", "guest-4>host-1")
    strategy(digits, strategy.settings(), SEEDS, faults=recorded(*(Outage(party, 5, 6) for party in parties)))


def test_a_wrong_guest_that_is_not_there_is_refused(digits: VerticalData) -> None:
    with pytest.raises(UserError, match="--faults corrupt:sign:owner:guest-5: there is no guest 'guest-5'; guests: "):
        Dvfl(digits, SETTINGS, SEEDS, faults=wrong("sign", "owner", "guest-5"))


def test_faults_are_one_for_all_replicas_or_one_each() -> None:
    faults = wrong("sign", "owner")
    assert per_replica(faults, 3) == (faults, faults, faults)
    assert per_replica([NO_FAULTS, faults], 2) == (NO_FAULTS, faults)
    with pytest.raises(ValueError, match="2 faults for 3 replicas"):
        per_replica([NO_FAULTS, faults], 3)


def test_a_guest_is_known_by_its_number_as_by_its_own_name() -> None:
    outages = Outages("o.csv", (Outage("guest-1", 0, 5), Outage("guest-2>host-1", 1, 2), Outage("host-1", 3, None)))
    given = Faults(outages=outages, corruption=Corruption("sign", "hosts", "guest-2"))
    (known,) = resolved([given], ["bank", "insurer"], ["host-1"])
    assert known.outages is not None and known.corruption is not None
    assert [row.party for row in known.outages.rows] == ["bank", "insurer>host-1", "host-1"]
    assert known.corruption.guest == "insurer"


def test_a_guests_own_name_comes_before_its_number() -> None:
    given = Faults(corruption=Corruption("sign", "hosts", "guest-1"))
    (known,) = resolved([given], ["guest-2", "guest-1"], ["host-1"])
    assert known.corruption == given.corruption
