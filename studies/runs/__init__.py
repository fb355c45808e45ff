"""Reliable runs: the folder, what its numbers depend on, resume, and the pool of workers.

    folder, job = start_or_resume(recipe, out, make, resume=resume)   # studies.runs.starting
    with open_pool(scheduler) as pool:                                # studies.runs.pool
        for item, result in pool(function, items):
            folder.write_json(f"instances/{item:03d}/result.json", result)

Runs, scans, data sets and tables begin in `starting` and nowhere else. A resumed search starts from
the beginning: `studies/optimizers/evaluations.py` replays its logs, and evaluates where they end.
"""
