"""The report of an answer: the sentence on the error on top, then problem, solution, checks, refinement, methods."""

from __future__ import annotations

from sharp.document import (
    MISSING,
    Block,
    Code,
    Details,
    Facts,
    Headline,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
    count_text,
    duration_text,
)
from sharp.problems import render_latex
from sharp.solvers.driver import display_name
from sharp.solvers.exact import known_eigenvalues
from sharp.solvers.figures import figures
from sharp.solvers.problem_summary import problem_summary
from sharp.solvers.refine import ResolutionAttempt
from sharp.solvers.solution import Solution


def build_report(answer: Solution) -> Report:
    """Return the report of an answer."""
    sections = [_problem(answer)]
    if answer.discrete is not None:
        sections += [_solution(answer), _checks(answer)]
    if answer.choice is not None:
        sections += [_refinement(answer), _methods(answer)]
    return Report(
        title=answer.problem.title,
        headline=Headline(answer.verdict.headline, flagged=not answer.verdict.verified),
        notes=tuple(
            Note(f"{concern.message}.", "info" if concern.verdict == "warn" else "warning")
            for concern in answer.concerns
        ),
        sections=tuple(sections),
    )


def _problem(answer: Solution) -> Section:
    problem = answer.problem
    statement = problem.specification.statement
    summary = "\n".join(f"{name:21} {value}" for name, value in problem_summary(problem))
    blocks: list[Block] = [Paragraph(statement)] if statement else []
    blocks.append(Code(summary, "text", wrap=True))
    blocks.append(Details("In LaTeX", (Code(render_latex(problem), "latex"),)))
    return Section("problem", "The problem as understood", tuple(blocks))


def _solution(answer: Solution) -> Section:
    solution = answer.discrete
    assert solution is not None
    facts = {
        name: value if isinstance(value, str) else f"{value:g}" for name, value in solution.facts.items()
    }
    known = {
        "method": display_name(solution.method),
        "resolution": str(solution.resolution),
        "unknowns": count_text(solution.unknowns),
        "time for everything": duration_text(answer.seconds),
    }
    blocks: list[Block] = [Facts((*known.items(), *facts.items()))]
    if solution.eigenvalues:
        blocks.append(_eigenvalues(answer))
    return Section("solution", "The solution", (*blocks, *figures(answer.problem, solution)))


def _eigenvalues(answer: Solution) -> Table:
    assert answer.discrete is not None
    known = known_eigenvalues(answer.problem)
    rows = tuple(
        (str(number), f"{value:.12g}", f"{known[number - 1]:.12g}" if number <= len(known) else MISSING)
        for number, value in enumerate(answer.discrete.eigenvalues, start=1)
    )
    return Table(("number", "eigenvalue", "exact"), rows, ("number", "eigenvalue", "exact"))


def _checks(answer: Solution) -> Section:
    columns = ("check", "value", "limit", "wrong beyond", "verdict", "how")
    rows = tuple(
        (each.name, f"{each.value:.2e}", f"{each.limit:.0e}", f"{each.bound:.0e}", each.verdict, each.note)
        for each in answer.verdict.checks
    )
    blocks: list[Block] = [Table(columns, rows, columns[1:4], "All figures are relative")]
    if answer.cross_check is None:
        blocks.append(Paragraph("No second method was compared with."))
    if answer.alternatives:
        number = len(answer.alternatives) + 1
        text = (
            f"The problem has at least {number} solutions; which one is found depends on the method's start."
        )
        blocks.append(Paragraph(text))
    return Section("checks", "Checks", tuple(blocks))


def _refinement(answer: Solution) -> Section:
    columns = ("method", "resolution", "unknowns", "seconds", "difference from the one before")
    rows = tuple(_attempt(attempt) for trial in answer.trials for attempt in trial.refinement.attempts)
    text = (
        "Differences are relative, in the 2-norm over quasi-random points, several times and all fields; those of "
        "eigenvalues are the largest relative difference of any."
    )
    return Section("refinement", "Refinement", (Paragraph(text), Table(columns, rows, columns[1:])))


def _attempt(attempt: ResolutionAttempt) -> tuple[str, ...]:
    difference = attempt.failure or (MISSING if attempt.difference is None else f"{attempt.difference:.2e}")
    size, seconds = count_text(attempt.unknowns), f"{attempt.seconds:.2f}"
    return attempt.method, str(attempt.resolution), size, seconds, difference


def _methods(answer: Solution) -> Section:
    assert answer.choice is not None
    fit = [(found.method.name, found.reason) for found in answer.choice.recommendations]
    unfit = [(name, f"not for this problem: {reason}") for name, reason in answer.choice.refusals.items()]
    return Section("methods", "Methods, the first ones first", (Table(("method", "why"), (*fit, *unfit)),))
