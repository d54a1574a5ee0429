"""A model proposes by what programs are judged: from the measures that the problem has, and nothing else."""

import pytest

from sharp.errors import ModelError, ReplyError
from sharp.llm import ChatReply, TokenUsage, load_card
from sharp.problems import load_problem
from sharp.reference import metrics_for
from sharp.tournament.feedback_proposal import propose_feedback, read_proposal
from tests.helpers.models.scripted import verdict

BURGERS = load_problem("burgers")


class Answers:
    """A backend that gives these answers in turn and remembers what was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def complete(self, request):
        self.asked.append(request.messages[-1].content)
        return ChatReply((self.answers.pop(0),), ("stop",), TokenUsage(1, 0, 1, 0), request.model)

    async def aclose(self):
        pass


async def test_the_problem_and_its_measures_are_told_and_the_choice_is_returned():
    backend = Answers(verdict(metrics=["residual", "tv_growth"], reason="Shocks."))
    found = await propose_feedback(BURGERS, load_card("gpt-4o"), backend)
    assert (found.metrics, found.reason) == (("residual", "tv_growth"), "Shocks.")
    (prompt,) = backend.asked
    assert prompt.startswith("# ")
    assert all(f"- `{name}`: " in prompt for name in metrics_for(BURGERS))


async def test_a_name_that_there_is_not_is_sent_back_once():
    backend = Answers(verdict(metrics=["beauty"]), verdict(metrics=["residual"], reason=""))
    assert (await propose_feedback(BURGERS, load_card("gpt-4o"), backend)).metrics == ("residual",)
    assert "there is no beauty" in backend.asked[1]
    with pytest.raises(ModelError, match=r"gpt-4o proposes nothing that can be used: .*there is no beauty"):
        await propose_feedback(BURGERS, load_card("gpt-4o"), Answers(*[verdict(metrics=["beauty"])] * 2))


async def test_without_data_no_measure_that_needs_a_reference_is_offered():
    backend = Answers(*[verdict(metrics=["nrmse"])] * 2)
    with pytest.raises(ModelError, match="there is no nrmse"):
        await propose_feedback(BURGERS, load_card("gpt-4o"), backend, without_data=True)
    assert "`nrmse`" not in backend.asked[0]
    assert "`residual`" in backend.asked[0]


@pytest.mark.parametrize("names", [[], ["residual", "residual"], ["residual"] * 6])
def test_as_many_distinct_names_as_are_wanted(names):
    with pytest.raises(ReplyError, match='"metrics" must hold 1 to 5 distinct names'):
        read_proposal(verdict(metrics=names), metrics_for(BURGERS))


@pytest.mark.parametrize("given", ["nRMSE, residual", [{"name": "nrmse", "why": "x"}, {"name": "Residual"}]])
def test_names_may_stand_in_a_text_in_objects_and_in_other_case(given):
    assert read_proposal(verdict(metrics=given), metrics_for(BURGERS)).metrics == ("nrmse", "residual")
