"""The options that say how to fit, the same wherever they are asked for."""

from pathlib import Path
from typing import Annotated

import typer

from dpcate.cli_parts import one_of

SchemaFile = Annotated[Path, typer.Option(help="Schema file (TOML) with the public facts.")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget ε, above 0.")]
Delta = Annotated[float, typer.Option(help="Privacy budget δ, well below 1/n.")]
LearnerName = Annotated[str, typer.Option(help="r or dr.", autocompletion=one_of("r", "dr"))]
SecondStageName = Annotated[
    str,
    typer.Option(
        help="moments, features, kernel or network.", autocompletion=one_of("moments", "features", "kernel", "network")
    ),
]
NuisanceName = Annotated[
    str, typer.Option(help="moments, features or network.", autocompletion=one_of("moments", "features", "network"))
]
TrialPropensity = Annotated[
    float | None, typer.Option(help="Treatment probability of a randomised trial; costs no budget.")
]
SplitName = Annotated[
    str, typer.Option(help="none, crossfit or disjoint.", autocompletion=one_of("none", "crossfit", "disjoint"))
]
NeighboursName = Annotated[
    str,
    typer.Option(help="replace-one or add-or-remove-one.", autocompletion=one_of("replace-one", "add-or-remove-one")),
]
Floor = Annotated[float, typer.Option(help="Propensities are kept this far from 0 and 1.")]
Queries = Annotated[Path | None, typer.Option(help="Table of public points: effects are released at these only.")]
DiagnosticNames = Annotated[
    list[str] | None,
    typer.Option(
        help="overlap, outcome, heterogeneity or calibration; repeat for several. Each is paid for.",
        autocompletion=one_of("overlap", "outcome", "heterogeneity", "calibration"),
    ),
]
