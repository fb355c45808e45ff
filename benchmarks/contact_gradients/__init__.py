"""Contact gradients against closed forms: `python -m benchmarks.contact_gradients`.

Nine problems (`problems.py`) have a closed form of a value and of its derivatives in the limit of
stiff contact and short time steps. `measuring.py` measures how value and gradient come near it,
and compares the orders with those derived in `docs/course/04-contact-and-friction.md`. One of them
loses energy by a dissipation; a table has the same bounce with a damping beside it, whose
gradient is not the slope.

Five more (`two_bodies.py`) have bodies that touch each other: balls head-on and off their centres,
a Newton's cradle, a block on a block, a rod on an edge. All are run in Newton too, and the balls in
JAX and Taichi, where these are installed.
"""
