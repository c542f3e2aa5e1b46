"""Plays the payment provider: signs one event as it would, and sends it to the webhook.

    PAYMENT_WEBHOOK_SECRET=whsec_... python examples/outcome_webhook/send_payment_event.py payment.settled A-100

A third and a fourth argument are the event's id and its Unix time: the same again is a redelivery, and changes nothing.
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
from uuid import uuid4


def signed(event: dict[str, object], secret: str) -> tuple[bytes, str]:
    """The body, and its signature."""
    body = json.dumps(event).encode()
    at = int(time.time())
    return body, f"t={at},v1={hmac.new(secret.encode(), f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


def main(kind: str, order: str, event_id: str = "", created: str = "") -> int:
    """Sends it; the status is 0 if the webhook took it."""
    event: dict[str, object] = {
        "id": event_id or f"evt_{uuid4().hex}",
        "type": kind,
        "created": int(created or time.time()),
        "data": {"metadata": {"order_id": order}},
    }
    body, signature = signed(event, os.environ["PAYMENT_WEBHOOK_SECRET"])
    url = os.environ.get("WEBHOOK_URL", "http://localhost:8090/webhooks/payments")
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", "Payment-Signature": signature})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(answer.status, answer.read().decode().strip())
            return 0
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode().strip())
        return 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: send_payment_event.py TYPE ORDER [EVENT_ID [UNIX_TIME]]")
    sys.exit(main(*sys.argv[1:]))
