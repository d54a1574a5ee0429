"""CePO as of 2025: a technique of OptiLLM, for every program of a best-of-N run (section 4.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

from sharp.config import SamplingParams
from sharp.llm import ChatReply, Conversation, Message, render, said
from sharp.methods.sampling import ask_generator, best_of_n, usable_texts
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
    ratings = await rate(session, path, _question(conversation), [answer.text for answer in answers])
    return answers[ratings.index(max(ratings))]


async def _answer(session: RunContext, path: str, conversation: Conversation) -> ChatReply:
    """Plan and carry out, compare what came of it, and answer; without any attempt, answer straight away."""
    question, options, solution = _question(conversation), session.config.cepo, ""
    attempts: list[str] = []
    for number in range(1, options.attempts + 1):
        attempts += await _attempt(session, f"{path}/attempt-{number}", conversation)
        if len(attempts) == options.plans:
            break
    if attempts:
        # The solution that mends what the attempts disagree in; the first of them where it cannot be had.
        prompt = render("cepo/compare", question=question, attempts=attempts)
        reply = await _step(session, f"{path}/comparison", _alone(prompt), options.refine_temperature)
        solution = (usable_texts(reply) or attempts)[0]
    prompt = render("cepo/final", question=question, solution=solution.strip())
    return await _step(session, f"{path}/final", _alone(prompt), options.final_temperature)


async def _attempt(session: RunContext, path: str, conversation: Conversation) -> list[str]:
    """Make a plan and carry it out; nothing comes of an empty plan, and of what is empty or cut off in the end."""
    options = session.config.cepo
    prompt = render("cepo/plan", question=_question(conversation))
    so_far = (*conversation[:-1], Message("user", prompt))
    plan = (await _step(session, f"{path}/plan", so_far, options.plan_temperature)).text
    if not plan.strip():
        return []
    so_far = (*so_far, Message("assistant", said(plan)), Message("user", render("cepo/execute")))
    return usable_texts(await _step(session, f"{path}/execution", so_far, options.execute_temperature))


async def _ratings(session: RunContext, path: str, question: str, answers: Sequence[str]) -> list[int]:
    """Return each answer's own rating: 1 for right, 0 for wrong, -1 where the reply does not say."""
    ratings = []
    for number, answer in enumerate(answers, 1):
        prompt = render("cepo/rate", question=question, answer=answer.strip())
        said = await _rated(session, f"{path}/rating-{number}", prompt)
        ratings.append({"0": 0, "1": 1}.get(said, -1))
    return ratings


async def _wins(session: RunContext, path: str, question: str, answers: Sequence[str]) -> list[int]:
    """Return how often each answer wins against another, each two compared in both orders; in doubt the first wins."""
    wins = [0] * len(answers)
    for first, second in permutations(range(len(answers)), 2):
        pair = {"first": answers[first].strip(), "second": answers[second].strip()}
        prompt = render("cepo/rate_pair", question=question, **pair)
        said = await _rated(session, f"{path}/rating-{first + 1}-{second + 1}", prompt)
        wins[second if said == "B" else first] += 1
    return wins


async def _rated(session: RunContext, path: str, prompt: str) -> str:
    """Return the last rating in the reply of the model that rates, nothing where there is none."""
    options = session.config.cepo
    sampling = SamplingParams(temperature=options.rating_temperature, max_tokens=options.max_tokens)
    model = options.rating_model or session.config.models.generator
    reply = await ask(session, path, model, "genesis", _alone(prompt), sampling=sampling)
    found = _RATING.findall(reply.text)
    return found[-1].upper() if found else ""


async def _step(session: RunContext, path: str, conversation: Conversation, temperature: float) -> ChatReply:
    sampling = SamplingParams(temperature=temperature, max_tokens=session.config.cepo.max_tokens)
    return await ask_generator(session, path, conversation, sampling)


def _question(conversation: Conversation) -> str:
    return conversation[-1].content.strip()


def _alone(prompt: str) -> Conversation:
    return (Message("user", prompt),)
