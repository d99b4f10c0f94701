"""A server of ours on FastMCP. Nothing in it depends on time.

Alone it speaks stdio; with a port it listens there, and after it may stand `stateless`, `json` or `sse`.
"""

import asyncio
import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from mcp_types import ToolListChangedNotification

server = FastMCP("fast", version="3.2.1", instructions="A FastMCP server for tests.")
gate = asyncio.Event()


@dataclass
class Answer:
    name: str
    size: int


@server.tool
async def count(to: int, ctx: Context) -> list[int]:
    """Counts, with progress and a log message for each."""
    for number in range(1, to + 1):
        await ctx.info(f"at {number}")
        await ctx.report_progress(number, to)
    return list(range(1, to + 1))


@server.tool
async def ask(question: str, ctx: Context) -> str:
    """Asks the person."""
    result = await ctx.elicit(question, response_type=Answer)
    return f"{result.action}: {result.data}" if result.action == "accept" else result.action


@server.tool
async def wait_for_release(ctx: Context) -> str:
    """Answers once `release` was called."""
    await ctx.report_progress(1)
    await gate.wait()
    return "released"


@server.tool
async def release() -> str:
    """Lets `wait_for_release` answer."""
    gate.set()
    return "done"


@server.tool
async def hang(ctx: Context) -> str:
    """Never answers."""
    await ctx.report_progress(1)
    await asyncio.Event().wait()
    return ""


@server.tool
async def change(ctx: Context) -> str:
    """Says that the tools have changed."""
    await ctx.send_notification(ToolListChangedNotification())
    return "changed"


@server.tool
async def echo(value: dict) -> dict:
    """Gives back what it got."""
    return value


@server.resource("data://config")
def config() -> dict:
    """A JSON resource."""
    return {"theme": "dark", "sizes": [1, 2.5, 1e300]}


@server.resource("data://greeting/{name}")
def greeting(name: str) -> str:
    """A greeting."""
    return f"hello {name}"


@server.prompt
def explain(topic: str) -> str:
    """Explains a topic."""
    return f"Explain {topic}."


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run(transport="stdio", show_banner=False)
    else:
        port, *kind = sys.argv[1:]
        listen = {"show_banner": False, "host": "127.0.0.1", "port": int(port), "log_level": "critical"}
        if "sse" in kind:
            server.run(transport="sse", **listen)
        else:
            server.run(transport="http", **listen, stateless_http="stateless" in kind, json_response="json" in kind)
