"""`make laws` is thorough: each law with more examples than `make test` has time for."""

from __future__ import annotations

import os

EXAMPLES = 2000 if os.environ.get("TRUEUP_TESTS") == "thorough" else 500
"""Of each law."""
