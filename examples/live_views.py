"""Live views of a table: the value now, then each change of it, and only those."""

import driftline as dl

engine = dl.Engine(clock=dl.ManualClock())
engine.table("stock", key="symbol")


def quote(symbol: str, risk: int, per: float, sector: str = "tech") -> None:
    engine.publish(
        dl.Event("stock", {"symbol": symbol, "risk": risk, "per": per, "sector": sector})
    )


quote("IBM", risk=30, per=12.5)
quote("DIS", risk=50, per=9.0, sector="media")
views = {
    "least": engine.subscribe(
        "SELECT MIN(per) FROM stock WHERE risk BETWEEN :low AND :high", {"low": 20, "high": 60}
    ),
    "count": engine.subscribe("SELECT COUNT(*) AS n, AVG(per) AS mean FROM stock WHERE risk < 60"),
    "sectors": engine.subscribe("SELECT DISTINCT sector FROM stock"),
    "moved": engine.subscribe("SELECT MIN(per) FROM stock HAVING moved(MIN(per), by => 2)"),
}
quote("SAP", risk=40, per=8.5)
quote("DIS", risk=55, per=15.0, sector="media")
views["least"].set(low=35, high=60)
engine.delete("stock", "DIS")
engine.delete("stock", "SAP")

for name, view in views.items():
    for told in view.pending():
        print(f"{name:8} {told.kind:8} {told.old} -> {told.values}")
