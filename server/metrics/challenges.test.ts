import { expect, test } from "bun:test";
import { noteWrongVerifier } from "../../core/auth/challenge/note.ts";
import { csrfToken } from "../../core/auth/session/session.ts";
import { createLog } from "../../platform/log.ts";
import { TestBrowser } from "../../tests/support/browser/browser.ts";
import { decide, newChallenge, poll, rowOf, startTestServer } from "../../tests/support/http/server.ts";
import { startTestTelemetry } from "../../tests/support/telemetry.ts";

/** Counts events since the last call of `counted`. */
async function counting() {
  const started = await startTestTelemetry();
  let before: Record<string, number> = {};
  const counted = async () => {
    const { samples } = (await started.scrape()).get("svc_challenges_total")!;
    const all = Object.fromEntries(samples.map(({ labels, value }) => [labels.outcome!, value]));
    const news = Object.entries(all).map(([outcome, value]) => [outcome, value - (before[outcome] ?? 0)]);
    before = all;
    return Object.fromEntries(news.filter(([, count]) => count !== 0));
  };
  return { ...started, counted };
}

test("each outcome of a challenge is counted once, however often a request is repeated", async () => {
  await using started = await counting();
  const { telemetry, counted } = started;
  await using server = await startTestServer({ rateGenerate: 1000 }, undefined, telemetry);

  const approved = await newChallenge(server);
  expect(await counted()).toEqual({ created: 1 });
  const stranger = { ...approved, verifier: "x".repeat(43) };
  const before = await rowOf(server, approved);
  for (const _ of [1, 2]) expect((await poll(server, stranger)).body.status).toBe("pending");
  expect(await counted()).toEqual({ wrong_verifier: 1 });
  // A request that read the challenge before the first was recorded.
  await noteWrongVerifier({ ...server, log: createLog("silent"), telemetry }, before, "192.0.2.1");
  expect(await counted()).toEqual({});
  const browser = new TestBrowser();
  await decide(approved, "approve", browser);
  await decide(approved, "approve", browser).catch(() => {});
  expect(await counted()).toEqual({ approved: 1 });
  for (const _ of [1, 2]) expect((await poll(server, approved)).body.status).toBe("success");
  expect(await counted()).toEqual({ authenticated: 1 });

  const denied = await newChallenge(server);
  await decide(denied, "deny");
  for (const _ of [1, 2]) expect((await poll(server, denied)).body.status).toBe("denied");
  expect(await counted()).toEqual({ created: 1, denied: 1 });

  const late = await newChallenge(server);
  server.clock.advance(server.config.challengeLifetime);
  expect((await poll(server, late)).body.status).toBe("expired");
  expect(await counted()).toEqual({ created: 1, expired: 1 });
});

test("so are challenges that are refused", async () => {
  await using started = await counting();
  const { telemetry, counted } = started;
  await using server = await startTestServer(
    { challengeLegacy: "deny", rateGenerate: 1 },
    undefined,
    telemetry,
  );
  await expect(newChallenge(server, { legacy: true })).rejects.toThrow("403");
  expect(await counted()).toEqual({ refused: 1 });
  const burst = 10;
  for (let n = 1; n < burst; n += 1) await newChallenge(server, { user: `user${n}` });
  await expect(newChallenge(server)).rejects.toThrow("429");
  expect(await counted()).toEqual({ created: burst - 1, refused: 1 });
});

test("a decision attempt by another user is counted once", async () => {
  await using started = await counting();
  const { telemetry, counted } = started;
  await using server = await startTestServer({}, undefined, telemetry);
  const challenge = await newChallenge(server, { user: "bob@example.com" });
  const browser = new TestBrowser();
  const { url } = await browser.open(challenge.challengeUrl);
  const id = new URL(url).pathname.split("/").at(-1)!;
  const sessionId = browser.cookies.get(new URL(server.url).host)!.get("svc_session")!;
  await counted();
  for (const _ of [1, 2]) {
    const decision = { decision: "approve", csrf: csrfToken(sessionId, id) };
    expect((await browser.submit(`${server.url}/approve/${id}`, "", decision)).status).toBe(403);
  }
  expect(await counted()).toEqual({ wrong_user: 1 });
});
