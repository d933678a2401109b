"""Dagster on PostgreSQL on one machine, without containers.

    deploy/postgres/run.py start FOLDER   make a database there if there is none, and start it
    deploy/postgres/run.py serve          code server, daemon and web server, until it is stopped
    deploy/postgres/run.py stop FOLDER

The database is the system's own PostgreSQL; it and the three processes listen on 127.0.0.1 only.
DAGSTER_POSTGRES_PASSWORD must be set; host and port may be (127.0.0.1, 5433), and so may
DAGSTER_CODE_PORT (4266) and DAGSTER_WEB_PORT (3000). PostgreSQL refuses to be run by root, who
lends it the user `postgres` in its place.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PASSWORD = "DAGSTER_POSTGRES_PASSWORD"  # noqa: S105  # the name of the variable
HOST = "127.0.0.1"
DEFAULTS = {
    "DAGSTER_POSTGRES_HOST": HOST,
    "DAGSTER_POSTGRES_PORT": "5433",
    "DAGSTER_CODE_HOST": HOST,
    "DAGSTER_CODE_PORT": "4266",
    "DAGSTER_WEB_PORT": "3000",
}
NAME = "dagster"
MAKE_DATABASE = """
select 'create database dagster'
where not exists (select from pg_database where datname = 'dagster') \\gexec
"""
SECONDS_TO_LOAD = 120


def program(name: str) -> str:
    """A program of PostgreSQL: the newest that is installed, or the one on the PATH."""
    installed = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = max(installed, key=lambda file: int(file.parts[4].split(".")[0]), default=None)
    found = str(newest) if newest else shutil.which(name)
    if found is None:
        sys.exit(
            f"error: PostgreSQL's {name} is not installed. Debian: apt-get install postgresql."
        )
    return found


OWNER = "postgres" if os.geteuid() == 0 else None


def run(*command: str) -> None:
    """A command of PostgreSQL's owner, who gets to see nothing of our environment."""
    subprocess.run(  # noqa: S603
        command, check=True, stdout=sys.stderr, stdin=subprocess.DEVNULL, cwd="/",
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        user=OWNER, group=OWNER, extra_groups=OWNER and [],
    )  # fmt: skip


def own(path: Path) -> None:
    if OWNER:
        shutil.chown(path, OWNER, OWNER)


def make(folder: Path, password: str) -> None:
    """An empty database. A password given as an argument would be in the list of processes."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    own(folder)
    with tempfile.NamedTemporaryFile("w") as told:  # only its owner reads it
        told.write(password)
        told.flush()
        own(Path(told.name))
        run(
            program("initdb"), "--pgdata", str(folder), "--username", NAME, "--encoding", "UTF8",
            "--auth", "scram-sha-256", "--pwfile", told.name,
        )  # fmt: skip


def start(folder: Path, variables: dict[str, str]) -> None:
    if not (folder / "PG_VERSION").exists():
        make(folder, variables[PASSWORD])
    port = variables["DAGSTER_POSTGRES_PORT"]
    settings = f"-c listen_addresses={HOST} -c port={port} -c unix_socket_directories="
    log = str(folder / "server.log")
    run(program("pg_ctl"), "--pgdata", str(folder), "--log", log, "--wait", "-o", settings, "start")
    make_database(variables)


def make_database(variables: dict[str, str]) -> None:
    subprocess.run(  # noqa: S603
        [
            program("psql"), "--host", HOST, "--port", variables["DAGSTER_POSTGRES_PORT"],
            "--username", NAME, "--dbname", "postgres", "--quiet", "--set", "ON_ERROR_STOP=1",
        ],
        check=True, text=True, input=MAKE_DATABASE,
        env={**variables, "PGPASSWORD": variables[PASSWORD]},
    )  # fmt: skip


def stop(folder: Path) -> None:
    run(program("pg_ctl"), "--pgdata", str(folder), "--wait", "--mode", "fast", "stop")


def serve(variables: dict[str, str]) -> int:
    """The code server first: the others ask it what there is."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # A shell that starts us in the background ignores SIGINT, and Dagster stops by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prepare(variables)
    workspace = ["-w", str(HERE / "workspace.yaml")]
    code = [
        "dagster", "code-server", "start", "-h", HOST, "-p", variables["DAGSTER_CODE_PORT"],
        "-m", "dagster_defs.definitions", "-d", str(ROOT),
    ]  # fmt: skip
    web = ["dagster_webserver", "-h", HOST, "-p", variables["DAGSTER_WEB_PORT"], *workspace]
    running = [begin(code, variables)]
    try:
        wait_for_port(int(variables["DAGSTER_CODE_PORT"]), running[0])
        running += [
            begin(["dagster._daemon", "run", *workspace], variables),
            begin(web, variables),
        ]
        print(f"Dagster UI: http://{HOST}:{variables['DAGSTER_WEB_PORT']}", flush=True)
        while all(process.poll() is None for process in running):
            time.sleep(1)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGINT)
        for process in running:
            process.wait()


def begin(module: list[str], variables: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", *module], env=variables, cwd=ROOT)  # noqa: S603


def prepare(variables: dict[str, str]) -> None:
    """Put the configuration where Dagster looks, unless there is one; make tables and pools."""
    from dagster import DagsterInstance

    from chunking_assets import config as configuration
    from dagster_defs.pools import set_limits

    home = Path(variables.setdefault("DAGSTER_HOME", str(configuration.load().local / NAME)))
    home.mkdir(parents=True, exist_ok=True)
    file = home / "dagster.yaml"
    if not file.exists():
        shutil.copyfile(HERE / "dagster.yaml", file)
    if "postgres" not in file.read_text(encoding="utf-8"):
        sys.exit(f"error: {file} names another storage. Replace it by {HERE / 'dagster.yaml'}.")
    os.environ.update(variables)
    with DagsterInstance.get() as instance:
        set_limits(instance)


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + SECONDS_TO_LOAD
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    sys.exit("error: the code server does not answer; what it says is above.")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=["start", "serve", "stop"])
    parser.add_argument("folder", nargs="?", type=Path, help="of the database; not for serve")
    arguments = parser.parse_args()
    if (arguments.folder is None) != (arguments.do == "serve"):
        parser.error("start and stop need the folder of the database, and serve has none")
    if arguments.do == "stop":
        stop(arguments.folder.absolute())
        return 0
    variables = {**DEFAULTS, **os.environ}
    if not variables.get(PASSWORD):
        sys.exit(f"error: {PASSWORD} is not set. Choose one; the database is made with it.")
    if arguments.do == "serve":
        return serve(variables)
    start(arguments.folder.absolute(), variables)
    for name in ("DAGSTER_POSTGRES_HOST", "DAGSTER_POSTGRES_PORT"):
        print(f"export {name}={variables[name]}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(f"error: {failed.cmd[0]} failed; what it says is above.")
