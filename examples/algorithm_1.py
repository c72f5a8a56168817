"""Algorithm 1 of "Decoupled Vertical Federated Learning" (DVFL-NN) in ordinary PyTorch, to read beside the paper.

A comment such as `guest 3` names line 3 of the paper's guest training round; `host` and `owner` name the other parts.
Parties that the paper runs in parallel take turns here. Nothing fails and no message is lost.

    python examples/algorithm_1.py
"""

from collections.abc import Sequence

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.optim import SGD, Adam, Optimizer


class Autoencoder(nn.Module):
    """A guest or a host. Its encodings are sent on; its decoder only serves its own loss."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder


Parties = Sequence[Autoencoder]
Tables = Sequence[Tensor]  # one a guest: (rows, columns)
Registers = list[list[Tensor]]  # B[i][j]: the newest message of guest i at host j
ReplayBuffers = list[list[Tensor]]  # A[i]: all inputs of host i so far
Epochs = Sequence[Sequence[Tensor]]  # the row numbers of each batch of each epoch


def run_guest_round(
    guests: Parties, optimizers: Sequence[Optimizer], tables: Tables, rows: Tensor, B: Registers, communicate: bool
) -> None:
    """Runs one guest training round on the given rows of each guest's own table."""
    for i, guest in enumerate(guests):  # guest 1
        x = tables[i][rows]  # guest 2
        code = guest.encoder(x)  # guest 3
        if communicate:  # guest 4
            for j in range(len(B[i])):  # guest 5
                B[i][j] = code.detach()  # guest 6: no gradient flows back through a register
        loss = mse_loss(guest.decoder(code), x)  # guest 9
        update(optimizers[i], loss)  # guest 10


def run_host_round(
    hosts: Parties, optimizers: Sequence[Optimizer], B: Registers, A: ReplayBuffers, t: int, communicate: bool
) -> None:
    """Runs the host training round number `t`, counted from 0."""
    for i, host in enumerate(hosts):  # host 1
        if communicate:  # host 2
            received = [registers[i] for registers in B]  # host 3
            A[i].append(torch.cat(received, dim=1))  # host 4
        b = A[i][t % len(A[i])]  # host 6: the input just appended, or from the front again once guests are done
        code = host.encoder(b)  # host 7
        loss = mse_loss(host.decoder(code), b)  # host 8
        update(optimizers[i], loss)  # host 9


