"""A server of ours on the Python SDK: it speaks the 2026-07-28 revision to clients that ask for it, else the handshake.

Nothing in it depends on time: what has to overlap waits for the other call, what has to be cancelled waits for ever.
Alone it speaks stdio; with a port it listens there.
"""

import sys
import warnings
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp_types import Completion, CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

# Logging is deprecated since 2026-07-28, and still has to be carried.
warnings.simplefilter("ignore")

server = MCPServer("modern", version="1.2.3", instructions="A server for tests.\nSecond line.", log_level="CRITICAL")
gate = anyio.Event()


class Total(BaseModel):
    total: float
    parts: list[float]


class Colour(BaseModel):
    colour: str
    sure: bool = False


@server.tool()
async def add(parts: list[float], ctx: Context) -> Total:
    """Adds numbers, with progress and a log message for each."""
    for done, part in enumerate(parts, start=1):
        await ctx.log("info", {"part": part}, logger_name="add")
        await ctx.report_progress(done, len(parts), f"added {part}")
    return Total(total=sum(parts), parts=parts)


def which_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
async def paint(thing: str, colour: Annotated[Colour, Resolve(which_colour)]) -> str:
    """Asks for a colour."""
    return f"{thing} is {colour.colour} now"


def a_rhyme() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text="a rhyme, please"))], max_tokens=20)


@server.tool()
async def rhyme(result: Annotated[CreateMessageResult, Resolve(a_rhyme)]) -> str:
    """Asks the client's model."""
    return f"rhyme: {result.content.text}"


def the_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def roots(result: Annotated[ListRootsResult, Resolve(the_roots)]) -> list[str]:
    """Asks for the client's roots."""
    return [str(root.uri) for root in result.roots]


@server.tool()
async def wait_for_release(ctx: Context) -> str:
    """Answers once `release` was called."""
    await ctx.report_progress(1, None, "waiting")
    await gate.wait()
    await ctx.report_progress(2, None, "released")
    return "released"


@server.tool()
async def release() -> str:
    """Lets `wait_for_release` answer."""
    gate.set()
    return "done"


@server.tool()
async def hang(ctx: Context) -> str:
    """Never answers."""
    await ctx.report_progress(1)
    await anyio.sleep_forever()
    return ""


@server.tool()
async def touch(ctx: Context) -> str:
    """Says that the note changed."""
    await ctx.notify_resource_updated("note://today")
    return "touched"


@server.tool()
async def fail() -> str:
    """Fails."""
    raise ValueError("it was bound to fail")


@server.resource("note://today", mime_type="text/markdown")
def note() -> str:
    """A note."""
    return "# Today\n\n- caf\u00e9\n- \U0001f39e tape\n"


@server.resource("note://of/{day}")
def note_of(day: str) -> bytes:
    """The note of a day, as bytes."""
    return f"note of {day}".encode()


@server.prompt()
def plan(day: str, hours: str = "8") -> str:
    """Plans a day."""
    return f"Plan {day} in {hours} hours."


@server.completion()
async def complete(_ref, argument, _context) -> Completion:
    days = ["monday", "tuesday", "wednesday"]
    return Completion(values=[day for day in days if day.startswith(argument.value)], total=1, has_more=False)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[1]))
