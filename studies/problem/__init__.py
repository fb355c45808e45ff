"""A scene, what was observed of it and what is free, as one problem to search, judge and report.

Where to begin:

    api          Problem and fit in Python; forward: simulate without a fit
    running      the command `adjsim run SCENE`: a new folder, or one to resume
    fit          the job: search, certify, write results; seen: what the page shows
    making       scene file -> SceneProblem: observing (observations -> observers), nuisances,
                 first_frames (backgrounds, cameras and looks fitted before the search), free
    problem      SceneProblem: theta -> predictions -> residuals, gradient, Jacobian, with reach
                 (scene values -> parameters of the model), sampling (times -> steps) and steps
    observers    what an observation predicts: films (also of smoke), points (and tracked), own
    solve        coarse set, basins, stages, held-back frames, verdict; mirror: motion in depth
"""
