"""What rounding costs FedVS: the same polynomial networks in plain float32, and coded with fewer and fewer bits.

    python benchmarks/fedvs_quantisation.py --dataset handwritten --data-dir DIR

Prints a table: test accuracy of both, the difference paired by seed, and how often the class that both give a row is
the same. The plain twin starts from the same weights, meets the same rows in the same order, and rounds nothing.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from dvfl.data import VerticalData, load
from dvfl.parties.numerics.operations import Activation
from dvfl.settings.training import FedVSSettings
from dvfl.strategies.fedvs.code import Agreement
from dvfl.strategies.fedvs.fedvs import FedVS
from dvfl.strategies.fedvs.polynomials import PolynomialNet
from dvfl.strategies.presets import preset
from dvfl.strategies.split.split_training import EndToEnd
from dvfl.strategies.split.vfb2 import Vfb2

BITS = ("8:14", "6:12", "4:10", "4:8", "3:6", "2:5", "2:4", "1:3", "1:2", "1:1")  # of columns, of weights


class Plain(EndToEnd):
    """The networks of a coded training, summed in the clear."""

    def __init__(self, data: VerticalData, coded: FedVS) -> None:
        self._agreement: Agreement = coded.agreement
        tables = []
        for guest in data.guests:
            train, test = (
                coded.agreement.columns(torch.from_numpy(part)).numpy() for part in (guest.train, guest.test)
            )
            tables.append(replace(guest, train=train, test=test))
        super().__init__(
            replace(data, guests=tuple(tables)), coded.settings, coded.seeds, algorithm=Vfb2(), device=coded.device
        )

    def network(
        self, columns: int, hidden: int, latent: int, activations: tuple[Activation, Activation]
    ) -> PolynomialNet:
        return self._agreement.network(columns, latent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--preset", default="tuned")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--bits", nargs="+", default=BITS, metavar="COLUMNS:WEIGHTS")
    given = parser.parse_args()
    data = load(given.dataset, data_dir=given.data_dir)
    settings = preset(given.preset, data, "fedvs")
    assert isinstance(settings, FedVSSettings)
    if given.epochs is not None:
        settings = replace(settings, epochs=given.epochs)
    seeds = range(given.seeds)
    plain = Plain(data, FedVS(data, settings, seeds, device=given.device))
    plain.run()
    answers, accuracy = plain.outputs().argmax(-1), plain.scores()
    titles = ("bits of columns", "of weights", "field", "accuracy, %", "2 sigma", "minus plain", "2 standard errors")
    print(f"| {' | '.join(titles)} | same answer, % |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    print(f"| float32 | float32 | none | {accuracy.mean():.2f} | {2 * accuracy.std(ddof=1):.2f} | | | |", flush=True)
    for data_bits, weight_bits in (map(int, text.split(":")) for text in given.bits):
        coded = FedVS(data, replace(settings, data_bits=data_bits, weight_bits=weight_bits), seeds, device=given.device)
        coded.run()
        scores = coded.scores()
        apart = scores - accuracy
        same = (coded.outputs().argmax(-1) == answers).double().mean() * 100
        print(
            f"| {data_bits} | {weight_bits} | 2^{coded.coding.field.exponent} - 1 | {scores.mean():.2f} |"
            f" {2 * scores.std(ddof=1):.2f} | {apart.mean():+.2f} |"
            f" {2 * apart.std(ddof=1) / np.sqrt(len(apart)):.2f} | {same:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
