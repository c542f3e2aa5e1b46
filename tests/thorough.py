"""`make laws` is thorough: each law with more examples than `make test` has time for, and every mutant."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("TRUEUP_TESTS") == "thorough"
EXAMPLES = 2000 if THOROUGH else 500
"""Of each law."""
