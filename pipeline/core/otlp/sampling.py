"""Whether a span is of a sample: its trace state says that other traces like it were left out.

The keys are OpenTelemetry's own: `ot=th:<threshold>` (0: nothing is left out), before that `ot=p:<power>` (the share
kept is 2 to the minus that).
"""

from __future__ import annotations

import re

_LEFT_OUT = re.compile(rb"(?:^|,)\s*ot=(?:[^,;]*;)*(?:th:0*[1-9a-f]|p:0*[1-9])")


def of_a_sample(trace_state: bytes) -> bool:
    """Whether only some of the traces were kept when this one was."""
    return _LEFT_OUT.search(trace_state) is not None
