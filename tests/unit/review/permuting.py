"""Payloads with other ids and names: what is understood of spans may hang on nothing that a user chose.

All names of agents and tools, conversation ids, users, call ids, trace and span ids become others, chosen by a seed,
wherever they stand: in attributes, in names, inside other text.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

ID_FIELDS = frozenset({"trace_id", "span_id", "parent_span_id"})
_HEX_ID = re.compile(r'("(?:traceId|spanId|parentSpanId)":\s*")([0-9a-f]+)(")')
LETTERS = "bdfgjklmnpqrvwxzäöß"


@dataclass(frozen=True)
class Permutation:
    """One choice of other ids and names."""

    seed: int
    names: dict[str, str]

    def text(self, given: str) -> str:
        if not self.names:
            return given
        longest_first = sorted(self.names, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), lambda found: self.names[found[0]], given)

    def id(self, given: bytes) -> bytes:
        return sha256(f"{self.seed}".encode() + given).digest()[: len(given)]

    def protobuf(self, content: bytes) -> bytes:
        request = ExportTraceServiceRequest.FromString(content)
        _walk(request, self.text, self.id)
        return bytes(request.SerializeToString())

    def json(self, content: bytes) -> bytes:
        def other(found: re.Match[str]) -> str:
            return f"{found[1]}{self.id(bytes.fromhex(found[2])).hex()}{found[3]}"

        return _HEX_ID.sub(other, self.text(content.decode())).encode()

    def sessions(self, expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
        permuted: list[dict[str, Any]] = json.loads(self.text(json.dumps(expected)))
        return permuted


def permutation(sessions: list[dict[str, Any]], seed: int) -> Permutation:
    """Other names for all that these sessions name."""
    chance = random.Random(seed)
    named: dict[str, None] = {}
    for session in sessions:
        given = [session["session_id"], session["user_id"], *session["agents"], *session["agent_trail"]]
        given += [text for call in session["tool_calls"] for text in (call["name"], call.get("call_id"))]
        named.update(dict.fromkeys(text for text in given if text))
    return Permutation(seed, {name: "".join(chance.choices(LETTERS, k=12)) for name in named})


def _walk(message: Any, text: Callable[[str], str], identity: Callable[[bytes], bytes]) -> None:
    for field, value in message.ListFields():
        repeated = field.is_repeated
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for item in value if repeated else [value]:
                _walk(item, text, identity)
        elif field.type == FieldDescriptor.TYPE_STRING and field.name != "key" and not repeated:
            setattr(message, field.name, text(value))
        elif field.name in ID_FIELDS:
            setattr(message, field.name, identity(value))
