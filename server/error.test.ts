import { expect, test } from "bun:test";
import { Elysia, t } from "elysia";
import { createLog } from "../core/log.ts";
import { errorResponse } from "./error.ts";

test("an answer that breaks its own schema is our fault: 500, and neither answer nor log shows what it held", async () => {
  const logged: string[] = [];
  const log = createLog("trace", { write: (line: string) => void logged.push(line) });
  const app = new Elysia()
    .onError(({ error, request }) => errorResponse(error, request, log))
    .get("/noauth/broken", () => ({ status: 42, encoded_jwt: "a secret" }) as never, {
      response: { 200: t.Object({ status: t.String(), encoded_jwt: t.String() }) },
    });
  const response = await app.handle(new Request("http://svc.test/noauth/broken"));
  expect(response.status).toBe(500);
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({ status: "internal", code: "internal" });
  expect(logged).toHaveLength(1);
  expect(text + logged.join("")).not.toContain("a secret");
});
