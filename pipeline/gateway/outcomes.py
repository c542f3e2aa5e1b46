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
from pipeline.gateway.limits import Limits, Room, has_many_values, is_deep
from pipeline.gateway.request import Authorize, Refused, body_of
from pipeline.tokens import Scope, Token
from schemas.outcome import OutcomeEvent, unfit
from schemas.topics import Topic

JSON = "application/json"
RETRY_AFTER_SECONDS = 5
ERRORS_SHOWN = 100


class Invalid(Exception):
    """Args:
    problems: one for each field: item, field, message.
    status: of HTTP: 403 where the events are well, and the token may not speak for their sources.
    """

    def __init__(self, problems: list[dict[str, Any]], status: int = 400) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems, self.status = problems, status


class OutcomesRoute:
    """The handler."""

    def __init__(self, produce: Produce, authorize: Authorize, limits: Limits, room: Room) -> None:
        self._produce, self._authorize, self._limits, self._room = produce, authorize, limits, room

    async def __call__(self, request: web.Request) -> web.Response:
        try:
            token = await self._authorize(request, Scope.OUTCOMES)
            if request.content_type != JSON:
                raise Refused(415, f"Content-Type must be {JSON}")
            with self._room.hold() as held:
                events = checked(await body_of(request, self._limits, held), self._limits, token)
                await self._deliver(events)
        except Refused as refused:
            return web.json_response({"error": refused.message}, status=refused.status, headers=refused.headers)
        except Invalid as invalid:
            told = {"error": "no event of this request was taken", "problems": invalid.problems[:ERRORS_SHOWN]}
            return web.json_response(told, status=invalid.status)
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


def checked(body: bytes, limits: Limits, token: Token) -> list[bytes]:
    """The events of a request, each as it goes to Kafka: of the token's tenant, if it has one.

    Raises:
        Refused: it is not JSON, or neither an object nor a list, or more than may be.
        Invalid: an event is not what `OutcomeEvent` says, or not from a source that the token speaks for.
    """
    if has_many_values(body, limits.values):
        raise Refused(413, f"the body has more than {limits.values} values; send fewer events")
    try:
        # Not a faster parser: this one keeps whole numbers of any length, and ids may be such.
        parsed = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body cannot be read as JSON: {error}") from error
    if is_deep(body, limits.depth):
        raise Refused(400, f"the JSON is nested more than {limits.depth} levels deep")
    items = parsed if isinstance(parsed, list) else [parsed]
    if len(items) > limits.items:
        raise Refused(413, f"the request has more than {limits.items} events; send fewer")
    events: list[bytes] = []
    problems: list[dict[str, Any]] = []
    foreign: list[dict[str, Any]] = []
    for position, item in enumerate(items):
        if token.tenant is not None and isinstance(item, dict):
            item = {**item, "tenant": token.tenant}
        if (found := unfit(item)) is not None:
            problems.append({"item": position, "field": found[0], "message": found[1]})
            continue
        encoded = json.dumps(item, separators=(",", ":")).encode()
        try:
            event = OutcomeEvent.model_validate_json(encoded)  # the very bytes that readers will get
        except ValidationError as error:
            problems += [
                {
                    "item": position,
                    "field": ".".join(map(str, one["loc"])),
                    "message": one["msg"].removeprefix("Value error, "),
                }
                for one in error.errors(include_url=False, include_input=False, include_context=False)
            ]
        else:
            if token.sources is not None and event.source not in token.sources:
                message = f"the token {token.name!r} may not speak for the source {event.source!r}"
                foreign.append({"item": position, "field": "source", "message": message})
        if len(encoded) > MAX_RECORD_BYTES:
            problems.append({"item": position, "field": "", "message": f"an event may have {MAX_RECORD_BYTES} bytes"})
        events.append(encoded)
    if problems or foreign:
        raise Invalid(problems + foreign, 400 if problems else 403)
    return events


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
