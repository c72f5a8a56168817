"""The streams of a host's broker: one per guest, in files, which only the host can make, read or delete."""

from collections.abc import Iterable

from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import NotFoundError

from dvfl.federation.transport.accounts import push_subject

_PREFIX = "G-"


def stream_name(guest: str) -> str:
    """The stream that holds what a guest has pushed."""
    return f"{_PREFIX}{guest}"


async def ensure_stream(js: JetStreamContext, guest: str, max_bytes: int, max_msg_size: int) -> str:
    """Makes the guest's stream, or fits its caps; gives its identity, which is another once the store was lost.

    A full stream lets go of its oldest messages. A sequence number means something only together with the identity.
    """
    config = StreamConfig(
        name=stream_name(guest),
        subjects=[push_subject(guest)],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        discard=DiscardPolicy.OLD,
        max_bytes=max_bytes,
        max_msg_size=max_msg_size,
        deny_delete=True,
        deny_purge=True,
        allow_rollup_hdrs=False,
    )
    try:
        info = await js.update_stream(config)
    except NotFoundError:
        info = await js.add_stream(config)
    assert info.created is not None  # NATS servers always say
    return info.created.isoformat()


async def drop_other_streams(js: JetStreamContext, guests: Iterable[str]) -> list[str]:
    """Deletes what guests that are no longer in the federation had pushed; gives their names."""
    found: list[str] = []
    while page := await js.streams_info(offset=len(found)):
        found.extend(info.config.name or "" for info in page)
    strays = sorted(set(found) - {stream_name(guest) for guest in guests})
    for stray in strays:
        await js.delete_stream(stray)
    return [stray.removeprefix(_PREFIX) for stray in strays]
