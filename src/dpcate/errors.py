"""Every error the library raises on purpose.

An error text is a release: it may name a public limit, a declared column or a file, and the remedy,
never a value that came from a row. The command line prints it as one line and exits with `exit_code`.
"""


class DpcateError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 2


class InputError(DpcateError, ValueError):
    """The call is wrong: a parameter, an option, a combination that cannot work."""


class SchemaError(InputError):
    """The declaration of public facts is incomplete or contradicts itself."""


class DataError(InputError):
    """The table as a whole cannot be used: missing columns, unreadable file, too few rows."""


class ReleaseError(InputError):
    """A release file is malformed, or asked for what it does not hold."""


class LedgerError(InputError):
    """The ledger cannot be used: unreachable, damaged, or without a grant for the dataset."""


class MechanismError(DpcateError):
    """A statistic reached a mechanism in a state that the mechanism must refuse."""


class BudgetError(DpcateError):
    """The privacy budget does not cover what was asked."""

    exit_code = 3