def update(optimizer: Optimizer, loss: Tensor) -> None:
    """Takes one step along the gradient of a party's own loss."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train_guests_and_hosts(
    guests: Parties,
    hosts: Parties,
    tables: Tables,
    epochs: Epochs,
    host_epochs: int,
    period: int = 1,
    rate: float = 2e-3,
    weight_decay: float = 1e-5,
) -> None:
    """Trains without labels. Guests communicate in every `period`-th epoch (the paper's K).

    Hosts train in communication rounds. Then they replay their buffers until they have made `host_epochs` (appendix on
    periodic communication).
    """
    guest_optimizers = [Adam(guest.parameters(), rate, weight_decay=weight_decay) for guest in guests]
    host_optimizers = [Adam(host.parameters(), rate, weight_decay=weight_decay) for host in hosts]
    B: Registers = [[torch.empty(0)] * len(hosts) for _ in guests]
    A: ReplayBuffers = [[] for _ in hosts]
    t = 0
    for number, batches in enumerate(epochs, start=1):  # owner 1 and 4
        communicate = number % period == 0
        for rows in batches:
            run_guest_round(guests, guest_optimizers, tables, rows, B, communicate)  # owner 2
            if communicate:
                run_host_round(hosts, host_optimizers, B, A, t, communicate=True)  # owner 3
                t += 1
    while t < host_epochs * len(epochs[0]):
        run_host_round(hosts, host_optimizers, B, A, t, communicate=False)  # owner 3, after the guests' last round
        t += 1


@torch.no_grad()
def encode(guests: Parties, hosts: Parties, features: Sequence[Tensor]) -> Tensor:
    """Passes the guests' features of the same entities through guests and hosts to the owner."""
    sent = [guest.encoder(x) for guest, x in zip(guests, features, strict=True)]  # owner 7 to 9
    messages = []
    for host in hosts:  # owner 11
        b = torch.cat(sent, dim=1)  # owner 12
        messages.append(host.encoder(b))  # owner 13 and 14
    return torch.cat(messages, dim=1)  # owner 16


def train_owner(
    head: nn.Module, guests: Parties, hosts: Parties, tables: Tables, labels: Tensor, epochs: Epochs, rate: float = 8e-2
) -> None:
    """Trains the owner's head on labelled entities, which all guests have; guests and hosts stay as they are."""
    optimizer = SGD(head.parameters(), rate)
    for batches in epochs:  # owner 5 and 21
        for rows in batches:  # owner 6: a batch of entities at a time
            encodings = encode(guests, hosts, [table[rows] for table in tables])  # owner 7 to 16
            scores = head(encodings)  # owner 17
            loss = cross_entropy(scores, labels[rows])  # owner 18
            update(optimizer, loss)  # owner 19


# The models of the paper's appendix for MNIST.


def make_guest(columns: int, hidden: int, latent: int) -> Autoencoder:
    """Makes a guest for values in [0, 1]; on MNIST it has 784 / G columns, 400 / G hidden units and W_g / G outputs."""
    encoder = nn.Sequential(nn.Linear(columns, hidden), nn.LeakyReLU(), nn.Linear(hidden, latent), nn.ReLU())
    decoder = nn.Sequential(nn.Linear(latent, hidden), nn.LeakyReLU(), nn.Linear(hidden, columns), nn.Sigmoid())
    return Autoencoder(encoder, decoder)


def make_host(w_g: int, w_h: int) -> Autoencoder:
    """Makes a host that reads W_g values and sends W_h."""
    hidden = (w_g + 3 * w_h) // 4
    encoder = nn.Sequential(nn.Linear(w_g, hidden), nn.LeakyReLU(), nn.Linear(hidden, w_h), nn.LeakyReLU())
    decoder = nn.Sequential(nn.Linear(w_h, hidden), nn.LeakyReLU(), nn.Linear(hidden, w_g), nn.ReLU())
    return Autoencoder(encoder, decoder)


def make_head(hosts: int, w_h: int, classes: int) -> nn.Module:
    """Makes the owner's head, whose loss has the softmax."""
    return nn.Sequential(
        nn.Linear(hosts * w_h, w_h), nn.LeakyReLU(), nn.Linear(w_h, 40), nn.LeakyReLU(), nn.Linear(40, classes)
    )


def main() -> None:
    """Trains on 8 x 8 digits in 4 strips of 2 rows of pixels, for the paper's epochs, and prints the test accuracy."""
    torch.manual_seed(0)
    images, digits = load_digits(return_X_y=True)
    shuffled = torch.randperm(len(digits))
    train, test = shuffled[:1400], shuffled[1400:]
    strips = torch.tensor(images / 16, dtype=torch.float32).split(16, dim=1)
    labels = torch.tensor(digits)

    w_g, w_h = 80, 40
    guests = [make_guest(columns=16, hidden=25, latent=w_g // 4) for _ in range(4)]
    hosts = [make_host(w_g, w_h) for _ in range(2)]
    head = make_head(len(hosts), w_h, classes=10)

    tables = [strip[train] for strip in strips]
    train_guests_and_hosts(guests, hosts, tables, draw_batches(len(train), epochs=20), host_epochs=40)
    train_owner(head, guests, hosts, tables, labels[train], draw_batches(len(train), epochs=60))

    scores = head(encode(guests, hosts, [strip[test] for strip in strips]))
    correct = scores.argmax(dim=1) == labels[test]
    print(f"test accuracy {100 * correct.float().mean():.1f} %")


def draw_batches(rows: int, epochs: int, batch: int = 64) -> Epochs:
    """Draws the row numbers of some epochs' batches, each epoch in an order of its own."""
    return [torch.randperm(rows).split(batch) for _ in range(epochs)]


if __name__ == "__main__":
    main()
