"""A price alert that follows its owner: after each purchase, only a better price is news."""

import driftline as dl

engine = dl.Engine(clock=dl.ManualClock())
alert = engine.subscribe(
    "SELECT firm, price FROM quote WHERE firm = 'IBM' AND price < :last_buy",
    params={"last_buy": 10.0},
)

for price in (10.5, 9.8, 9.9, 9.5, 9.7):
    engine.publish(dl.Event("quote", {"firm": "IBM", "price": price}))
    for told in alert.pending():
        print(f"bought at {told.values['price']} (epoch {told.epoch})")
        alert.set(last_buy=told.values["price"])
