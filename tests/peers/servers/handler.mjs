// A server on the second generation of the TypeScript SDK: each HTTP request is served by an instance of its own, in the
// 2026-07-28 revision to clients that ask for it, else without a session. Nothing in it depends on time.
//
// Its argument is the port on which it listens.

import { createServer } from "node:http";

import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, acceptedContent, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import * as z from "zod/v4";

const text = (value) => ({ content: [{ type: "text", text: value }] });
const Colour = z.object({ colour: z.string(), sure: z.boolean() });
let release;
const released = new Promise((resolve) => {
  release = resolve;
});

const handler = createMcpHandler(({ era }) => {
  const server = new McpServer(
    { name: "handler", version: "4.5.6" },
    { capabilities: { resources: { subscribe: true } }, instructions: "A TypeScript server for tests." },
  );

  const progress = async (ctx, done, total) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return;
    await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: done, total } });
  };

  const count = { description: "Counts, with progress.", inputSchema: z.object({ to: z.number() }) };
  server.registerTool("count", count, async ({ to }, ctx) => {
    for (let number = 1; number <= to; number += 1) await progress(ctx, number, to);
    return { ...text(`counted to ${to}`), structuredContent: { to } };
  });

  const paint = { description: "Asks for a colour.", inputSchema: z.object({ thing: z.string() }) };
  server.registerTool("paint", paint, async ({ thing }, ctx) => {
    // Without a session nobody can be asked.
    if (era === "legacy") return text(`${thing} stays as it is`);
    const given = acceptedContent(ctx.mcpReq.inputResponses, "colour", Colour);
    if (given) return text(`${thing} is ${given.colour} now`);
    const asked = inputRequired.elicit({ message: "Which colour?", requestedSchema: Colour });
    return inputRequired({ inputRequests: { colour: asked } });
  });

  server.registerTool("touch", { description: "Says that a note has changed." }, async () => {
    handler.notify.resourceUpdated("note://today");
    return text("touched");
  });

  server.registerTool("wait_for_release", { description: "Answers once `release` was called." }, async (ctx) => {
    await progress(ctx, 1);
    await released;
    return text("released");
  });

  server.registerTool("release", { description: "Lets `wait_for_release` answer." }, async () => {
    release();
    return text("done");
  });

  server.registerTool("hang", { description: "Never answers." }, async (ctx) => {
    await progress(ctx, 1);
    return new Promise(() => {});
  });

  server.registerTool("fail", { description: "Fails." }, async () => {
    throw new Error("it fails:\nalways");
  });

  const note = (uri) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: "a note — é\n" }] });
  server.registerResource("today", "note://today", { description: "A note." }, note);
  const topic = { description: "Explains a topic.", argsSchema: z.object({ topic: z.string() }) };
  server.registerPrompt("explain", topic, ({ topic }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Explain ${topic}.` } }],
  }));
  return server;
});

createServer(toNodeHandler(handler)).listen(Number(process.argv[2]), "127.0.0.1");
