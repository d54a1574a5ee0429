"""What computes nothing is sent back, with the reason; what is only short is taken as it is."""

from pathlib import Path

import pytest
import yaml

from sharp.errors import ReplyError
from sharp.llm import extract_code

PROGRAMS = yaml.safe_load(Path(__file__).with_name("short_programs.yaml").read_bytes())


@pytest.mark.parametrize("name", PROGRAMS["stubs"])
def test_a_program_that_computes_nothing_is_sent_back_with_the_reason(name: str) -> None:
    with pytest.raises(ReplyError, match=r"nothing|nowhere|leaves out code|raises an exception"):
        extract_code(f"```python\n{PROGRAMS['stubs'][name]}```")


@pytest.mark.parametrize("name", PROGRAMS["legitimate"])
def test_a_short_program_that_computes_something_is_taken_as_it_is(name: str) -> None:
    assert extract_code(f"```python\n{PROGRAMS['legitimate'][name]}```") == PROGRAMS["legitimate"][name]
