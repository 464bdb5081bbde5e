"""The import rules of ARCHITECTURE.md, and that noise is drawn in one place only."""

import ast
from pathlib import Path

import pytest

import dpcate

ROOT = Path(dpcate.__file__).parent
MODULES = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in ROOT.rglob("*.py")}

# Which of our modules a package may import (besides itself): prefixes, "x!" means the package's own names only.
ALLOWED = {
    "errors": [],
    "extras": ["errors"],
    "files": ["errors"],
    "privacy": ["errors"],
    "schema": ["errors", "files"],
    "tables": ["errors"],
    "declare": ["errors", "schema", "tables"],
    "encoding": ["errors", "schema", "tables"],
    "models": ["errors"],
    "data": ["errors", "schema", "tables", "encoding", "privacy!"],
    "orthogonal": ["errors"],
    "regress": ["errors", "bins", "models", "privacy"],
    "nuisance": ["errors", "schema", "encoding", "data!", "privacy!", "regress!"],
    "query": ["errors", "schema", "tables", "encoding", "models", "release"],
    "findings": ["errors"],
    "bins": [],
    "diagnostics": ["errors", "bins", "schema", "encoding", "models", "findings", "data!", "orthogonal!", "privacy"],
    "release": ["errors", "files", "schema", "models", "findings", "query"],
    "plots": ["errors", "schema", "encoding", "models", "release"],
    "report": ["errors", "schema", "tables", "encoding", "models", "findings", "plots", "release"],
    "datasets": ["errors", "extras", "schema", "tables", "encoding"],
    "paper": ["errors", "models", "privacy!", "regress!"],
    "spending": ["errors", "privacy!", "release"],
    "planning": [
        "errors",
        "files",
        "schema",
        "tables",
        "encoding",
        "data!",
        "privacy!",
        "nuisance!",
        "estimator",
        "pipeline",
        "release",
        "plots",
    ],
}

# Functions that draw random numbers, and where: noise in privacy/, simulated data in datasets/ and bench/,
# fixed public points and initial weights (seeded with 0) where they are listed.
DRAWS = {
    "normal",
    "standard_normal",
    "laplace",
    "gauss",
    "randbits",
    "random",
    "uniform",
    "default_rng",
    "Generator",
}
MAY_DRAW = {
    "privacy/noise": DRAWS,
    "datasets/synthetic": DRAWS,
    "datasets/mimic": DRAWS,
    "datasets/tcga": DRAWS,
    "planning/standin": DRAWS,
    "bench/tuning": DRAWS,
    "bench/dpsgd": DRAWS,
    "bench/path": DRAWS,
    "bench/problems": DRAWS,
    "bench/clinic": DRAWS,
    "bench/interplay": DRAWS,
    "bench/published": DRAWS,
    "bench/extremes": DRAWS,
    "bench/planner": DRAWS,
    "bench/peers/cases": DRAWS,
    "bench/paper/sources": DRAWS,
}
PUBLIC_SEQUENCE = {
    "models/fourier": {"default_rng"},
    "encoding": {"default_rng", "random"},
    "paper/gross_error": {"default_rng", "random"},
    "paper/network": {"default_rng", "uniform"},
    "regress/dpsgd": {"default_rng", "normal"},  # public initial weights, the same for everybody
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            base = node.module
            own = base == "dpcate"
            yield from (f"{base}.{alias.name}" if own else base for alias in node.names)


def ours(path):
    return {name.removeprefix("dpcate.") for name in imports(path) if name.startswith("dpcate.")}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_only_what_its_package_may(module):
    package = module.split("/")[0]
    if package not in ALLOWED:
        outer = {
            "__init__",
            "__main__",
            "_version",
            "estimator",
            "pipeline",
            "cli",
            "cli_answers",
            "cli_bench",
            "cli_ledger",
            "cli_options",
            "cli_parts",
            "cli_plan",
            "cli_schema",
            "bench",
        }
        assert package in outer
        return
    for name in ours(MODULES[module]):
        target = name.split(".")[0]
        inside = "." in name
        allowed = ALLOWED[package]
        fine = target == package or target in allowed or (f"{target}!" in allowed and not inside)
        assert fine, f"{module} must not import dpcate.{name}"


def test_the_core_stands_on_few_libraries():
    expected = {"numpy", "scipy", "dp_accounting", "randomgen", "sqlalchemy", "dpcate"}
    stdlib = {"math", "os", "secrets", "collections", "dataclasses", "typing"}
    stdlib |= {
        "fcntl",
        "functools",
        "hashlib",
        "itertools",
        "pathlib",
        "struct",
        "threading",
        "zlib",
    }  # the noise path on disk
    stdlib |= {"datetime", "sqlite3", "time", "urllib"}  # the ledger
    for module, path in MODULES.items():
        if module.startswith("privacy"):
            assert {name.split(".")[0] for name in imports(path)} <= expected | stdlib, module


def drawn(path):
    """Names of drawing functions that are called, whoever owns them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if name in DRAWS:
                yield name


@pytest.mark.parametrize("module", sorted(MODULES))
def test_noise_is_drawn_in_one_place_only(module):
    permitted = MAY_DRAW.get(module, PUBLIC_SEQUENCE.get(module, set()))
    assert set(drawn(MODULES[module])) <= permitted
    if module not in MAY_DRAW:
        assert not {
            name for name in imports(MODULES[module]) if name.split(".")[0] in {"random", "secrets", "randomgen"}
        }


def test_public_sequences_have_a_fixed_seed():
    for module in PUBLIC_SEQUENCE:
        assert "default_rng(0)" in MODULES[module].read_text()


def test_only_mechanisms_use_the_noise_source():
    for module, path in MODULES.items():
        if module in {"privacy/mechanisms", "privacy/__init__", "privacy/noise", "privacy/path"}:
            continue
        assert not {name for name in ours(path) if name.startswith("privacy.noise")}, module
        source = path.read_text()
        assert ".bulk(" not in source, module


def test_every_guarantee_has_a_page():
    pages = {path.stem for path in (ROOT / "privacy" / "proofs").glob("*.md")}
    assert {"gaussian", "composition", "splitting", "features-release", "ledger"} <= pages
