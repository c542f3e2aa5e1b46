"""Tells trueup what a payment provider says: receives its webhooks, checks who sent them, and posts them as outcomes.

    PAYMENT_WEBHOOK_SECRET=whsec_... TRUEUP_URL=http://localhost:4318 python examples/outcome_webhook/webhook.py

It keeps two rules. A webhook that is not signed by the provider changes nothing. And the provider hears 200 only when
trueup has the outcome: otherwise it delivers the event again, for days. The id of an outcome is made from the id of the
provider's event, so that one that is delivered twice changes nothing. So this program keeps no state, may be killed
at any moment, and several of it may run. Needs only the standard library.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/webhooks/payments"
SIGNATURE = "Payment-Signature"  # "t=<Unix time>,v1=<hex>", as Stripe's Stripe-Signature
SIGNATURE_AGE_SECONDS = 300
MOST_BYTES = 256 * 1024
PATIENCE_SECONDS = 8.0  # providers give up a delivery after some 10 s, and come again
FIRST_WAIT_SECONDS = 0.25

SAYS: Mapping[str, tuple[str, str]] = {
    "payment.settled": ("payment_status", "settled"),
    "payment.declined": ("payment_status", "declined"),
    "payment.charged_back": ("payment_status", "declined"),
    "refund.settled": ("refund_status", "settled"),
    "refund.rejected": ("refund_status", "rejected"),
}
"""Type of the provider's event -> the field that a contract reads as `evidence.<field>`, and its value."""


class Refused(Exception):
    """Args:
    status: of HTTP, for the provider.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Trueup:
    """Where outcomes go.

    Attributes:
        token: of a scope `outcomes` and the source `billing`; on loopback none is needed.
        patience_seconds: how long a delivery may take.
    """

    url: str
    token: str = ""
    patience_seconds: float = PATIENCE_SECONDS

    def post(self, outcome: Mapping[str, Any]) -> None:
        """Returns when trueup has it; waits as long as trueup asks to, within the provider's patience.

        Raises:
            Refused: 503 if trueup cannot take it now, 500 if it says that the outcome is wrong.
        """
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self.token}"} if self.token else {}
        )
        request = urllib.request.Request(f"{self.url}/v1/outcomes", json.dumps(outcome).encode(), headers)
        deadline = time.monotonic() + self.patience_seconds
        wait = FIRST_WAIT_SECONDS
        while True:
            left = deadline - time.monotonic()
            try:
                with urllib.request.urlopen(request, timeout=max(left, FIRST_WAIT_SECONDS)):
                    return
            except urllib.error.HTTPError as error:
                said = error.read().decode(errors="replace")
                if error.code not in (429, 502, 503, 504):
                    raise Refused(500, f"trueup refuses the outcome: {error.code} {said}") from error
                asked = error.headers.get("Retry-After", "")
                wait = float(asked) if asked.isdecimal() else wait * 2
            except OSError as error:  # nobody answers there, or not in time
                said, wait = str(error), wait * 2
            if time.monotonic() + wait > deadline:
                raise Refused(503, f"trueup does not take outcomes now: {said}")
            time.sleep(wait)


def check_signature(given: str, body: bytes, secret: str, now: float) -> None:
    """The provider signs `<time>.<body>`; a signature that is old may have been overheard and is none.

    Raises:
        Refused: 401, and not a word on what was wrong with it.
    """
    parts = [part.partition("=") for part in given.split(",")]
    at = next((value for name, _, value in parts if name.strip() == "t"), "")
    wanted = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    genuine = any(
        hmac.compare_digest(wanted.encode(), value.encode()) for name, _, value in parts if name.strip() == "v1"
    )
    if not (genuine and at.isdecimal() and abs(now - int(at)) <= SIGNATURE_AGE_SECONDS):
        raise Refused(401, "the signature does not fit")


def outcome_of(body: bytes) -> dict[str, Any] | None:
    """trueup's outcome for a provider's event; None if it is of no use to a contract.

    Raises:
        Refused: 400, if it is not what the provider documents.
    """
    try:
        event = json.loads(body)
        said = SAYS.get(event["type"])
        if said is None:
            return None
        order = event["data"]["metadata"]["order_id"]  # what the shop gave the provider when it asked for the money
        return {
            "event_id": f"payments:{event['id']}",
            "event_time": datetime.fromtimestamp(event["created"], UTC).isoformat(),
            "source": "billing",
            "kind": "evidence",
            "correlation": {"order_id": order},
            "data": dict([said]),
        }
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise Refused(400, f"not an event of the provider: {type(error).__name__} {error}") from error


def receive(
    headers: Mapping[str, str], body: bytes, secret: str, trueup: Trueup, now: Callable[[], float] = time.time
) -> tuple[int, str]:
    """What the provider is answered."""
    try:
        check_signature(headers.get(SIGNATURE, ""), body, secret, now())
        outcome = outcome_of(body)
        if outcome is None:
            return 200, "of no use, and well"
        trueup.post(outcome)
        return 200, f"posted {outcome['event_id']}"
    except Refused as refused:
        return refused.status, str(refused)


def server(port: int, secret: str, trueup: Trueup) -> ThreadingHTTPServer:
    """Serves on loopback; put what terminates TLS in front."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0

        def do_POST(self) -> None:
            size = self.headers.get("Content-Length", "")
            if self.path != PATH:
                status, words = 404, f"webhooks go to {PATH}"
            elif not size.isdecimal() or int(size) > MOST_BYTES:
                status, words = 413, f"a webhook has at most {MOST_BYTES} bytes, and says how many"
            else:
                status, words = receive(dict(self.headers.items()), self.rfile.read(int(size)), secret, trueup)
            encoded = (words + "\n").encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> int:
    """Serves until it is stopped."""
    secret = os.environ.get("PAYMENT_WEBHOOK_SECRET", "")
    if not secret:
        print("webhook: set PAYMENT_WEBHOOK_SECRET to the secret that the provider signs with", file=sys.stderr)
        return 2
    trueup = Trueup(
        os.environ.get("TRUEUP_URL", "http://localhost:4318").rstrip("/"), os.environ.get("TRUEUP_TOKEN", "")
    )
    with server(int(os.environ.get("PORT", "8090")), secret, trueup) as serving:
        print(f"webhooks at http://127.0.0.1:{serving.server_port}{PATH}, outcomes to {trueup.url}", flush=True)
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
