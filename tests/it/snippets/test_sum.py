import asyncio
import subprocess

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters


@pytest.fixture
def server(tmp_path):
    reports = f"{tmp_path}/"
    yield StdioServerParameters(command="tapedeck", args=["replay", "sum.json", "--report", reports])
    subprocess.run(["tapedeck", "verdict", reports], check=True)


def test_sum(server):
    async def run():
        async with Client(server) as client:
            result = await client.call_tool("get-sum", {"a": 2, "b": 3})
            assert result.content[0].text == "The sum of 2 and 3 is 5."

    asyncio.run(run())
