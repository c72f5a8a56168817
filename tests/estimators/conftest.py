"""Tables that the estimators' tests share."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    """Six columns, of which the second and the fifth tell the class."""
    x = np.random.default_rng(0).normal(size=(120, 6))
    return x, np.where(x[:, 1] + x[:, 4] > 0, "yes", "no")


@pytest.fixture
def people() -> tuple[pd.DataFrame, np.ndarray]:
    """What real tables have: text, categories, missing values, a constant, truth values, times."""
    random = np.random.default_rng(0)
    rows = 160
    frame = pd.DataFrame(
        {
            "age": np.where(random.random(rows) < 0.2, np.nan, random.normal(40, 10, rows)),
            "town": random.choice(["Bonn", "Kiel", "Ulm"], rows),
            "plan": pd.Categorical(random.choice(["a", "b"], rows)),
            "member": random.random(rows) < 0.5,
            "country": "DE",
            "visits": pd.array(random.integers(0, 9, rows), dtype="Int64"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, rows), unit="D"),
        }
    )
    frame.loc[::7, "town"] = None
    frame.loc[::9, "visits"] = pd.NA
    return frame, ((frame["plan"] == "a") & frame["member"]).to_numpy()
