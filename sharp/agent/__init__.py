"""PDE-Agent: from a sentence to a verified solution, by typed tools and a team that corrects itself."""
