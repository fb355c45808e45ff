"""Reliable runs: the folder, what its numbers depend on, resume, and the pool of workers.

    folder, job = start_or_resume(recipe, out, make, resume=resume)   # studies.runs.starting
    with open_pool(scheduler) as pool:                                # studies.runs.pool
        for item, result in pool.each(function, items):
            folder.write_json(f"instances/{item:03d}/result.json", result)

- `folder`: a run folder. Every file appears complete or not at all, is written by one command at a
  time, and is checked when it is read: one message names a damaged file and the way out.
- `manifest`: a hash of everything the numbers of a run depend on, with its parts.
- `starting`: begin in a new folder, or resume one; a folder with another hash is refused with what
  differs. Runs, scans, data sets and tables begin here and nowhere else.
- `pool`: independent items of work, here, on this machine's cores, or on a Dask cluster, with the
  same bits. A lost worker costs a retry.
- `lines`: logs of one JSON record a line.
- `options`: what the command line says besides the settings.
- `progress`: bars, and plain lines where there is no terminal.
"""
