"""Folders of audits that were begun and go on."""

import json
from pathlib import Path

import pytest

from dvfl.audit.audit import AuditFolder
from dvfl.errors import UserError

USUAL = {"hosts": 4, "adversary": 0.0}


def test_a_folder_that_an_earlier_version_began_goes_on_with_what_newer_settings_are_by_default(tmp_path: Path) -> None:
    AuditFolder(tmp_path, {"settings": {"hosts": 2}}).write("dvfl, none", "inversion", {"figures": []})
    folder = AuditFolder(tmp_path, {"settings": {"hosts": 2, "adversary": 0.0}}, USUAL)
    assert folder.read("dvfl, none", "inversion") == {"figures": []}
    note = json.loads((tmp_path / "parts" / "audit.note").read_text())
    assert note["settings"] == {"hosts": 2, "adversary": 0.0}


@pytest.mark.parametrize("settings", [{"hosts": 2, "adversary": 0.5}, {"hosts": 4, "adversary": 0.0}])
def test_other_settings_than_it_was_begun_with_are_refused(tmp_path: Path, settings: dict[str, object]) -> None:
    AuditFolder(tmp_path, {"settings": {"hosts": 2}})
    with pytest.raises(UserError, match="was begun with a run with other settings"):
        AuditFolder(tmp_path, {"settings": settings}, USUAL)


def test_a_part_that_was_cut_short_is_named(tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path, {"settings": {}})
    folder.write("dvfl, none", "inversion", {"figures": []})
    (part,) = (tmp_path / "parts").glob("dvfl-none*")
    part.write_text("{")
    with pytest.raises(UserError, match=rf"{part.name}: cannot be read .*made again"):
        folder.read("dvfl, none", "inversion")
