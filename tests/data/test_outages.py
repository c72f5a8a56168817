"""Recorded outages on disk: what is read, and every refusal with its file and line."""

from pathlib import Path

import pytest

from dvfl.data.outages import read_outages
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.faults.outages import Outage, Outages


def file(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "outages.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as error:
        read_outages(path)
    return str(error.value)


def test_rows_are_read_in_their_order_and_an_empty_up_is_for_good(tmp_path: Path) -> None:
    path = file(tmp_path, "party,down,up\nguest-1,0,5\nguest-1>host-2,7,\nguest-1,3,1000000\n")
    rows = (Outage("guest-1", 0, 5), Outage("guest-1>host-2", 7, None), Outage("guest-1", 3, 1_000_000))
    assert read_outages(path) == Outages(str(path), rows)


def test_the_source_is_the_path_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file(tmp_path, "party,down,up\na,0,5\n")
    monkeypatch.chdir(tmp_path)
    assert read_outages("outages.csv").source == "outages.csv"


def test_faults_with_a_record_are_read_back_from_their_texts(tmp_path: Path) -> None:
    path = file(tmp_path, "party,down,up\na,0,5\n")
    faults = Faults.parse([f"recorded:{path}"], read_outages)
    assert faults.texts == [f"recorded:{path}"]
    assert Faults.parse(faults.texts, read_outages) == faults


@pytest.mark.parametrize(
    "content",
    [
        "up,party,down\n5,a b,0\n",
        "\ufeffparty,down,up\na b,0,5\n",
        "party, down, up\r\na b , 0 , 5\r\n",
        '"party","down","up"\n"a b","0","5"',
        "\nparty,down,up\n\n,,\na b,00,5\n\n",
    ],
    ids=["order", "byte order mark", "spaces", "quotes", "blank lines"],
)
def test_the_many_ways_to_write_a_table_are_read_alike(tmp_path: Path, content: str) -> None:
    assert read_outages(file(tmp_path, content)).rows == (Outage("a b", 0, 5),)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,x,5", "down 'x' is not a round; a whole number from 0 to 1000000000000 is right"),
        ("a,1.5,5", "down '1.5' is not a round"),
        ("a,-1,5", "down '-1' is not a round"),
        ("a,,5", "down '' is not a round"),
        ("a,0,later", "up 'later' is not a round"),
        ("a,0,-5", "up '-5' is not a round"),
        ("a,0,1000000000001", "up '1000000000001' is not a round"),
        ("a,0," + "9" * 5000, "is not a round"),
        ("a,5,5", "up 5 is not after down 5"),
        ("a,5,4", "up 4 is not after down 5"),
        (",0,5", "no party; a guest, a host or a link such as guest-1>host-2 is right"),
        ("a,0", "2 fields; 3 is right"),
        ("a,0,5,6", "4 fields; 3 is right"),
        ('"a,0,5', "not CSV"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(tmp_path: Path, row: str, message: str) -> None:
    path = file(tmp_path, f"party,down,up\nb,0,1\n{row}\n")
    refused = refusal(path)
    assert refused.startswith(f"{path}, line 3: ")
    assert message in refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "{path} is empty"),
        ("\n\n", "{path} is empty"),
        ("party,down,up\n", "{path} has a header but no rows"),
        ("party,down\na,0\n", "{path} has no column 'up'; it has party, down"),
        ("party,down,upp\na,0,1\n", "{path}: unknown column 'upp'; did you mean 'up'?"),
        ("party,down,up,why\na,0,1,x\n", "{path}: unknown column 'why'; known: down, party, up"),
        ("party,down,up,up\na,0,1,2\n", "{path} has the column 'up' twice"),
        (b"\xff\xfe\x00p", "{path} is not text in UTF-8; a CSV file is right"),
        (b"party,down,up\na\0,0,1\n", "{path} holds zero bytes, so it is not text; a CSV file is right"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = file(tmp_path, content)
    assert refusal(path) == message.format(path=path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone.csv") == f"{tmp_path / 'gone.csv'} is not there; a CSV file is right"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path} is a folder; a CSV file is right"


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path, "party,down,up\na,0,5\n")

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)  # a real mode would not stop root
    assert refusal(path) == f"{path} cannot be read (Permission denied)"
