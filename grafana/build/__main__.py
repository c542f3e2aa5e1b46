"""Write the dashboards, or with --check say which are stale."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.build.system import UID, system

FOLDER = Path(__file__).resolve().parent.parent / "dashboards"


def rendered(page: Dashboard) -> str:
    return json.dumps(json.loads(JSONEncoder().encode(page.build())), indent=2, sort_keys=True) + "\n"


def main(arguments: list[str]) -> int:
    stale = []
    for uid, page in ((UID, system()),):
        file, text = FOLDER / f"{uid}.json", rendered(page)
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(file.name)
        if arguments != ["--check"]:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if arguments == ["--check"] and stale:
        print(f"stale: {', '.join(stale)}; run python -m grafana.build", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
