import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sharp.errors import ConfigurationError
from sharp.llm.backends import make_backend
from sharp.llm.cards import ModelCard, SamplingParams, list_cards, load_card
from sharp.llm.server import OpenAIBackend
from tests.helpers import ROOT

# Flags of vLLM 0.32's `vllm serve` that shipped cards use.
VLLM_FLAGS = {
    "--enable-expert-parallel",
    "--enable-prompt-tokens-details",
    "--generation-config",
    "--max-model-len",
    "--reasoning-parser",
}
PAPER = {
    *("gemma-3-27b", "llama-3.3-70b", "qwen3-32b", "qwen3-235b", "deepseek-r1", "qwen3-coder-30b"),
    *("deepseek-coder-33b", "codellama-34b", "deepseekmath-7b", "mathcoder2-deepseekmath-7b"),
    *("gpt-4o", "o3", "gpt-5"),
}
MINIMAL = """\
name: mine
description: a model of mine
context: 32768
sampling: {temperature: 0.7, max_tokens: 4096}
"""


@pytest.fixture
def write(tmp_path: Path):
    def writing(text: str, name: str = "mine.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return writing


@pytest.mark.parametrize("name", list_cards())
def test_every_shipped_card(name: str) -> None:
    card = load_card(name)
    assert card.name == name
    if card.price is not None:
        assert card.price.source
    if card.vllm is not None:
        flags = dict(argument.partition("=")[::2] for argument in card.vllm.arguments)
        assert set(flags) <= VLLM_FLAGS
        assert int(flags["--max-model-len"]) == card.context
        assert card.served_name is not None


def test_the_papers_models_are_shipped() -> None:
    assert {*PAPER, "rule-based", "local"} <= set(list_cards())


def test_hosted_models_the_papers_jury_and_the_rule_based_model_have_token_prices() -> None:
    priced = {name for name in list_cards() if load_card(name).price is not None}
    assert priced == {"deepseek-r1", "gpt-4o", "gpt-5", "o3", "rule-based"}


def test_no_card_holds_a_key() -> None:
    for path in list_cards().values():
        assert not re.search(r"sk-\w{8}|Bearer ", path.read_text(encoding="utf-8"))


def test_a_card_survives_the_record_of_a_run() -> None:
    for name in list_cards():
        card = load_card(name)
        again = ModelCard.model_validate(yaml.safe_load(yaml.safe_dump(card.model_dump(mode="json"))))
        assert again == card
        assert again.hash == card.hash


def test_the_hash_follows_the_content(write) -> None:
    one = load_card(write(MINIMAL))
    other = load_card(write(MINIMAL.replace("0.7", "0.8")))
    commented = load_card(write(f"# a remark\n{MINIMAL}"))
    assert one.hash != other.hash
    assert one.hash == commented.hash


def test_defaults(write) -> None:
    card = load_card(write(MINIMAL))
    assert card.kind == "openai"
    assert card.served_name is None
    assert card.roles == ("analyst", "generator", "judge", "reporter")
    assert card.api.length_parameter == "max_tokens"
    assert card.price is None


def test_sampling_by_purpose(write) -> None:
    card = load_card(write(f"{MINIMAL}sampling_by_purpose:\n  judge: {{temperature: 0.1}}\n"))
    assert card.sampling_for("judge") == SamplingParams(temperature=0.1, max_tokens=4096)
    assert card.sampling_for("genesis") == SamplingParams(temperature=0.7, max_tokens=4096)


def test_a_users_card_hides_a_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "local.yaml").write_text(MINIMAL.replace("mine", "local"))
    monkeypatch.setenv("SHARP_RESOURCES", str(tmp_path))
    assert load_card("local").description == "a model of local"
    assert "gpt-4o" in list_cards()


def test_the_documented_card_is_a_card(write) -> None:
    text = (ROOT / "docs" / "guides" / "models.md").read_text(encoding="utf-8")
    example = next(block for block in text.split("```yaml\n") if block.startswith("name: "))
    card = load_card(write(example.split("```")[0], "llama-70b-here.yaml"))
    assert set(ModelCard.model_fields) - card.model_fields_set == {"kind", "options", "price"}


