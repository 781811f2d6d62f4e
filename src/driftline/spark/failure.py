"""What does a failed Spark job say, in a line a person can use?

Spark's errors are pages: the sentence that matters stands at the end of a Python traceback, after
the last `Caused by:` of a Java one, or on the first line, under numbers nobody asked for.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

# Everything a call into Spark raises; some of py4j's errors come through unconverted.
SPARK_ERRORS = (PySparkException, Py4JError)

_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_RAISED = re.compile(r"^(?:\w+\.)*(\w+): (.*)$")  # driftline.errors.FileRefused: what happened
_TASK = re.compile(r"^.*Lost task .*?\): ")
_CLASS = re.compile(r"^: |^(?:\w+\.)+\w+(?:Exception|Error): ")
_TAIL = re.compile(r"\s*(?:SQLSTATE: \w+\s*)+$")
_SECTIONS = re.compile(r"\n=== Streaming Query ===|\nJVM stacktrace:|\nDriver stacktrace:")


def reason(error: BaseException) -> str:
    """The sentence of the error that says what happened."""
    text = _TAIL.sub("", _SECTIONS.split(str(error))[0].strip())
    causes = _CAUSE.findall(str(error))
    if causes:
        return _bare(causes[-1])
    if "Traceback (most recent call last)" in text:
        for line in reversed(text.split("\n")):
            raised = _RAISED.match(line)
            if raised is not None:
                return f"{raised[1]}: {raised[2]}"
    lines = [line for line in text.split("\n") if not line.startswith("An error occurred while")]
    return (_bare(lines[0]) if lines else "") or type(error).__name__


def _bare(line: str) -> str:
    """Without the number of the task, the names of Java's classes and SQL's code."""
    line, before = _TASK.sub("", line), ""
    while line != before:
        line, before = _CLASS.sub("", line), line
    return _TAIL.sub("", line)
