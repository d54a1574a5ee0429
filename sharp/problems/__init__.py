"""Problem specifications: the YAML format, its expression grammar, checks and rendering to prompt text."""

from sharp.problems.latex import render_latex
from sharp.problems.loader import list_problems, load_problem, parse_problem
from sharp.problems.problem import OutputGrid, Problem
from sharp.problems.render import render_description, render_template
from sharp.problems.spec import ArrayPort, DataLayout, Interface

__all__ = [
    "ArrayPort",
    "DataLayout",
    "Interface",
    "OutputGrid",
    "Problem",
    "list_problems",
    "load_problem",
    "parse_problem",
    "render_description",
    "render_latex",
    "render_template",
]
