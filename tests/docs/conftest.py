"""The published databases of the SQL tests, empty and filled, for the queries in the pages."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_spec = spec_from_file_location("sql_fixtures", Path(__file__).parents[1] / "sql" / "conftest.py")
assert _spec
assert _spec.loader
_fixtures = module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)

empty, filled = _fixtures.empty, _fixtures.filled
