"""`driftline bench matching`: its figures, its claims, and the options it refuses."""

from __future__ import annotations

import pytest

from driftline.bench import matching, peers
from driftline.bench.report import Report

CHANGES = ("add", "change", "discard")


@pytest.fixture(scope="module")
def report() -> Report:
    said: list[str] = []
    made = matching.run(False, said.append, sizes=[400, 600], workloads=["W2", "W4"], batch=100)
    assert any("W4, 600 filters" in text for text in said)
    return made


def test_the_figures_have_the_documented_keys(report):
    data = report.as_data()
    assert list(data["workloads"]) == ["W2", "W4"]
    for sizes in data["workloads"].values():
        assert list(sizes) == ["400", "600"]
        for figures in sizes.values():
            ours = figures["driftline"]
            assert {"events_per_s", "bytes_per_sub", "single_event_us_p50"} <= ours.keys()
            assert {f"{change}_us" for change in CHANGES} <= ours.keys()
            for change in CHANGES:
                assert ours[f"{change}_call_us"].keys() == {"p50", "mean"}
            for name in peers.PEERS:
                assert figures[name] is None or figures[name]["events_per_s"] > 0
            assert {"ratio_best_peer", "ratio_tuned_peer", "matches_per_event"} <= figures.keys()


def test_claims_are_measured_only_at_their_size(report):
    claims = {claim.name: claim for claim in report.claims}
    assert claims.keys() >= {"w1_100k", "w2_1m", "w5_1m", "w3_ratio", "change_call"}
    assert claims.keys() >= {"change_batch", "single_event", "churn_memory"}
    assert all(claim.holds is None for claim in report.claims)


def test_the_best_formulation_of_the_faster_peer_is_what_we_compare_with():
    figures = {
        "duckdb": {"events_per_s": 30.0, "formulations": {"as written": 10.0, "sorted": 30.0}},
        "polars": {"events_per_s": 20.0, "formulations": {"as written": 20.0, "sorted": 15.0}},
    }
    assert matching._ratio(60.0, matching._peer_rates(figures, "events_per_s")) == 2.0
    assert matching._ratio(60.0, matching._peer_rates(figures, "as written")) == 3.0
    assert matching._ratio(60.0, []) is None


def test_a_peer_that_is_not_installed_is_null_and_nothing_fails(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    report = matching.run(False, lambda text: None, [200], ["W2"], batch=50)
    figures = report.as_data()["workloads"]["W2"]["200"]
    assert [figures[name] for name in peers.PEERS] == [None, None, None]
    assert figures["ratio_best_peer"] is None


def test_an_engine_that_disagrees_stops_the_benchmark(monkeypatch):
    def wrong(name, groups):
        class Silent:
            def take(self, events):
                pass

            def formulations(self):
                empty = matching.np.zeros(0, "int64")
                return {"as written": lambda: matching.Pairs(empty, empty)}

        return Silent()

    monkeypatch.setattr(matching, "peer", wrong)
    with pytest.raises(AssertionError, match=r"we [0-9]+ that it does not"):
        matching.run(False, lambda text: None, [5_000], ["W1"], batch=50)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["matching", "--workload", "W1,W9"], "'W9' is none of W1, W2, W3, W4, W5"),
        (["matching", "--n", "many"], "'many' is no number"),
        (["matching", "--n", "0"], "'0' is no number"),
        (["matching", "--batch", "-1"], "'-1' is no number"),
        (["language", "--n", "1000"], "--n cannot be chosen for 'language'"),
        (["language", "--workload", "W1"], "--workload cannot be chosen for 'language'"),
        (["language", "--churn"], "--churn cannot be chosen for 'language'"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(driftline, words, problem):
    ran = driftline("bench", *words)
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


def test_the_command_takes_sizes_workloads_and_a_batch(driftline):
    ran = driftline(
        "bench", "matching", "--n", "300", "--workload", "w5", "--batch", "50", "--json"
    )
    assert ran.data["batch"] == 50
    assert list(ran.data["workloads"]) == ["W5"]
    assert list(ran.data["workloads"]["W5"]) == ["300"]
