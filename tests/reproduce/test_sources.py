"""Which data a training gets."""

import numpy as np
import pytest

from dvfl.errors import UserError
from dvfl.reproduce.outcome.experiment import Source
from dvfl.reproduce.sources import Sources


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(None, None)


def test_the_same_data_serve_all_seeds_where_none_are_drawn(sources: Sources) -> None:
    assert sources.data(Source("digits"), 0) is sources.data(Source("digits"), 7)
    assert not Source("digits").varies


@pytest.mark.parametrize("what", [{"split": "random"}, {"labelled": 64}, {"misaligned": True}])
def test_what_is_drawn_is_drawn_by_seed_and_again_the_same(sources: Sources, what: dict[str, object]) -> None:
    source = Source("digits", **what)  # type: ignore[arg-type]
    one, again, other = (sources.data(source, seed) for seed in (0, 0, 1))
    assert source.varies
    assert (one.guests[0].train == again.guests[0].train).all()
    assert not np.array_equal(one.guests[0].train, other.guests[0].train)
    example = sources.example(source)
    assert (example.rows, len(example.y_train)) == (other.rows, len(other.y_train))


def test_fewer_rows_are_taken_where_a_set_has_more() -> None:
    few, many = Sources(None, 100), Sources(None, 10**6)
    assert few.data(Source("digits"), 0).rows == few.data(Source("digits", split="random"), 3).rows == 100
    assert many.data(Source("digits"), 0).rows > 1000


def test_more_rows_than_a_set_with_an_official_split_has_are_refused() -> None:
    try:
        Sources(None, None).data(Source("mnist"), 0)
    except UserError:
        pytest.skip("MNIST is not on this machine")
    with pytest.raises(UserError, match="from 64 to 60000"):
        Sources(None, 70_000).data(Source("mnist"), 0)
