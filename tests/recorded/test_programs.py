"""Does a recorded sequence tell what engines tell that were given the same, one by one?"""

from __future__ import annotations

from driftline.recorded.recorder import Recorder
from driftline.recorded.replay import answers, replayed
from tests.recorded.programs import comparable, config_of, programs, recorded, told_by_engines


def test_one_interpreter_tells_what_an_engine_of_its_own_tells_each_program(tmp_path):
    some = programs(30)
    recorded(some, tmp_path, parquet=False)
    config = config_of(some, tmp_path)
    recorder = Recorder(config)
    recorder.look(1)
    recorder.close()
    followed = set().union(*(program.followed for program in some))
    found = comparable(answers(replayed(config)), followed)
    wanted = told_by_engines(some)
    assert found == wanted
    assert wanted.total() > 1500
