"""The resource attributes that contracts and segments read, under the names of today's conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeline.core.dialects.trials import SCENARIO, TRIAL
from pipeline.core.otlp.values import read_value
from schemas.span import Value

RESOURCE_KEYS = frozenset(
    {"service.name", "service.version", "deployment.environment.name", "trueup.test", "trueup.tenant", SCENARIO, TRIAL}
)
OTHER_SPELLINGS = {
    "deployment.environment.name": ("deployment.environment", "langfuse.environment"),
    "service.version": ("langfuse.release",),
}
"""As the conventions had it, and as Langfuse has it."""


def kept_of(attributes: Mapping[str, bytes], keys: Iterable[str]) -> dict[str, Value]:
    """The values of these keys, of those that are there."""
    kept: dict[str, Value] = {}
    for key in keys:
        found = next((name for name in (key, *OTHER_SPELLINGS.get(key, ())) if name in attributes), None)
        if found is not None:
            kept[key] = read_value(attributes[found])
    return kept
