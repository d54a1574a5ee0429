"""Language models: the chat protocol, backends, model cards and accounting."""
