"""A party's process: its folder to itself, and a last word when it leaves."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from dvfl.errors import RunFailed
from dvfl.federation.party.lifecycle import STATUS, held, report


def test_a_folder_is_held_by_one_process_which_the_second_is_told(tmp_path: Path) -> None:
    told = rf"guest-1 runs already on .* \(process {os.getpid()}\)"
    with held(tmp_path, "guest-1"), pytest.raises(RunFailed, match=told), held(tmp_path, "guest-1"):
        pass
    with held(tmp_path, "guest-1"):
        pass


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="nowhere cannot be written"), held(tmp_path / "nowhere", "guest-1"):
        pass


def test_how_a_party_is_doing_is_written_until_it_leaves(tmp_path: Path) -> None:
    async def story() -> tuple[dict[str, object], dict[str, object]]:
        task = asyncio.create_task(report(tmp_path, lambda: {"state": "training"}))
        await asyncio.sleep(0.05)
        before = json.loads((tmp_path / STATUS).read_text())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return before, json.loads((tmp_path / STATUS).read_text())

    before, after = asyncio.run(story())
    assert (before["state"], before["running"], before["pid"]) == ("training", True, os.getpid())
    assert after["running"] is False
