"""As `dropping`, and the engine's delivery is trusted: a gap in the offsets is not read directly."""

from __future__ import annotations

from functools import partialmethod

import tests.services.kafka.preloads.dropping  # noqa: F401
from pipeline.runners.faust_runner import FaustRunner

FaustRunner.__init__ = partialmethod(FaustRunner.__init__, read_gaps=False)  # type: ignore[method-assign, assignment]
