"""The files of deploy/: the packages they are written for accept them, and no credential is there."""

import re
from pathlib import Path

import pytest
import yaml
from dagster._config import process_config
from dagster._core.instance.ref import InstanceRef
from dagster._core.workspace.config_schema import process_workspace_config

DEPLOY = Path(__file__).parents[2] / "deploy"
SECRET_NAMES = re.compile(r"password|secret|token|key$|credential", re.IGNORECASE)
ENVIRONMENT = {
    "DAGSTER_POSTGRES_HOST": "127.0.0.1",
    "DAGSTER_POSTGRES_PORT": "5433",
    "DAGSTER_POSTGRES_PASSWORD": "of the test",
    "DAGSTER_CODE_HOST": "127.0.0.1",
    "DAGSTER_CODE_PORT": "4266",
    "CELERY_BROKER_URL": "memory://",
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def read(name):
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def instance_of(folder, *parts):
    """What Dagster reads of a dagster.yaml put together from these files; nothing is connected."""
    folder.mkdir(exist_ok=True)
    whole = {name: section for part in parts for name, section in read(part).items()}
    (folder / "dagster.yaml").write_text(yaml.safe_dump(whole))
    return InstanceRef.from_dir(str(folder))


def camel_to_snake(content):
    """Keys as dagster-k8s has them; the chart writes them the way Kubernetes does."""
    return {re.sub(r"(?<!^)([A-Z])", r"_\1", key).lower(): value for key, value in content.items()}


def everything_said(content, path=()):
    """(path, value) of every value of a YAML file."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from everything_said(value, (*path, str(key)))
    elif isinstance(content, list):
        for value in content:
            yield from everything_said(value, path)
    else:
        yield path, content


def test_dagster_on_postgres_has_a_queue_with_limits(tmp_path):
    reference = instance_of(tmp_path, "postgres/dagster.yaml")
    assert reference.run_coordinator_data.class_name == "QueuedRunCoordinator"
    runs = reference.settings["concurrency"]["runs"]
    assert runs["max_concurrent_runs"] == 8
    (limit,) = runs["tag_concurrency_limits"]
    assert limit["key"] == "dagster/backfill"
    assert limit["limit"] < runs["max_concurrent_runs"]
    storage = pytest.importorskip("dagster_postgres").DagsterPostgresStorage
    said = process_config(
        storage.config_type(), read("postgres/dagster.yaml")["storage"]["postgres"]
    )
    assert said.success, said.errors
    assert said.value["postgres_db"]["password"] == "of the test"


def test_webserver_and_daemon_ask_one_code_server():
    said = process_workspace_config(read("postgres/workspace.yaml"))
    assert said.success, said.errors
    (location,) = said.value["load_from"]
    assert location["grpc_server"]["port"] == 4266


@pytest.mark.parametrize(
    ("package", "part", "launcher"),
    [
        ("dagster_celery", "celery/run_launcher.yaml", "CeleryRunLauncher"),
        ("dagster_ray", "ray/run_launcher.yaml", "RayRunLauncher"),
    ],
)
def test_a_run_launcher_can_be_put_beside_postgres(tmp_path, package, part, launcher):
    pytest.importorskip(package, reason=f"the extra with {package} is not installed")
    reference = instance_of(tmp_path, "postgres/dagster.yaml", part)
    assert type(reference.run_launcher).__name__ == launcher


def test_the_chart_configures_a_launcher_that_dagster_k8s_accepts():
    k8s = pytest.importorskip("dagster_k8s", reason="the extra `kubernetes` is not installed")
    launcher = read("kubernetes/values.yaml")["runLauncher"]
    assert launcher["type"] == k8s.K8sRunLauncher.__name__
    said = camel_to_snake(launcher["config"]["k8sRunLauncher"])
    said["run_k8s_config"] = camel_to_snake(said["run_k8s_config"])
    said["env_secrets"] = [secret["name"] for secret in said["env_secrets"]]
    of_the_chart = {"service_account_name": "dagster", "instance_config_map": "dagster-instance"}
    accepted = process_config(
        k8s.K8sRunLauncher.config_type(),
        {
            **said,
            **of_the_chart,
            "dagster_home": "/opt/dagster",
            "postgres_password_secret": "given",
        },
    )
    assert accepted.success, accepted.errors
    assert accepted.value["run_k8s_config"]["container_config"]["resources"]["limits"]


def test_runs_and_the_code_location_of_the_chart_are_of_one_mind():
    values = read("kubernetes/values.yaml")
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    (location,) = values["dagster-user-deployments"]["deployments"]
    assert launcher["envSecrets"] == location["envSecrets"]
    assert launcher["envVars"] == [f"{v['name']}={v['value']}" for v in location["env"]]
    assert "image" not in launcher  # the code location's is taken
    image = location["image"]
    assert image["tag"] != "latest"
    queue = values["dagsterDaemon"]["runCoordinator"]["config"]["queuedRunCoordinator"]
    runs = read("postgres/dagster.yaml")["concurrency"]["runs"]
    assert queue["maxConcurrentRuns"] == runs["max_concurrent_runs"]
    assert queue["tagConcurrencyLimits"] == runs["tag_concurrency_limits"]


def test_the_containers_are_those_that_the_script_starts():
    services = read("docker-compose.yml")["services"]
    script = (DEPLOY / "postgres" / "run.py").read_text(encoding="utf-8")
    assert services.keys() == {"database", "code", "daemon", "web"}
    assert {s["image"] for n, s in services.items() if n != "database"} == {"corpus:1"}
    for name, needed in (
        ("code", "dagster_defs.definitions"), ("daemon", "run"), ("web", "3000"),
    ):  # fmt: skip
        assert needed in services[name]["command"]
        assert f'"{needed}"' in script
    variables = set(re.findall(r'"(DAGSTER_(?:POSTGRES|CODE)_[A-Z]+)"', script))
    assert variables <= services["code"]["environment"].keys()
    mounted = [volume.split(":")[0] for volume in services["code"]["volumes"]]
    assert all((DEPLOY / file).is_file() for file in mounted if file.startswith("./"))


def test_nothing_but_the_ui_has_a_port_outside_and_that_on_this_machine_only():
    services = read("docker-compose.yml")["services"]
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"web": ["127.0.0.1:3000:3000"]}
    assert read("kubernetes/values.yaml")["dagsterWebserver"]["service"]["type"] == "ClusterIP"


@pytest.mark.parametrize(
    "name", sorted(file.relative_to(DEPLOY).as_posix() for file in DEPLOY.rglob("*.y*ml"))
)
def test_what_is_secret_comes_from_the_environment_or_is_a_name(name):
    for path, value in everything_said(read(name)):
        if SECRET_NAMES.search(path[-1]) and isinstance(value, str):
            assert value.startswith("${") or "SecretName" in path[-1] or path[-1] == "key", path
        assert not re.search(r"://[^/@$]+:[^/@]+@", str(value)), path
