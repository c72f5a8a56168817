"""A practice federation of the embedded digits with few epochs, for tests that run all of it."""

from pathlib import Path

from dvfl.orders.practice import make_practice


def make_digits(folder: Path, *, hosts: int = 2, guest_epochs: int = 4, host_epochs: int = 6) -> Path:
    """Two guests, some hosts and the owner, never run."""
    make_practice(folder, 2, hosts, "digits", "tuned", 0, None, None)
    epochs = {
        "guest_epochs = 20": f"guest_epochs = {guest_epochs}",
        "host_epochs = 40": f"host_epochs = {host_epochs}",
    }
    for path in [folder / "federation.toml", *folder.glob("*/federation.toml")]:
        text = path.read_text()
        for before, after in epochs.items():
            assert before in text
            text = text.replace(before, after)
        path.write_text(text)
    owner = folder / "owner" / "party.toml"
    owner.write_text(owner.read_text().replace("epochs = 100", "epochs = 25"))
    return folder
