"""`trueup contracts check`: are the contracts well written?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.common import Config, Debug, contract_files, settings
from pipeline.core.contracts.parse import ContractError, load

app = typer.Typer(help="The success criteria of task families.", no_args_is_help=True)


@app.callback()
def contracts() -> None:
    """The success criteria of task families."""


@app.command()
def check(
    folder: Annotated[Path | None, typer.Argument(help="Folder of contracts; ./contracts if there is one.")] = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Parses and type-checks every contract; tells everything that is wrong, with file and line.

    Example: trueup contracts check ./contracts
    """
    chosen = settings(config, contracts=folder)
    files = contract_files(chosen.contracts)
    try:
        book = load(files, chosen.rules)
    except ContractError as error:
        for problem in error.problems:
            print(problem)
        raise typer.Exit(2) from error
    print(f"{len(files)} contracts are well written: {', '.join(sorted(one.name for one in book))}")
