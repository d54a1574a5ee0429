"""From a specification to a verified solution by classical methods, without a language model."""