def test_unknown_cards_are_answered_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigurationError, match=r"no model card 'gpt4o'; did you mean 'gpt-4o'\? Valid: .*o3"
    ):
        load_card("gpt4o")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load_card(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("extra", "line", "complaint"),
    [
        (
            "contxt: 5\n",
            5,
            r"contxt is not a key of a model card; did you mean 'context'\? Valid: name, kind",
        ),
        ("api:\n  supports_sed: true\n", 6, "api.supports_sed is not .* did you mean 'supports_seed'"),
        ("sampling_by_purpose:\n  judge: {temprature: 1}\n", 6, "did you mean 'temperature'"),
        (
            "sampling_by_purpose:\n  jury: {temperature: 1}\n",
            6,
            "'analysis', 'genesis', 'judge'.*found 'jury'",
        ),
        ("roles: [judge, chef]\n", 5, r"roles\.1: input should be .*found 'chef'"),
        ("max_output: 100\n", 1, r"max_tokens 4096 \(analysis\) exceeds max_output 100"),
        ("sampling_by_purpose:\n  debug: {max_tokens: 40000}\n", 1, r"40000 \(debug\) leaves no room"),
        ("price: {prompt: 1}\n", 5, r"price\.completion is missing"),
        (
            "price: {prompt: -1, completion: 1, date: 2025-01-01, source: x}\n",
            5,
            r"price\.prompt: .* found -1",
        ),
        ("base_url: 127.0.0.1:8000\n", 5, "base_url: expected a URL such as http://127.0.0.1:8000/v1"),
        ("api_key_env: sk-abc\n", 5, "api_key_env: string should match pattern"),
        ("vllm:\n  weights: x\n  gpus: 3\n  tensor_parallel: 2\n", 5, r"gpus \(3\) is no multiple"),
        ("vllm:\n  weights: x\n  gpus: 1\n  arguments: [--port=1]\n", 8, "--port is set by the launcher"),
        ("vllm:\n  weights: x\n  gpus: 1\n  arguments:\n  - max-model-len\n", 8, "expected '--flag'"),
        ("name: again\n", 5, "name: this key is given twice, first in line 1"),
        ("notes: [\n", 6, "not valid YAML"),
        ("notes: \x07\n", 1, "not valid YAML"),
    ],
)
def test_complaints_name_file_and_line(write, extra: str, line: int, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"mine\.yaml:{line}: .*{complaint}"):
        load_card(write(MINIMAL + extra))


def test_all_complaints_come_at_once(write) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_card(write("name: mine\ncontext: many\nsampling: {}\n"))
    complaints = str(caught.value).splitlines()
    assert len(complaints) == 4
    assert [line.split(".yaml:", 1)[1].split(":")[0] for line in complaints] == ["1", "2", "3", "3"]


def test_two_kinds_of_price_contradict_each_other(write) -> None:
    prices = (
        "price: {prompt: 1, completion: 1, date: 2025-01-01, source: x}\n"
        "gpu_price: {dollars_per_gpu_hour: 2, date: 2025-01-01, source: x}\n"
    )
    with pytest.raises(ConfigurationError, match=r"either price .* or gpu_price"):
        load_card(write(MINIMAL + prices))


def test_credentials_in_a_url_are_refused_unseen(write) -> None:
    with pytest.raises(ConfigurationError, match="must not hold credentials") as caught:
        load_card(write(f"{MINIMAL}base_url: https://me:hunter2@host/v1\n"))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just text\n"])
def test_no_mapping(write, text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected a mapping"):
        load_card(write(text))


def test_name_and_file_agree(write) -> None:
    with pytest.raises(ConfigurationError, match="'mine' of a model card must be that of its file, 'yours'"):
        load_card(write(MINIMAL, "yours.yaml"))


def test_backend_of_a_server(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-value")
    card = load_card(write(f"{MINIMAL}base_url: http://127.0.0.1:9/v1/\napi_key_env: MY_KEY\n"))
    backend = make_backend(card, deadline_s=5, attempt_timeout_s=2, concurrency=3)
    assert isinstance(backend, OpenAIBackend)
    assert backend.base_url == "http://127.0.0.1:9/v1"
    assert (backend.deadline_s, backend.attempt_timeout_s) == (5, 2)
    assert "secret-value" not in repr(backend)


def test_backend_without_a_server(write) -> None:
    with pytest.raises(ConfigurationError, match=r"'mine' is served.*models\.servers\.mine"):
        make_backend(load_card(write(MINIMAL)))


def test_backend_with_a_bad_override(write) -> None:
    card = load_card(write(MINIMAL)).model_copy(update={"base_url": "ftp://host"})
    with pytest.raises(ConfigurationError, match="base_url of model 'mine': expected a URL"):
        make_backend(card)


def test_backend_without_its_key(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    card = load_card(write(f"{MINIMAL}base_url: http://127.0.0.1:9/v1\napi_key_env: MY_KEY\n"))
    with pytest.raises(ConfigurationError, match="MY_KEY, which holds the key of model 'mine', is not set"):
        make_backend(card)


def test_backend_of_the_rule_based_model() -> None:
    backend = make_backend(load_card("rule-based"))
    assert type(backend).__name__ == "RuleBasedBackend"


def test_a_kind_that_no_package_offers_is_named_with_those_that_there_are(write) -> None:
    card = load_card(write(f"{MINIMAL}kind: anthropic\n"))
    with pytest.raises(ConfigurationError, match=r"'anthropic'; valid chat backends: openai, rule-based$"):
        make_backend(card)


def test_a_backend_takes_the_options_of_its_card() -> None:
    card = load_card("rule-based")
    with pytest.raises(ConfigurationError, match="unknown key 'rate'; valid keys: error_rate"):
        make_backend(card.model_copy(update={"options": {"rate": 0.1}}))


def test_cards_and_ledger_load_no_client_library() -> None:
    code = (
        "import sys; import sharp.llm.cards, sharp.llm.ledger, sharp.llm.estimate, "
        "sharp.llm.backends, sharp.llm.context; "
        "print(sorted({'openai', 'httpx', 'httpx2', 'tenacity', 'yaml', 'jax', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
