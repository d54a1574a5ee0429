"""The exceptions of the science layer.

SharpError
├── InputError               what the user gave cannot be used (exit code 2)
│   ├── SpecificationError   a problem specification: names file, path and line
│   ├── ConfigurationError   a run configuration: names file, path and line
│   ├── DataError            a data file: names the file and the data set in it
│   ├── OutsideDomain        a solution is evaluated at a point or a time where the problem is not posed
│   └── ClarificationNeeded  the problem leaves something open: `questions` (exit code 9)
├── ModelError               a language-model server failed for good (exit code 4)
│   ├── ModelUnavailable     unreachable, overloaded or failing beyond the deadline
│   ├── ModelRefused         the server rejected the request (wrong model, key, arguments)
│   └── ContextExceeded      the conversation does not fit the model's context
├── BudgetExceeded           a budget of the run is used up (exit code 6); the run can be resumed with a larger one
├── NotSolved                no method found a solution, so there is no value to return (exit code 3)
├── CellsFailed              cells of a sweep have failed (exit code 3); all others are finished
└── ReplyError               a model's reply is not of the agreed form; the sentence is sent back to the model
"""

from __future__ import annotations

from collections.abc import Sequence

from hpc.errors import ExpectedError


class SharpError(ExpectedError):
    """Base of all errors of the science layer."""


class InputError(SharpError):
    """What the user gave cannot be used."""

    exit_code = 2


class SpecificationError(InputError):
    """A problem specification is wrong; the message names file, path and line."""


class ConfigurationError(InputError):
    """A run configuration is wrong; the message names file, path and line."""


class DataError(InputError):
    """A data file is wrong; the message names the file and the data set in it."""


class OutsideDomain(InputError):
    """A solution is evaluated at a point or a time where the problem is not posed."""


class ClarificationNeeded(InputError):
    """The problem leaves something open; `questions` have to be answered before it can be solved."""

    exit_code = 9

    def __init__(self, questions: Sequence[str]) -> None:
        super().__init__("; ".join(questions))
        self.questions = tuple(questions)


class ModelError(SharpError):
    """A language-model server failed for good."""

    exit_code = 4


class ModelUnavailable(ModelError):
    """The server was unreachable, overloaded or failing until the deadline."""

    transient = True


class ModelRefused(ModelError):
    """The server rejected the request: wrong model, key or arguments."""


class ContextExceeded(ModelError):
    """The conversation does not fit the model's context and the policy forbids dropping any of it."""


class BudgetExceeded(SharpError):
    """A budget of the run is used up; what was paid for is recorded, and the run can be resumed with a larger one."""

    exit_code = 6


class NotSolved(SharpError):
    """No method found a solution, so there is no value to return."""

    exit_code = 3


class CellsFailed(SharpError):
    """All that could be done of a sweep is done, and some of its cells have failed."""

    exit_code = 3


class ReplyError(SharpError):
    """A model's reply is not of the agreed form; the message can be sent back to the model."""
