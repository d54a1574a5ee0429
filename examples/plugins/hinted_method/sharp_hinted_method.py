"""The best of several programs, all written with a hint of the user's.

    sharp run burgers --set method=hinted --set options.hint="Use a Fourier pseudo-spectral scheme."

A method is an async function of the run's context. It reads no clock and draws no random number of its own, so that a
run can be resumed and replayed: the two effects, model calls and evaluations, are recorded by their place ("path").
"""

from dataclasses import replace

from sharp.errors import ConfigurationError
from sharp.llm import Conversation
from sharp.methods import best_of_n, single_call
from sharp.tournament import RunContext, Tournament


async def hinted(context: RunContext) -> Tournament:
    """Run best-of-N on `genesis.candidates` programs; raises `ConfigurationError` without a hint."""
    if not context.config.options.get("hint"):
        raise ConfigurationError("the method 'hinted' needs options.hint, a sentence for the model")
    return await best_of_n(context, _with_hint)


async def _with_hint(context: RunContext, path: str, conversation: Conversation) -> str:
    """Answer by one call, with the hint at the end of the question."""
    *before, question = conversation
    told = replace(question, content=f"{question.content}\n\nHint: {context.config.options['hint']}")
    return await single_call(context, path, (*before, told))
