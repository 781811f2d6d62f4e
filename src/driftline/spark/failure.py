"""What does a failed Spark job say, in a line a person can use?"""

from __future__ import annotations

from pyspark.errors import PySparkException

from driftline.errors import PipelineFailed
