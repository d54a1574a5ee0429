"""The resource pool: live values of results, made again from their recipes wherever they are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

from sharp.agent.memory import ToolInvocation
from sharp.agent.tools import ToolContext, ToolError, Toolkit, ToolResult


@dataclass
class ResultStore:
    """Values by the name of their recipe and the output port.

    What crosses the border of a process is the recipe alone: a value may hold functions and factorised matrices, which
    are never serialised. A process that lacks a value carries its recipe out again, inputs first.
    """

    toolkit: Toolkit
    wall_s: float
    recipes: dict[str, ToolInvocation] = field(default_factory=dict)
    _outcomes: dict[str, ToolResult] = field(default_factory=dict)

    def register(self, recipe: ToolInvocation) -> str:
        """Make a recipe known and return its name; those of its inputs are known before."""
        for handle in (handle for handles in recipe.inputs.values() for handle in handles):
            assert handle.partition(".")[0] in self.recipes, "inputs are known before what uses them"
        self.recipes[recipe.fingerprint] = recipe
        return recipe.fingerprint

    async def execute(self, recipe: ToolInvocation) -> ToolResult:
        """Run a recipe's tool, unless its outcome is at hand; raises `ToolError` in the tool's words."""
        name = self.register(recipe)
        if name not in self._outcomes:
            self._outcomes[name] = await self._run(recipe)
        return self._outcomes[name]

    async def value(self, handle: str) -> Any:
        """Return the value of `NAME.port`, made again if need be; raises `ToolError` for a name that is not known."""
        name, _, port = handle.partition(".")
        recipe = self.recipes.get(name)
        if recipe is None:
            raise ToolError(f"there is no result '{handle}'")
        return (await self.execute(recipe)).outputs[port]

    async def _run(self, recipe: ToolInvocation) -> ToolResult:
        tool = self.toolkit[recipe.tool]
        call = ToolContext(tool.checked(recipe.parameters), await self._inputs(recipe), self.wall_s)
        found = tool.run(call)
        return await found if isawaitable(found) else found

    async def _inputs(self, recipe: ToolInvocation) -> Mapping[str, Any]:
        tool = self.toolkit[recipe.tool]
        values: dict[str, Any] = {}
        for port in tool.inputs:
            found = [await self.value(handle) for handle in recipe.inputs.get(port.name, ())]
            values[port.name] = found if port.many else next(iter(found), None)
        return values
