"""The resource pool: live values of results, made again from their recipes wherever they are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

from sharp.agent.memory import Recipe
from sharp.agent.tools import Call, Outcome, ToolError, Toolkit


@dataclass
class Pool:
    """Values by the name of their recipe and the output port.

    What crosses the border of a process is the recipe alone: a value may hold functions and factorised matrices, which
    are never serialised. A process that lacks a value carries its recipe out again, inputs first.
    """

    toolkit: Toolkit
    wall_s: float
    recipes: dict[str, Recipe] = field(default_factory=dict)
    _outcomes: dict[str, Outcome] = field(default_factory=dict)

    def know(self, recipe: Recipe) -> str:
        """Make a recipe known and return its name; those of its inputs are known before."""
        for handle in (handle for handles in recipe.inputs.values() for handle in handles):
            assert handle.partition(".")[0] in self.recipes, "inputs are known before what uses them"
        self.recipes[recipe.name] = recipe
        return recipe.name

    async def carry_out(self, recipe: Recipe) -> Outcome:
        """Run a recipe's tool, unless its outcome is at hand; raises `ToolError` in the tool's words."""
        name = self.know(recipe)
        if name not in self._outcomes:
            self._outcomes[name] = await self._run(recipe)
        return self._outcomes[name]

    async def value(self, handle: str) -> Any:
        """Return the value of `NAME.port`, made again if need be; raises `ToolError` for a name that is not known."""
        name, _, port = handle.partition(".")
        recipe = self.recipes.get(name)
        if recipe is None:
            raise ToolError(f"there is no result '{handle}'")
        return (await self.carry_out(recipe)).outputs[port]

    def forget_values(self) -> None:
        """Drop all live values, as a new process would begin; recipes stay."""
        self._outcomes.clear()

    async def _run(self, recipe: Recipe) -> Outcome:
        tool = self.toolkit[recipe.tool]
        call = Call(tool.checked(recipe.parameters), await self._inputs(recipe), self.wall_s)
        found = tool.run(call)
        return await found if isawaitable(found) else found

    async def _inputs(self, recipe: Recipe) -> Mapping[str, Any]:
        tool = self.toolkit[recipe.tool]
        values: dict[str, Any] = {}
        for port in tool.inputs:
            found = [await self.value(handle) for handle in recipe.inputs.get(port.name, ())]
            values[port.name] = found if port.many else next(iter(found), None)
        return values
