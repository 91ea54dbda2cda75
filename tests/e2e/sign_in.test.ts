import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { closeChromium, Tab } from "../support/browser/chromium.ts";
import { signInAt } from "../support/browser/sign_in.ts";
import { Stack } from "../support/process/stack.ts";
import { commandLines, databaseAsText, databaseLog } from "../support/process/traces.ts";

/** The complete sign-in, from `svc login` on a terminal to a token for the API, and its traces. */

setDefaultTimeout(60_000);

const password = crypto.randomUUID();
let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start({ password });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await closeChromium();
});

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

test("svc login, Approve in the browser, and the terminal is signed in", async () => {
  const opener = stack.opener();
  await using login = stack.svc(["login", "alice@example.com"], opener.env, 100);
  const [, shown] = await login.says(/open\s+(\S+\/challenge_validator\/\S+)/);
  const [, code] = await login.says(/must show this code: ([A-Z0-9]{4}-[A-Z0-9]{4})/);
  const url = await opener.opened();
  expect(url).toBe(shown!);
  expect(new URL(url).origin).toBe(stack.url);
  const T = url.split("/").at(-1)!;
  const seen = [commandLines()];

  using tab = await Tab.open();
  await tab.goto(url);
  await tab.shows("Sign in");
  expect(new URL(await tab.address()).origin).toBe(stack.issuer);
  expect(await tab.ask<string>("document.querySelector('#user').value")).toBe("alice@example.com");
  await signInAt(tab, { password });
  await tab.shows("Sign in a terminal?");
  expect(await tab.text()).toContain(code!);
  expect(await tab.ask<string>("document.querySelector('.code strong').textContent")).toBe(code!);
  expect(await tab.address()).toStartWith(`${stack.url}/approve/`);
  expect(await tab.address()).not.toContain(T);
  expect(stack.polls()).toHaveLength(1);
  seen.push(commandLines());
  await tab.click("button[value=approve]");
  expect(await login.exit()).toBe(0);
  await tab.shows("Approved");
  expect(login.screen).toContain(`Signed in to ${stack.url} as alice@example.com until`);

  // One held poll, at the server that did not take the decision.
  const [poll, ...more] = stack.polls();
  expect(more).toHaveLength(0);
  expect(poll!.headers.get("prefer")).toBe("wait=25");
  expect(poll!.server).toBe(stack.a);
  await stack.b.says(/"method":"POST","route":"\/approve\/:id","status":303/);
  expect(stack.b.output).not.toContain("/noauth/");
  expect(stack.a.output).not.toContain("/approve/");

  expect(mode(stack.credentialsFile)).toBe("600");
  expect(mode(dirname(stack.credentialsFile))).toBe("700");
  const whoami = stack.svc(["whoami", "--json"]);
  expect(await whoami.exit()).toBe(0);
  expect(JSON.parse(whoami.stdout)).toMatchObject({
    user: "alice@example.com",
    groups: ["admin"],
    admin: true,
    server: stack.url,
  });
  const printed = stack.svc(["token"]);
  expect(await printed.exit()).toBe(0);
  const token = printed.stdout.trim();
  expect(token.split(".")).toHaveLength(3);
  const request = (headers: Record<string, string>) => fetch(`${stack.url}/whoami`, { headers });
  expect((await request({})).status).toBe(401);
  const answer = await request({ authorization: `Bearer ${token}` });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ user: "alice@example.com" });
  seen.push(commandLines());

  // The address is useless afterwards, in this and any other browser.
  await tab.goto(url);
  await tab.shows("This sign-in request is not open");

  const again = stack.svc(["login"]);
  expect(await again.exit()).toBe(0);
  expect(again.stdout).toContain("Already signed in");
  const logout = stack.svc(["logout"]);
  expect(await logout.exit()).toBe(0);
  expect(logout.stdout).toBe(`Signed out of ${stack.url} as alice@example.com\n`);
  const nobody = stack.svc(["whoami"]);
  expect(await nobody.exit()).toBe(4);
  expect(nobody.stdout).toBe("");
  expect((await request({ authorization: `Bearer ${token}` })).status).toBe(401);
  expect(tab.refusals.filter((refusal) => refusal.startsWith(stack.url))).toEqual([]);
  opener.close();

  const verifier = poll!.headers.get("authorization")!.replace("Challenge ", "");
  await nothingIsLeftOf({ T, verifier, token }, seen, { opener: opener.path, url });
});

/** No secret appears anywhere except where it must. */
async function nothingIsLeftOf(
  { T, verifier, token }: Record<"T" | "verifier" | "token", string>,
  seen: string[][],
  { opener, url }: { opener: string; url: string },
): Promise<void> {
  // The output of the CLI shows the address, and that of `svc token` the token.
  const outputs = stack.programs.map((program) =>
    program.output.replaceAll(url, "").replaceAll(`${token}\n`, ""),
  );
  const places: Record<string, string> = {
    outputs: outputs.join("\n"),
    tables: await databaseAsText(stack.sql),
    "PostgreSQL's log": await databaseLog(stack.sql),
    "command lines": seen
      .flat()
      .filter((line) => line !== `/bin/sh ${opener} ${url}`)
      .join("\n"),
    "credentials after logout": await readFile(stack.credentialsFile, "utf8"),
  };
  // The search finds what it should.
  expect(seen[0]).toContain(`/bin/sh ${opener} ${url}`);
  expect(places.outputs).toContain('"route":"/noauth/v1/:operation/:argument"');
  expect(places.outputs).toContain(new Bun.CryptoHasher("sha256").update(T).digest("hex").slice(0, 8));
  expect(places.tables).toContain("challenge.collected");
  expect(places["command lines"]).toContain("server/main:app");
  expect(places["command lines"]).toContain("chrom");
  const secrets = {
    T,
    verifier,
    token,
    "the token's signature": token.split(".")[2]!,
    "trial password": password,
    "database password": new URL(stack.databaseUrl).password,
    ...stack.secrets,
  };
  for (const [name, secret] of Object.entries(secrets)) {
    expect(secret.length).toBeGreaterThan(20);
    for (const [place, text] of Object.entries(places)) {
      for (const spelling of [secret, Buffer.from(secret).toString("hex"), encodeURIComponent(secret)])
        expect(`${name} in ${place}: ${text.includes(spelling)}`).toBe(`${name} in ${place}: false`);
    }
  }
}
