from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_corpus import write_corpus

from chunking_assets import config as configuration
from chunking_assets.errors import ConfigError
from chunking_assets.prices import NO_PRICES, Money, Price, Prices

DAY = date(2026, 6, 1)


def price(model="m", unit="1M input tokens", amount=2.0, as_of="2026-01-01", currency="USD"):
    return Price(model=model, unit=unit, price=amount, as_of=as_of, currency=currency)


def test_a_price_holds_from_its_day_until_the_next():
    prices = Prices([price(amount=2), price(amount=1, as_of="2026-06-01")])
    assert prices.of_tokens("m", 1_000_000, day=date(2026, 5, 31)) == Money(2, "USD")
    assert prices.of_tokens("m", 1_000_000, day=DAY) == Money(1, "USD")
    assert prices.of_tokens("m", 1_000_000, day=date(2025, 12, 31)) is None


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_what_has_no_price_has_no_cost_however_few_the_tokens(sent, received):
    assert NO_PRICES.of_tokens("m", sent, received) is None
    only_input = Prices([price()]).of_tokens("m", sent, received, day=DAY)
    assert (only_input is None) == (received > 0)


def test_a_model_is_free_only_where_its_price_is_0():
    assert Prices([price(amount=0)]).of_tokens("m", 5_000_000, day=DAY) == Money(0, "USD")


def test_a_number_of_tokens_nobody_knows_has_no_cost():
    prices = Prices([price(), price(unit="1M output tokens")])
    assert prices.of_tokens("m", None, 1, day=DAY) is None
    assert prices.of_tokens("m", 1, None, day=DAY) is None


def test_storage_has_a_price_of_its_own():
    prices = Prices([price(model="storage", unit="GB month", amount=0.02)])
    assert prices.of_storage(5 * 10**9, day=DAY) == Money(0.1, "USD")
    assert NO_PRICES.of_storage(5) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"currency": "EUR", "unit": "1M output tokens"},
            "m has prices in EUR and USD|USD and EUR",
        ),
        ({"price": 3}, "two prices for 1M input tokens as of 2026-01-01"),
    ],
)
def test_a_price_table_that_contradicts_itself_is_refused(tmp_path, changes, said):
    entry = {"model": "m", "unit": "1M input tokens", "price": 2, "as_of": "2026-01-01"}
    file = write_corpus(tmp_path, {"a.md": "One."}, prices=[entry, {**entry, **changes}])
    with pytest.raises(ConfigError, match=said):
        configuration.load(file)
