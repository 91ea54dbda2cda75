import { expect, test } from "bun:test";
import { within } from "../../../tests/support/e2e_until.ts";
import { useOwnServer } from "../../../tests/support/serving.ts";

const own = useOwnServer({ SVC_CHALLENGE_LEGACY: "allow" });

const start = (...args: string[]) => own.start(args);

test.each([[], ["--workers", "2"], ["--root-path", "/svc", "--header", "x-a: 1"]])(
  "SIGTERM with %p: a held poll is answered pending, and the exit code is 0",
  async (...args) => {
    await using server = await start(...args);
    const generated = await server.fetch("/noauth/v1/challenge_generator/alice@example.com");
    const { polling_url: url } = (await generated.json()) as { polling_url: string };
    const poll = server.fetch(new URL(url).pathname, { headers: { prefer: "wait=20" } });
    // Until the poll is held there is nothing to see.
    await Bun.sleep(1000);
    const end = server.end("SIGTERM");
    // Long before it would end by itself.
    const answer = await within("the poll to be answered", poll, 12);
    expect([answer.status, await answer.json()]).toEqual([200, { status: "pending" }]);
    expect((await end).code).toBe(0);
  },
);

test("--no-access-log: requests are not logged, the rest is", async () => {
  const logged = async (...args: string[]) => {
    await using server = await start(...args, "--log-level", "debug");
    expect((await server.fetch("/healthcheck")).status).toBe(200);
    // The line is written behind the answer; without it there is nothing to wait for but the end.
    if (args.length === 0) await server.says('"msg":"request"');
    return (await server.end()).stderr.includes('"msg":"request"');
  };
  expect([await logged(), await logged("--no-access-log")]).toEqual([true, false]);
});
