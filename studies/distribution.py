"""The pool of workers, under the name that older modules import; see `studies/runs/pool.py`."""

from studies.runs.pool import HERE, DaskPool as Cluster, Pool as Spread, run_item as alone


__all__ = ["HERE", "Cluster", "Spread", "alone"]
