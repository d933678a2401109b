"""What the gate lets through is decided by numbers alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets.live_index.gate import NO_LIMITS, Evidence, PromotionSettings, refusals
from chunking_assets.prices import Money

BETTER = Evidence(
    verdict="better",
    metric="recall@5",
    difference=0.05,
    ci_low=0.02,
    ci_high=0.08,
    confidence=0.95,
    gain=0.02,
    n_questions=80,
    coverage=1.0,
    live_coverage=0.97,
    context_tokens=900.0,
    reindex_cost=Money(3.0, "USD"),
    storage_cost=Money(0.5, "USD"),
)
LIMITS = PromotionSettings(
    min_difference=0.02, max_context_tokens=1000, max_reindex_cost=3, max_storage_cost=1
)


def test_what_is_within_every_limit_is_let_through():
    assert refusals(BETTER, LIMITS) == []


def test_the_first_promotion_needs_no_verdict_but_keeps_to_its_ceilings():
    assert refusals(Evidence("first"), NO_LIMITS) == []
    assert len(refusals(Evidence("first"), LIMITS)) == 3


@pytest.mark.parametrize(
    "verdict", ["cannot tell", "worse", "baseline", "not comparable", "not compared yet", "x"]
)
def test_nothing_but_better_is_let_through(verdict):
    assert refusals(replace(BETTER, verdict=verdict), LIMITS)


@pytest.mark.parametrize(
    ("number", "beyond"),
    [
        ("gain", 0.019),
        ("coverage", 0.94),
        ("live_coverage", 0.9),
        ("context_tokens", 1000.5),
        ("reindex_cost", Money(3.01, "USD")),
        ("storage_cost", Money(1.5, "USD")),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_number_beyond_its_limit_refuses_and_so_does_one_that_is_not_known(
    number, beyond, is_known
):
    changed = replace(BETTER, **{number: beyond if is_known else None})
    assert len(refusals(changed, LIMITS)) == 1


@given(
    st.sampled_from(["better", "worse", "cannot tell"]),
    st.one_of(st.none(), st.floats(-1, 1)),
    st.floats(0, 1),
)
def test_nothing_is_let_through_below_the_difference_asked_for(verdict, gain, least):
    found = refusals(
        replace(BETTER, verdict=verdict, gain=gain), PromotionSettings(min_difference=least)
    )
    assert (not found) == (verdict == "better" and gain is not None and gain >= least)
