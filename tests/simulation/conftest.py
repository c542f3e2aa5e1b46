"""What the tests of this folder start."""

from __future__ import annotations

from tests.started import trueup

__all__ = ["trueup"]
