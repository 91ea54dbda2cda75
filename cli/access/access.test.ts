import { expect, test } from "bun:test";
import { Forbidden, Unavailable } from "../../platform/errors.ts";
import type { Fetch } from "../io.ts";
import { fakeToken } from "../testing/fake_server.ts";
import { NOW, testIo } from "../testing/io.ts";
import { AccessClient, type AccessRequest } from "./access.ts";

/** Waits for the decision on a request that expires in an hour, with these answers. The last one repeats. */
async function decided(...answers: Response[]) {
  const asked = {
    id: 3,
    state: "Pending",
    expires_at: new Date(NOW.getTime() + 3_600_000).toISOString(),
  } as AccessRequest;
  let calls = 0;
  const fetch: Fetch = async () => answers[Math.min(calls++, answers.length - 1)]!.clone();
  const token = fakeToken({ now: NOW.getTime(), seconds: 86_400 });
  const io = testIo({ env: { SVC_SERVER: "http://127.0.0.1:1", SVC_TOKEN: token }, fetch });
  const state = await AccessClient.within(io, undefined, (client) => client.decided(asked)).then(
    ({ state }) => state,
    (error: unknown) => error,
  );
  return { state, slept: io.slept, calls };
}
const failing = (status: number, headers = {}) =>
  Response.json({ detail: "No database" }, { status, headers });

test("the wait for an approval continues while the server fails or limits requests", async () => {
  const limited = failing(429, { "retry-after": "30" });
  const approved = Response.json({ id: 3, state: "Approved" });
  const { state, slept } = await decided(failing(503), failing(500), limited, approved);
  expect([state, slept]).toEqual(["Approved", [2000, 2000, 2000, 30_000]]);
});

test("the wait for an approval ends when the server refuses, or fails until the request has expired", async () => {
  const refused = await decided(failing(403));
  expect([refused.state, refused.calls]).toEqual([expect.any(Forbidden), 1]);
  const gone = await decided(failing(503));
  expect([gone.state, gone.calls]).toEqual([expect.any(Unavailable), 1800]);
});
