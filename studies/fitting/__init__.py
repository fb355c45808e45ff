"""The run of a scene: search, judge, certify, write.

Where to begin:

    running      the command `adjsim run SCENE`: a new folder, or one to resume
    fit          the job of one search: search, certify, write results, draw the report
    solve        coarse set, basins, stages, held-back frames; judging: intervals, verdict
    instances    many random instances of a scene
    writing      films, points and cameras of the answer; pictures: shapes and textures
    inspecting   the command `adjsim inspect RUN`
"""
