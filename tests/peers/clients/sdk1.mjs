// The first generation of the TypeScript SDK: @modelcontextprotocol/sdk.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { serve } from "./script.mjs";

const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };

await serve((script, job) => {
  // Here the options are the third argument.
  script.callTool = (client, params, options) => client.callTool(params, undefined, options);
  const client = new Client({ name: "typescript-script", version: "1.0.0" }, { capabilities });
  for (const schema of [CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema]) {
    client.setRequestHandler(schema, script.answers[schema.shape.method.value]);
  }
  client.fallbackNotificationHandler = async ({ method, params }) => script.notice({ method, params });
  if (job.transport === "http") {
    const requestInit = { headers: job.headers };
    return script.run(client, new StreamableHTTPClientTransport(new URL(job.url), { requestInit }));
  }
  if (job.transport === "sse") return script.run(client, new SSEClientTransport(new URL(job.url)));
  const [command, ...args] = job.command;
  return script.run(client, new StdioClientTransport({ command, args }));
});
