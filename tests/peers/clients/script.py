"""Drives MCP servers with the Python SDK's client.

Each line on stdin is a job, `{"command": [...], "mode": "auto", "roots": [...], "steps": [...]}`, or with `url` and
`transport` ("http" or "sse") in place of the command; each line on stdout is
what the client saw: `{"server": ..., "calls": [...], "asked": [...], "notices": [...]}`, or `{"failed": "..."}`. Ids and
times are not in it. The steps are the plans in `../plans`.
"""

import json
import sys
import traceback
import warnings

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client

warnings.simplefilter("ignore")


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Script:
    def __init__(self, job):
        self.job = job
        self.calls = []
        self.asked = []
        self.notices = []
        self.noticed = anyio.Event()

    def asks(self, method, params, answer):
        self.asked.append({"method": method, "params": plain(params) if params else None})
        return answer

    async def sampling(self, _context, params):
        content = types.TextContent(text="sampled: élan")
        answer = types.CreateMessageResult(role="assistant", content=content, model="peer", stop_reason="endTurn")
        return self.asks("sampling/createMessage", params, answer)

    async def elicitation(self, _context, params):
        answer = types.ElicitResult(action="accept", content=self.job.get("elicit"))
        return self.asks("elicitation/create", params, answer)

    async def list_roots(self, _context):
        roots = [types.Root(uri=uri, name="root") for uri in self.job["roots"]]
        return self.asks("roots/list", None, types.ListRootsResult(roots=roots))

    async def message(self, message):
        if isinstance(message, Exception):
            self.notices.append({"exception": str(message)})
        elif message.method != "notifications/progress":
            self.notices.append(plain(message))
        self.noticed.set()
        self.noticed = anyio.Event()

    async def notice(self, method):
        """Waits until a notification with this method has come."""
        with anyio.fail_after(20):
            while not any(notice.get("method") == method for notice in self.notices):
                await self.noticed.wait()

    async def call(self, name, send):
        """Makes one call and keeps what became of it."""
        call = {"call": name, "progress": []}
        self.calls.append(call)

        async def progress(progress, total, message):
            call["progress"].append([progress, total, message])

        try:
            call["result"] = plain(await send(progress))
        except MCPError as error:
            call["error"] = plain(error.error)
        return call

    async def tool(self, client, step):
        arguments = step.get("arguments", {})
        return await self.call(
            f"tools/call {step['tool']}",
            lambda progress: client.call_tool(
                step["tool"],
                arguments,
                read_timeout_seconds=step.get("seconds"),
                progress_callback=progress if step.get("progress") else None,
            ),
        )

    async def lists(self, client):
        offered = client.server_capabilities
        # A client pinned to a revision asks nothing first, so it knows no capabilities.
        blind = client.server_info is None
        if offered.tools or blind:
            await self.call("tools/list", lambda _: client.list_tools())
        if offered.resources or blind:
            await self.call("resources/list", lambda _: client.list_resources())
            await self.call("resources/templates/list", lambda _: client.list_resource_templates())
        if offered.prompts or blind:
            await self.call("prompts/list", lambda _: client.list_prompts())

    async def cancel(self, client, step):
        """Cancels a call at its first progress."""
        call = {"call": f"tools/call {step['tool']}", "cancelled": True}
        self.calls.append(call)
        with anyio.CancelScope() as scope:

            async def progress(*_):
                scope.cancel()

            await client.call_tool(step["tool"], step["arguments"], progress_callback=progress)
            call["cancelled"] = False

    async def watch(self, client, step):
        """Watches a resource while a tool changes it."""
        if client.protocol_version >= "2026-07-28":
            async with client.listen(resource_subscriptions=[step["uri"]], tools_list_changed=True) as subscription:
                await self.tool(client, step)
                with anyio.fail_after(20):
                    event = await anext(aiter(subscription))
                self.notices.append({"event": type(event).__name__})
        else:
            subscribed = await self.call("resources/subscribe", lambda _: client.subscribe_resource(step["uri"]))
            if "error" in subscribed:
                return
            await self.tool(client, step)
            await self.notice("notifications/resources/updated")
            await self.call("resources/unsubscribe", lambda _: client.unsubscribe_resource(step["uri"]))

    async def step(self, client, step):
        match step["do"]:
            case "lists":
                await self.lists(client)
            case "level":
                if client.protocol_version < "2026-07-28":
                    await self.call("logging/setLevel", lambda _: client.set_logging_level(step["level"]))
            case "call":
                await self.tool(client, step)
            case "together":
                async with anyio.create_task_group() as group:
                    for each in step["calls"]:
                        group.start_soon(self.tool, client, each)
            case "read":
                await self.call(f"resources/read {step['uri']}", lambda _: client.read_resource(step["uri"]))
            case "get":
                await self.call(
                    f"prompts/get {step['prompt']}", lambda _: client.get_prompt(step["prompt"], step.get("arguments"))
                )
            case "complete":
                if "template" in step:
                    ref = types.ResourceTemplateReference(uri=step["template"])
                else:
                    ref = types.PromptReference(name=step["prompt"])
                await self.call("completion/complete", lambda _: client.complete(ref, step["argument"]))
            case "cancel":
                await self.cancel(client, step)
            case "watch":
                await self.watch(client, step)
            case "roots changed":
                await client.send_roots_list_changed()
            case other:
                raise ValueError(f"a plan has the unknown step {other!r}")

    def server(self):
        match self.job.get("transport"):
            case "http":
                return self.job["url"]
            case "sse":
                return sse_client(self.job["url"])
            case _:
                command, *arguments = self.job["command"]
                return stdio_client(StdioServerParameters(command=command, args=arguments))

    async def run(self):
        client = Client(
            self.server(),
            mode=self.job["mode"],
            client_info=types.Implementation(name="python-script", version="1.0.0"),
            sampling_callback=self.sampling,
            elicitation_callback=self.elicitation,
            list_roots_callback=self.list_roots,
            message_handler=self.message,
            log_level="debug",
        )
        async with client:
            server = {
                "protocol": client.protocol_version,
                "info": plain(client.server_info) if client.server_info else None,
                "capabilities": plain(client.server_capabilities),
                "instructions": client.instructions,
            }
            for step in self.job["steps"]:
                await self.step(client, step)
        return {"server": server, "calls": self.calls, "asked": self.asked, "notices": self.notices}


async def guarded(job):
    script = Script(job)
    try:
        with anyio.fail_after(job["seconds"]):
            return await script.run()
    except BaseException:
        return {"failed": traceback.format_exc(), "calls": script.calls}


for line in sys.stdin:
    transcript = anyio.run(guarded, json.loads(line))
    print(json.dumps(transcript, ensure_ascii=False), flush=True)
