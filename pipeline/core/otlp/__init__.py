"""OTLP export requests, protobuf and JSON, as spans in their wire form and values: what arrived, not what it means."""
