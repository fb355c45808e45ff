"""How fast the loops run on this machine, and other packages in the same rounds.

python -m benchmarks.timing                        all parts, about five minutes on two cores
python -m benchmarks.timing tets cloth --rounds 25
python -m benchmarks.timing peers                  the packages of the extra `peers` beside ours
python -m benchmarks.timing all --device cuda      all of this on a GPU beside the CPU
python -m benchmarks.timing --small                seconds; shows that everything runs
"""
