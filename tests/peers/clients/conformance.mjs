// A client for the client scenarios of the conformance suite, which names the scenario in the environment, what else
// the client has to know too, and the server's URL as the last argument.
//
// Arguments before the URL are a command that records: with `{url}` for the server's URL and `{ready}` for the file in
// which it says where it listens. The client then goes there instead.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { ClientCredentialsProvider, PrivateKeyJwtProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

// A person whose browser leads back at once, with the code.
class Person {
  redirectUrl = "http://localhost:9/callback";
  // The document that the suite's server expects; nobody fetches it.
  clientMetadataUrl = "https://conformance-test.local/client-metadata.json";
  clientMetadata = { client_name: "conformance-client", redirect_uris: [this.redirectUrl] };

  constructor(information) {
    this.information = information;
  }
  clientInformation() {
    return this.information;
  }
  saveClientInformation(information) {
    this.information = information;
  }
  tokens() {
    return this.granted;
  }
  saveTokens(tokens) {
    this.granted = tokens;
  }
  codeVerifier() {
    return this.verifier;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  async redirectToAuthorization(url) {
    const response = await fetch(url, { redirect: "manual" });
    this.code = new URL(response.headers.get("location")).searchParams.get("code");
  }
}

// A person's company lets this client in: a token of the company's is changed for one of the server's.
// The SDK has no such provider.
class Company extends Person {
  // Nobody is asked.
  redirectUrl = undefined;
  clientMetadataUrl = undefined;

  async prepareTokenRequest() {
    return new URLSearchParams({ grant_type: JWT_BEARER, assertion: this.assertion });
  }
  async enter(url) {
    const resource = await (await fetch(new URL("/.well-known/oauth-protected-resource/mcp", url))).json();
    const body = new URLSearchParams({
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      requested_token_type: "urn:ietf:params:oauth:token-type:id-jag",
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      subject_token: context.idp_id_token,
      client_id: context.idp_client_id,
      audience: resource.authorization_servers[0],
      resource: resource.resource,
    });
    const exchanged = await fetch(context.idp_token_endpoint, { method: "POST", body });
    this.assertion = (await exchanged.json()).access_token;
  }
}
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

const registered = { client_id: context.client_id, client_secret: context.client_secret };
const clientId = context.client_id;
const providers = {
  "auth/client-credentials-jwt": () =>
    new PrivateKeyJwtProvider({ clientId, privateKey: context.private_key_pem, algorithm: context.signing_algorithm }),
  "auth/client-credentials-basic": () =>
    new ClientCredentialsProvider({ clientId, clientSecret: context.client_secret }),
  "auth/cross-app-access-complete-flow": () => new Company(registered),
  "auth/pre-registration": () => new Person(registered),
};

async function run(url) {
  const authProvider = providers[scenario]?.() ?? (scenario.startsWith("auth/") ? new Person() : undefined);
  await authProvider?.enter?.(url);
  const capabilities = { elicitation: { form: { applyDefaults: true } } };
  const client = new Client({ name: "conformance-client", version: "1.0.0" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: {} }));

  let transport;
  // Each step is done again when the person has let the client in.
  const step = async (act) => {
    for (;;) {
      try {
        return await act();
      } catch (error) {
        if (!(error instanceof UnauthorizedError) || !authProvider?.code) throw error;
        const { code } = authProvider;
        delete authProvider.code;
        await transport.finishAuth(code);
      }
    }
  };
  await step(() => {
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
    return client.connect(transport);
  });
  const { tools } = await step(() => client.listTools());
  for (const { name } of tools) {
    const given = name === "add_numbers" ? { a: 5, b: 3 } : {};
    await step(() => client.callTool({ name, arguments: given }));
  }
  await client.close();
}

const url = process.argv.at(-1);
const recorder = process.argv.slice(2, -1);
if (recorder.length === 0) {
  await run(url);
} else {
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  const ready = join(folder, "ready");
  const [command, ...args] = recorder.map((word) => word.replace("{url}", url).replace("{ready}", ready));
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  const front = async () => {
    for (;;) {
      const text = await readFile(ready, "utf8").catch(() => undefined);
      if (text !== undefined) return JSON.parse(text).url;
      const over = await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 10))]);
      if (over !== undefined) throw new Error(`${command} ended with ${over}`);
    }
  };
  try {
    await run(await front());
  } finally {
    child.kill();
    const status = await ended;
    await rm(folder, { recursive: true });
    if (status !== 0) throw new Error(`${command} ended with ${status}`);
  }
}
