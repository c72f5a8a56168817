"""Short trainings of small stacks, and what a replica must be: its seed trained alone."""

from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults
from dvfl.parties.guest import Guest
from dvfl.parties.host import Host
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl

SEEDS = (5, 11)
FAULTS = {
    "none": NO_FAULTS,
    "connection": Faults((Fault("connection", 0.3, 0.1),)),
    "guest": Faults((Fault("guest", 0.3, 0.1),)),
    "host": Faults((Fault("host", 0.3, 0.1),)),
    "all": Faults((Fault("connection", 0.3, 0.5), Fault("guest", 0.1, 0.1), Fault("host", 0.3, 0.1))),
}
QUICK = Settings(
    hosts=2,
    batch=32,
    guest_epochs=4,
    host_epochs=8,
    owner_epochs=15,
    guest_rule=Adam(1e-2),
    host_rule=Adam(1e-2),
    owner_rule=Adam(5e-3),
    standardise=True,
    validation=0.0,
)
LEARNED = 65  # percent; a guess gets 10
SOMETHING = 30  # where guests are down most of so short a training


def learned(simulation: Dvfl) -> dict[str, Tensor]:
    """Every party's parameters, (replicas, ..)."""
    replicas, stack = len(simulation.stack.seeds), simulation.stack
    parties = {
        f"guests {group.members}": group.guest.learner.parameters
        for group in stack.groups
        if isinstance(group.guest, Guest)
    }
    if isinstance(stack.host, Host):
        parties["hosts"] = stack.host.learner.parameters
    parties["owner"] = stack.owner.learner.parameters
    return {name: parameters.clone().unflatten(0, (replicas, -1)) for name, parameters in parties.items()}


def trained(data: VerticalData, settings: Settings, seeds: tuple[int, ...] = SEEDS, **options: object) -> Dvfl:
    simulation = Dvfl(data, settings, seeds, **options)  # type: ignore[arg-type]
    simulation.run()
    return simulation


def check_replica_is_itself(
    data: VerticalData, settings: Settings, faults: Faults, number: int, **options: object
) -> None:
    stack = trained(data, settings, faults=faults, **options)
    alone = trained(data, settings, (SEEDS[number],), faults=faults, **options)
    for name, ours in learned(alone).items():
        theirs = learned(stack)[name][number]
        assert (ours[0] - theirs).norm() <= 1e-4 * theirs.norm(), name
    assert alone.scores()[0] == stack.scores()[number]
