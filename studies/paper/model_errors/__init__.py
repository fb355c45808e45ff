"""The mass of a body from video where the model of the fit is not that of the video."""
