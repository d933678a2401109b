import pytest
from chat_server import KEY, OpenAIServer, serving, without_endpoint


@pytest.fixture
def server():
    with serving(OpenAIServer()) as running:
        yield running


@pytest.fixture
def key():
    return KEY


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    without_endpoint(monkeypatch)
