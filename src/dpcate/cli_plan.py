"""`dpcate plan`: what a budget would buy, before any row is read."""

from pathlib import Path
from typing import Annotated

import typer

from dpcate.cli_options import (
    Delta,
    DiagnosticNames,
    Epsilon,
    Floor,
    LearnerName,
    NeighboursName,
    NuisanceName,
    Queries,
    SchemaFile,
    SecondStageName,
    SplitName,
    TrialPropensity,
)
from dpcate.cli_parts import Json, Quiet, answer, progress_bar
from dpcate.errors import InputError

NOTHING = "none"


def plan(
    schema: SchemaFile,
    rows: Annotated[int, typer.Option(help="How many rows there will be.")],
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    width: Annotated[float | None, typer.Option(help="Wished width of intervals: how many rows does it take?")] = None,
    alpha: Annotated[float, typer.Option(help="Intervals at level 1 − alpha.")] = 0.1,
    outcome_sd: Annotated[
        float | None, typer.Option(help="A public guess of the outcome's sd; a sixth of its range if not given.")
    ] = None,
    effect_sd: Annotated[
        float | None, typer.Option(help="How much effects differ; a quarter of the outcome's sd if not given.")
    ] = None,
    treated: Annotated[float | None, typer.Option(help="Share of treated; one half if not given.")] = None,
    learner: LearnerName = "r",
    second_stage: SecondStageName = "moments",
    nuisance: NuisanceName = "moments",
    known_propensity: TrialPropensity = None,
    split: SplitName = "none",
    neighbours: NeighboursName = "replace-one",
    propensity_floor: Floor = 0.05,
    queries: Queries = None,
    diagnostic: DiagnosticNames = None,
    compare: Annotated[
        str, typer.Option(help=f"Second stages to compare with, by commas; '{NOTHING}' for no comparison.")
    ] = "moments,features,kernel,network",
    plot: Annotated[Path | None, typer.Option(help="Draw width against ε here (.png or .svg).")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """What to expect of a fit within this budget, by trying it on made-up people; no data is read."""
    from dpcate import KnownPropensity, Schema
    from dpcate import plan as make_plan
    from dpcate.planning.plan import require_picture

    if plot is not None:
        require_picture(plot)
    if treated is not None and known_propensity is not None:
        raise InputError("--treated and --known-propensity say the same: give one of them")
    with progress_bar(quiet) as report:
        planned = make_plan(
            Schema.load(schema),
            rows=rows,
            epsilon=epsilon,
            delta=delta,
            width=width,
            alpha=alpha,
            outcome_sd=outcome_sd,
            effect_sd=effect_sd,
            treated=treated,
            compare=[] if compare == NOTHING else compare.split(","),
            progress=report,
            learner=learner,
            second_stage=second_stage,
            nuisance=nuisance if known_propensity is None else KnownPropensity(known_propensity, outcome=nuisance),
            split=split,
            neighbours=neighbours,
            propensity_floor=propensity_floor,
            queries=queries,
            diagnostics=diagnostic or (),
        )
        if plot is not None:
            report("width against ε", 1.0)
            planned.plot(plot)
    if as_json:
        answer(planned.to_document())
    elif not quiet:
        print(planned)
