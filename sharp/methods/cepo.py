"""CePO as of 2025: a technique of OptiLLM, for every program of a best-of-N run (section 4.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

from sharp.config import SamplingParams
from sharp.llm import ChatReply, Conversation, Message, render, said
from sharp.methods.sampling import ask_generator, best_of_n
from sharp.tournament import RunContext, Tournament, ask

_RATING = re.compile(r"rating[:*_`\s]*\[\[\s*(\w+)\s*\]\]", re.IGNORECASE)


async def cepo(session: RunContext) -> Tournament:
    """Run best-of-N where each program is the best-rated of several answers, each of which rests on several plans."""
    return await best_of_n(session, deliberate)


async def deliberate(session: RunContext, path: str, conversation: Conversation) -> ChatReply:
    """Answer several times, one answer after the other, and return the one that is rated best."""
    numbers = range(1, session.config.cepo.best_of + 1)
    answers = [await _answer(session, f"{path}/answer-{number}", conversation) for number in numbers]
    if len(answers) == 1:
        return answers[0]
    rate = _wins if session.config.cepo.rating == "pairwise" else _ratings
    ratings = await rate(session, path, conversation, [said(answer.text).strip() for answer in answers])
    return answers[ratings.index(max(ratings))]


async def _answer(session: RunContext, path: str, conversation: Conversation) -> ChatReply:
    """Plan and carry out until there are enough attempts, settle what they disagree in, and answer by that."""
    question, options = _question(conversation), session.config.cepo
    attempts: list[str] = []
    rejected = ""
    for number in range(1, options.attempts + 1):
        reply = await _attempt(session, f"{path}/attempt-{number}", conversation)
        text = said(reply.text).strip()
        if _is_cut(reply):
            rejected = text
        else:
            attempts.append(text)
        if len(attempts) == options.plans:
            break
    # Without any that was complete, the last one stands, cut as it is.
    quoted = render("cepo/attempts", attempts=attempts or [rejected])
    asked = _after(session, quoted, render("cepo/compare", question=question))
    solution = await _step(session, f"{path}/comparison", asked, options.refine_temperature)
    asked = _after(session, said(solution.text), render("cepo/final", question=question))
    return await _step(session, f"{path}/final", asked, options.final_temperature)


async def _attempt(session: RunContext, path: str, conversation: Conversation) -> ChatReply:
    """Make a plan and carry it out; the reply is that of the plan where it was cut off."""
    options = session.config.cepo
    prompt = render("cepo/plan", question=_question(conversation))
    so_far = (*conversation[:-1], Message("user", prompt))
    plan = await _step(session, f"{path}/plan", so_far, options.plan_temperature)
    if _is_cut(plan):
        return plan
    so_far = (*so_far, Message("assistant", said(plan.text)), Message("user", render("cepo/execute")))
    return await _step(session, f"{path}/execution", so_far, options.execute_temperature)


def _is_cut(reply: ChatReply) -> bool:
    return reply.finish_reasons[0] == "length"


async def _ratings(
    session: RunContext, path: str, conversation: Conversation, answers: Sequence[str]
) -> list[int]:
    """Return each answer's own rating: 1 for right, 0 for wrong, -1 where the reply does not say."""
    system, question = conversation
    told = Message("system", render("cepo/rater", system=system.content.strip()))
    ratings = []
    for number, answer in enumerate(answers, 1):
        asked = (told, question, Message("assistant", answer), Message("user", render("cepo/rate")))
        rating = await _rated(session, f"{path}/rating-{number}", asked)
        ratings.append({"0": 0, "1": 1}.get(rating, -1))
    return ratings


async def _wins(
    session: RunContext, path: str, conversation: Conversation, answers: Sequence[str]
) -> list[int]:
    """Return how often each answer wins against another, each two compared in both orders; in doubt the first wins."""
    wins = [0] * len(answers)
    for first, second in permutations(range(len(answers)), 2):
        pair = {"first": answers[first], "second": answers[second]}
        prompt = render("cepo/rate_pair", question=_question(conversation), **pair)
        asked = (conversation[0], Message("user", prompt))
        winner = await _rated(session, f"{path}/rating-{first + 1}-{second + 1}", asked)
        wins[second if winner == "B" else first] += 1
    return wins


async def _rated(session: RunContext, path: str, conversation: Conversation) -> str:
    """Return the rating in the reply of the model that rates, nothing where there is none."""
    options = session.config.cepo
    sampling = SamplingParams(temperature=options.rating_temperature, max_tokens=options.max_tokens)
    model = options.rating_model or session.generator
    reply = await ask(session, path, model, "genesis", conversation, sampling=sampling)
    found = _RATING.findall(said(reply.text))
    return found[-1].upper() if found else ""


async def _step(session: RunContext, path: str, conversation: Conversation, temperature: float) -> ChatReply:
    sampling = SamplingParams(temperature=temperature, max_tokens=session.config.cepo.max_tokens)
    return await ask_generator(session, path, conversation, sampling)


def _question(conversation: Conversation) -> str:
    return conversation[-1].content.strip()


def _after(session: RunContext, own: str, prompt: str) -> Conversation:
    """Return a conversation that begins with what the model said itself, or quotes it where its server forbids that."""
    if session.cards[session.generator].api.supports_assistant_first:
        return (Message("assistant", own), Message("user", prompt))
    return (Message("user", f"{own.strip()}\n\n{prompt}"),)
