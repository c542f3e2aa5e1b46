"""Which life of a conversation it is: after all about an id was forgotten, it may come again and begins anew.

The rule this file keeps: the same life has the same name whenever the log is read, and no two lives of a conversation
have one name (docs/adr/0007).
"""

from __future__ import annotations

import msgspec

from pipeline.core.judging.state import Conversation
from pipeline.core.timeline import SECOND
from schemas.outcome import Attached
from schemas.span import Span, TraceSpans

_decode_span = msgspec.msgpack.Decoder(Span).decode


def begin(conversation: Conversation, record: TraceSpans | Attached) -> None:
    """Note the event time of the first record that has one."""
    if conversation.began:
        return
    if isinstance(record, TraceSpans):
        moment = min((_decode_span(body).start for _, _, body in record.spans), default=0)
    else:
        moment = record.outcome.event_time if record.outcome is not None else 0
    conversation.began = moment // SECOND * SECOND
