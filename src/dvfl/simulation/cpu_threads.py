"""PyTorch's settings that suit a stack on a machine, for as long as it works; the caller's are restored."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

import torch

# Multiplications of a party's forward pass below which a second thread costs more than it brings.
_WORTH_THREADS = 1 << 22
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h


def workers(device: torch.device, multiplications: int) -> int:
    """How many threads of the CPU are worth having for passes of so many multiplications."""
    if device.type != "cpu" or multiplications < _WORTH_THREADS:
        return 1
    return torch.get_num_threads()


@cache
def keep_freed_memory() -> None:
    """Asks the C library to keep what is freed. By default it hands blocks of 128 KB and more back to the system and
    gets them again in every round, page by page, which costs more than the arithmetic done in them."""
    with suppress(AttributeError, OSError):  # no glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, 1 << 28)
        mallopt(_M_MMAP_THRESHOLD, 1 << 25)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads inside PyTorch's operations."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def suited(device: torch.device, multiplications: int) -> Iterator[None]:
    """On a GPU, TF32 products; on the CPU, as many threads as are worth having."""
    if device.type == "cpu":
        with threads(workers(device, multiplications)):
            yield
        return
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
