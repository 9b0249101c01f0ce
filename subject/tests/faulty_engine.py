"""An engine that trains each rank alone, and fails on purpose."""

import math
import os
import threading
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
        if self.fault == "waits" and self.job.rank == 1:
            # As in gloo, where another thread polls meanwhile.
            threading.Thread(target=self.work, args=(math.inf,), daemon=True).start()
            threading.Event().wait()
        if self.fault == "is slow" and self.job.rank == 1:
            self.work(0.5)
        super().step()

    def work(self, seconds):
        """So many of a processor, which others use as well."""
        end = time.process_time() + seconds
        while time.process_time() < end:
            pause = time.process_time() + 0.02
            while time.process_time() < pause:
                pass
            time.sleep(0.1)


def make(job, fault=""):
    return FaultyEngine(job, fault)
