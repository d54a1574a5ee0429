"""The two paid effects as a method sees them. The journal stands behind; a method knows nothing of it."""

from __future__ import annotations

from typing import Any, Protocol

from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.llm.protocol import ChatReply, ChatRequest


class Effects(Protocol):
    """What a method may do to the world.

    `path` says where in the method an effect is asked (`genesis/017`, `cycle-1/round-2/judge-1`); it is unique in a
    run and never depends on the order in which concurrent effects finish.
    """

    async def chat(self, path: str, request: ChatRequest) -> ChatReply:
        """Ask a language model once; answered from the journal if asked before."""
        ...

    async def evaluate(self, path: str, request: EvaluationRequest) -> Evaluation:
        """Run and score a candidate once; answered from the journal if asked before."""
        ...

    def checkpoint(self, barrier: str, state: Any) -> None:
        """Keep the whole tournament state as an immutable snapshot named after the barrier."""
        ...
