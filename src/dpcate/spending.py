"""A fit and its ledger: asked before a row is read, charged before the first noise, told which release came of it."""

import hashlib
import warnings

import msgspec

from dpcate.errors import InputError, LedgerError
from dpcate.privacy import Ledger, Request
from dpcate.release import Release


class LedgerWarning(UserWarning):
    """A release was charged, but the ledger could not be told which one it was."""


class Bill:
    """What one fit owes to a ledger; without a ledger, nothing."""

    def __init__(self, ledger: Ledger | None, request: Request) -> None:
        if not isinstance(ledger, Ledger | None):
            raise InputError("ledger must be None or a dpcate.Ledger(url, dataset)")
        self._ledger, self._request = ledger, request
        self._number: int | None = None

    def require(self) -> None:
        """Refuse a fit that the grant does not cover."""
        if self._ledger is not None:
            self._ledger.require(self._request)

    def charge(self) -> None:
        """Pay for the whole fit."""
        if self._ledger is not None:
            self._number = self._ledger.charge(self._request)

    def record(self, release: Release) -> None:
        """Put the hash of the release file and what it paid for into the history.

        The charge is what counts: a ledger that is out of reach by now must not cost the release.
        """
        if self._ledger is None or self._number is None:
            return
        content = release.to_json()
        details = msgspec.json.encode(release.charges).decode()
        try:
            self._ledger.record(self._number, sha256=hashlib.sha256(content).hexdigest(), details=details)
        except LedgerError as error:
            problem = str(error)
        else:
            return
        warnings.warn(f"charged, but the history lacks the release: {problem}", LedgerWarning, stacklevel=3)
