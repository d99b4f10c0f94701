import asyncio
import os

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

JOINED = StdioServerParameters(command="tapedeck", args=["join", os.environ["TAPEDECK_RUN"]])


@pytest.mark.parametrize("server", [JOINED, os.environ["TAPEDECK_URL"]])
def test_sum(server):
    async def run():
        async with Client(server) as client:
            result = await client.call_tool("get-sum", {"a": 2, "b": 3})
            assert result.content[0].text == "The sum of 2 and 3 is 5."

    asyncio.run(run())
