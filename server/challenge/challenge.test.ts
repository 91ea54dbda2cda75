import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { decodeJwt } from "jose";
import { decide, newChallenge, poll, startTestServer, type TestServer } from "../../tests/support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

describe("a challenge from beginning to end", () => {
  test("pending, approved, collected, unknown", async () => {
    const challenge = await newChallenge(server, { legacy: true });
    expect((await poll(server, challenge)).body).toEqual({ status: "pending" });
    expect((await decide(challenge, "approve")).status).toBe(303);
    const { http, body } = await poll(server, challenge);
    expect(http).toBe(200);
    expect(body).toEqual({
      status: "success",
      encoded_jwt: expect.any(String),
      cookie_name: "svc_auth",
      expiration: server.clock.now().getTime() / 1000 + 3600,
      user: "alice@example.com",
    });
    expect(decodeJwt(body.encoded_jwt as string).sub).toBe("alice@example.com");
    expect(await poll(server, challenge)).toMatchObject({ http: 404, body: { status: "unknown" } });
  });
});
