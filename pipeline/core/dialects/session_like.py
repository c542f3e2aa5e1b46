"""Unknown attributes that look as if they held a conversation's id, counted by their key.

The rule this file keeps: never a value, not even one that stands in the key; and never more keys than a budget.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

MOST_KEYS = 20
OTHERS = "__other__"
MAX_KEY = 100
VALUE = re.compile(r"[0-9a-f]{8,}|\d{3,}", re.IGNORECASE)
"""What in a key is an id rather than a name."""


class SessionLike(Counter[str]):
    """Key -> spans that have it and no conversation id; keys above the budget under `OTHERS`."""

    def note(self, keys: Iterable[str]) -> None:
        for key in keys:
            name = VALUE.sub("*", key)[:MAX_KEY]
            self[name if name in self or len(self) < MOST_KEYS else OTHERS] += 1

    def keys_noted(self) -> frozenset[str]:
        return frozenset(self) - {OTHERS}
