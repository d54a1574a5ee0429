"""Blocks of ideal-gas dynamics: changes of variables and numerical fluxes between primitive states."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import Block

_CONSERVED = '''
def conserved(density, velocity, pressure):
    """Return the stack (density, momentum, total energy) of an ideal gas."""
    energy = pressure / (GAMMA - 1.0) + 0.5 * density * velocity**2
    return xp.stack([density, density * velocity, energy])


'''

GAS: tuple[Block, ...] = (
    Block(
        "state",
        "plain",
        2,
        "conserved variables density, momentum, energy",
        _CONSERVED
        + '''
def primitive(u):
    """Return (density, velocity, pressure) of the conserved variables."""
    velocity = u[1] / u[0]
    return u[0], velocity, (GAMMA - 1.0) * (u[2] - 0.5 * u[1] * velocity)
'''.lstrip("\n"),
    ),
    Block(
        "state",
        "floored",
        3,
        "conserved variables with floors of density and pressure",
        _CONSERVED
        + '''
def primitive(u):
    """Return (density, velocity, pressure) of the conserved variables, density and pressure kept positive."""
    density = xp.maximum(u[0], FLOOR)
    velocity = u[1] / density
    pressure = (GAMMA - 1.0) * (u[2] - 0.5 * u[1] * velocity)
    return density, velocity, xp.maximum(pressure, FLOOR)
'''.lstrip("\n"),
    ),
    Block(
        "inviscid",
        "euler",
        2,
        "Euler fluxes",
        '''
def inviscid_flux(w):
    """Return the inviscid flux of the primitive variables (density, velocity, pressure)."""
    density, velocity, pressure = w
    momentum = density * velocity
    energy = pressure / (GAMMA - 1.0) + 0.5 * momentum * velocity
    return xp.stack([momentum, momentum * velocity + pressure, (energy + pressure) * velocity])
''',
    ),
    Block(
        "flux",
        "rusanov",
        2,
        "Rusanov flux",
        '''
def numerical_flux(left, right):
    """Return the Rusanov flux between two primitive states, with the larger of their wave speeds."""
    speed = xp.maximum(
        xp.abs(left[1]) + xp.sqrt(GAMMA * left[2] / left[0]),
        xp.abs(right[1]) + xp.sqrt(GAMMA * right[2] / right[0]),
    )
    jump = conserved(*right) - conserved(*left)
    return 0.5 * (inviscid_flux(left) + inviscid_flux(right)) - 0.5 * speed * jump
''',
    ),
    Block(
        "flux",
        "lax-friedrichs",
        1,
        "global Lax-Friedrichs flux",
        '''
def numerical_flux(left, right):
    """Return the Lax-Friedrichs flux between two primitive states, with the largest speed of the batch."""
    speed = xp.max(xp.abs(left[1]) + xp.sqrt(GAMMA * left[2] / left[0]))
    jump = conserved(*right) - conserved(*left)
    return 0.5 * (inviscid_flux(left) + inviscid_flux(right)) - 0.5 * speed * jump
''',
    ),
    Block(
        "flux",
        "hll",
        2,
        "HLL flux",
        '''
def numerical_flux(left, right):
    """Return the HLL flux between two primitive states (Davis wave-speed estimates)."""
    sound_left = xp.sqrt(GAMMA * left[2] / left[0])
    sound_right = xp.sqrt(GAMMA * right[2] / right[0])
    slow = xp.minimum(xp.minimum(left[1] - sound_left, right[1] - sound_right), 0.0)
    fast = xp.maximum(xp.maximum(left[1] + sound_left, right[1] + sound_right), 0.0)
    jump = conserved(*right) - conserved(*left)
    mean = fast * inviscid_flux(left) - slow * inviscid_flux(right)
    return (mean + slow * fast * jump) / (fast - slow)
''',
    ),
    Block(
        "flux",
        "hllc",
        3,
        "HLLC flux",
        '''
def star_state(w, side_speed, contact_speed):
    """Return the conserved state between an outer wave and the contact (Toro, section 10.4)."""
    density, velocity, pressure = w
    compressed = density * (side_speed - velocity) / (side_speed - contact_speed)
    specific_energy = pressure / ((GAMMA - 1.0) * density) + 0.5 * velocity**2
    push = contact_speed + pressure / (density * (side_speed - velocity))
    energy = specific_energy + (contact_speed - velocity) * push
    return compressed * xp.stack([xp.ones_like(density), contact_speed, energy])


def numerical_flux(left, right):
    """Return the HLLC flux between two primitive states."""
    sound_left = xp.sqrt(GAMMA * left[2] / left[0])
    sound_right = xp.sqrt(GAMMA * right[2] / right[0])
    slow = xp.minimum(left[1] - sound_left, right[1] - sound_right)
    fast = xp.maximum(left[1] + sound_left, right[1] + sound_right)
    inflow, outflow = left[0] * (slow - left[1]), right[0] * (fast - right[1])
    contact = (right[2] - left[2] + inflow * left[1] - outflow * right[1]) / (inflow - outflow)
    flux_left, flux_right = inviscid_flux(left), inviscid_flux(right)
    star_left = flux_left + slow * (star_state(left, slow, contact) - conserved(*left))
    star_right = flux_right + fast * (star_state(right, fast, contact) - conserved(*right))
    middle = xp.where(contact >= 0.0, star_left, star_right)
    return xp.where(slow >= 0.0, flux_left, xp.where(fast <= 0.0, flux_right, middle))
''',
    ),
)
