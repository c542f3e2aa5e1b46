"""Loaded into every worker of a test: restores and seeks take 3 s, as with large state, and a message holds 50 records.

That is when the engine drops queued messages while two rebalances overlap.
"""

from __future__ import annotations

from pipeline.runners import messages
from tests.unit.runners.toy import slow_down

SECONDS = 3.0

messages.MAX_RECORDS = 50
slow_down(SECONDS)
