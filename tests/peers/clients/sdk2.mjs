// The second generation of the TypeScript SDK: @modelcontextprotocol/client, mode "legacy" or "auto".

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { serve } from "./script.mjs";

const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };

await serve((script, job) => {
  const options = { capabilities, versionNegotiation: { mode: job.mode } };
  const client = new Client({ name: "typescript-script", version: "2.0.0" }, options);
  for (const [method, answer] of Object.entries(script.answers)) client.setRequestHandler(method, answer);
  client.fallbackNotificationHandler = async ({ method, params }) => script.notice({ method, params });
  if (job.transport === "http") {
    const requestInit = { headers: job.headers };
    return script.run(client, new StreamableHTTPClientTransport(new URL(job.url), { requestInit }));
  }
  if (job.transport === "sse") return script.run(client, new SSEClientTransport(new URL(job.url)));
  const [command, ...args] = job.command;
  return script.run(client, new StdioClientTransport({ command, args }));
});
