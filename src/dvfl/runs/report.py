"""report.html: one run on one page that needs nothing but itself."""

import datetime
from typing import Any

import jinja2
import numpy as np
import torch
from markupsafe import Markup
from numpy.typing import NDArray

from dvfl.parties.guest import Guest
from dvfl.parties.objectives.objective import Reconstruction
from dvfl.runs import figures
from dvfl.simulation.simulation import Flow, Simulation
from dvfl.strategies.decoupled.dvfl import Dvfl

_IMAGES = 12
_MATRIX_UP_TO = 20  # classes; a larger confusion matrix is unreadable


def report(simulation: Simulation, config: dict[str, Any], result: dict[str, Any], history: dict[str, Any]) -> str:
    """The page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dvfl.runs"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": _number, "size": size}
    data, flows = simulation.data, simulation.flows()
    outputs = simulation.outputs().cpu().numpy()
    return environment.get_template("report.html").render(
        config=config,
        result=result,
        data=data,
        seeds=list(zip(result["seeds"], result.get("r2", result["accuracy"]), strict=True)),
        finished=datetime.datetime.now().astimezone().strftime("%d %B %Y, %H:%M %Z"),
        losses=[Markup(svg) for svg in figures.loss_curves(history, data.classes is not None)],
        classes=None if data.classes is None else _classes(outputs, data.y_test, data.classes),
        fit=None if data.classes is not None else Markup(figures.predicted_against_true(outputs[..., 0], data.y_test)),
        diagram=Markup(_diagram(simulation, flows)),
        flows=flows,
        back=_back(flows, result["megabytes_sent_per_guest"]),
        coded=any(flow.when == "once, before it" for flow in flows),
        twice={flow.when for flow in flows if flow.leg == "guests"} == {"in training", "once, after it"},
        middle=any(flow.leg == "hosts" for flow in flows),
        stalled=[(seed, at) for seed, at in zip(simulation.seeds, simulation.stalled, strict=True) if at is not None],
        pictures=reconstructions(simulation, outputs),
        settings=_settings(config["settings"]),
    )


def size(megabytes: float) -> str:
    """Megabytes as people read them: small ones keep their first digits."""
    return f"{megabytes:,.1f}" if megabytes >= 10 else f"{megabytes:.2g}"


def reconstructions(simulation: Simulation, outputs: NDArray[np.float32]) -> list[dict[str, str]]:
    """A dozen test images over what the guests' decoders make of them, by the first seed; none for other data."""
    data = simulation.data
    if not isinstance(simulation, Dvfl) or any(guest.image is None for guest in data.guests):
        return []
    count = min(_IMAGES, len(data.y_test))
    strips: dict[int, NDArray[np.float32]] = {}
    for group in simulation.stack.groups:
        if not isinstance(group.guest, Guest) or not isinstance(group.guest.objective, Reconstruction):
            return []
        x = torch.stack([torch.from_numpy(data.guests[member].test[:count]) for member in group.members])
        parameters = group.guest.learner.parameters[: len(group.members)]  # of the first replica
        made = group.guest.objective.reconstruct(parameters, x.to(simulation.device)).cpu().numpy()
        strips |= dict(zip(group.members, made, strict=True))
    pictures = []
    for row in range(count):
        original = _assembled(simulation, [guest.test[row] for guest in data.guests])
        again = _assembled(simulation, [strips[number][row] for number in range(len(data.guests))])
        truth = str(data.y_test[row]) if data.classes is None else data.classes[int(data.y_test[row])]
        found = f"{outputs[0, row, 0]:.3g}" if data.classes is None else data.classes[int(outputs[0, row].argmax())]
        images = {"original": figures.png(original), "reconstruction": figures.png(again)}
        pictures.append({**images, "truth": truth, "predicted": found})
    return pictures


def _assembled(simulation: Simulation, rows: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The guests' strips as one image, top to bottom."""
    shapes = [guest.image for guest in simulation.data.guests]
    return np.concatenate(
        [row.reshape(shape[:2]) for row, shape in zip(rows, shapes, strict=True) if shape is not None]
    )


def _classes(outputs: NDArray[np.float32], y: NDArray[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Of every class how many were found and how many findings were right; rows of all seeds together."""
    predicted = outputs.argmax(-1).ravel()
    truth = np.tile(y, len(outputs))
    counts = np.zeros((len(names), len(names)), np.int64)  # (true, predicted)
    np.add.at(counts, (truth, predicted), 1)
    of_true, of_predicted = counts.sum(1), counts.sum(0)
    rows = [
        {
            "name": name,
            "rows": int(of_true[number]) // len(outputs),
            "found": 100 * counts[number, number] / of_true[number] if of_true[number] else None,
            "right": 100 * counts[number, number] / of_predicted[number] if of_predicted[number] else None,
        }
        for number, name in enumerate(names)
    ]
    shares = counts / np.maximum(of_true, 1)[:, None]
    matrix = [list(zip(counts[n].tolist(), shares[n].tolist(), strict=True)) for n in range(len(names))]
    return {"rows": rows, "matrix": matrix if len(names) <= _MATRIX_UP_TO else None, "names": names}


def _diagram(simulation: Simulation, flows: list[Flow]) -> str:
    """Who sends what to whom; the arrows tell what is sent in training where anything is."""
    legs = {leg: [flow for flow in flows if flow.leg == leg] for leg in ("guests", "hosts", "back")}
    first = [flow for flow in legs["guests"] if flow.when == legs["guests"][0].when]
    return figures.flow_diagram(
        [guest.name for guest in simulation.data.guests],
        len(legs["hosts"]),
        _label(first),
        _label(legs["hosts"]) if legs["hosts"] else "",
        last="owner" if isinstance(simulation, Dvfl) else "host-1",
        back=bool(legs["back"]),
    )


def _back(flows: list[Flow], sent: float) -> str:
    """What goes back to a guest, beside what it sent; nothing where nothing does."""
    back = [flow.megabytes for flow in flows if flow.leg == "back"]
    if not back:
        return ""
    mean = sum(back) / len(back)
    return "and as much sent back" if np.isclose(mean, sent) else f"and {size(mean)} MB sent back"


def _label(flows: list[Flow]) -> str:
    sizes = [flow.megabytes for flow in flows]
    span = size(min(sizes)) if np.isclose(min(sizes), max(sizes)) else f"{size(min(sizes))} to {size(max(sizes))}"
    messages = flows[0].messages
    return f"each sends {messages:,} message{'s' if messages > 1 else ''}, {span} MB"


def _settings(plain: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for name, value in plain.items():
        if isinstance(value, dict):
            rest = ", ".join(f"{key} {part:g}" for key, part in value.items() if key != "name")
            value = f"{value['name']}, {rest}"
        rows.append((name, "not set" if value is None else str(value)))
    return rows


def _number(value: float | None, digits: int = 2) -> str:
    return "not finite" if value is None else f"{value:,.{digits}f}"
