import { expect, spyOn, test } from "bun:test";
import { signInToken, startTestServer } from "../../../tests/support/http/server.ts";

test("a key verifies only its own algorithm, whatever the token's header says", async () => {
  await using server = await startTestServer();
  const authorization = `Bearer ${await signInToken(server)}`;
  const key = await server.keys.verification((await server.keys.signing()).kid);
  expect(key!.algorithm).toBe("ES256");
  using asked = spyOn(server.keys, "verification").mockResolvedValue({ ...key!, algorithm: "Ed25519" });
  expect((await server.fetch("/whoami", { headers: { authorization } })).status).toBe(401);
  asked.mockRestore();
  expect((await server.fetch("/whoami", { headers: { authorization } })).status).toBe(200);
});
