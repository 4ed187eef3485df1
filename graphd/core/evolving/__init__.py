"""How events of one area change the state; `graphd.core.evolve` gathers them. Owns no rule: it only applies."""
