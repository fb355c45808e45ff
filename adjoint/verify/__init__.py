"""Verification of hand-derived derivatives, public through `adjoint`.

`gradcheck` and `jacobian_fd` compare with central differences, `dot_test` an adjoint with
its tangent, `taylor_test` looks at the rate at which remainders fall. `coverage` holds the
live table behind `adjsim verify`, `contract` the tests that every force inherits.
"""
