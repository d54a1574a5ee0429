"""Makes a language model of half a million random weights, to try a server with: python tiny_model.py FOLDER.

It is a Llama with a tokenizer of its own and a chat template, takes a megabyte, and answers gibberish: it shows that
serving works, and nothing else. Needs torch, transformers and tokenizers.
"""

from __future__ import annotations

import sys
from pathlib import Path

WORDS = "the solver advances the field by one step and returns it as an array of floats def for in range return import"
SPECIAL = ("<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>")
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def main(folder: Path) -> None:
    """Write the model's files."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=16384,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _tokenizer():  # type: ignore[no-untyped-def]
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE(unk_token=SPECIAL[0]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1024, special_tokens=list(SPECIAL), initial_alphabet=alphabet)
    inner.train_from_iterator([WORDS] * 10, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2]
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
