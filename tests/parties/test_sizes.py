"""Every number of the paper's appendix on models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.parties.networks.sizes import between, decoder, encoder, owner_head, sizes

COLUMNS = {
    "credit_card": (5, 6, 6, 6),
    "parkinsons": (55, 84, 182, 432),
    "caltech7": (48, 40, 254, 1984, 512, 928),
    "handwritten": (240, 76, 216, 47, 64, 6),
}


def test_mnist_guests_squeeze_196_to_100_to_80() -> None:
    mnist = sizes("mnist", (196,) * 4)
    net = encoder(196, mnist.guest_hidden[0], mnist.guest_latent[0], mnist.guest_activations)
    assert net.widths == (196, 100, 80)
    assert net.activations == ("leaky_relu", "relu")
    assert len(set(mnist.guest_hidden)) == len(set(mnist.guest_latent)) == 1


def test_mnist_hosts_squeeze_320_to_200_to_160() -> None:
    mnist = sizes("mnist", (196,) * 4)
    assert (sum(mnist.guest_latent), between(320, mnist.host_latent), mnist.host_latent) == (320, 200, 160)
    assert mnist.host_activation == "leaky_relu"


def test_the_mnist_owner_squeezes_640_to_160_to_40_to_10() -> None:
    head = owner_head(sizes("mnist", (196,) * 4), hosts=4, inputs=640, outputs=10)
    assert head.widths == (640, 160, 40, 10)
    assert head.activations == ("leaky_relu", "leaky_relu", "identity")


def test_without_hosts_the_owner_does_a_hosts_squeezing_too() -> None:
    head = owner_head(sizes("mnist", (196,) * 4), hosts=0, inputs=320, outputs=10)
    assert head.widths == (320, 200, 160, 40, 10)
    assert head.activations == ("leaky_relu",) * 3 + ("identity",)


@pytest.mark.parametrize(("w_g", "w_h"), [(g, h) for g in (200, 240, 320, 400) for h in (120, 160, 200)])
def test_the_widths_of_the_papers_ablation_are_met(w_g: int, w_h: int) -> None:
    mnist = sizes("mnist", (196,) * 4, w_g, w_h)
    assert sum(mnist.guest_latent) == w_g
    assert mnist.host_latent == w_h


@pytest.mark.parametrize(
    ("rule", "latents", "w_g", "w_h", "host"),
    [
        ("credit_card", (4, 5, 5, 5), 19, 10, "leaky_relu"),
        ("parkinsons", (13, 21, 45, 108), 187, 46, "relu"),
        ("caltech7", (256,) * 6, 256 * 6, 256, "relu"),
        ("handwritten", (180, 57, 162, 36, 48, 5), 488, 366, "relu"),
    ],
)
def test_tabular_sets_have_the_papers_widths(
    rule: str, latents: tuple[int, ...], w_g: int, w_h: int, host: str
) -> None:
    table = sizes(rule, COLUMNS[rule])
    assert table.guest_latent == latents
    assert sum(table.guest_latent) == w_g
    assert table.host_latent == w_h
    assert table.guest_activations == ("leaky_relu", "leaky_relu")
    assert table.host_activation == host


@pytest.mark.parametrize("rule", COLUMNS)
def test_hidden_widths_of_tabular_guests_follow_the_hosts_rule(rule: str) -> None:
    table = sizes(rule, COLUMNS[rule])
    expected = [(d + 3 * w) // 4 for d, w in zip(COLUMNS[rule], table.guest_latent, strict=True)]
    assert list(table.guest_hidden) == expected


def test_decoders_mirror_their_encoder() -> None:
    mirrored = decoder(encoder(196, 100, 80, ("leaky_relu", "relu")), "sigmoid")
    assert mirrored.widths == (80, 100, 196)
    assert mirrored.activations == ("leaky_relu", "sigmoid")


@given(
    st.sampled_from(["mnist", "table", *COLUMNS]),
    st.lists(st.integers(1, 50), min_size=1, max_size=8),
    st.none() | st.integers(1, 100),
)
def test_any_guests_however_narrow_get_networks_of_at_least_one_unit(
    rule: str, columns: list[int], w_g: int | None
) -> None:
    chosen = sizes(rule, columns, w_g)
    assert len(chosen.guest_hidden) == len(chosen.guest_latent) == len(columns)
    assert min(*chosen.guest_hidden, *chosen.guest_latent, chosen.host_latent) >= 1


def test_an_unknown_rule_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'mnist'"):
        sizes("mnits", (3, 4))
