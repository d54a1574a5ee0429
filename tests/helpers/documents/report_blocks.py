"""Reading a report as a document: its blocks, rows and words."""

from hpc.journal import read_run
from sharp.document import Details, Facts, Paragraph
from sharp.report.document import build_report
from sharp.report.report_data import ReportData
from tests.helpers.documents.report_runs import play


def evidence_of(run, state):
    return ReportData(run, state, read_run(run.path))


def report_of(path, story=None, **options):
    """The report of a run that is played into a directory."""
    return build_report(evidence_of(*play(path, story, **options)))


def blocks_of(report, anchor, kind):
    section = next(section for section in report.sections if section.anchor == anchor)
    return list(_inside(section.blocks, kind))


def _inside(blocks, kind):
    for block in blocks:
        if isinstance(block, kind):
            yield block
        if isinstance(block, Details):
            yield from _inside(block.blocks, kind)


def rows_of(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def words_of(report, anchor):
    return " ".join(block.text for block in blocks_of(report, anchor, Paragraph))


def facts_of(report, anchor):
    return dict(pair for block in blocks_of(report, anchor, Facts) for pair in block.pairs)
