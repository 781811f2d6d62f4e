"""One thing, then another: a login after a failed one, within a minute."""

import driftline as dl

engine = dl.Engine(clock=dl.ManualClock())
suspicious = engine.subscribe(
    "SELECT * FROM login WHERE ok = FALSE AND host LIKE 'db-%'"
    " THEN SELECT user, host FROM login WHERE ok = TRUE AND host LIKE 'db-%' WITHIN 60"
)

for second, ok in ((0, True), (10, False), (20, False), (65, True), (90, False), (200, True)):
    attributes = {"user": "eve", "host": "db-7", "ok": ok}
    engine.publish(dl.Event("login", attributes, time=second * 1_000_000))

for told in suspicious.pending():
    print([event.time // 1_000_000 for event in told.events], told.values)
