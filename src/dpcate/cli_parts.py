"""What several groups of commands share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dpcate.errors import InputError

Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]


@contextmanager
def progress_bar(quiet: bool) -> Iterator:
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
