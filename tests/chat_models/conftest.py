import pytest
from chat_server import KEY, OpenAIServer, serving


@pytest.fixture
def server():
    with serving(OpenAIServer()) as running:
        yield running


@pytest.fixture
def key():
    return KEY
