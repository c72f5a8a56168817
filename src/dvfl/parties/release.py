"""What a guest may do to its encodings before they leave: shortened to a length, and noise added."""

from torch import Tensor


def released(z: Tensor, clip: float, noise: float, drawn: Tensor) -> Tensor:
    """Encodings (.., latent) none longer than `clip`, with `noise * clip` times the standard normal numbers `drawn`."""
    length: Tensor = z.norm(dim=-1, keepdim=True)
    return z * (clip / length).clamp(max=1) + noise * clip * drawn  # of a row of zeros too
