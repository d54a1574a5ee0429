"""The report of an answer: the sentence on the error on top, then problem, solution, checks, refinement, methods."""

from __future__ import annotations

from collections.abc import Iterator

from sharp.document import Block, Code, Details, Facts, Headline, Note, Paragraph, Report, Section, Table
from sharp.document.text import MISSING, count_text, duration_text
from sharp.problems.latex import render_latex
from sharp.solvers.exact import known_eigenvalues
from sharp.solvers.figures import figures
from sharp.solvers.problem_summary import problem_summary
from sharp.solvers.refine import ResolutionAttempt
from sharp.solvers.solution import Solution
from sharp.solvers.summary_text import display_name


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
    return Section(
        "problem",
        "The problem as understood",
        (
            *([Paragraph(statement)] if statement else []),
            Code(
                "\n".join(f"{name:21} {value}" for name, value in problem_summary(problem)), "text", wrap=True
            ),
            Details("In LaTeX", (Code(render_latex(problem), "latex"),)),
        ),
    )


def _solution(answer: Solution) -> Section:
    return Section("solution", "The solution", tuple(_solution_blocks(answer)))


def _solution_blocks(answer: Solution) -> Iterator[Block]:
    solution, recommended = answer.discrete, answer.recommendation
    assert solution is not None
    assert recommended is not None
    yield Facts(
        (
            ("method", display_name(solution.method)),
            ("resolution", str(solution.resolution)),
            ("unknowns", count_text(solution.unknowns)),
            ("time for everything", duration_text(answer.seconds)),
            *(
                (name, value if isinstance(value, str) else f"{value:g}")
                for name, value in solution.facts.items()
            ),
        )
    )
    if solution.eigenvalues:
        yield _eigenvalues(answer)
    yield from figures(answer.problem, solution)


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
        (
            check.name,
            f"{check.value:.2e}",
            f"{check.limit:.0e}",
            f"{check.bound:.0e}",
            check.verdict,
            check.note,
        )
        for check in answer.verdict.checks
    )
    blocks: list[Block] = [Table(columns, rows, columns[1:4], "All figures are relative")]
    if answer.opinion is None:
        blocks.append(Paragraph("No second method was compared with."))
    return Section("checks", "Checks", tuple(blocks))


def _refinement(answer: Solution) -> Section:
    columns = ("method", "resolution", "unknowns", "seconds", "difference from the one before")
    attempts = [attempt for trial in answer.trials for attempt in trial.refinement.attempts]
    rows = tuple(map(_attempt, attempts))
    text = (
        "Differences are relative, in the 2-norm over quasi-random points, several times and all fields; those of "
        "eigenvalues are the largest relative difference of any."
    )
    return Section("refinement", "Refinement", (Paragraph(text), Table(columns, rows, columns[1:])))


def _attempt(attempt: ResolutionAttempt) -> tuple[str, ...]:
    difference = attempt.failure or (MISSING if attempt.difference is None else f"{attempt.difference:.2e}")
    return (
        attempt.method,
        str(attempt.resolution),
        count_text(attempt.unknowns),
        f"{attempt.seconds:.2f}",
        difference,
    )


def _methods(answer: Solution) -> Section:
    assert answer.choice is not None
    fit = [(found.method.name, found.reason) for found in answer.choice.recommendations]
    unfit = [(name, f"not for this problem: {reason}") for name, reason in answer.choice.refusals.items()]
    return Section("methods", "Methods, the first ones first", (Table(("method", "why"), (*fit, *unfit)),))
