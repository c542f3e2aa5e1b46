"""Exit 0 if a URL answers 200, else 1 and why: the health check of a container, which has Python but no curl."""

from __future__ import annotations

import sys
import urllib.request
from http import HTTPStatus

TIMEOUT_SECONDS = 3.0  # below compose's 5 s, so that the reason still reaches the log


def main(url: str) -> int:
    # No proxy of the environment: the question is whether this very process answers.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as answer:
            status = answer.status
    except OSError as error:  # a refusal, a timeout, and every answer of 400 and above
        print(f"{url}: {error}")
        return 1
    print(f"{url}: {status}")
    return 0 if status == HTTPStatus.OK else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
