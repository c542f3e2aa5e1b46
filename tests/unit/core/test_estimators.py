"""The formulas against values from independent libraries (statsmodels, lifelines, R packages)."""

import json
from pathlib import Path

import pytest

from pipeline.core.estimators import complement, proportion, survival, weighted

VECTORS = json.loads((Path(__file__).parents[2] / "golden/vectors/statistics.json").read_text())


@pytest.mark.parametrize("row", VECTORS["wilson"]["rows"], ids=lambda row: f"{row['k']}-of-{row['n']}")
def test_wilson_equals_statsmodels(row):
    found = proportion(row["k"], row["n"])

    assert found.rate == pytest.approx(row["rate"]) if row["rate"] is not None else found.rate is None
    assert (found.lower, found.upper) == pytest.approx((row["low"], row["high"]), abs=1e-9)


@pytest.mark.parametrize("row", VECTORS["life_table"]["rows"], ids=lambda row: f"r{row['r'][0]}-{row['status']}")
def test_survival_equals_lifelines(row):
    found = survival(row["r"], row["d"])

    assert found.status == row["status"]
    if row["status"] == "ok":
        assert found.rate == pytest.approx(row["surv"], abs=1e-12)
        assert found.effective_n == pytest.approx(row["n_eff"], rel=1e-9)
        assert (found.lower, found.upper) == pytest.approx((row["low"], row["high"]), abs=1e-9)
    else:
        assert found.rate is None


STRATA = [row for row in VECTORS["standardised"]["rows"] if all(row["n"])]


@pytest.mark.parametrize("row", STRATA, ids=lambda row: str(row["k"]))
def test_weighted_strata_equal_the_published_snapshot(row):
    strata = [(weight, proportion(k, int(n))) for weight, k, n in zip(row["weights"], row["k"], row["n"], strict=True)]
    found = weighted(strata)

    assert found.rate == pytest.approx(row["rate"], abs=1e-9)
    assert (found.lower, found.upper) == pytest.approx((row["low"], row["high"]), abs=1e-9)


def test_one_stratum_is_its_own_interval():
    alone = proportion(30, 40)

    assert weighted([(1.0, alone)]) == alone


def test_an_age_that_nobody_lived_through_leaves_no_rate():
    found = survival([10, 8, 0], [2, 1, 0])

    assert found.rate is None
    assert (found.status, found.age_index) == ("partial", 1)
    assert found.lower == 0.0


def test_the_complement_swaps_the_limits():
    found = survival([50, 40], [5, 4])
    other = complement(found)

    assert found.rate is not None
    assert other.rate == pytest.approx(1 - found.rate)
    assert (other.lower, other.upper) == pytest.approx((1 - found.upper, 1 - found.lower))
