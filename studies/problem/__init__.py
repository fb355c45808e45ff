"""A scene, what was observed of it and what is free, as one problem to search, judge and report.

Where to begin:

    making       scene file -> SceneProblem: observing (observations -> observers), free (the table,
                 and nuisances), first_frames (what is fitted before the search)
    problem      SceneProblem: what search and answer are given, and the parts of it that a search
                 begins with; it stands on
    losses       predictions -> residuals, priors, losses, Jacobian, and on
    predict      theta -> predictions, their tangent and cotangent, with scene_maps (scene values
                 -> parameters of the model), steps (how long a step is, and between
                 which steps instants lie) and contact_steps (how long where something touches)
    many_thetas  losses and gradients of many thetas at once: worlds of one batch
    observers    what an observation predicts: films (also of smoke), points, clouds,
                 depths, encoders, forces, own
    forward      simulate without a fit
"""
