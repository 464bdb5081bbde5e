"""Whether a program printed what a page shows.

Runs of spaces and of lines in tables count as one, `...` stands for anything, and where a page says within what numbers
vary, those that it shows with a decimal point need only be that near.
"""

import re

_NUMBER = r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_TOKEN = re.compile(r"\.\.\.|-?\d+\.\d+(?:[eE][+-]?\d+)?|\s+|─+|━+|.", re.DOTALL)


def require_shown(shown: str, printed: str, within: str | None) -> None:
    numbers: list[float] = []

    def pattern(token: str) -> str:
        if token == "...":
            return ".*?"
        if token.isspace():
            return r"\s+"
        if token[0] in "─━":
            return f"{token[0]}+"
        if within is not None and re.fullmatch(_NUMBER, token) and "." in token:
            numbers.append(float(token))
            return rf"\s*({_NUMBER})\s*"  # what pads numbers varies with them
        return re.escape(token)

    expected = "".join(map(pattern, _TOKEN.findall(shown.strip())))
    match = re.fullmatch(expected, printed.strip(), flags=re.DOTALL)
    assert match, f"the page shows\n{shown}\nand this was printed:\n{printed}"
    for shown_number, number in zip(numbers, map(float, match.groups()), strict=True):
        allowed = abs(shown_number) * float(within[:-1]) / 100 if within.endswith("%") else float(within)
        assert abs(shown_number - number) <= allowed, f"{shown_number} is shown, {number} was printed:\n{printed}"
