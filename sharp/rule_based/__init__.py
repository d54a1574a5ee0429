"""The rule-based model: a numerical analyst and coder that works by rules, behind the chat protocol.

It is an expert system, not a language model: it recognises what a prompt asks by its headings, the problem by its
equation, and programs by the structure of their code, and answers from a library of numerical methods and a table of
rules. It needs no weights and no network. It serves for trying the software, for testing it, for planning, and as a
baseline that a language model has to beat; its results are never a language model's. See
docs/explanations/rule-based-model.md.

Nothing imports this package: `sharp.llm.backends` finds it by its entry point.
"""
