"""OTLP over HTTP: `/v1/traces` and `/v1/logs`, protobuf and JSON, as the OTLP specification says.

The rule this file keeps: the answer is 200 only once Kafka has all that was taken, and says what will not be used.
"""

from __future__ import annotations

import asyncio

import orjson
from aiohttp import web
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from pipeline.errors import BrokerUnreachable
from pipeline.gateway.broker import DELIVERY_SECONDS, Produce, RecordTooLarge
from pipeline.gateway.counting import LEFT_OUT, MALFORMED
from pipeline.gateway.limits import Limits, Room
from pipeline.gateway.request import Authorize, Refused, body_of
from pipeline.gateway.signals import Signal
from pipeline.gateway.taking import Taken, take_json, take_protobuf
from pipeline.gateway.tolerant import tolerant
from pipeline.tokens import Scope

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
RETRY_AFTER_SECONDS = 5
# google.rpc.Code; what is not here is UNKNOWN
CODES = {400: 3, 401: 16, 403: 7, 408: 4, 413: 3, 415: 3, 429: 8, 503: 14}
UNKNOWN = 2


class OtlpRoute:
    """The handler of one signal."""

    def __init__(self, signal: Signal, produce: Produce, authorize: Authorize, limits: Limits, room: Room) -> None:
        self._signal, self._produce, self._authorize = signal, produce, authorize
        self._limits, self._room = limits, room
        tolerant(signal.request)  # made now, so that the first request does not wait for it

    async def __call__(self, request: web.Request) -> web.Response:
        as_json = request.content_type == JSON
        try:
            token = await self._authorize(request, Scope.SPANS)
            if not as_json and request.content_type != PROTOBUF:
                raise Refused(415, f"Content-Type must be {PROTOBUF} or {JSON}")
            with self._room.hold() as held:
                body = await body_of(request, self._limits, held)
                taken = (take_json if as_json else take_protobuf)(body, self._signal, self._limits, token.tenant)
                await self._deliver(taken.parts)
            request[LEFT_OUT], request[MALFORMED] = taken.refused.total(), taken.malformed.total()
        except Refused as refused:
            return _error(refused, as_json)
        return self._accepted(taken, as_json)

    async def _deliver(self, parts: list[bytes]) -> None:
        try:
            async with asyncio.timeout(DELIVERY_SECONDS):
                for part in parts:
                    await self._produce(self._signal.topic.value, part)
        except (BrokerUnreachable, TimeoutError) as error:
            raise Refused(503, "Kafka does not take the data now; send it again", RETRY_AFTER_SECONDS) from error
        except RecordTooLarge as error:
            raise Refused(413, "Kafka does not take so large a record; send smaller batches") from error

    def _accepted(self, taken: Taken, as_json: bool) -> web.Response:
        rejected = taken.rejected
        if as_json:
            partial = {self._signal.rejected[1]: str(rejected), "errorMessage": taken.complaint}
            return web.Response(body=orjson.dumps({"partialSuccess": partial} if rejected else {}), content_type=JSON)
        answer = self._signal.response()
        if rejected:
            setattr(answer.partial_success, self._signal.rejected[0], rejected)  # type: ignore[attr-defined]
            answer.partial_success.error_message = taken.complaint  # type: ignore[attr-defined]
        return web.Response(body=answer.SerializeToString(), content_type=PROTOBUF)


def _error(refused: Refused, as_json: bool) -> web.Response:
    """A `google.rpc.Status`, in the form the request came in."""
    code = CODES.get(refused.status, UNKNOWN)
    if as_json:
        body, content_type = orjson.dumps({"code": code, "message": refused.message}), JSON
    else:
        body, content_type = Status(code=code, message=refused.message).SerializeToString(), PROTOBUF
    return web.Response(body=body, content_type=content_type, status=refused.status, headers=refused.headers)
