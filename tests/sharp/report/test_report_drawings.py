import re
import struct
import zlib
from itertools import pairwise
from math import log10
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_hostile import TEXTS
from report_pages import drawings_of

from sharp.report.drawings import (
    Curves,
    Dot,
    Edge,
    ErrorChart,
    HeatMaps,
    Layer,
    Level,
    Lineage,
    Node,
    Panel,
)
from sharp.report.html import draw
from sharp.report.png import DIFFERENCES, VALUES, png
from sharp.report.scales import LogScale, Scale, linear_scale, log_scale, spread
from sharp.report.svg import node, power_text

positive = st.floats(1e-300, 1e300)
real = st.floats(-1e200, 1e200)


def dot(number, error, truth=None, judges=(1,), won=False):
    return Dot(number, f"c{number:03d}", judges, error, truth, won)


def chart(*dots, levels=(), judges=None):
    leaders, best = [], None
    for item in dots:
        if item.error is not None and (best is None or item.error < best.error):
            best = item
        leaders.append(best)
    return ErrorChart(tuple(dots), tuple(leaders), tuple(levels), judges or {1: "a", 2: "b", 3: "c"}, "c001")


def parsed(drawing, description="words"):
    sources = drawings_of(draw(drawing, description))
    assert sources
    return [ET.fromstring(source) for source in sources]


def of_class(svg, name):
    return [item for item in svg.iter() if name in item.get("class", "").split()]


@given(st.lists(positive, min_size=1, max_size=20))
def test_a_logarithmic_scale_holds_every_value_and_has_ticks(values):
    scale = log_scale(values, 300.0, 10.0)
    assert all(10 <= scale(value) <= 300 for value in values)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 9
    assert all(before < after for before, after in pairwise(ticks))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1e-4, 1e-1, [1e-4, 1e-3, 1e-2, 1e-1]),
        (1.5e-3, 1.2e-2, [2e-3, 5e-3, 1e-2]),
        (1e-12, 1e0, [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_those_a_person_would_choose(low, high, ticks):
    assert LogScale(log10(low), log10(high), 0, 1).ticks() == pytest.approx(ticks)


@given(st.lists(real, min_size=1, max_size=20))
def test_a_linear_scale_holds_every_value_and_has_ticks(values):
    scale = linear_scale(values, 0.0, 100.0)
    assert all(-1e-6 <= scale(value) <= 100 + 1e-6 for value in values)
    assert 2 <= len(scale.ticks()) <= 8


def test_ticks_of_a_linear_axis_are_round():
    assert Scale(-1.05, 1.05, 0, 1).ticks(4) == [-1.0, 0.0, 1.0]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.floats(0, 10))
def test_labels_that_are_spread_do_not_overlap_and_stay_within_bounds(places, gap):
    moved = spread(places, gap, 0, 100)
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in moved)
    assert all(after - before >= gap - 1e-6 for before, after in pairwise(sorted(moved)))
    if all(after - before >= gap for before, after in pairwise(sorted(places))):
        assert moved == pytest.approx(places)


@pytest.mark.parametrize(("value", "text"), [(1e-3, "10⁻³"), (2e-4, "2·10⁻⁴"), (1.0, "10⁰"), (1e12, "10¹²")])
def test_powers_of_ten_are_written_as_such(value, text):
    assert power_text(value) == text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_gives_well_formed_svg(text):
    graph = Lineage(
        (Layer(text, (Node("c001", text, "winner", (1,), text),)),),
        (),
    )
    (svg,) = parsed(graph, text)
    assert len(of_class(svg, "winner")) == 1


def test_every_run_is_a_mark_and_the_winner_is_crowned_once():
    drawing = chart(dot(1, 0.1, 0.2), dot(2, None, judges=(2,)), dot(3, 0.01, 0.3, judges=(3,), won=True))
    for svg in parsed(drawing)[:2]:
        assert len(of_class(svg, "filled")) == 2
        assert len(of_class(svg, "hollow")) == 2
        assert len(of_class(svg, "failed")) == 1
        assert len(of_class(svg, "crown")) == 1
        assert len(of_class(svg, "leader")) == 2
        assert svg.find("title").text == "Error against evaluations"
        assert svg.find("desc").text == "words"


def test_levels_have_a_line_and_a_name_each_and_names_keep_apart():
    levels = (Level("the floor", "floor", 1.00e-2), Level("the paper", "published", 1.01e-2))
    svg = parsed(chart(dot(1, 1.0), levels=levels))[0]
    assert len(of_class(svg, "level")) == 2
    names = [item for item in svg.iter("text") if item.text in ("floor", "published")]
    heights = [float(item.get("y")) for item in names]
    assert len(names) == 2
    assert abs(heights[0] - heights[1]) >= 15


def test_errors_are_drawn_to_scale():
    svg = parsed(chart(*(dot(n, 10.0**-n) for n in (1, 2, 3))))[0]
    heights = [float(item.get("cy")) for item in of_class(svg, "filled")]
    first, second = (after - before for before, after in pairwise(heights))
    assert first == pytest.approx(second, abs=0.2)
    assert first > 0


@pytest.mark.parametrize("errors", [(0.0,), (0.0, 1e-3), (1e-16, 1e16), (1e-3, 1e-3), (None, 0.5)])
def test_extreme_errors_still_give_a_chart(errors):
    svg = parsed(chart(*(dot(n, error) for n, error in enumerate(errors, 1))))[0]
    for item in svg.iter("circle"):
        assert 0 <= float(item.get("cy")) <= 360


