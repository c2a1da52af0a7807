#!/usr/bin/env node
// Behaves like OpenCode 2 as far as its API is known. Adds a line to the file in FAKE_STARTS whenever `serve` is run.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

const version = "2.3.2";
if (process.argv.includes("--version")) {
  console.log(process.env.FAKE_VERSION ?? `opencode v${version}`);
  process.exit(0);
}
if (process.env.FAKE_STARTS) appendFileSync(process.env.FAKE_STARTS, `${process.argv.slice(2).join(" ")}\n`);
const port = Number(process.argv[process.argv.indexOf("--port") + 1]);
const password = process.env.OPENCODE_PASSWORD ?? process.env.OPENCODE_SERVER_PASSWORD;
const authorization = `Basic ${Buffer.from(`opencode:${password}`).toString("base64")}`;

const server = createServer((request, response) => {
  const json = (status, body) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (request.headers.authorization !== authorization)
    return json(401, { _tag: "UnauthorizedError", message: "Unauthorized" });
  const { url } = server;
  if (request.url === "/api/info") return json(200, { version, pid: process.pid, urls: [url], paths: {} });
  // The page of its web interface, at each path that it doesn't know.
  response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>OpenCode</title>");
}).listen(port, "127.0.0.1", () => {
  server.url = `http://127.0.0.1:${server.address().port}`;
  console.log(`server listening on ${server.url}`);
});
