"""A file that holds no OTLP at all, and what it seems to be instead, in plain words.

The rule this file keeps: what is said comes from the form of the content; of the content itself only keys are named.
"""

from __future__ import annotations

from pipeline.core.ingest_letters import GZIP, ZSTD
from pipeline.core.otlp.parsing import parse
from pipeline.core.otlp.read_json import MAX_NAMED
from pipeline.core.otlp.reading import key_in_words
from pipeline.review.requests import BOM, JSON_STARTS

WANTED = "OTLP spans or log records"
METRICS = frozenset({"resourceMetrics", "resource_metrics"})
LOOKED_AT = 1_000  # bytes, to tell text from what is none
TEXT_CONTROLS = b"\t\r\n\f\x1b"


def what_it_is(content: bytes) -> str:
    """What follows the name of a file in which nothing could be read."""
    text = content.removeprefix(BOM).strip()
    if not text:
        return "is empty"
    if content.startswith(GZIP) or content.startswith(ZSTD):
        packer = "gzip" if content.startswith(GZIP) else "zstd"
        return f"is packed with {packer}; unpack it first"
    if text.startswith(JSON_STARTS):
        return _json(text)
    if _is_text(text[:LOOKED_AT]):
        return f"is plain text, and no {WANTED}; give what an exporter sends, as protobuf or JSON"
    return (
        f"is no {WANTED}: neither JSON nor a whole protobuf request; "
        "it may have been cut short, or be of another format, such as Avro, Jaeger or Zipkin"
    )


def _json(text: bytes) -> str:
    try:
        document = parse(text)
    except (ValueError, RecursionError) as error:
        return f"begins as JSON and cannot be read to its end: {str(error)[:100] or type(error).__name__}"
    if not isinstance(document, dict):
        return f"is a JSON list, and its items are no {WANTED}: resourceSpans or resourceLogs are needed"
    if METRICS & document.keys():
        return f"holds metrics, which trueup does not read; it reads {WANTED}"
    named = ", ".join(key_in_words(key) for key in list(document)[:MAX_NAMED])
    return f"is JSON, and no {WANTED}: it has neither resourceSpans nor resourceLogs, but {named}"


def _is_text(start: bytes) -> bool:
    try:
        start.decode()
    except UnicodeDecodeError as error:
        if error.end < len(start):  # else a letter that was cut
            return False
    return all(byte >= 0x20 or byte in TEXT_CONTROLS for byte in start)
