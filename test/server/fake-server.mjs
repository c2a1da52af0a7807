#!/usr/bin/env node
// Listens like `opencode serve`, and does what FAKE_SERVER says: "fails", "silent", "old", "crashes", "leads" or
// "stubborn".
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";

const mode = process.env.FAKE_SERVER;
const version = mode === "old" ? "1.2.27" : "1.18.33";
if (process.argv.includes("--version")) {
  // Only its server says how old it is.
  console.log(mode === "old" ? "local" : version);
  process.exit(0);
}
if (mode === "fails") {
  console.error("Error: your configuration is bad");
  process.exit(1);
}
if (mode === "stubborn") process.on("SIGTERM", () => {});
if (mode === "stubborn" || mode === "leads") {
  const follower = spawn("sleep", ["1000"], { stdio: "ignore" });
  writeFileSync(process.env.FAKE_FOLLOWER, String(follower.pid));
}
const port = Number(process.argv[process.argv.indexOf("--port") + 1]);
const password = Buffer.from(`opencode:${process.env.OPENCODE_SERVER_PASSWORD}`).toString("base64");

createServer((request, response) => {
  if (request.headers.authorization !== `Basic ${password}`) return response.writeHead(401).end();
  if (request.url.startsWith("/global/event")) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    // Once it counts as started, and its waiting callers know.
    if (mode === "crashes") setTimeout(() => process.exit(7), 20);
    return response.write(`data: {"payload":{"type":"server.connected","properties":{}}}\n\n`);
  }
  response.setHeader("content-type", "application/json");
  if (request.url.startsWith("/path")) return response.end(JSON.stringify({ directory: process.cwd() }));
  if (request.url.startsWith("/session")) return response.end("[]");
  response.end(JSON.stringify({ healthy: true, version }));
}).listen(port, "127.0.0.1", () => {
  if (mode !== "silent") console.log(`opencode server listening on http://127.0.0.1:${port}`);
});
