"""The preset `tuned` for tables of few rows and few columns, as estimators often meet them."""

from dataclasses import replace

from dvfl.data.vertical import VerticalData
from dvfl.parties.learner import Sgd
from dvfl.parties.sizes import sizes
from dvfl.strategies.settings import Settings, preset

_MANY_ROWS = 1 << 40  # so many that the preset's epochs are its own
_STEPS = {"guest_epochs": 150, "host_epochs": 150, "owner_epochs": 300}  # to be made at least


def tuned_for_tables(data: VerticalData, batch: int) -> Settings:
    """Chosen by cross-validation on training rows of small tables.

    Guests with few columns still need encodings of some width, and owners a head of some; few rows need some steps,
    and overfit with many, regressions most.
    """
    settings = preset("tuned", sizes_rule=data.sizes, rows=_MANY_ROWS)
    if data.classes is None:
        settings = replace(settings, owner_rule=Sgd(4e-2))
    iterations = -(-data.rows // batch)
    epochs = {name: max(getattr(settings, name), -(-steps // iterations)) for name, steps in _STEPS.items()}
    columns = [guest.columns for guest in data.guests]
    least = min(32, max(4, 128 // len(columns)))  # width of a guest's encoding
    w_g = least * len(columns) if max(sizes(data.sizes, columns).guest_latent) < least else None
    w_h = max(64, sizes(data.sizes, columns, w_g).host_latent)
    return replace(settings, **epochs, w_g=w_g, w_h=w_h)
