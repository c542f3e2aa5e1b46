"""A model that needs no key and no network: it speaks OpenAI's chat completions, and says what its script says.

    python examples/stub_model.py COMMAND ARGUMENT...

serves on a free port of loopback while the command runs, and tells it by OPENAI_BASE_URL and OPENAI_API_KEY, which any
program with OpenAI's client reads. It calls the tools that it is offered, one at a time, in the order of its script,
and answers when none is left: the same question gives the same calls and words. Needs only the standard library.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

ORDER_ID = re.compile(r"\bA-\w+")
CHARACTERS_PER_TOKEN = 4
COMPLETIONS = "/v1/chat/completions"


@dataclass(frozen=True)
class Scene:
    """What the model does after a customer's message that has one of the words.

    Attributes:
        calls: tools in the order in which it calls them, with their arguments; `{order}` is the order spoken of. Tools
            that the agent does not have are passed over: one scene serves an agent and the one that it hands over to.
        answer: what it says when nothing is left to call; `{last}` is what the last tool said.
    """

    words: str
    answer: str
    calls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


SCRIPT: tuple[Scene, ...] = (
    Scene(
        r"\bkettle",
        "The red kettle is in stock and costs 39.90. Shall I order two, to the address that we have?",
        {"search_products": {"query": "red kettle"}},
    ),
    Scene(
        r"yes, order",
        "Done: {last}",
        {
            "look_up_address": {},
            "create_order": {"sku": "KET-RED", "quantity": 2},
            "send_confirmation": {},
        },
    ),
    Scene(
        r"send .*back|return",
        "Order {order} can be returned, and you would get 39.90 back. Do you want me to?",
        {"transfer_to_returns_agent": {}, "look_up_order": {"order_id": "{order}"}},
    ),
    Scene(
        r"yes, (please )?refund",
        "Your return is authorised and the label is in your mail. The money takes up to two days.",
        {"authorize_return": {"order_id": "{order}"}, "send_label": {"order_id": "{order}"}},
    ),
    Scene(
        r"where is",
        "Here is what the carrier says: {last}",
        {"find_order": {"order_id": "{order}"}, "track_parcel": {"order_id": "{order}"}},
    ),
    Scene(r"thank", "You are welcome!"),
)


def reply(request: Mapping[str, Any]) -> dict[str, Any]:
    """The assistant's next message: a tool call, or words."""
    messages: Sequence[Mapping[str, Any]] = request["messages"]
    asked = max(index for index, message in enumerate(messages) if message["role"] == "user")
    scene = next((scene for scene in SCRIPT if re.search(scene.words, text(messages[asked]), re.IGNORECASE)), None)
    if scene is None:
        return {"role": "assistant", "content": "I can order kettles, take orders back and tell where a parcel is."}
    since = messages[asked + 1 :]
    facts = {"order": order_of(messages), "last": text(since[-1]) if since else ""}
    offered = {tool["function"]["name"] for tool in request.get("tools") or ()}
    for name, arguments in scene.calls.items():
        if name in offered and not done(since, name):
            filled = {
                key: value.format(**facts) if isinstance(value, str) else value for key, value in arguments.items()
            }
            call = {"id": f"call_{uuid4().hex}", "type": "function"}
            function = {"name": name, "arguments": json.dumps(filled)}
            return {"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]}
    return {"role": "assistant", "content": scene.answer.format(**facts)}


def done(since: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether the tool was called and did not ask to be called again."""
    ids = {
        call["id"] for message in since for call in message.get("tool_calls") or () if call["function"]["name"] == name
    }
    results = [text(message) for message in since if message["role"] == "tool" and message["tool_call_id"] in ids]
    return bool(results) and "try again" not in results[-1].lower()


def order_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The last order that anybody spoke of."""
    found = [order for message in messages for order in ORDER_ID.findall(text(message))]
    return found[-1] if found else "A-0"


def text(message: Mapping[str, Any]) -> str:
    """A message's words; clients send them as a string or in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def completion(request: Mapping[str, Any]) -> dict[str, Any]:
    """The body of the answer, with the usage that such a request might have."""
    message = reply(request)
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    tokens_in = len(json.dumps(request["messages"])) // CHARACTERS_PER_TOKEN
    tokens_out = len(json.dumps(message)) // CHARACTERS_PER_TOKEN
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }


class Handler(BaseHTTPRequestHandler):
    """Chat completions, not streamed; all else is refused with words."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != COMPLETIONS or request.get("stream"):
            self._answer(404, {"error": {"message": f"the stub answers {COMPLETIONS} alone, and does not stream"}})
        else:
            self._answer(200, completion(request))

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing: what the agent prints is what one wants to see."""

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)


@contextmanager
def served() -> Iterator[str]:
    """The base URL for OpenAI's client, as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def main(command: list[str]) -> int:
    """Runs the command beside the model; its status is the command's."""
    if not command:
        print("usage: stub_model.py COMMAND ARGUMENT...", file=sys.stderr)
        return 2
    with served() as url:
        environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none-is-needed"}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
