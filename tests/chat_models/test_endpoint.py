import subprocess
import sys

import pytest

from chunking_assets.chat_models.endpoint import Endpoint, endpoint_from_environment


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": ""}])
def test_without_either_variable_there_is_no_endpoint(environment):
    assert endpoint_from_environment(environment) is None


def test_a_key_alone_means_openai():
    endpoint = endpoint_from_environment({"OPENAI_API_KEY": "sk-1"})
    assert endpoint == Endpoint("https://api.openai.com/v1", "sk-1")


def test_a_url_alone_means_a_server_that_wants_no_key():
    endpoint = endpoint_from_environment({"OPENAI_BASE_URL": "http://localhost:1234/v1/"})
    assert endpoint == Endpoint("http://localhost:1234/v1", "no-key")


def test_neither_key_nor_password_shows():
    endpoint = Endpoint("http://me:secret@box:1/v1", "sk-1")
    assert endpoint.host == "box:1"
    assert "sk-1" not in repr(endpoint)


def test_importing_the_stage_loads_no_client():
    code = (
        "import pkgutil, importlib, sys, chunking_assets.chat_models as stage\n"
        "names = [m.name for m in pkgutil.iter_modules(stage.__path__)]\n"
        "for name in names: importlib.import_module(f'chunking_assets.chat_models.{name}')\n"
        "print(len(names), 'openai' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, loaded = said.stdout.split()
    assert int(count) >= 4
    assert loaded == "False"
