import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, expect, test } from "vitest";

const reports = mkdtempSync(`${tmpdir()}/reports-`);
afterAll(() => execFileSync("tapedeck", ["verdict", reports], { stdio: "inherit" }));

test("sum", async () => {
  const client = new Client({ name: "sum-test", version: "1.0.0" });
  const args = ["replay", "sum.json", "--report", reports];
  await client.connect(new StdioClientTransport({ command: "tapedeck", args }));
  const result = await client.callTool({ name: "get-sum", arguments: { a: 2, b: 3 } });
  expect(result.content[0].text).toBe("The sum of 2 and 3 is 5.");
  await client.close();
});
