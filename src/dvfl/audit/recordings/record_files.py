"""A recording on disk, beside the run that it was made of: one safetensors file."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dvfl.audit.recordings.recording import GuestRecording, Recording, Rows
from dvfl.errors import UserError
from dvfl.files import replacing, writing

RECORDED = "recorded.safetensors"
_PARTS = ("z", "gradients", "own", "earlier")


def save_recording(recording: Recording, folder: Path) -> None:
    """Writes it into a run's folder; encodings in half precision, gradients, which may be tiny, as they are."""
    tensors: dict[str, Tensor] = {"y": recording.y, "outputs": recording.outputs}
    if recording.numbers is not None:
        tensors["numbers"] = recording.numbers
    for number, guest in enumerate(recording.guests):
        tensors[f"{number}.x"] = guest.x
        for part in _PARTS:
            values = getattr(guest, part)
            if values is not None:
                tensors[f"{number}.{part}"] = values if part == "gradients" else values.half()
    rows = recording.rows
    about = {
        "strategy": recording.strategy,
        "seeds": " ".join(map(str, recording.seeds)),
        "rows": f"{rows.pool} {rows.victims} {rows.tests}",
        "guests": "\n".join(guest.name for guest in recording.guests),
    }
    path = folder / RECORDED
    with writing(path), replacing(path) as temporary:
        save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, temporary, about)


def check_recorded(folder: Path) -> None:
    """Refuses a run's folder without a recording."""
    if not (folder / RECORDED).is_file():
        raise UserError(f"{folder} has no {RECORDED}: an audit needs what was sent; dvfl train --record writes it")


def load_recording(folder: Path, device: torch.device) -> Recording:
    """Takes back what `save_recording` wrote."""
    check_recorded(folder)
    path = folder / RECORDED
    try:
        with safe_open(path, "pt", device=str(device)) as file:
            about = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        guests = tuple(
            GuestRecording(name, tensors[f"{number}.x"], **_sent(tensors, number))
            for number, name in enumerate(about["guests"].split("\n"))
        )
        rows = Rows(*map(int, about["rows"].split()))
        seeds = tuple(map(int, about["seeds"].split()))
        labels = tensors["y"], tensors["outputs"], tensors.get("numbers")
        return Recording(about["strategy"], seeds, rows, guests, *labels)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); the file was changed or cut short") from error


def _sent(tensors: dict[str, Tensor], number: int) -> dict[str, Any]:
    return {part: tensors[f"{number}.{part}"].float() for part in _PARTS if f"{number}.{part}" in tensors}
