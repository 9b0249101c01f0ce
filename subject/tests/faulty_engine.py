"""An engine that trains each rank alone, and fails on purpose."""

import os
import time

from zeroproof_subject.windows import WindowedEngine


class FaultyEngine(WindowedEngine):
    def __init__(self, job, fault):
        super().__init__(job)
        self.fault = fault

    def step(self):
        if self.fault == "raises":
            raise ValueError("on purpose")
        if self.fault == "dies" and self.job.rank == 1:
            os.abort()
        while self.fault == "waits" and self.job.rank == 1:
            time.sleep(0.1)
        super().step()


def make(job, fault=""):
    return FaultyEngine(job, fault)
