"""The wire schemas by which OTLP is read: trimmed to what is needed, built here, no compiler and no generated file.

The rule this file keeps: what the schemas leave out costs nothing, and no attribute becomes a Python object unless
someone asks for it. A protobuf map entry has the wire form of a `KeyValue`, so attributes are a map from the key to the
undecoded value, which the parser builds in C.

Two readings of one format: `Request` is fast and takes a request as a whole; `Nested` leaves resources and spans as
bytes, so that one that is broken fails alone, and `LooseSpan` has no text at all, so that no bad UTF-8 can fail it.
A request of log records has the frame of one of spans, so `Nested` reads it, too.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

__all__ = ["DecodeError"]

_TYPES = {
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "string": FieldDescriptorProto.TYPE_STRING,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
}
_PACKAGE = "trueup.wire"
_MAP = "map"

# message -> fields: (name, number, type, repeated). Numbers are those of opentelemetry-proto.
_SCHEMAS: dict[str, list[tuple[str, int, str, bool]]] = {
    "Link": [("trace_id", 1, "bytes", False)],
    "Status": [("message", 2, "bytes", False), ("code", 3, "int32", False)],
    "Event": [("time_unix_nano", 1, "fixed64", False), ("name", 2, "bytes", False), ("attributes", 3, _MAP, True)],
    "Resource": [("attributes", 1, _MAP, True)],
    "Span": [
        ("trace_id", 1, "bytes", False),
        ("span_id", 2, "bytes", False),
        ("trace_state", 3, "bytes", False),
        ("parent_span_id", 4, "bytes", False),
        ("name", 5, "bytes", False),
        ("start_time_unix_nano", 7, "fixed64", False),
        ("end_time_unix_nano", 8, "fixed64", False),
        ("attributes", 9, _MAP, True),
        ("events", 11, "bytes", True),
        ("links", 13, "bytes", True),
        ("status", 15, "bytes", False),
    ],
    "Scope": [("name", 1, "bytes", False)],
    "ScopeSpans": [("scope", 1, "Scope", False), ("spans", 2, "Span", True)],
    "ResourceSpans": [("resource", 1, "bytes", False), ("scope_spans", 2, "ScopeSpans", True)],
    "Request": [("resource_spans", 1, "ResourceSpans", True)],
    "LooseKeyValue": [("key", 1, "bytes", False), ("value", 2, "bytes", False)],
    "LooseArray": [("values", 1, "LooseAny", True)],
    "LooseKvList": [("values", 1, "LooseKvEntry", True)],
    "LooseKvEntry": [("key", 1, "bytes", False), ("value", 2, "LooseAny", False)],
    "LooseAny": [
        ("string_value", 1, "bytes", False),
        ("bool_value", 2, "bool", False),
        ("int_value", 3, "int64", False),
        ("double_value", 4, "double", False),
        ("array_value", 5, "LooseArray", False),
        ("kvlist_value", 6, "LooseKvList", False),
        ("bytes_value", 7, "bytes", False),
    ],
    "LooseAttributes": [("attributes", 1, "LooseKeyValue", True)],
    "LooseEvent": [
        ("time_unix_nano", 1, "fixed64", False),
        ("name", 2, "bytes", False),
        ("attributes", 3, "LooseKeyValue", True),
    ],
    "LooseSpan": [
        ("trace_id", 1, "bytes", False),
        ("span_id", 2, "bytes", False),
        ("trace_state", 3, "bytes", False),
        ("parent_span_id", 4, "bytes", False),
        ("name", 5, "bytes", False),
        ("start_time_unix_nano", 7, "fixed64", False),
        ("end_time_unix_nano", 8, "fixed64", False),
        ("attributes", 9, "LooseKeyValue", True),
        ("events", 11, "bytes", True),
        ("links", 13, "bytes", True),
        ("status", 15, "bytes", False),
    ],
    "Log": [
        ("time_unix_nano", 1, "fixed64", False),
        ("body", 5, "bytes", False),
        ("attributes", 6, _MAP, True),
        ("trace_id", 9, "bytes", False),
        ("span_id", 10, "bytes", False),
        ("observed_time_unix_nano", 11, "fixed64", False),
        ("event_name", 12, "bytes", False),
    ],
    "LooseLog": [
        ("time_unix_nano", 1, "fixed64", False),
        ("body", 5, "bytes", False),
        ("attributes", 6, "LooseKeyValue", True),
        ("trace_id", 9, "bytes", False),
        ("span_id", 10, "bytes", False),
        ("observed_time_unix_nano", 11, "fixed64", False),
        ("event_name", 12, "bytes", False),
    ],
    "NestedScope": [("scope", 1, "bytes", False), ("spans", 2, "bytes", True)],
    "NestedResource": [("resource", 1, "bytes", False), ("scope_spans", 2, "NestedScope", True)],
    "Nested": [("resource_spans", 1, "NestedResource", True)],
}


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="trueup/wire.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _SCHEMAS.items():
        message = file.message_type.add(name=message_name)
        one_of = message_name == "LooseAny"  # the last value on the wire wins, and none at all is null
        if one_of:
            message.oneof_decl.add(name="value")
        for name, number, kind, repeated in fields:
            field = message.field.add(name=name, number=number)
            field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            if one_of:
                field.oneof_index = 0
            if kind == _MAP:
                entry = _map_entry(message, name)
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{_PACKAGE}.{message_name}.{entry}"
            elif kind in _TYPES:
                field.type = _TYPES[kind]
            else:
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    return file


def _map_entry(message: DescriptorProto, field_name: str) -> str:
    entry = message.nested_type.add(name=f"{field_name.capitalize()}Entry")
    entry.options.map_entry = True
    for name, number, kind in (("key", 1, "string"), ("value", 2, "bytes")):
        entry.field.add(name=name, number=number, type=_TYPES[kind], label=FieldDescriptorProto.LABEL_OPTIONAL)
    return str(entry.name)


_pool = DescriptorPool()
_pool.Add(_file())


def _message(name: str) -> Any:
    return GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Request = _message("Request")
Span = _message("Span")
Scope = _message("Scope")
Resource = _message("Resource")
Event = _message("Event")
Link = _message("Link")
Status = _message("Status")
Nested = _message("Nested")
LooseSpan = _message("LooseSpan")
Log = _message("Log")
LooseLog = _message("LooseLog")
LooseEvent = _message("LooseEvent")
LooseAttributes = _message("LooseAttributes")
LooseAny = _message("LooseAny")
