// A Streamable HTTP server that has what the server scenarios of the conformance suite call.
//
// It prints its URL as its only line, and ends when its stdin does.

import { createServer } from "node:http";
import { randomUUID } from "node:crypto";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const text = (value) => ({ type: "text", text: value });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const object = (properties = {}, required = Object.keys(properties)) => ({ type: "object", properties, required });
const described = (type, description, rest) => ({ type, description, ...rest });

const progress = (extra, done) => {
  const progressToken = extra._meta?.progressToken;
  if (progressToken === undefined) return;
  return extra.sendNotification({
    method: "notifications/progress",
    params: { progressToken, progress: done, total: 100 },
  });
};
const log = (extra, data) =>
  extra.sendNotification({ method: "notifications/message", params: { level: "info", logger: "conformance", data } });
const elicit = async (extra, message, requestedSchema) => {
  const params = { message, requestedSchema };
  return extra.sendRequest({ method: "elicitation/create", params }, ElicitResultSchema);
};
const elicited = async (extra, message, properties) => {
  const { action, content } = await elicit(extra, message, object(properties, []));
  return [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)];
};

const titled = (values) => values.map(([value, title]) => ({ const: value, title }));
const OPTIONS = ["option1", "option2", "option3"];
const VALUES = [
  ["value1", "First"],
  ["value2", "Second"],
  ["value3", "Third"],
];

// Each tool: what it is listed with, and what it does.
const tools = {
  test_simple_text: { run: () => [text("This is a simple text response for testing.")] },
  test_image_content: { run: () => [image] },
  test_audio_content: { run: () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }] },
  test_embedded_resource: {
    run: () => [
      {
        type: "resource",
        resource: {
          uri: "test://embedded-resource",
          mimeType: "text/plain",
          text: "This is an embedded resource content.",
        },
      },
    ],
  },
  test_multiple_content_types: {
    run: () => [
      text("Multiple content types test:"),
      image,
      {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: JSON.stringify({ test: "data", value: 123 }),
        },
      },
    ],
  },
  test_tool_with_logging: {
    run: async (_, extra) => {
      await log(extra, "Tool execution started");
      await pause(50);
      await log(extra, "Tool processing data");
      await pause(50);
      await log(extra, "Tool execution completed");
      return [text("Tool with logging executed")];
    },
  },
  test_error_handling: {
    run: () => {
      throw new Error("This tool intentionally returns an error for testing");
    },
  },
  test_tool_with_progress: {
    run: async (_, extra) => {
      await progress(extra, 0);
      await pause(50);
      await progress(extra, 50);
      await pause(50);
      await progress(extra, 100);
      return [text("Tool with progress executed")];
    },
  },
  test_sampling: {
    inputSchema: object({ prompt: described("string", "What the model is asked") }),
    run: async ({ prompt }, extra) => {
      const params = { messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 };
      const request = { method: "sampling/createMessage", params };
      const { content } = await extra.sendRequest(request, CreateMessageResultSchema);
      return [text(`LLM response: ${content.text}`)];
    },
  },
  test_elicitation: {
    inputSchema: object({ message: described("string", "What the user is shown") }),
    run: async ({ message }, extra) => {
      const { action, content } = await elicit(
        extra,
        message,
        object({
          username: described("string", "User's response"),
          email: described("string", "User's email address"),
        }),
      );
      return [text(`User response: action: ${action}, content: ${JSON.stringify(content)}`)];
    },
  },
  test_elicitation_sep1034_defaults: {
    run: async (_, extra) =>
      elicited(extra, "Please check these values", {
        name: described("string", "User name", { default: "John Doe" }),
        age: described("integer", "User age", { default: 30 }),
        score: described("number", "User score", { default: 95.5 }),
        status: described("string", "User status", { enum: ["active", "inactive", "pending"], default: "active" }),
        verified: described("boolean", "Verification status", { default: true }),
      }),
  },
  test_elicitation_sep1330_enums: {
    run: async (_, extra) =>
      elicited(extra, "Please choose", {
        untitledSingle: { type: "string", enum: OPTIONS },
        titledSingle: { type: "string", oneOf: titled(VALUES) },
        legacyEnum: {
          type: "string",
          enum: ["opt1", "opt2", "opt3"],
          enumNames: ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti: { type: "array", items: { type: "string", enum: OPTIONS } },
        titledMulti: { type: "array", items: { anyOf: titled(VALUES) } },
      }),
  },
  json_schema_2020_12_tool: {
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } },
      },
      properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
      additionalProperties: false,
    },
    run: (given) => [text(JSON.stringify(given))],
  },
  // Closes its own stream in mid-call: the client gets the answer where it resumes the stream.
  test_reconnection: {
    run: async (_, extra) => {
      await pause(50);
      extra.closeSSEStream?.();
      await pause(50);
      return [text("Reconnection test completed")];
    },
  },
};

