"""A scene, what was observed of it and what is free, as one problem to search, judge and report.

Where to begin:

    api          Problem and fit in Python; forward: simulate without a fit
    running      the command `adjsim run SCENE`: a new folder, or one to resume
    fit          the job: search, certify, write results; seen: what the page shows
    making       scene file -> SceneProblem: observing (observations -> observers), free (the table,
                 and nuisances), first_frames (what is fitted before the search)
    problem      SceneProblem: theta -> predictions -> residuals, gradient, Jacobian, with reach
                 (scene values -> parameters of the model) and steps (times -> steps)
    observers    what an observation predicts: films (also of smoke), points, own
    solve        coarse set, basins, stages, held-back frames, verdict
"""
