import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { closeChromium, Tab } from "../support/browser/chromium.ts";
import { frontEnd } from "../support/browser/front_end.ts";
import { startTestServer, type TestServer } from "../support/http/server.ts";

/** STATIC_DIR in a real browser: a front end together with the API and the sign-in pages. */

setDefaultTimeout(60_000);

const site = frontEnd();
let server: TestServer;
let tab: Tab;
beforeAll(async () => {
  server = await startTestServer({ staticDir: site.path });
  tab = await Tab.open();
});
afterAll(async () => {
  tab?.close();
  await closeChromium();
  await server?.[Symbol.asyncDispose]();
  site[Symbol.dispose]();
});

test("its script and style work, also at an address that only its router knows", async () => {
  for (const path of ["/", "/board/7"]) {
    await tab.goto(server.url + path);
    await tab.shows(path);
    expect(await tab.status()).toBe(200);
    expect(await tab.ask<string>("getComputedStyle(document.querySelector('h1')).color")).toBe(
      "rgb(0, 128, 0)",
    );
  }
  await tab.picture("front-end");
  expect(tab.refusals).toEqual([]);
});

test("it can call only the API; resources from elsewhere are blocked", async () => {
  await tab.goto(`${server.url}/`);
  await tab.shows("/");
  const status = (url: string) =>
    tab.ask<number | string>(`fetch(${JSON.stringify(url)}).then(({ status }) => status, () => "refused")`);
  expect(await status("/healthcheck")).toBe(200);
  expect(await status("/incidents/")).toBe(401);
  expect(await status("http://127.0.0.1:1/")).toBe("refused");
  await tab.ask(
    "document.body.append(Object.assign(document.createElement('script'), { text: 'window.ran = true' }))",
  );
  expect(await tab.ask<boolean>("window.ran === true")).toBe(false);
  expect(tab.refusals.length).toBeGreaterThan(0);
});

test("files with a hash in their name are requested once", async () => {
  await tab.goto(`${server.url}/`);
  await tab.shows("/");
  await tab.goto(`${server.url}/board/8`);
  await tab.shows("/board/8");
  const sent = await tab.ask<number[]>(
    "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/assets/')).map(({ transferSize }) => transferSize)",
  );
  expect(sent).toEqual([0, 0]);
});