const resources = {
  "test://static-text": {
    name: "static-text",
    description: "A text that stays",
    mimeType: "text/plain",
    content: { text: "This is the content of the static text resource." },
  },
  "test://static-binary": {
    name: "static-binary",
    description: "An image that stays",
    mimeType: "image/png",
    content: { blob: PNG },
  },
  "test://watched-resource": {
    name: "watched-resource",
    description: "A text that can be subscribed to",
    mimeType: "text/plain",
    content: { text: "watched" },
  },
};
const TEMPLATE = /^test:\/\/template\/([^/]+)\/data$/;

const read = (uri) => {
  const known = resources[uri];
  if (known) return { uri, mimeType: known.mimeType, ...known.content };
  const id = TEMPLATE.exec(uri)?.[1];
  if (id === undefined) throw new Error(`no such resource: ${uri}`);
  const data = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { uri, mimeType: "application/json", text: JSON.stringify(data) };
};

const user = (content) => ({ role: "user", content });
const prompts = {
  test_simple_prompt: {
    description: "A simple prompt",
    get: () => [user(text("This is a simple prompt for testing."))],
  },
  test_prompt_with_arguments: {
    description: "A prompt with arguments",
    arguments: [
      { name: "arg1", description: "First test argument", required: true },
      { name: "arg2", description: "Second test argument", required: true },
    ],
    get: ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  },
  test_prompt_with_embedded_resource: {
    description: "A prompt that holds a resource",
    arguments: [{ name: "resourceUri", description: "What to embed", required: true }],
    get: ({ resourceUri: uri }) => [
      user({
        type: "resource",
        resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." },
      }),
      user(text("Please process the embedded resource above.")),
    ],
  },
  test_prompt_with_image: {
    description: "A prompt that holds an image",
    get: () => [user(image), user(text("Please analyze the image above."))],
  },
};

function makeServer() {
  const capabilities = {
    completions: {},
    logging: {},
    prompts: {},
    resources: { subscribe: true },
    tools: {},
  };
  const server = new Server({ name: "conformance-server", version: "1.0.0" }, { capabilities });
  const on = (schema, handler) => server.setRequestHandler(schema, handler);
  on(ListToolsRequestSchema, () => ({
    tools: Object.entries(tools).map(([name, { inputSchema = object() }]) => ({
      name,
      description: `The tool ${name}`,
      inputSchema,
    })),
  }));
  on(CallToolRequestSchema, async ({ params }, extra) => {
    try {
      const tool = tools[params.name];
      if (!tool) throw new Error(`no such tool: ${params.name}`);
      return { content: await tool.run(params.arguments ?? {}, extra) };
    } catch (error) {
      return { isError: true, content: [text(error.message)] };
    }
  });
  on(ListResourcesRequestSchema, () => ({
    resources: Object.entries(resources).map(([uri, { content, ...rest }]) => ({ uri, ...rest })),
  }));
  on(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [
      { uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" },
    ],
  }));
  on(ReadResourceRequestSchema, ({ params }) => ({ contents: [read(params.uri)] }));
  on(SubscribeRequestSchema, () => ({}));
  on(UnsubscribeRequestSchema, () => ({}));
  on(ListPromptsRequestSchema, () => ({
    prompts: Object.entries(prompts).map(([name, { get, ...rest }]) => ({ name, ...rest })),
  }));
  on(GetPromptRequestSchema, ({ params }) => ({ messages: prompts[params.name].get(params.arguments ?? {}) }));
  on(SetLevelRequestSchema, () => ({}));
  on(CompleteRequestSchema, ({ params }) => ({
    completion: { values: [`${params.argument.value}ing`], total: 1, hasMore: false },
  }));
  return server;
}

// Event ids are numbers, so that two runs of a session have the same.
class EventStore {
  events = [];

  async storeEvent(streamId, message) {
    this.events.push({ streamId, message });
    return String(this.events.length - 1);
  }

  async replayEventsAfter(lastEventId, { send }) {
    const { streamId } = this.events[Number(lastEventId)];
    for (const [id, event] of this.events.entries()) {
      if (id > Number(lastEventId) && event.streamId === streamId) await send(String(id), event.message);
    }
    return streamId;
  }
}

const sessions = new Map();

async function transportFor(request) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known) return known;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new EventStore(),
    retryInterval: 100,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await makeServer().connect(transport);
  return transport;
}

// The suite writes some requests by hand, and names 2025-03-26 in them where 2025-11-25 was negotiated. The SDK goes by
// the header, and resumes no streams for a client of that revision; a session's revision is what it has negotiated.
function asNegotiated(request) {
  const at = request.rawHeaders.findIndex((name) => name.toLowerCase() === "mcp-protocol-version");
  if (at < 0) return;
  request.rawHeaders[at + 1] = "2025-11-25";
  request.headers["mcp-protocol-version"] = "2025-11-25";
}

const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

const http = createServer(async (request, response) => {
  if (new URL(request.url, "http://localhost").pathname !== "/mcp") {
    response.writeHead(404).end();
  } else if (!LOOPBACK.test(request.headers.host ?? "")) {
    // A web page whose name was made to lead here.
    const error = { code: -32000, message: `Invalid Host: ${request.headers.host}` };
    response.writeHead(403, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
  } else {
    asNegotiated(request);
    await (await transportFor(request)).handleRequest(request, response);
  }
});
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
process.stdin.resume().on("end", () => process.exit());
