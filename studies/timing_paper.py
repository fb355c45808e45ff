"""What gradSim published: table 4 (right), steps per second against tetrahedra.

Source: Jatavallabhula et al., gradSim, ICLR 2021, table 4; DP: physics, without rendering.
"""

HARDWARE = "gradSim (ICLR 2021), table 4; its appendix I names a laptop, Intel i7, GTX 1060"
FORWARD = {100: 9057, 200: 9057, 400: 8751, 1000: 4174, 2000: 3967, 5000: 3871, 10000: 3721}
BACKWARD = {100: 3721, 200: 3780, 400: 3750, 1000: 1644, 2000: 1655, 5000: 1553, 10000: 1429}
