"""OTLP's messages with every string as bytes, so that one bad UTF-8 attribute does not cost the request it came in.

The stock classes refuse such a request whole. Who reads the topic decides per span; here only the frame must be sound.
"""

from __future__ import annotations

from functools import cache

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

FILES = (common_pb2, resource_pb2, trace_pb2, logs_pb2, trace_service_pb2, logs_service_pb2)  # each after what it needs


ITEMS = {"ScopeSpans": "spans", "ScopeLogs": "log_records"}


def tolerant(message: type[Message]) -> type[Message]:
    """The class that reads what `message` reads, and bad UTF-8 besides; what it writes is what it read."""
    return _class(message.DESCRIPTOR.full_name, False)


def framing(message: type[Message]) -> type[Message]:
    """The class that leaves spans and log records undecoded, so that a broken one can be left out."""
    return _class(message.DESCRIPTOR.full_name, True)


@cache
def _class(name: str, items_as_bytes: bool) -> type[Message]:
    return GetMessageClass(_pool(items_as_bytes).FindMessageTypeByName(name))


@cache
def _pool(items_as_bytes: bool) -> DescriptorPool:
    pool = DescriptorPool()
    for module in FILES:
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            _to_bytes(message, items_as_bytes)
        pool.Add(file)
    return pool


def _to_bytes(message: DescriptorProto, items_too: bool) -> None:
    for field in message.field:
        if field.type == FieldDescriptorProto.TYPE_STRING:
            field.type = FieldDescriptorProto.TYPE_BYTES
        elif items_too and ITEMS.get(message.name) == field.name:
            field.type = FieldDescriptorProto.TYPE_BYTES
            field.ClearField("type_name")
    for nested in message.nested_type:
        _to_bytes(nested, items_too)
