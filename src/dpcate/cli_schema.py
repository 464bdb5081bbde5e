"""`dpcate schema`: write the template of a schema, and check one that was filled in."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dpcate.cli_parts import Json, Quiet, answer
from dpcate.errors import InputError
from dpcate.files import require_writable, write_atomically

app = typer.Typer(no_args_is_help=True, help="Declare the public facts about a table.")


@app.command()
def init(
    data: Annotated[Path, typer.Argument(help="Table (.csv, .csv.gz or .parquet); only its header is read.")],
    out: Annotated[Path | None, typer.Option(help="Where the template goes; standard output if not given.")] = None,
    as_json: Json = False,
) -> None:
    """A template with the names and declared types of the columns; every fact is left to fill in."""
    from dpcate.declare import schema_template
    from dpcate.tables import column_types

    if out is not None:
        require_writable(out)
        if out.exists():
            raise InputError(f"{out.name!r} exists; a schema that may have been filled in is not overwritten")
    template = schema_template(data)
    if out is not None:
        write_atomically(out, template.encode())
    if as_json:
        answer({"columns": column_types(data), **({"template": template} if out is None else {"out": str(out)})})
    elif out is None:
        sys.stdout.write(template)


@app.command()
def check(
    schema: Annotated[Path, typer.Argument(help="Schema file (TOML).")],
    data: Annotated[Path | None, typer.Option(help="Table whose header is held against the schema.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Whether a schema can be used, alone or with a table, of which no cell is read."""
    from dpcate.declare import mismatches
    from dpcate.schema import Schema

    loaded = Schema.load(schema)
    notes = [] if data is None else mismatches(loaded, data)
    if as_json:
        roles = {"treatment": loaded.treatment.name, "outcome": loaded.outcome.name}
        answer({"usable": True, **roles, "covariates": list(loaded.covariates), "notes": notes})
        return
    for note in notes:
        print(f"note: {note}")
    if quiet:
        return
    print(
        f"usable: effect of {loaded.treatment.name} on {loaded.outcome.name}, {len(loaded.covariates)} covariates"
        + ("" if data is None else f", all {len(loaded.columns)} columns found")
    )
