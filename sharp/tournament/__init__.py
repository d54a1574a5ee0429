"""The stages of PDE-SHARP: analysis, genesis, synthesis; reading models' replies and applying their patches."""
