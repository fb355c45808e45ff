"""The run of a scene: search, judge, certify, write.

Where to begin:

    running      the command `adjsim run SCENE`: a new folder, or one to resume
    fit          the job of one search: search, certify, write results, draw the report
    solve        start, search, held-back frames, error by mesh, budget; trying: intervals;
                 judging: verdict
    checking     the command `adjsim check SCENE`
    instances    many random instances of a scene
    writing      films, points and cameras of the answer; pictures: shapes and textures
    inspecting   the command `adjsim inspect RUN`
"""
