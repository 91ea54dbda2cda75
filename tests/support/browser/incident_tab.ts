import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import { type IncidentServer, useIncidentServer } from "../http/incident_server.ts";
import { until } from "../process/until.ts";
import { closeChromium, Tab } from "./chromium.ts";

/** An incident that was reported just now, the address of its page, and a tab in which an admin has signed in. */
interface Reported {
  given: IncidentServer;
  tab: Tab;
  id: number;
  path: string;
}

/**
 * Starts a server for a file, and passes a new incident and a new tab to `take` before each test. A test fails if the policy
 * of a page has blocked something.
 */
export function useIncidentTab(take: (reported: Reported) => void) {
  let given: IncidentServer;
  useIncidentServer(
    (all) => {
      given = all;
    },
    { rateGenerate: 100_000, pluginConversation: "channel", pluginDocument: "markdown" },
  );
  let tab: Tab;
  /** Waits until the page is complete. */
  const open = async (path: string) => {
    await tab.goto(`${given.server.url}${path}`);
    await until("the page", () =>
      tab.ask<boolean>("document.readyState === 'complete' && !!document.querySelector('h1')"),
    );
  };
  /** Waits until the script of the page follows its stream. */
  const isLive = () => until("a live page", () => tab.ask<boolean>("!!document.querySelector('.live.on')"));
  beforeAll(() => {
    Object.assign(given.server.issuer, {
      user: "root@example.com",
      claims: { email_verified: true, groups: ["admin"] },
    });
  });
  afterAll(closeChromium);
  beforeEach(async () => {
    tab = await Tab.open();
    await open("/app");
    const { id } = await given.reported("Broken");
    take({ given, tab, id, path: `/app/incidents/${id}` });
  });
  afterEach(() => {
    const refusals = tab.refusals.filter((refusal) => refusal.startsWith(given.server.url));
    tab.close();
    expect(refusals).toEqual([]);
  });
  return { open, isLive };
}
