"""An area of interest that moves by itself: told of pickups near a walker, without any update."""

import driftline as dl

clock = dl.ManualClock()
engine = dl.Engine(clock=clock)
engine.set_env("visibility", 1.0)
walker = engine.subscribe(
    "SELECT name FROM pickup WHERE x BETWEEN (-3 + :dx * elapsed()) * env('visibility')"
    " AND (3 + :dx * elapsed()) * env('visibility')",
    params={"dx": 1.0},
)

engine.publish(dl.Event("pickup", {"name": "apple", "x": 4}))
clock.advance(2)
engine.publish(dl.Event("pickup", {"name": "pear", "x": 4}))
engine.set_env("visibility", 0.5)
engine.publish(dl.Event("pickup", {"name": "plum", "x": 4}))
print("told of", [told.values["name"] for told in walker.pending()])
print(walker.explain(dl.Event("pickup", {"name": "plum", "x": 4})))
