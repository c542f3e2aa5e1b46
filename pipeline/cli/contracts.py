"""`trueup contracts check`: are the contracts well written?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.common import Config, Debug, NoContracts, contract_paths, contract_text, settings
from pipeline.core.contracts.parse import read_all

app = typer.Typer(help="The success criteria of task families.", no_args_is_help=True)


@app.callback()
def contracts() -> None:
    """The success criteria of task families."""


@app.command()
def check(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of contracts, or one of them; ./contracts if there is one.")
    ] = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Parses and type-checks every contract; tells everything that is wrong, with file and line.

    Example: trueup contracts check ./contracts
    """
    chosen = settings(config, contracts=folder)
    files: list[tuple[str, str]] = []
    wrong: list[str] = []
    for path in contract_paths(chosen.contracts):
        try:
            files.append((str(path), contract_text(path)))
        except NoContracts as error:
            wrong.append(str(error))
    found, problems = read_all(files, chosen.rules)
    if wrong := [*wrong, *map(str, problems)]:
        print("\n".join(wrong))
        raise typer.Exit(2)
    are = "contract is" if len(found) == 1 else "contracts are"
    print(f"{len(found)} {are} well written: {', '.join(sorted(one.contract.name for one in found))}")
