"""A host, or its broker, on a disk that is full: neither may go on deaf and without a word."""

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from nats.errors import Error as NatsError
from small_disk import small_disk
from world import World, plan_key

from dvfl.errors import RunFailed
from dvfl.federation.host.host import HostParty
from dvfl.federation.host.host_service import HostService
from dvfl.federation.party.runtime import Here
from dvfl.federation.party.storage import DiskStorage
from dvfl.federation.party.tasks import together
from dvfl.federation.protocol.plan import sign
from dvfl.federation.protocol.wire import Tell, encode
from dvfl.federation.transport.nats import Connection, NatsHostLine
from dvfl.federation.transport.streams import ensure_stream

if TYPE_CHECKING:
    from conftest import Brokered


def test_a_host_without_room_for_its_tables_ends_and_says_so(own_federation: "Brokered", tmp_path: Path) -> None:
    site, key, world = own_federation.broker.site, plan_key(), World(0, guests=2, hosts=1)
    tell = encode(Tell(sign(world.plan, "train", 1, key).text()))

    async def story(party: HostParty) -> None:
        connection = Connection(site.folder, site.host, site.federation, site.url.removeprefix("tls://"))
        service = HostService(party, list(site.guests), NatsHostLine(connection, 1 << 20), Here())
        stop = asyncio.Event()
        task = asyncio.create_task(together(stop, service.run(stop), connection.keep()))
        async with own_federation.connected("owner") as owner:
            while not task.done():  # the host may have to connect first
                await owner.publish("tell", tell)
                await asyncio.sleep(0.05)
        await task

    with small_disk(tmp_path / "disk", 2) as disk:
        storage = DiskStorage(disk.root / "state")
        party = HostParty("host-1", storage, key.public_key(), federation="f" * 64, now_ms=0, log=print)
        disk.fill()
        own_federation.broker.start()
        with pytest.raises(RunFailed, match="MB are needed for tables and not free; make room"):
            asyncio.run(asyncio.wait_for(story(party), 20))


def test_a_broker_that_met_a_full_disk_is_found_out_and_started_again_it_goes_on(
    own_federation: "Brokered", tmp_path: Path
) -> None:
    async def pushed() -> bool:
        async with own_federation.connected("guest-1") as guest:
            with contextlib.suppress(NatsError):
                return b'"seq"' in (await guest.request("push", bytes(50_000), timeout=0.5)).data
        return False

    async def story() -> None:
        broker.start()
        async with own_federation.connected("host-1") as host:
            await ensure_stream(host.jetstream(), "guest-1", 1 << 20, 1 << 19)
        assert await pushed()
        broker.check_store()
        disk.fill()
        assert not await pushed()
        disk.empty()
        assert not await pushed()  # which is why somebody has to find it out
        with pytest.raises(RunFailed, match=r"not keep a message \(write /.*: no space left on device\); mend that"):
            broker.check_store()
        broker.restart()
        assert await pushed()
        broker.check_store()

    broker = own_federation.broker
    with small_disk(tmp_path / "disk", 8) as disk:
        broker.site.home.symlink_to(disk.root)
        asyncio.run(asyncio.wait_for(story(), 30))
        broker.stop()
