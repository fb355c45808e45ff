"""Sixty twins with contact: films that adjsim made without noise, and what it finds in them.

    python -m benchmarks.contact_twins make --out runs/twins    # the scene files
    python -m benchmarks.contact_twins table runs/twins         # fits them, and prints a table

A box, a sphere, a soft cube and a cloth touch an obstacle; velocity, spin, friction or material is
free; for 0.3 and 0.6 s; with the contact law that has no jumps, and with the paper's. No answer
that is *found* may be more than 1 % off, or outside its interval by more than twice its width.
"""
