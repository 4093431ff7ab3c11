"""Commands as somebody types them."""

from __future__ import annotations

import argparse
import asyncio

from kafka_sidecar.commands.command import Command


def parsed(command: Command, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add(parser)
    return parser.parse_args(arguments)


class Recorded:
    """In place of what a command runs."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.arguments: tuple[object, ...] = ()
        self.named: dict[str, object] = {}
        self.loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, *arguments: object, **named: object) -> int:
        self.arguments, self.named, self.loop = arguments, named, asyncio.get_running_loop()
        return self.code
