"""Price alerts of very many customers: each has its own step, and one text stands for all."""

import numpy as np

import driftline as dl

engine = dl.Engine(clock=dl.ManualClock())
engine.table("stock", key="symbol")

steps = np.random.default_rng(7).integers(1, 1_000, 100_000) / 100
alerts = engine.crowd(
    "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => :step)", {"step": steps}
)

prices = [100.0, 100.25, 104.0, 99.5, 99.75]
engine.publish_many("stock", {"symbol": ["IBM"] * len(prices), "price": prices})
for told in alerts.pending():
    print(f"{told.kind} {told.values['price']}: {len(told.members)} customers")

impatient = alerts.add(step=[1.0])
alerts.set(impatient, step=[0.5])
engine.publish_many("stock", {"symbol": ["IBM"], "price": [100.25]})
for told in alerts.pending():
    is_told = impatient[0] in told.members
    print(f"{told.kind} {told.values['price']}: is {impatient[0]} told? {is_told}")
