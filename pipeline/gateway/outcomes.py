"""`POST /v1/outcomes`: one outcome event or a list of them.

The rule this file keeps: all of a request or nothing. Every event is checked before the first one is written, and an
error names the item and the field, so that the sender can mend it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NoReturn

from aiohttp import web
from pydantic import ValidationError

from pipeline.errors import BrokerUnreachable
from pipeline.gateway.broker import DELIVERY_SECONDS, MAX_RECORD_BYTES, Produce, RecordTooLarge
from pipeline.gateway.request import Authorize, Refused, Scope, body_of
from schemas.outcome import OutcomeEvent
from schemas.topics import Topic

JSON = "application/json"
RETRY_AFTER_SECONDS = 5
ERRORS_SHOWN = 100


class Invalid(Exception):
    """Args:
    problems: one for each field: item, field, message.
    """

    def __init__(self, problems: list[dict[str, Any]]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


class OutcomesRoute:
    """The handler."""

    def __init__(self, produce: Produce, authorize: Authorize, max_request_bytes: int) -> None:
        self._produce, self._authorize, self._limit = produce, authorize, max_request_bytes

    async def __call__(self, request: web.Request) -> web.Response:
        try:
            await self._authorize(request, Scope.OUTCOMES)
            if request.content_type != JSON:
                raise Refused(415, f"Content-Type must be {JSON}")
            events = checked(await body_of(request, self._limit))
            await self._deliver(events)
        except Refused as refused:
            return web.json_response({"error": refused.message}, status=refused.status, headers=refused.headers)
        except Invalid as invalid:
            told = {"error": "no event of this request was taken", "problems": invalid.problems[:ERRORS_SHOWN]}
            return web.json_response(told, status=400)
        return web.json_response({"accepted": len(events)})

    async def _deliver(self, events: Sequence[bytes]) -> None:
        try:
            async with asyncio.timeout(DELIVERY_SECONDS):
                await asyncio.gather(*(self._produce(Topic.OUTCOMES.value, event) for event in events))
        except (BrokerUnreachable, TimeoutError) as error:
            raise Refused(
                503, "Kafka does not take outcomes now; send them again, repeats do no harm", RETRY_AFTER_SECONDS
            ) from error
        except RecordTooLarge as error:
            raise Refused(413, "Kafka does not take so large an event") from error


def checked(body: bytes) -> list[bytes]:
    """The events of a request, each as it goes to Kafka.

    Raises:
        Refused: it is not JSON, or neither an object nor a list.
        Invalid: an event is not what `OutcomeEvent` says.
    """
    try:
        # Not a faster parser: this one keeps whole numbers of any length, and ids may be such.
        parsed = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    items = parsed if isinstance(parsed, list) else [parsed]
    events: list[bytes] = []
    problems: list[dict[str, Any]] = []
    for position, item in enumerate(items):
        encoded = json.dumps(item, separators=(",", ":")).encode()
        try:
            OutcomeEvent.model_validate_json(encoded)  # the very bytes that readers will get
        except ValidationError as error:
            problems += [
                {"item": position, "field": ".".join(map(str, one["loc"])), "message": one["msg"]}
                for one in error.errors(include_url=False, include_input=False, include_context=False)
            ]
        if len(encoded) > MAX_RECORD_BYTES:
            problems.append({"item": position, "field": "", "message": f"an event may have {MAX_RECORD_BYTES} bytes"})
        events.append(encoded)
    if problems:
        raise Invalid(problems)
    return events


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
