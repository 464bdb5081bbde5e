"""The ledger of one dataset: a grant, and an append-only history of what was charged to it.

A fit is charged whole, as one event that covers all of its releases, and that charge is on disk before the
fit's first noisy number exists. Whatever happens afterwards, the charge stands: a crash may waste budget, it
never hides spending. The refusal test is in grant.py, the proof in proofs/ledger.md.
"""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Row, text

from dpcate.errors import BudgetError, InputError, LedgerError
from dpcate.privacy.accounting import Declared, Gaussian
from dpcate.privacy.budget import Budget
from dpcate.privacy.database import Database
from dpcate.privacy.grant import Account, Grant, Request, Spent
from dpcate.privacy.migrations import now

LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Granted:
    """A grant in the history."""

    at: str
    grant: Grant


@dataclass(frozen=True, kw_only=True)
class Charged:
    """A charged fit: its own budget, the event that covers it, and, if it ended well, its release.

    `sha256` is the hash of the release file; `details` is what the release says was paid, as JSON.
    """

    number: int
    at: str
    epsilon: float
    delta: float
    event: Spent
    sha256: str | None
    details: str | None


@dataclass(frozen=True, repr=False)
class Ledger:
    """The account of a dataset in the ledger at a URL (or a file name, which means SQLite).

    The dataset is a name that the curator chooses, the same for every fit on the same persons.
    """

    url: str | Path
    dataset: str

    def __post_init__(self) -> None:
        if not isinstance(self.url, str | Path) or not isinstance(self.dataset, str):
            raise InputError("a ledger needs a URL or file name, and the name of a dataset")
        if not (0 < len(self.dataset) <= LONGEST_NAME and self.dataset.isprintable()):
            raise InputError(f"the name of a dataset has 1 to {LONGEST_NAME} printable characters")
        Database(self.url)

    def __repr__(self) -> str:
        return f"Ledger({Database(self.url).place!r}, {self.dataset!r})"

    def grant(self, grant: Grant, *, extend: bool = False) -> None:
        """Give a grant, or with `extend` a larger one in place of the last; what was charged stays charged."""

        def give(connection: Connection) -> None:
            last = _last_grant(connection, self.dataset)
            if last is not None:
                _require_extension(last, grant, self.dataset, extend)
            elif extend:
                raise self._no_grant()
            _insert_grant(connection, self.dataset, grant)

        Database(self.url).write(give, lock=self.dataset, create=True)

    def require(self, request: Request) -> None:
        """Refuse now what would be refused later; nothing is charged."""
        Database(self.url).read(lambda connection: self._event(connection, request))

    def charge(self, request: Request) -> int:
        """Charge a whole fit; when this returns, the charge survives any crash. Its number, for `record`."""

        def pay(connection: Connection) -> int:
            event = self._event(connection, request)
            statement = text(
                "INSERT INTO dpcate_charges (dataset, charged_at, epsilon, delta, mu) "
                "VALUES (:dataset, :now, :epsilon, :delta, :mu) RETURNING id"
            )
            values = {
                "dataset": self.dataset,
                "now": now(),
                "epsilon": request.budget.epsilon,
                "delta": request.budget.delta,
                "mu": event.mu if isinstance(event, Gaussian) else None,
            }
            return int(connection.execute(statement, values).scalar_one())

        return Database(self.url).write(pay, lock=self.dataset)

    def record(self, number: int, *, sha256: str, details: str) -> None:
        """Note which release a charge paid for; once."""

        def note(connection: Connection) -> None:
            statement = text(
                "INSERT INTO dpcate_releases (charge, recorded_at, sha256, details) "
                "VALUES (:number, :now, :sha256, :details)"
            )
            connection.execute(statement, {"number": number, "now": now(), "sha256": sha256, "details": details})

        Database(self.url).write(note, lock=self.dataset)

    def account(self) -> Account:
        """The grant, and all that was charged to it."""
        return Database(self.url).read(self._account)

    def history(self) -> list[Granted | Charged]:
        """Everything that was granted and charged, in the order of time."""

        def entries(connection: Connection) -> list[Granted | Charged]:
            granted = [Granted(at=row.granted_at, grant=_grant(row)) for row in _grants(connection, self.dataset)]
            if not granted:
                raise self._no_grant()
            charged = [_charged(row) for row in _charges(connection, self.dataset)]
            return sorted([*granted, *charged], key=lambda entry: entry.at)

        return Database(self.url).read(entries)

    def _account(self, connection: Connection) -> Account:
        grant = _last_grant(connection, self.dataset)
        if grant is None:
            raise self._no_grant()
        return Account(grant, tuple(_event(row) for row in _charges(connection, self.dataset)))

    def _event(self, connection: Connection, request: Request) -> Spent:
        account = self._account(connection)
        _require_same_promise(account.grant, request, self.dataset)
        event = account.event_for(request)
        if event is None:
            raise BudgetError(_refusal(account, request, self.dataset))
        return event

    def _no_grant(self) -> LedgerError:
        return LedgerError(f"the ledger has no grant for the dataset {self.dataset!r}; see 'dpcate ledger grant'")


