import { expect, test } from "bun:test";
import { personOf } from "../tests/support/people.ts";
import { startTestServer, type TestServer } from "../tests/support/server.ts";

test("the log has the status that was answered, also of what was refused", async () => {
  await using server = await startTestServer();
  const person = await personOf(server, "carol@example.com");
  const asked: [string, string, unknown, number][] = [
    ["GET", "/whoami", undefined, 200],
    ["GET", "/documents/4711", undefined, 404],
    ["GET", "/documents/abc", undefined, 400],
    ["POST", "/documents/", {}, 400],
    ["POST", "/documents/", "{", 400],
    ["DELETE", "/documents/1", undefined, 403],
    ["POST", "/documents/", { name: "Runbook", resource_type: "reference" }, 201],
    ["GET", "/nowhere", undefined, 404],
  ];
  for (const [method, path, body, status] of asked) {
    const { http, headers } = await person.call(method, path, body);
    expect([method, path, http]).toEqual([method, path, status]);
    const id = headers.get("x-request-id");
    const line = await requestLine(server, id);
    expect([method, path, line.status]).toEqual([method, path, status]);
  }
});

test("a poll is logged below what else is asked, for each terminal sends one every other second", async () => {
  await using server = await startTestServer();
  const levelOf = async (path: string) => {
    const id = (await server.fetch(path)).headers.get("x-request-id");
    return (await requestLine(server, id)).level;
  };
  const [debug, info] = [20, 30];
  expect(await levelOf(`/noauth/v1/challenge_poller/${"a".repeat(43)}`)).toBe(debug);
  expect(await levelOf("/healthcheck")).toBe(info);
});

/** The line is written behind the answer. */
async function requestLine({ logged }: TestServer, id: string | null) {
  const line = () =>
    logged.map((text) => JSON.parse(text)).find((one) => one.msg === "request" && one.request_id === id);
  while (!line()) await Bun.sleep(1);
  return line();
}
