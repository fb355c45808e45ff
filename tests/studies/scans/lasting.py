"""A scan that cannot end: its later pieces of work last until their client is gone."""

import os
import time

from studies.scans.survey import Survey


SOON = 6  # points that are made at once


class Lasting(Survey):
    """Points of which those from `SOON` on keep their worker as long as there is a client."""

    def __call__(self, piece):
        client = os.getppid()
        while min(piece)[0] >= SOON and os.getppid() == client:
            time.sleep(0.05)
        return super().__call__(piece)
