"""Whether other traces were left out when this one was kept."""

from __future__ import annotations

import pytest

from pipeline.core.otlp.sampling import of_a_sample


@pytest.mark.parametrize(
    ("state", "sampled"),
    [
        (b"", False),
        (b"vendor=th:8", False),
        (b"ot=th:0", False),
        (b"ot=th:00", False),
        (b"ot=th:8", True),
        (b"ot=th:fd70a4;rv:123456789abcde", True),
        (b"vendor=1, ot=rv:123456789abcde;th:08", True),
        (b"ot=rv:8", False),
        (b"ot=p:0;r:3", False),
        (b"ot=p:3;r:5", True),
        (b"ot=r:5;p:10,vendor=1", True),
        (b"knot=th:8", False),
    ],
)
def test_a_threshold_or_a_power_above_zero_says_that_others_were_left_out(state: bytes, sampled: bool) -> None:
    assert of_a_sample(state) is sampled
