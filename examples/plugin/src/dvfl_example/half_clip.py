"""A defence: encodings are cut to half their usual length before they leave their guests."""

from dataclasses import replace

from dvfl.audit.defences import Defence, usual_length
from dvfl.audit.recordings.recording import Recording
from dvfl.settings.training import AnySettings, Settings


def change(settings: AnySettings, sent: Recording) -> AnySettings:
    """The settings with a clip."""
    assert isinstance(settings, Settings)
    return replace(settings, clip=round(usual_length(sent) / 2, 3))


HALF_CLIP = Defence("encodings clipped to half their usual length", change)
