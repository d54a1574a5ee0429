"""Import of the cases of pde-agent-bench as problem specifications."""

from sharp.experiments.agent_benchmark.pde_agent_bench.importer import (
    ImportedCase,
    RejectedCase,
    import_cases,
    save_case,
)

__all__ = ["ImportedCase", "RejectedCase", "import_cases", "save_case"]
