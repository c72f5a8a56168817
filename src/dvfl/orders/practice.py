"""A practice federation: a data set's shares, a preset's settings, all folders."""

from pathlib import Path

from dvfl.data import load
from dvfl.data.split.vertical import fewer_rows, limited_intersection
from dvfl.federation.custody.founding import OWNER, Founding, found
from dvfl.federation.party.settings import Alignment, GuestEntry, Way
from dvfl.lab.practice import check_practice, write_practice
from dvfl.orders.preset_settings import for_real_parties, head_of, training_of
from dvfl.settings.training import Settings
from dvfl.strategies.presets import preset as preset_of


def make_practice(
    folder: Path,
    guests: int,
    hosts: int,
    dataset: str,
    preset: str,
    seed: int,
    rows: int | None,
    data_dir: Path | None,
    align: Way = "union",
    labelled: int | None = None,
) -> None:
    """Makes the folders and writes each party's share."""
    data = fewer_rows(load(dataset, data_dir=data_dir, guests=guests), rows)
    if labelled is not None:
        data = limited_intersection(data, labelled, seed)
    s = preset_of(preset, data)
    assert isinstance(s, Settings)
    s = for_real_parties(s, preset)
    names = [f"guest-{number + 1}" for number in range(len(data.guests))]
    entries = {
        name: GuestEntry(guest.columns, "unit" if guest.unit else "standardise", guest.image and tuple(guest.image))
        for name, guest in zip(names, data.guests, strict=True)
    }
    check_practice(data)
    founding = Founding(
        name=f"practice-{dataset}".replace("_", "-"),
        guests=entries,
        hosts=tuple(f"host-{number + 1}" for number in range(hosts)),
        training=training_of(s, seed, data.sizes),
        head=head_of(s, preset),
        tests=True,
        about={"dataset": dataset, "preset": preset},
        alignment=Alignment(align),
    )
    found(folder, founding)
    write_practice(data, folder, names, OWNER, seed)
