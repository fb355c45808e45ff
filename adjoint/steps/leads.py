"""Adjoint of `adjsim/steps/leads.py`, whose tangent it is itself."""

from adjsim.engine.tangent_packing import PackedVector
from adjsim.steps.leads import Leads


def undo_leads(leads: Leads, k: int, dt: float, adj: PackedVector) -> None:
    """Turn the cotangents of the led nodes after step k into those before it, and of the places."""
    adj_speed = adj.v[leads.nodes] / dt  # (2) v' = (x' - x)/dt
    adj.series[leads.places(k)] += adj.x[leads.nodes] + adj_speed  # (1) x' = p_k
    adj.x[leads.nodes] = -adj_speed
    adj.v[leads.nodes] = 0.0
