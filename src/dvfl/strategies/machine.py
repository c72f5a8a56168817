"""PyTorch's settings that suit a stack on a machine, for as long as it works; the caller's are restored."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Multiplications of a party's forward pass below which a second thread costs more than it brings.
_WORTH_THREADS = 300_000 * 64


@contextmanager
def suited(device: torch.device, multiplications: int) -> Iterator[None]:
    """On a GPU, TF32 products; on the CPU, one thread where the largest party's pass is small."""
    if device.type == "cuda":
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
    elif multiplications < _WORTH_THREADS and torch.get_num_threads() > 1:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
    else:
        yield