def test_marks_of_nine_judges_differ():
    dots = [dot(n, 0.1, judges=(n,)) for n in range(1, 10)]
    svg = parsed(chart(*dots, judges=dict.fromkeys(range(1, 10), "m")))[0]
    marks = of_class(svg, "filled")
    shapes = {(item.tag, len((item.get("points") or "").split()), item.get("class")) for item in marks}
    assert len(shapes) == 9


def test_many_evaluations_have_few_numbers_on_the_axis():
    svg = parsed(chart(*(dot(n, 0.1) for n in range(1, 400))))[1]
    numbers = [item for item in svg.iter("text") if item.get("y") == "334"]
    assert 3 <= len(numbers) <= 12


def lineage(*generations, edges=()):
    layers = tuple(
        Layer(f"round {n}", tuple(Node(name, "1e-3", "ran", (1,), "") for name in names))
        for n, names in enumerate(generations)
    )
    return Lineage(layers, tuple(Edge(*edge) for edge in edges))


def boxes(svg):
    found = {}
    for group in of_class(svg, "program"):
        rect = group.find("rect")
        found[group.find("title").text.split(":")[0]] = (float(rect.get("x")), float(rect.get("y")))
    return found


def test_programs_stand_below_their_bases_and_do_not_overlap():
    edges = (("a", "d", False), ("a", "e", False), ("c", "f", False), ("b", "f", True))
    (svg,) = parsed(lineage("abc", "def", edges=edges))
    at = boxes(svg)
    assert at["d"][0] <= at["a"][0] <= at["e"][0]
    assert at["f"][0] == at["c"][0]
    for row in ("abc", "def"):
        assert all(at[after][0] - at[before][0] >= 92 for before, after in pairwise(row))
    assert {y for name, (_, y) in at.items() if name in "abc"} < {y for _, y in at.values()}


def test_an_edge_past_other_programs_keeps_to_the_gaps_between_them():
    edges = (("a", "c", False), ("a", "d", False), ("b", "e", False), ("a", "f", True), ("b", "f", False))
    (svg,) = parsed(lineage("ab", "cd", "ef", edges=edges))
    at = boxes(svg)
    for edge in of_class(svg, "edge"):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", edge.get("d"))]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        for name in "cd":
            x, y = at[name]
            if edge.find("title").text.startswith(name):
                continue
            assert not any(x < px < x + 92 and y < py < y + 40 for px, py in points), (name, points)
            assert not any(
                x < start[0] < x + 92 and start[0] == end[0] and start[1] <= y and end[1] >= y + 40
                for start, end in pairwise(points)
            ), (name, points)


def test_donors_are_drawn_apart_from_bases():
    (svg,) = parsed(lineage("ab", "c", edges=(("a", "c", False), ("b", "c", True))))
    assert len(of_class(svg, "edge")) == 2
    (donor,) = of_class(svg, "donor")
    assert donor.find("title").text == "c takes ideas from b"


def test_a_wide_layer_is_broken_into_rows():
    names = [f"c{n:03d}" for n in range(20)]
    (svg,) = parsed(lineage(names))
    assert len(set(boxes(svg).values())) == 20
    assert float(svg.get("width")) < 1000


def test_curves_share_one_scale_and_the_solver_is_drawn_on_top():
    x = np.linspace(0, 1, 50)
    panels = tuple(
        Panel(f"t = {t}", x, {"solver": t * x, "data set": t * x + 1}, {"solver − data set": -np.ones(50)})
        for t in (1, 2)
    )
    drawings = parsed(Curves("u", panels))[:4]
    labels = [[item.text for item in svg.iter("text")][1:] for svg in drawings]
    assert labels[0] == labels[1]
    assert labels[2] == labels[3]
    assert of_class(drawings[0], "curve")[-1].get("class") == "curve solver"


def test_values_that_are_not_finite_leave_a_gap():
    x = np.linspace(0, 1, 5)
    values = np.array([0.0, np.nan, 2.0, np.inf, 4.0])
    (svg, *_) = parsed(Curves("u", (Panel("t = 0", x, {"solver": values}, {}),)))
    (curve,) = of_class(svg, "solver")
    assert curve.get("d").count(",") == 3
    assert "nan" not in curve.get("d")


def test_maps_are_images_within_the_page():
    plane = np.outer(np.arange(8.0), np.ones(8))
    html = draw(
        HeatMaps("u", {"solver": plane, "data set": plane}, {"solver − data set": 0 * plane}), "words"
    )
    assert html.count("<figure>") == 3
    assert html.count('src="data:image/png;base64,') == 6


def unfiltered(data):
    """The pixels of a PNG whose rows have no filter."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    at, chunks = 8, {}
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(name + body)
        chunks[name] = body
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 3 * width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_an_image_has_the_colours_of_its_values():
    pixels = unfiltered(png(np.array([[0.0, 0.5, 1.0], [np.nan, -1.0, 2.0]]), VALUES))
    assert pixels[0, 0].tolist() == VALUES[0].tolist()
    assert pixels[0, 2].tolist() == VALUES[255].tolist()
    assert pixels[1].tolist() == [[128] * 3, VALUES[0].tolist(), VALUES[255].tolist()]


def test_the_colours_of_values_grow_lighter_throughout_and_zero_difference_is_neutral():
    brightness = VALUES @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(brightness) > -0.5).all()
    assert np.ptp(DIFFERENCES[127].astype(int)) < 6


def test_elements_escape_once():
    made = ET.tostring(node("text", "a & b <c>", data_x='"'), encoding="unicode")
    assert made == '<text data-x="&quot;">a &amp; b &lt;c&gt;</text>'