def granted_datasets(url: str | Path) -> list[str]:
    """The names of all datasets with a grant."""
    statement = text("SELECT DISTINCT dataset FROM dpcate_grants ORDER BY dataset")
    return Database(url).read(lambda connection: [row.dataset for row in connection.execute(statement)])


def _require_extension(last: Grant, grant: Grant, dataset: str, extend: bool) -> None:
    if not extend:
        raise InputError(f"the dataset {dataset!r} has a grant already; a larger one must be asked for as an extension")
    if (last.budget.neighbours, last.person) != (grant.budget.neighbours, grant.person):
        raise InputError("an extension keeps the neighbour relation and the person column of the grant")
    if not grant.covers(last):
        raise InputError("an extension makes no part of a grant smaller, what is set aside and what is not included")


def _require_same_promise(grant: Grant, request: Request, dataset: str) -> None:
    """Charges add up for one neighbour relation and one idea of who is a person, or for none."""
    promised, asked = grant.budget.neighbours, request.budget.neighbours
    if promised != asked:
        raise InputError(f"the grant of {dataset!r} is for neighbours {promised}; this fit is for {asked}")
    if grant.person != request.person:
        units = ["each row" if person is None else f"column {person!r}" for person in (grant.person, request.person)]
        raise InputError(f"the grant of {dataset!r} protects persons by {units[0]}; this fit by {units[1]}")


def _refusal(account: Account, request: Request, dataset: str) -> str:
    """Why, and what would be covered instead."""
    fit, aside = request.budget, account.declared_left()
    gaussian = account.epsilon_left(fit.delta)
    left = f"epsilon {gaussian:.4g} at this delta is left" if gaussian else "nothing is left"
    if account.grant.declared.epsilon:
        left += f", and of what was set aside epsilon {aside.epsilon:.4g} and delta {aside.delta:.4g}"
    kind = "" if request.gaussian else ", which is not all Gaussian and needs budget that was set aside for such fits"
    return (
        f"the grant of {dataset!r} does not cover this fit of epsilon {fit.epsilon:g} and delta {fit.delta:g}{kind}; "
        f"{left}"
    )


def _insert_grant(connection: Connection, dataset: str, grant: Grant) -> None:
    statement = text(
        "INSERT INTO dpcate_grants (dataset, granted_at, epsilon, delta, neighbours, person, mu, declared_epsilon, "
        "declared_delta) VALUES (:dataset, :now, :epsilon, :delta, :neighbours, :person, :mu, :declared_epsilon, "
        ":declared_delta)"
    )
    values = {
        "dataset": dataset,
        "now": now(),
        "epsilon": grant.budget.epsilon,
        "delta": grant.budget.delta,
        "neighbours": grant.budget.neighbours,
        "person": grant.person,
        "mu": grant.mu,
        "declared_epsilon": grant.declared.epsilon,
        "declared_delta": grant.declared.delta,
    }
    connection.execute(statement, values)


def _grants(connection: Connection, dataset: str) -> list[Row[tuple[object, ...]]]:
    statement = text("SELECT * FROM dpcate_grants WHERE dataset = :dataset ORDER BY id")
    return list(connection.execute(statement, {"dataset": dataset}))


def _last_grant(connection: Connection, dataset: str) -> Grant | None:
    rows = _grants(connection, dataset)
    return _grant(rows[-1]) if rows else None


def _charges(connection: Connection, dataset: str) -> list[Row[tuple[object, ...]]]:
    statement = text(
        "SELECT * FROM dpcate_charges LEFT JOIN dpcate_releases ON charge = id WHERE dataset = :dataset ORDER BY id"
    )
    return list(connection.execute(statement, {"dataset": dataset}))


def _grant(row: Row[tuple[object, ...]]) -> Grant:
    return Grant(
        budget=Budget(epsilon=row.epsilon, delta=row.delta, neighbours=row.neighbours),
        mu=row.mu,
        declared=Declared(row.declared_epsilon, row.declared_delta),
        person=row.person,
    )


def _event(row: Row[tuple[object, ...]]) -> Spent:
    return Declared(row.epsilon, row.delta) if row.mu is None else Gaussian(row.mu)


def _charged(row: Row[tuple[object, ...]]) -> Charged:
    return Charged(
        number=row.id,
        at=row.charged_at,
        epsilon=row.epsilon,
        delta=row.delta,
        event=_event(row),
        sha256=row.sha256,
        details=row.details,
    )
