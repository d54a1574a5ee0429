"""The winner as a folder of its own: `solver.py`, an example that calls it, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hpc.files import make_directory, write_atomic
from hpc.journal import encode_text
from sharp.document import clean, error_text, markdown_environment, one_line
from sharp.evaluation import libraries_imported
from sharp.problems import ArrayPort, Problem, signature
from sharp.report.configuration import limits_text
from sharp.report.report_data import ReportData
from sharp.report.report_summary import floor_remark
from sharp.tournament import Candidate

# `wave` is a product of sines with one period along each axis, shifted from sample to sample.
SAMPLED = {
    "sine-sums": "wave",
    "unit-sine-sums": "0.5 + 0.4 * wave",
    "positive-sine-sums": "1.0 + 0.2 * wave",
    "two-phase-gaussian": "np.where(wave > 0, 12.0, 3.0)",
}
POINTS = {1: 64, 2: 32, 3: 16}


def write_solver(evidence: ReportData) -> Path | None:
    """Write `RUN/solver/` and return it; None where the run has no winner, and then nothing is touched."""
    winner = evidence.winner
    if winner is None:
        return None
    folder = evidence.run.path / "solver"
    make_directory(folder)
    write_atomic(folder / "solver.py", encode_text(header(evidence, winner) + winner.code))
    write_atomic(folder / "example.py", encode_text(example(evidence.run.problem)))
    write_atomic(folder / "README.md", encode_text(readme(evidence, winner)))
    return folder


def header(evidence: ReportData, winner: Candidate) -> str:
    """Return the comment that goes before the winner's code: where it comes from and how good it is."""
    facts = (
        ("problem", f"{evidence.run.problem.title} ({evidence.run.problem.label})"),
        ("run", evidence.run.path.resolve().name),
        ("program", f"{winner.id}, {origin(evidence, winner)}"),
        *errors(evidence),
        ("software", f"pde-sharp {evidence.run.manifest['software']}"),
        ("caution", "generated code; read it before you rely on it"),
    )
    return "".join(f"# {name}: {one_line(clean(value))}\n" for name, value in facts) + "\n"


def readme(evidence: ReportData, winner: Candidate) -> str:
    """Return what a user of the solver has to know, in Markdown."""
    template = markdown_environment(Path(__file__).parent).get_template("solver.md.j2")
    return template.render(
        problem=evidence.run.problem,
        signature=signature(evidence.run.problem),
        run=evidence.run.path.resolve().name,
        errors=tuple(errors(evidence)),
        lineage=tuple(ancestry(evidence, winner)),
        limits=limits_text(evidence.run),
        libraries=libraries_imported(winner.code),
    )


def example(problem: Problem) -> str:
    """Return a program that calls the solver on a small made-up sample; it needs NumPy and the solver's libraries."""
    # A Python program: nothing a model wrote goes in, and every value is put in as its literal.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=False,  # noqa: S701
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    values = _example_values(problem)
    return environment.get_template("example.py.j2").render(problem=problem, values=values)


def origin(evidence: ReportData, program: Candidate) -> str:
    """Return who wrote a program and how."""
    author = evidence.author(program.author)
    match program.origin:
        case "genesis":
            return f"written by {author}"
        case "hybrid":
            return f"made from {', '.join(program.parents)} by judge {program.judge} ({author})"
        case "search":
            shown = f" after {', '.join(program.parents)}" if program.parents else ""
            return f"written by {author}{shown}"
        case "debug":
            return f"repair of {program.parents[0]} by {author}"


def errors(evidence: ReportData) -> Iterator[tuple[str, str]]:
    """Return the winner's errors on test data, or why there are none."""
    test = evidence.state.test
    if test is None or test.scores is None:
        reason = f"failed ({test.failure.kind})" if test and test.failure else "not scored"
        yield "error on test data", reason
        return
    yield "error on test data, against the data set", error_text(test.scores.nrmse)
    if test.scores.nrmse_reference is not None:
        yield "error on test data, against the true solution", error_text(test.scores.nrmse_reference)
    if test.scores.data_error is not None:
        yield "distance of the data set from the true solution", error_text(test.scores.data_error)
    if remark := floor_remark(test):
        yield "note", remark


def ancestry(evidence: ReportData, program: Candidate) -> Iterator[str]:
    """Return a line for a program and for each of its bases, the newest first."""
    seen: set[str] = set()
    current: Candidate | None = program
    while current is not None and current.id not in seen:
        seen.add(current.id)
        changes = "; ".join(change.what for change in current.changes)
        yield f"{current.id}: {origin(evidence, current)}" + (f": {changes}" if changes else "")
        current = evidence.state.candidates.get(current.parents[0]) if current.parents else None


def _example_values(problem: Problem) -> dict[str, Any]:
    """Return what the template of the example needs: modules, sizes, axes, and an expression for each input."""
    nodes = problem.grid.kind == "nodes"
    inputs = [(port.name, _expression(problem, port)) for port in problem.interface.inputs]
    return {
        "imports": ["scipy.special"] if any("scipy.special." in text for _, text in inputs) else [],
        "points": POINTS[len(problem.space)] + nodes,
        "axes": [(name, low, high) for name, (low, high) in problem.bounds.items()],
        "nodes": nodes,
        "inputs": inputs,
        "parameters": [(name, problem.parameters[name]) for name in problem.interface.parameters],
    }


def _expression(problem: Problem, port: ArrayPort) -> str:
    """Return an input in NumPy, with the numbers of the parameters put in."""
    given = {**problem.specification.initial, **problem.specification.coefficients}[port.field]
    if given.family:
        return SAMPLED[given.family]
    import sympy
    from sympy.printing.numpy import SciPyPrinter

    from sharp.problems import to_sympy

    names = {name: sympy.Float(value) for name, value in problem.parameters.items()}
    expression = to_sympy(problem.tree(str(given.expression)), names)
    text = str(SciPyPrinter().doprint(expression))
    return text.replace("scipy.constants.", "np.").replace("numpy.", "np.")
