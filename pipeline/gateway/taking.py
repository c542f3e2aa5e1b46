"""A body that is an OTLP request, as records for Kafka: what no reader could take left out, the tenant written in.

The rule this file keeps: the bytes that came in are the bytes that go on, unless something must be changed; and what
cannot be taken costs itself alone, with a reason, wherever the frame around it is sound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from google.protobuf.message import DecodeError

from pipeline.gateway import cutting
from pipeline.gateway.broker import MAX_RECORD_BYTES
from pipeline.gateway.limits import Limits, depth_of, has_many_values, is_deep
from pipeline.gateway.malformed import Malformed, in_words, malformed_json, malformed_protobuf
from pipeline.gateway.request import Refused
from pipeline.gateway.signals import Signal
from pipeline.gateway.tolerant import framing, tolerant

TENANT = "trueup.tenant"  # as ingest reads it (RULES.md 2)
LEVELS_ABOVE_ITEMS = 6  # objects and arrays of a JSON request around a span

UNDECODABLE = "cannot be decoded: broken, or nested more than 100 messages deep"
NO_OBJECT = "no JSON objects"
TOO_LARGE = f"above {MAX_RECORD_BYTES} bytes, which Kafka does not take in one record"


@dataclass(slots=True)
class Taken:
    """Args:
    parts: each goes to Kafka as one record.
    refused: why items were left out -> how many.
    malformed: items in `parts` whose ids are none, so that ingest will dead-letter them.
    """

    parts: list[bytes] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    malformed: Malformed = field(default_factory=Counter)

    @property
    def rejected(self) -> int:
        """How many items will not be used, as far as it can be known now."""
        return self.refused.total() + self.malformed.total()

    @property
    def complaint(self) -> str:
        left_out = (f"{n} item{'s' * (n > 1)}: {why}" for why, n in self.refused.items())
        return "; ".join((*left_out, *in_words(self.malformed)))


def take_protobuf(body: bytes, signal: Signal, limits: Limits, tenant: str | None) -> Taken:
    """
    Raises:
        Refused: 400 where nothing of it can be used, 413 where it holds too many items.
    """
    taken = Taken()
    try:
        message: Any = tolerant(signal.request).FromString(body)
    except DecodeError:
        body, taken.refused[UNDECODABLE] = _without_broken(body, signal)
        message = _decoded(body, signal)
    resources, scopes, items = signal.levels.protobuf
    if body and not getattr(message, resources):
        raise _no_request(signal)
    lists = [getattr(scope, items) for resource in getattr(message, resources) for scope in getattr(resource, scopes)]
    _check(max(sum(map(len, lists)) + len(lists), len(getattr(message, resources))), limits)
    taken.malformed = malformed_protobuf(lists, signal.may_lack_ids)
    if tenant is not None:
        for one in getattr(message, resources):
            held = one.resource.attributes
            kept = [pair for pair in held if pair.key != TENANT.encode()]
            del held[:]
            held.extend(kept)
            held.add(key=TENANT.encode()).value.string_value = tenant.encode()
        body = message.SerializeToString()
    if len(body) <= MAX_RECORD_BYTES:
        taken.parts = [body] if body else []
    else:
        taken.parts, left_out = cutting.cut_protobuf(message, signal.levels.protobuf, MAX_RECORD_BYTES)
        taken.refused[TOO_LARGE] = len(left_out)
        taken.malformed -= malformed_protobuf([left_out], signal.may_lack_ids)
    taken.refused = +taken.refused
    return taken


def _decoded(body: bytes, signal: Signal) -> Any:
    try:
        return tolerant(signal.request).FromString(body)
    except DecodeError as error:  # a resource or a scope
        raise _no_request(signal) from error


def _without_broken(body: bytes, signal: Signal) -> tuple[bytes, int]:
    """The request without the items that cannot be decoded, and how many those are."""
    try:
        frame: Any = framing(signal.request).FromString(body)
    except DecodeError as error:
        raise _no_request(signal) from error
    left_out = left = 0
    resources, scopes, items = signal.levels.protobuf
    for scope in (scope for resource in getattr(frame, resources) for scope in getattr(resource, scopes)):
        held = getattr(scope, items)
        sound = [one for one in held if _decodes(one, signal)]
        left_out += len(held) - len(sound)
        left += len(sound)
        del held[:]
        held.extend(sound)
    if not left_out or not left:  # something around the items is broken, or all of them are
        raise _no_request(signal)
    return frame.SerializeToString(), left_out


def _decodes(item: bytes, signal: Signal) -> bool:
    """Whether it does where it will stand: the messages around it count towards the depth that may be."""
    resources, scopes, items = signal.levels.protobuf
    alone: Any = framing(signal.request)()
    getattr(getattr(getattr(alone, resources).add(), scopes).add(), items).append(item)
    try:
        tolerant(signal.request).FromString(alone.SerializeToString())
    except DecodeError:
        return False
    return True


def take_json(body: bytes, signal: Signal, limits: Limits, tenant: str | None) -> Taken:
    """
    Raises:
        Refused: 400 where nothing of it can be used, 413 where it holds too many items or values.
    """
    if has_many_values(body, limits.values):
        raise Refused(413, f"the body has more than {limits.values} values; send smaller batches")
    first = signal.levels.json[0]
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body cannot be read as JSON: {error}") from error
    named = isinstance(message, dict) and (first in message or not message)
    if not named or not cutting.is_nested(message, signal.levels.json[:-1]):
        raise Refused(400, f'the body is not an OTLP request: {{"{first}": [...]}} with lists of objects is needed')
    lists = list(_item_lists(message, signal))
    total = sum(map(len, lists)) + len(lists)
    _check(max(total, len(message.get(first) or ())), limits)
    taken = Taken(refused=_refuse_items(lists, is_deep(body, limits.depth), limits.depth))
    if taken.refused and not any(lists):
        raise Refused(400, taken.complaint)
    taken.malformed = malformed_json(lists, signal.may_lack_ids)
    if tenant is not None:
        # Nothing beside the list: readers know it by other names, too.
        message = {first: [_of_tenant(one, tenant) for one in message.get(first) or ()]}
    if taken.refused or tenant is not None:
        body = orjson.dumps(message)
    if len(body) <= MAX_RECORD_BYTES:
        taken.parts = [body] if message.get(first) else []
    else:
        taken.parts, left_out = cutting.cut_json(message, signal.levels.json, MAX_RECORD_BYTES)
        taken.refused += Counter({TOO_LARGE: len(left_out)})
        taken.malformed -= malformed_json([left_out], signal.may_lack_ids)
    return taken


def _item_lists(message: dict[str, Any], signal: Signal) -> Iterator[list[Any]]:
    resources, scopes, items = signal.levels.json
    for scope in (scope for resource in message.get(resources) or () for scope in resource.get(scopes) or ()):
        held = scope.get(items)
        if held is None:
            continue
        if not isinstance(held, list):
            raise Refused(400, f"the body is not an OTLP request: {items} must be a list")
        yield held


def _refuse_items(lists: list[list[Any]], deep: bool, depth: int) -> Counter[str]:
    """Takes out of the lists what no reader can use."""
    refused: Counter[str] = Counter()
    for held in lists:
        sound = [one for one in held if isinstance(one, dict)]
        refused[NO_OBJECT] += len(held) - len(sound)
        if deep:
            most = depth - LEVELS_ABOVE_ITEMS
            flat = [one for one in sound if depth_of(one, most) <= most]
            refused[f"nested more than {depth} levels deep"] += len(sound) - len(flat)
            sound = flat
        if len(sound) < len(held):
            held[:] = sound
    return +refused


def _of_tenant(resource_items: dict[str, Any], tenant: str) -> dict[str, Any]:
    resource = resource_items.get("resource")
    resource = resource if isinstance(resource, dict) else {}
    given = resource.get("attributes")
    pairs = [pair for pair in given if isinstance(pair, dict)] if isinstance(given, list) else []
    stated = {"key": TENANT, "value": {"stringValue": tenant}}
    kept = [pair for pair in pairs if pair.get("key") != TENANT]
    return {**resource_items, "resource": {**resource, "attributes": [*kept, stated]}}


def _check(items: int, limits: Limits) -> None:
    if items > limits.items:
        raise Refused(413, f"the request has more than {limits.items} items; send smaller batches")


def _no_request(signal: Signal) -> Refused:
    return Refused(400, f"the body is not a protobuf {signal.request.DESCRIPTOR.name}, or all in it is broken")
