"""Arguments of tool calls, as scenarios expect them and as spans tell them, in one spelling so that they compare."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

MAX_CHARACTERS = 256
"""Of a value that is kept; of a longer one the beginning is compared."""


def argument_text(value: Any) -> str:
    """An argument's value in one spelling, numbers and text being one: `5`, `"5"` and `5.0` are the same.

    YAML makes a date of `2026-04-01`; it is told as it is written.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, date):
        value = value.isoformat()
    text = (
        value.strip() if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    )
    return text.encode("utf-8", "replace").decode()[:MAX_CHARACTERS]


def expected_value(value: Any) -> str | None:
    """The value that an argument must have, in that spelling; None where any will do.

    `{order.id}` stands for what a scenario fills in for each trial.
    """
    if value is None or (isinstance(value, str) and value.startswith("{") and value.endswith("}")):
        return None
    return argument_text(value)
