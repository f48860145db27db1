"""What something takes, seen from the outside: seconds, processor seconds, and memory of driver, JVM and workers.

Processor seconds compare two ways of working also on a machine that others use at the same time; seconds do not.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import psutil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 0.05


@dataclass
class Usage:
    """What this process and those below it took while the context lasted; memory is the largest resident one in MB.

    Attributes:
        seconds: by the clock.
        processor: of all processes together, in seconds.
        before: memory of this process at the beginning.
        driver: memory of this process.
        jvm: of its JVM, which runs Spark's driver and, in local mode, its executors.
        workers: of all Python workers together.
    """

    seconds: float = 0.0
    processor: float = 0.0
    before: float = 0.0
    driver: float = 0.0
    jvm: float = 0.0
    workers: float = 0.0
    _spent: dict[int, tuple[float, float]] = field(default_factory=dict)
    _done: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._sample()
        self._spent = {process: (last, last) for process, (_, last) in self._spent.items()}  # what was spent before
        self.before = self.driver
        self.seconds = -time.perf_counter()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds += time.perf_counter()
        self._done.set()
        if self._thread:
            self._thread.join()
        self._sample()
        self.processor = sum(last - first for first, last in self._spent.values())

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL):
            self._sample()

    def _sample(self) -> None:
        this = psutil.Process()
        memory = {"java": 0.0, "driver": 0.0, "workers": 0.0}
        for process in [this, *this.children(recursive=True)]:
            try:
                with process.oneshot():
                    size, times, name = process.memory_info().rss, process.cpu_times(), process.name()
            except psutil.NoSuchProcess:  # Spark ends workers that are idle: what they spent was seen before
                continue
            memory["driver" if process == this else "java" if name == "java" else "workers"] += size / 2**20
            first, _ = self._spent.get(process.pid, (0.0, 0.0))
            self._spent[process.pid] = (first, times.user + times.system)
        self.driver = max(self.driver, memory["driver"])
        self.jvm, self.workers = max(self.jvm, memory["java"]), max(self.workers, memory["workers"])


def heap_in_use(spark: SparkSession) -> float:
    """MB of the JVM's heap that its collector leaves."""
    jvm: Any = spark._jvm
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20
