"""The networks that the sizing rules give each party, with what they learn from, simulated or real."""

from dvfl.parties.networks.modules import Net
from dvfl.parties.networks.projector import Projector
from dvfl.parties.networks.sizes import Sizes, between, decoder, encoder, leaky, owner_head
from dvfl.parties.numerics.operations import Activation
from dvfl.parties.objectives.adversary import Adversarial
from dvfl.parties.objectives.contrastive import Contrastive
from dvfl.parties.objectives.objective import CrossEntropy, Objective, Reconstruction, SquaredError, Supervision

_PROJECTED = (50, 50, 50)  # the paper's projector, after the latent that it reads
_ATTACKING = (128,)  # hidden widths of the decoder that a guest learns against


def guest_objective(
    sizes: Sizes, guest: int, columns: int, *, unit: bool, temperature: float | None = None, adversary: float = 0.0
) -> Objective:
    """Of the guest with this number; `unit`: its values lie in [0, 1]. A `temperature`: SimCLR's, no reconstruction.

    `adversary`: the weight of a decoder that it learns against beside SimCLR; 0: none.
    """
    net = encoder(columns, sizes.guest_hidden[guest], sizes.guest_latent[guest], sizes.guest_activations)
    if temperature is not None:
        return _comparing(net, temperature, adversary)
    return Reconstruction(net, decoder(net, _guest_output(unit)))


def own_objective(net: Net, *, unit: bool, temperature: float | None = None, adversary: float = 0.0) -> Objective:
    """Of a guest with a network of the user's own."""
    if temperature is not None:
        return _comparing(net, temperature, adversary)
    hidden = max(net.out_width, net.in_width // 2)
    mirrored = encoder(net.in_width, hidden, net.out_width, ("leaky_relu", "identity"))
    return Reconstruction(net, decoder(mirrored, _guest_output(unit)))


def host_objective(
    sizes: Sizes, joint: int, *, known_encoders: bool = True, temperature: float | None = None
) -> Objective:
    """Of a host that reads `joint` (W_g) values. `known_encoders`: all guests have the encoders of the sizing rule."""
    net = encoder(joint, between(joint, sizes.host_latent), sizes.host_latent, (sizes.host_activation,) * 2)
    if temperature is not None:
        return _contrastive(net, temperature)
    # What guests end in a ReLU is never negative, and the decoder need not make it so (the paper's host decoder).
    output: Activation = "relu" if known_encoders and sizes.guest_activations[1] == "relu" else "identity"
    return Reconstruction(net, decoder(net, output))


def owner_supervision(
    sizes: Sizes, hosts: int, inputs: int, classes: int, hidden: tuple[int, ...] | None, smoothing: float = 0.0
) -> Supervision:
    """Of an owner that reads `inputs` values; no class: a regression. `hidden` overrides the rule's hidden widths."""
    head = owner_head(sizes, hosts, inputs, max(1, classes))
    if hidden is not None:
        head = leaky((head.in_width, *hidden, head.out_width))
    return CrossEntropy(head, smoothing) if classes else SquaredError(head)


def _comparing(net: Net, temperature: float, adversary: float) -> Objective:
    """Of a guest that learns by SimCLR."""
    contrastive = _contrastive(net, temperature)
    return Adversarial(contrastive, _adversary(net), adversary) if adversary else contrastive


def _adversary(net: Net) -> Net:
    """What attacks an encoder's output."""
    return Projector((net.out_width, *_ATTACKING, net.in_width))


def _contrastive(net: Net, temperature: float) -> Contrastive:
    return Contrastive(net, Projector((net.out_width, *_PROJECTED)), temperature)


def _guest_output(unit: bool) -> Activation:
    """What a guest's decoder ends in."""
    return "sigmoid" if unit else "identity"
