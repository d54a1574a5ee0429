"""Charts of single runs: error against what it took."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from report_pages import drawings_of

from sharp.report.html import draw
from sharp.report.panel_figure import svg_file
from sharp.report.panels import Panels, ScatterPanel, Spot

SPOTS = (
    Spot("codepde", "#1", "#1 a", 0.1, 1e-3, 2e-3),
    Spot("codepde", "#2", "#2 b", 0.1, 1.02e-3, None),
    Spot("moa", "#3", "#3 <c>", 10.0, 1e-5, 1e-2, flagged=True),
    Spot("moa", "#4", "#4 d", 0.0, 1e-4),
)
FIGURE = Panels("cost", "Cost", "error (nRMSE)", (ScatterPanel("advection", SPOTS, 1e-4),), "dollars")


def drawn(figure: Panels = FIGURE) -> ET.Element:
    return ET.fromstring(drawings_of(draw(figure, "words"))[0])


def of_class(svg: ET.Element, *names: str) -> list[ET.Element]:
    return [item for item in svg.iter() if set(names) <= set(item.get("class", "").split())]


def place(item: ET.Element) -> tuple[float, float]:
    """The middle of a mark."""
    if item.get("cx"):
        return float(item.get("cx", "")), float(item.get("cy", ""))
    points = [tuple(map(float, point.split(","))) for point in item.get("points", "").split()]
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


def test_dearer_runs_stand_further_right_smaller_errors_lower_and_what_cost_nothing_at_the_left_end() -> None:
    first, second, third, fourth = map(place, of_class(drawn(), "filled"))
    assert fourth[0] <= first[0] == second[0] < third[0]
    assert third[1] > fourth[1] > first[1] > second[1]


def test_errors_against_the_true_solution_are_hollow_and_those_below_the_floor_are_ringed() -> None:
    svg = drawn()
    assert len(of_class(svg, "hollow")) == 2
    (ring,) = of_class(svg, "flag")
    assert place(ring) == place(of_class(svg, "filled")[2])
    (floor,) = of_class(svg, "level", "floor")
    assert abs(float(floor.get("y1", "")) - place(of_class(svg, "filled")[3])[1]) < 0.2


def test_every_mark_has_its_label_and_labels_beside_each_other_do_not_overlap() -> None:
    labels = {
        item.text: item for item in drawn().iter() if (item.text or "").startswith("#") and item.tag == "text"
    }
    assert set(labels) == {"#1", "#2", "#3", "#4"}
    heights = [float(labels[name].get("y", "")) for name in ("#1", "#2")]
    assert abs(heights[0] - heights[1]) >= 11.5


def test_runs_of_one_name_look_alike_and_the_legend_has_each_name_once() -> None:
    page = str(draw(FIGURE, "words"))
    assert page.count("<span>codepde</span>") == page.count("<span>moa</span>") == 1
    first, second, third, fourth = of_class(drawn(), "filled")
    assert (first.tag, first.get("class")) == (second.tag, second.get("class"))
    assert (third.tag, third.get("class")) == (fourth.tag, fourth.get("class"))
    assert (first.tag, first.get("class")) != (third.tag, third.get("class"))


def test_the_file_needs_nothing_else_and_says_what_its_axes_are() -> None:
    svg = ET.fromstring(svg_file(FIGURE, "words"))
    texts = [item.text for item in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"dollars", "error (nRMSE)", "codepde", "moa"} <= set(texts)
    style = svg.find("{http://www.w3.org/2000/svg}style")
    assert style is not None
    assert "var(" not in (style.text or "")
