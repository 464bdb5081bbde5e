"""What several groups of commands share: options, answers, warnings, progress."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dpcate.errors import InputError

Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no summary: results, warnings, errors only.")]
Json = Annotated[
    bool, typer.Option("--json", help="Answer with one JSON document; errors and warnings are JSON lines too.")
]


def one_of(*values: str) -> Callable[[], list[str]]:
    """What a shell offers for an option with these values."""
    return lambda: list(values)


def answer(document: Any) -> None:
    """The result for a machine: one JSON document on standard output."""
    print(json.dumps(document, allow_nan=False))


def warn(message: str, as_json: bool) -> None:
    """One line on standard error, whatever was silenced."""
    print(json.dumps({"warning": message}) if as_json else f"warning: {message}", file=sys.stderr)


def fail(message: str, kind: str, code: int) -> NoReturn:
    """End with one line on standard error, as JSON if --json stands among the arguments, which may not even parse."""
    line = " ".join(message.split())
    if "--json" in sys.argv[1:]:
        print(json.dumps({"error": {"kind": kind, "message": line, "exit_code": code}}), file=sys.stderr)
    elif line:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(code)


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """Stages and elapsed time on standard error, if that is a terminal."""
    terminal = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=terminal,
        transient=True,
        disable=quiet or not terminal.is_terminal,
    )
    with bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda stage, done: bar.update(task, description=stage, completed=done)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return
    except (OSError, ValueError):
        pass
    raise InputError(f"the folder {folder.name!r} cannot be made")
