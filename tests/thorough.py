"""`make laws` is thorough: each law with more examples, and every mutant. `make test` has less time."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("TRUEUP_TESTS") == "thorough"
EXAMPLES = 500 if THOROUGH else 300
"""Of each law."""
