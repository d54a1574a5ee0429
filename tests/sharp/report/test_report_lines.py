from __future__ import annotations

from xml.etree.ElementTree import fromstring

import numpy as np

from sharp.report.drawings import Lines
from sharp.report.html import draw

X = np.linspace(-1.0, 3.0, 41)


def chart(**curves: np.ndarray):
    markup = draw(Lines("rod", "Temperature <u>", "x", X, curves), "how it cools")
    return fromstring(f"<div>{markup}</div>")


def lines(found) -> list[str]:
    return [element.get("d") for element in found.iter("path")]


def places(path: str) -> np.ndarray:
    return np.array([[float(part) for part in point.split(",")] for point in path[1:].split("L")])


def test_a_line_rises_from_the_lower_left_to_the_upper_right() -> None:
    (line,) = lines(chart(u=2 * X))
    found = places(line)
    assert (np.diff(found[:, 0]) > 0).all()
    assert (np.diff(found[:, 1]) < 0).all()


def test_every_line_has_a_colour_of_its_own_and_a_name() -> None:
    found = chart(start=np.sin(X), end=np.cos(X))
    colours = [group.get("class") for group in found.iter("g")]
    assert colours[:2] == ["j1", "j2"]
    assert colours[2:] == ["j1", "j2"]
    assert [span.text for span in found.iter("span")] == ["start", "end"]


def test_values_that_are_not_finite_are_left_out() -> None:
    values = np.where(X > 1, np.nan, X)
    (line,) = lines(chart(u=values))
    assert len(places(line)) == np.isfinite(values).sum()
    assert lines(chart(u=np.full_like(X, np.nan))) == []


def test_a_constant_and_its_description_can_be_drawn() -> None:
    found = chart(u=np.full_like(X, 5.0))
    texts = [text.text for text in found.iter("text")]
    assert "Temperature <u>" in texts
    assert "x" in texts
    assert next(found.iter("desc")).text == "how it cools"
