"""`serve --workers`: what each worker is told, and how they are kept."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_sidecar.config import Config, load
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.process import workers as module
from kafka_sidecar.process.workers import Supervisor, check_workers, worker_config, worker_environment


def config(**settings: str) -> Config:
    return load(None, {f"KAFKA_SIDECAR_{name.upper()}": value for name, value in settings.items()})


def test_each_worker_has_a_node_id_and_ports_of_its_own() -> None:
    given = config(
        kafka__listen="0.0.0.0:9092",
        kafka__advertised="kafka.example:19092",
        kafka__node_id="3",
        control__listen="127.0.0.1:7000",
        telemetry__metrics_listen="0.0.0.0:8000",
    )
    second = worker_config(given, 1, 4)
    assert (second.kafka.node_id, second.kafka.listen, second.kafka.advertised) == (
        13,
        "0.0.0.0:9093",
        "kafka.example:19093",
    )
    assert (second.control.listen, second.telemetry.metrics_listen) == ("127.0.0.1:7001", "0.0.0.0:8001")
    hosts = [replace(given, kafka=replace(given.kafka, node_id=node)) for node in range(3)]
    ids = {worker_config(host, number, 4).kafka.node_id for host in hosts for number in range(4)}
    assert len(ids) == 12, "hosts with node ids of their own have workers with ids of their own"


def test_a_second_set_of_hosts_is_counted_from_its_base_on() -> None:
    given = config(
        kafka__listen="0.0.0.0:9092",
        kafka__advertised="kafka:9092",
        kafka__node_id="1",
        kafka__node_id_base="100",
        kafka__external_listen="0.0.0.0:9192",
        kafka__external_advertised="a.example:9192,b.example:9292",
    )
    base = {"KAFKA_SIDECAR_KAFKA__NODE_ID_BASE": "100"}  # a worker has the environment of its supervisor too
    told = [load(None, base | worker_environment(given, number, 3)).kafka for number in range(3)]
    assert [kafka.own_node_id for kafka in told] == [103, 104, 105]
    assert told[0].external_address == ("b.example", 9292), "lists of addresses are each set's own"


def test_the_external_listener_of_a_worker_is_counted_up_too() -> None:
    given = config(
        kafka__listen="0.0.0.0:9092",
        kafka__advertised="kafka:9092",
        kafka__node_id="1",
        kafka__external_listen="0.0.0.0:9192",
        kafka__external_advertised="a.example:9192,b.example:9292",
    )
    told = load(None, worker_environment(given, 2, 3))
    assert told == worker_config(given, 2, 3)
    assert (told.kafka.external_listen, told.kafka.external_advertised) == ("0.0.0.0:9194", "b.example:9294")


def test_what_a_worker_is_told_by_its_environment_is_its_configuration() -> None:
    given = config(kafka__listen="127.0.0.1:9092")
    told = load(None, worker_environment(given, 1, 2))
    assert told == worker_config(given, 1, 2)
    assert (told.kafka.advertised, told.control.listen) == ("127.0.0.1:9093", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("settings", "workers", "why"),
    [
        ({}, 0, "write a number from 1 to 64"),
        ({"kafka__listen": "0.0.0.0:9092"}, 2, "set kafka.advertised"),
        ({"groups__coordinate": "false"}, 2, "groups.coordinate is false, and workers are a fleet"),
        ({"kafka__listen": "127.0.0.1:0"}, 2, "give the first port"),
        ({"kafka__listen": "127.0.0.1:65535"}, 2, "must be below 65536"),
        (
            {"control__listen": "127.0.0.1:9095"},
            4,
            "kafka.listen takes ports 9092 to 9095, and control.listen begins at 9095",
        ),
        (
            {"telemetry__metrics_listen": "0.0.0.0:9090"},
            3,
            "telemetry.metrics_listen takes ports 9090 to 9092, and kafka.listen begins",
        ),
    ],
)
def test_what_can_not_be_shared_out_is_refused(settings: dict[str, str], workers: int, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_workers(config(**settings), workers)


def test_addresses_of_several_interfaces_may_have_the_same_ports() -> None:
    listen = {
        "kafka__listen": "10.0.0.5:9092",
        "kafka__external_listen": "203.0.113.7:9092",
        "kafka__external_advertised": "k.example:9092",
    }
    check_workers(config(kafka__advertised="kafka.example:9092", **listen), 2)


WORKER = """
import os, signal, sys
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append("signal"))
with open(os.environ["PLACE"], "a") as file:
    file.write("x")
if "STATUS" in os.environ:
    os._exit(int(os.environ["STATUS"]))
while sys.stdin.read():
    pass
with open(os.environ["PLACE"], "a") as file:
    file.write("".join(told) + "end")
os._exit(int(os.environ.get("LAST", "0")))
"""


def supervisor(tmp_path: Path, *environments: dict[str, str]) -> Supervisor:
    told: list[dict[str, str]] = [
        {**os.environ, "PLACE": str(tmp_path / str(number)), **given} for number, given in enumerate(environments)
    ]
    return Supervisor([sys.executable, "-c", WORKER], told)


async def starts(tmp_path: Path, number: int, count: int) -> None:
    place = tmp_path / str(number)
    async with asyncio.timeout(10):
        while not place.exists() or len(place.read_text()) < count:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)


async def test_a_worker_that_ends_is_started_again_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.02)
    running = asyncio.create_task(supervisor(tmp_path, {}, {"STATUS": "3"}).run())
    await starts(tmp_path, 1, 3)
    await starts(tmp_path, 0, 1)
    assert (tmp_path / "0").read_text() == "x"
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running, 10) in (0, 3), "the second may be in its pause"


async def test_a_worker_that_was_drained_by_an_operator_is_not_started_again(tmp_path: Path) -> None:
    assert await asyncio.wait_for(supervisor(tmp_path, {"STATUS": "0"}, {"STATUS": "0"}).run(), 10) == 0
    assert [(tmp_path / str(number)).read_text() for number in range(2)] == ["x", "x"]


async def test_all_are_stopped_once_and_the_worst_status_is_told(tmp_path: Path) -> None:
    running = asyncio.create_task(supervisor(tmp_path, {}, {"LAST": "1"}, {}).run())
    for number in range(3):
        await starts(tmp_path, number, 1)
    for _ in range(2):  # as terminals and service managers do
        os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running, 10) == 1
    assert [(tmp_path / str(number)).read_text() for number in range(3)] == ["xend"] * 3, (
        "no signal has made them hurry"
    )


async def test_a_worker_that_can_not_start_again_does_not_end_those_that_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its port is taken, say: after they have run for a while it is no wrong setting."""
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(module, "RAN_SECONDS", 0.0)
    running = asyncio.create_task(supervisor(tmp_path, {}, {"STATUS": "2"}).run())
    await starts(tmp_path, 1, 3)
    await starts(tmp_path, 0, 1)
    assert (tmp_path / "0").read_text() == "x"
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running, 10) in (0, 2)


async def test_a_worker_for_which_there_is_no_memory_at_the_moment_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    start, tries = asyncio.create_subprocess_exec, 0

    async def scarce(*command: str, **how: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries in (2, 3):
            raise OSError(12, "Cannot allocate memory")
        return await start(*command, **how)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", scarce)
    running = asyncio.create_task(supervisor(tmp_path, {}, {}).run())
    for number in range(2):
        await starts(tmp_path, number, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running, 10) == 0


async def test_a_wrong_setting_ends_all(tmp_path: Path) -> None:
    assert await asyncio.wait_for(supervisor(tmp_path, {}, {"STATUS": "2"}).run(), 10) == 2
