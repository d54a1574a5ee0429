"""The exceptions of the science layer.

SharpError
├── InputError               what the user gave cannot be used (exit code 2)
│   ├── SpecificationError   a problem specification: names file, path and line
│   ├── ConfigurationError   a run configuration: names file, path and line
│   └── DataError            a data file: names the file and the data set in it
├── ModelError               a language-model server failed for good (exit code 4)
│   ├── ModelUnavailable     unreachable, overloaded or failing beyond the deadline
│   ├── ModelRefused         the server rejected the request (wrong model, key, arguments)
│   └── ContextExceeded      the conversation does not fit the model's context
├── BudgetExceeded           a budget of the run is used up (exit code 6); the run can be resumed with a larger one
├── CellsFailed              cells of a sweep have failed (exit code 3); all others are finished
└── ReplyError               a model's reply is not of the agreed form; the sentence is sent back to the model
"""

from __future__ import annotations


class SharpError(Exception):
    """Base of all errors of the science layer; the message is a sentence for the user."""


class InputError(SharpError):
    """What the user gave cannot be used."""


class SpecificationError(InputError):
    """A problem specification is wrong; the message names file, path and line."""


class ConfigurationError(InputError):
    """A run configuration is wrong; the message names file, path and line."""


class DataError(InputError):
    """A data file is wrong; the message names the file and the data set in it."""


class ModelError(SharpError):
    """A language-model server failed for good."""


class ModelUnavailable(ModelError):
    """The server was unreachable, overloaded or failing until the deadline."""


class ModelRefused(ModelError):
    """The server rejected the request: wrong model, key or arguments."""


class ContextExceeded(ModelError):
    """The conversation does not fit the model's context and the policy forbids dropping any of it."""


class BudgetExceeded(SharpError):
    """A budget of the run is used up; what was paid for is recorded, and the run can be resumed with a larger one."""


class CellsFailed(SharpError):
    """All that could be done of a sweep is done, and some of its cells have failed."""


class ReplyError(SharpError):
    """A model's reply is not of the agreed form; the message can be sent back to the model."""
