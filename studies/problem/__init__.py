"""A scene, what was observed of it and what is free, as one problem to search, judge and report.

Where to begin:

    making       scene file -> SceneProblem: observing (observations -> observers), free (the table,
                 and nuisances), first_frames (what is fitted before the search)
    problem      SceneProblem: theta -> predictions -> residuals, gradient, Jacobian, with reach
                 (scene values -> parameters of the model) and steps (times -> steps)
    observers    what an observation predicts: films (also of smoke), points, own
    forward      simulate without a fit
"""
