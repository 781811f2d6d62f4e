"""A live set of rows: the snapshot, then what enters, changes and leaves."""

import driftline as dl

engine = dl.Engine(clock=dl.ManualClock())
engine.table("stock", key="symbol", ticks={"price": "0.01"})


def quote(symbol: str, price: float) -> None:
    engine.publish(dl.Event("stock", {"symbol": symbol, "price": price}))


quote("IBM", 9.50)
quote("DIS", 12.25)
cheap = engine.subscribe(
    "SELECT symbol, price FROM stock WHERE price < :limit",
    params={"limit": 10},
    rows=True,
    on_change="reevaluate",
)
quote("IBM", 9.75)
quote("MSFT", 8.00)
cheap.set(limit=9)
engine.delete("stock", "MSFT")

for told in cheap.pending():
    end = " (end of snapshot)" if told.last else ""
    print(f"{told.kind:8} {told.key:5} {told.old} -> {told.values}{end}")
