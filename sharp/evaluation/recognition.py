"""Telling which problem a data file belongs to, by its arrays and by the parameters it states."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sharp.errors import DataError
from sharp.problems import Problem, list_problems, load_problem
from sharp.reference import stated_parameters


def recognise(path: Path) -> Problem:
    """Return the one known problem that a data file fits, preferring the one whose parameters it states.

    Raises `DataError` for a file that fits none, or several equally well.
    """
    return _best(path, (load_problem(file) for file in list_problems().values()))


def _best(path: Path, problems: Iterable[Problem]) -> Problem:
    stated: dict[str, tuple[int, Problem]] = {}
    reasons: list[str] = []
    for problem in problems:
        try:
            stated[problem.id] = (stated_parameters(path, problem), problem)
        except DataError as error:
            reasons.append(f"  {problem.id}: {str(error).removeprefix(f'{path.absolute()}: ')}")
    if not stated:
        unknown = f"{path}: holds data of none of the known problems; say of which with --problem"
        raise DataError("\n".join([unknown, *reasons]))
    most = max(count for count, _ in stated.values())
    fitting = [problem for count, problem in stated.values() if count == most]
    if len(fitting) > 1:
        names = ", ".join(problem.id for problem in fitting)
        raise DataError(f"{path}: may hold data of {names}; say which with --problem")
    return fitting[0]
