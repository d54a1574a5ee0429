"""How far fields that begin positive fall below zero: densities, concentrations, pressures."""

import numpy as np

from sharp.reference import MetricInput, MetricValue, metric


@metric(
    "Loss of positivity",
    description="How far fields that begin without negative values fall below zero.",
    source="X. Zhang and C.-W. Shu, J. Comput. Phys. 229, 2010 (positivity-preserving schemes)",
    shape="all samples, times and points of each such field",
    normalisation="the lowest negative value over the largest absolute one, of the worst field",
)
def positivity(case: MetricInput) -> MetricValue:
    """Return the depth of the lowest value below zero, 0 where there is none."""
    given = {port.field: case.inputs.arrays[port.name] for port in case.problem.interface.inputs}
    found = []
    for port in case.problem.interface.returns:
        values = case.prediction[port.name]
        if port.field in given and np.min(given[port.field]) >= 0:
            found.append(max(0.0, -float(np.min(values))) / float(np.max(np.abs(values)) or 1.0))
    return MetricValue(max(found)) if found else MetricValue(None, "no field begins without negative values")


METRICS = (positivity,)
