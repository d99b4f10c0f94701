// What both generations of the TypeScript SDK's client do with a job; ../plans has the steps.
//
// Each line on stdin is a job, `{"command": [...], "mode": "auto", "roots": [...], "steps": [...]}`, or with `url` and
// `transport` ("http" or "sse") in place of the command; each line on stdout
// is what the client saw: `{"server": ..., "calls": [...], "asked": [...], "notices": [...]}`, or `{"failed": "..."}`.
// Ids and times are not in it.

import { createInterface } from "node:readline";

export class Script {
  constructor(job) {
    this.job = job;
    this.calls = [];
    this.asked = [];
    this.notices = [];
    this.waiting = [];
    // How long an answer is waited for, where the job says so in milliseconds.
    this.limit = job.patience ? { timeout: job.patience } : undefined;
  }

  // Answers to what servers ask, by method.
  get answers() {
    const keep = (method, answer) => (request) => {
      const { _meta, ...params } = request.params ?? {};
      this.asked.push({ method, params });
      return answer;
    };
    const content = { type: "text", text: "sampled: élan" };
    return {
      "sampling/createMessage": keep("sampling/createMessage", {
        role: "assistant",
        content,
        model: "peer",
        stopReason: "endTurn",
      }),
      "elicitation/create": keep("elicitation/create", { action: "accept", content: this.job.elicit }),
      "roots/list": keep("roots/list", { roots: this.job.roots.map((uri) => ({ uri, name: "root" })) }),
    };
  }

  notice(notification) {
    this.notices.push(notification);
    for (const wake of this.waiting.splice(0)) wake();
  }

  // Waits until a notification with this method has come.
  async noticed(method) {
    while (!this.notices.some((notice) => notice.method === method)) {
      await new Promise((wake) => this.waiting.push(wake));
    }
  }

  // Makes one call and keeps what became of it.
  async call(name, send, options) {
    const call = { call: name, progress: [] };
    this.calls.push(call);
    try {
      call.result = await send({ ...options, onprogress: (progress) => call.progress.push(progress) });
    } catch (error) {
      call.error = { name: error.name, code: error.code, message: error.message, data: error.data };
    }
    return call;
  }

  callTool(client, params, options) {
    return client.callTool(params, options);
  }

  tool(client, step) {
    const params = { name: step.tool, arguments: step.arguments ?? {} };
    const limit = step.seconds ? { timeout: step.seconds * 1000 } : this.limit;
    const send = (options) => this.callTool(client, params, step.progress ? { ...options, ...limit } : limit);
    return this.call(`tools/call ${step.tool}`, send);
  }

  async lists(client) {
    const offered = client.getServerCapabilities();
    if (offered.tools) await this.call("tools/list", () => client.listTools());
    if (offered.resources) {
      await this.call("resources/list", () => client.listResources());
      await this.call("resources/templates/list", () => client.listResourceTemplates());
    }
    if (offered.prompts) await this.call("prompts/list", () => client.listPrompts());
  }

  // Cancels a call at its first progress.
  async cancel(client, step) {
    const call = { call: `tools/call ${step.tool}`, cancelled: false };
    this.calls.push(call);
    const stop = new AbortController();
    const options = { signal: stop.signal, onprogress: () => stop.abort("enough") };
    try {
      await this.callTool(client, { name: step.tool, arguments: step.arguments }, options);
    } catch {
      call.cancelled = true;
    }
  }

  // Watches a resource while a tool changes it.
  async watch(client, step, modern) {
    if (modern) {
      const listening = await client.listen({ resourceSubscriptions: [step.uri], toolsListChanged: true });
      await this.tool(client, step);
      await this.noticed("notifications/resources/updated");
      await listening.close();
      return;
    }
    const subscribed = await this.call("resources/subscribe", () => client.subscribeResource({ uri: step.uri }));
    if (subscribed.error) return;
    await this.tool(client, step);
    await this.noticed("notifications/resources/updated");
    await this.call("resources/unsubscribe", () => client.unsubscribeResource({ uri: step.uri }));
  }

  async step(client, step, modern) {
    switch (step.do) {
      case "lists":
        return this.lists(client);
      case "level":
        return modern || this.call("logging/setLevel", () => client.setLoggingLevel(step.level));
      case "call":
        return this.tool(client, step);
      case "together":
        return Promise.all(step.calls.map((each) => this.tool(client, each)));
      case "read":
        return this.call(`resources/read ${step.uri}`, () => client.readResource({ uri: step.uri }, this.limit));
      case "get": {
        const params = { name: step.prompt, arguments: step.arguments };
        return this.call(`prompts/get ${step.prompt}`, () => client.getPrompt(params));
      }
      case "complete": {
        const ref = step.template
          ? { type: "ref/resource", uri: step.template }
          : { type: "ref/prompt", name: step.prompt };
        return this.call("completion/complete", () => client.complete({ ref, argument: step.argument }));
      }
      case "cancel":
        return this.cancel(client, step);
      case "watch":
        return this.watch(client, step, modern);
      case "roots changed":
        return client.sendRootsListChanged();
      default:
        throw new Error(`a plan has the unknown step ${JSON.stringify(step.do)}`);
    }
  }

  async run(client, transport) {
    await client.connect(transport, this.limit);
    const protocol = client.getNegotiatedProtocolVersion?.() ?? transport._protocolVersion ?? "legacy";
    const server = {
      protocol,
      info: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
    };
    for (const step of this.job.steps) await this.step(client, step, protocol >= "2026-07-28" && protocol !== "legacy");
    if (transport.sessionId && transport.terminateSession) await transport.terminateSession();
    await client.close();
    return { server, calls: this.calls, asked: this.asked, notices: this.notices };
  }
}

// Serves jobs until stdin ends; `drive(script, job)` makes a client and runs the script with it.
export async function serve(drive) {
  for await (const line of createInterface({ input: process.stdin })) {
    const job = JSON.parse(line);
    const script = new Script(job);
    let timer;
    const late = new Promise((_, fail) => {
      timer = setTimeout(() => fail(new Error(`not done after ${job.seconds} s`)), job.seconds * 1000);
    });
    let transcript;
    try {
      transcript = await Promise.race([drive(script, job), late]);
    } catch (error) {
      transcript = { failed: error.stack, calls: script.calls };
    }
    clearTimeout(timer);
    process.stdout.write(`${JSON.stringify(transcript)}\n`);
  }
}
