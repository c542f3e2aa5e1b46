"""The command line: one short file a command.

The rule this file keeps: what goes wrong is one line that says what, where and what to do, and status 2; a stack trace
comes with `--debug` alone.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

import typer

from pipeline.cli.common import debugging
from pipeline.cli.contracts import app as contracts
from pipeline.cli.demo import demo
from pipeline.cli.explain import explain
from pipeline.cli.forget import forget
from pipeline.cli.gateway import gateway
from pipeline.cli.inspect import inspect
from pipeline.cli.migrate import migrate
from pipeline.cli.sink import sink
from pipeline.cli.up import up
from pipeline.cli.worker import worker
from pipeline.errors import TrueupError

UsageError: Any = typer.BadParameter.__mro__[2]
"""Whatever typer raises about what was typed."""

app = typer.Typer(
    name="trueup",
    help="Whether AI agents finish what customers came for, kept true as the outcomes arrive.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(up)
app.command("demo")(demo)
app.command("worker")(worker)
app.command("gateway")(gateway)
app.command("sink")(sink)
app.command("migrate")(migrate)
app.command("explain")(explain)
app.command("inspect")(inspect)
app.command("forget")(forget)
app.add_typer(contracts, name="contracts")


def main() -> None:
    """Runs the command line, and ends the process."""
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except UsageError as error:
        if not error.format_message():  # nothing was typed, and help has been shown
            sys.exit(2)
        fail(f"{error.format_message().rstrip('.')}; see trueup --help")
    except TrueupError as error:
        fail(str(error))
    except typer.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        if debugging():
            traceback.print_exc()
        sys.exit(130)
    except Exception as error:
        fail(f"an error of trueup itself: {error!r}; --debug shows where")


def fail(message: str) -> None:
    """One line on stderr, status 2."""
    if debugging():
        traceback.print_exc()
    print(f"trueup: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
