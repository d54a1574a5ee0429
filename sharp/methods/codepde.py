"""CodePDE: programs written independently, each debugged and run, and the best taken (arXiv 2505.08783)."""

from __future__ import annotations

from sharp.methods.sampling import best_of_n, single_call
from sharp.tournament import RunContext, Tournament


async def codepde(session: RunContext) -> Tournament:
    """Run best-of-N: `genesis.candidates` programs (32 in the paper), at most `synthesis.repairs` debug rounds each."""
    return await best_of_n(session, single_call)
