import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Tab } from "../support/browser/chromium.ts";
import { useIncidentTab } from "../support/browser/incident_tab.ts";
import { insertNotes } from "../support/domain/notes.ts";
import type { IncidentServer } from "../support/http/incident_server.ts";
import { until } from "../support/process/until.ts";

/** The pages in a real browser: with their script, live, and by keyboard. */

setDefaultTimeout(120_000);

let given: IncidentServer;
let tab: Tab;
let id: number;
let path: string;
const { open, isLive } = useIncidentTab((reported) => {
  ({ given, tab, id, path } = reported);
});

const note = (text: string) => given.member.call("POST", `/incidents/${id}/events`, { description: text });
const notes = () => given.notesOf(id);

describe("a page that is open", () => {
  test("shows what others write, and keeps what the reader is writing", async () => {
    await open(path);
    await isLive();
    await tab.click("#text");
    await tab.type("Half a thou");
    await note("From a terminal");
    await tab.says("From a terminal");
    await tab.type("ght");
    expect(await tab.ask<string>("document.querySelector('#text').value")).toBe("Half a thought");
    await tab.click(".say button");
    await until("the note", async () => (await notes()).includes("Half a thought"));
    await until("an empty field", () => tab.ask<boolean>("document.querySelector('#text').value === ''"));
    await tab.says("Half a thought");
  });

  test("says that it is slow when the database is, keeps what it shows, and is live again afterwards", async () => {
    await open(path);
    await isLive();
    await tab.click("#text");
    await tab.type("Half a thou");
    const says = (word: string) =>
      until(word, () => tab.ask<boolean>(`document.querySelector(".live").textContent === "${word}"`), 60);
    await given.server.db.transaction(async (tx) => {
      // Of the page only.
      await tx.execute("lock table task in access exclusive mode");
      await note("While it is slow");
      await says("slow");
      // It tries again by itself after that.
      await until("the answer", () =>
        tab.ask<boolean>(
          "performance.getEntriesByType('resource').some(({ responseStatus }) => responseStatus === 503)",
        ),
      );
      await tab.type("ght");
      expect(await tab.text()).toContain("Broken");
      expect(await tab.text()).not.toContain("While it is slow");
    });
    await tab.says("While it is slow");
    await says("live");
    expect(await tab.ask<string>("document.querySelector('#text').value")).toBe("Half a thought");
    await given.server.db.transaction(async (tx) => {
      await tx.execute("lock table event in access exclusive mode");
      await tab.click(".say button");
      await tab.shows("It is not known yet whether this is stored");
      await says("not live");
      expect(await tab.inspect("slow-form")).toEqual([]);
    });
    await tab.click(".fields button");
    await until("the note", async () => (await notes()).includes("Half a thought"));
    expect((await notes()).filter((text) => text === "Half a thought")).toHaveLength(1);
  });

  test("of an incident with 50,000 entries is live", async () => {
    await insertNotes(given.server, id, 50_000);
    await open(path);
    await isLive();
    await note("One more");
    await tab.says("One more");
    expect(await tab.ask<number>("document.querySelectorAll('.timeline > li').length")).toBeLessThan(101);
    // The address of an entry that is here is only taken.
    await tab.click("#text");
    await tab.type("Half a thought");
    await tab.click("a.when");
    expect(await tab.ask<string>("location.hash")).toMatch(/^#event-\d+$/);
    expect(await tab.ask<string>("document.querySelector('#text').value")).toBe("Half a thought");
  });

  test("keeps what a proxy answers for a server that is away", async () => {
    await open(path);
    await isLive();
    await tab.ask(`void (window.fetch = async () =>
      Object.defineProperty(new Response("<h1>502 Bad Gateway</h1>", { status: 502 }), "url", { value: location.href }))`);
    await tab.click("#text");
    await tab.type("Not lost");
    await tab.click(".say button");
    await until("the reason", async () =>
      (await tab.ask<string>("document.querySelector('#say').innerText")).includes("Not sent: 502"),
    );
    expect(await tab.ask<string>("document.querySelector('#text').value")).toBe("Not lost");
  });

  test("the board shows a new incident, and a hidden tab says so in its title", async () => {
    await open("/app");
    await isLive();
    const { name } = await given.reported("Also broken");
    await tab.says(name);
  });

  test("says that it is not live, and that somebody has to sign in again", async () => {
    await open(path);
    await isLive();
    await tab.click("#text");
    await tab.type("Not lost");
    // As by another tab.
    await tab.ask(
      `fetch("/app/sign_out", { method: "POST", body: new URLSearchParams({ csrf: document.querySelector("[name=csrf]").value }) }).then(() => 1)`,
    );
    await tab.says("Sign in again");
    expect(await tab.ask<string>("document.querySelector('#text').value")).toBe("Not lost");
    await tab.click(".again");
    await isLive();
    expect(await tab.text()).not.toContain("Sign in again");
    // Its form has the token of the new session.
    await tab.ask("document.querySelector('.say button').click()");
    await until("the note", async () => (await notes()).includes("Not lost"));
  });
});

test("a form that leads to its own page shows the result, and can be sent again", async () => {
  const draft = await given.member.call("POST", `/incidents/${id}/postmortem`, {});
  for (const text of ["Thought of later", "Thought of last"]) {
    await note(text);
    await open(`${path}/postmortem`);
    await tab.says(text);
    await tab.click("section form > button");
    await until("its absence", async () => !(await tab.text().catch(() => text)).includes(text));
    await tab.shows("Post-mortem");
  }
  const { body } = await given.member.call("GET", `/documents/${draft.body.document_id}/content`);
  expect(body.text).toContain("Thought of later");
  expect(body.text).toContain("Thought of last");
});

test("a form that cannot be sent says so beside its button, and keeps the text", async () => {
  const { id: documentId } = await given.documentOf(id);
  for (const [at, sent] of [
    [`${path}/note`, "Not lost"],
    [`/app/documents/${documentId}/edit`, "Not lost either"],
  ] as const) {
    await open(at);
    await tab.fill("#field-text", sent);
    await tab.setOffline(true);
    await tab.click(".fields .primary");
    await until("the reason", async () =>
      (await tab.ask<string>("document.querySelector('.fields .row').innerText")).includes(
        "Not sent: no connection",
      ),
    );
    expect(await tab.ask<string>("document.querySelector('.fields [role=status]').textContent")).toBe(
      "Not sent: no connection",
    );
    expect(await tab.ask<string>("document.querySelector('#field-text').value")).toContain(sent);
    await tab.setOffline(false);
    await tab.click(".fields .primary");
    await until("the result", async () => !(await tab.address()).endsWith(at));
    await tab.says(sent);
  }
});

test("the preview of a document is in view, with and without scripts, and what it shows can be saved", async () => {
  const { id: documentId } = await given.documentOf(id);
  const at = `/app/documents/${documentId}`;
  const text = Array.from({ length: 80 }, (_, n) => `Line ${n}`).join("\n\n");
  const { version } = (await given.member.call("GET", `${at.slice(4)}/content`)).body;
  expect((await given.member.call("PUT", `${at.slice(4)}/content`, { text, version })).http).toBe(200);
  for (const allowed of [true, false]) {
    await tab.allowScripts(allowed);
    await open(`${at}/edit`);
    await tab.click("#field-text");
    await tab.type(allowed ? "Mine" : "Ours");
    await tab.click("[name=preview]");
    await until("the preview in view", () =>
      tab.ask<boolean>("Math.abs(document.querySelector('#preview')?.getBoundingClientRect().top) < 100"),
    );
    await tab.says("not saved yet");
    expect(await tab.ask<string>("document.querySelector('.preview').innerText")).toContain(
      allowed ? "Mine" : "Ours",
    );
    if (allowed) expect(await tab.focused()).toContain("Preview, not saved yet");
  }
  await tab.allowScripts(true);
  await open(`${at}/edit`);
  await tab.click("#field-text");
  await tab.type("Kept");
  await tab.click("[name=preview]");
  await tab.says("not saved yet");
  await tab.click(".fields .primary");
  await until("the document", async () => (await tab.address()).endsWith(at));
  await tab.says("Kept");
});

test("the profile proposes the zone of the browser, until one is chosen", async () => {
  await open("/app/profile");
  const zone = await tab.ask<string>("Intl.DateTimeFormat().resolvedOptions().timeZone");
  await tab.says(`Your browser is in ${zone}: use it`);
  await tab.click("#field-time_zone ~ button");
  await tab.click(".fields .primary");
  await tab.says("Saved.");
  expect(await tab.ask<string>("document.querySelector('#field-time_zone').value")).toBe(zone);
  expect(await tab.text()).not.toContain("Your browser is in");
});

describe("by keyboard", () => {
  /** Moves the focus with Tab to what has this name. */
  async function focus(name: string): Promise<void> {
    for (let presses = 0; presses < 150; presses += 1) {
      if ((await tab.focused()) === name) return;
      await tab.press("Tab");
    }
    throw new Error(`Tab does not reach ${name}`);
  }
  const press = async (name: string) => {
    await focus(name);
    await tab.press("Enter");
  };

  test("an incident is reported, found, written to, made stable and closed", async () => {
    await open("/app");
    await tab.press("Tab");
    expect(await tab.focused()).toContain("Skip to the content");
    await press("Report");
    await tab.says("Report an incident");
    await focus("Title");
    await tab.type("Down by keyboard");
    await press("Report");
    await tab.says("INC-");
    await open("/app");
    await tab.type("j");
    await tab.press("Enter");
    await until("an incident", async () => (await tab.address()).includes("/app/incidents/"));
    await isLive();
    await tab.type("n");
    await tab.type("By keyboard");
    await press("Note");
    await tab.says("By keyboard");
    await press("Status report");
    await tab.says("Write a status report");
    await focus("Conditions (optional)");
    await tab.type("Nothing works");
    await press("Send status report");
    await tab.says("Nothing works");
    await press("Stable");
    await until("a stable incident", () => tab.ask<boolean>("!!document.querySelector('.status.stable')"));
    await press("Close");
    await tab.says("Resolution");
    await focus("Resolution (optional)");
    await tab.type("A new fan");
    await press("Close");
    await until("a closed incident", () => tab.ask<boolean>("!!document.querySelector('.status.closed')"));
    // The page may be shown before its script runs, which takes the key.
    await isLive();
    await tab.says("A new fan");
    await tab.type("/");
    await tab.type("keyboard");
    await tab.press("Enter");
    await tab.says("Search: keyboard");
  });
});

test("? shows the keys, Escape closes them, and the focus returns", async () => {
  await open("/app");
  await tab.type("j");
  const row = await tab.focused();
  expect(row).not.toBe("");
  await tab.type("?");
  await until("the help", () => tab.ask<boolean>("document.querySelector('dialog').open"));
  expect(await tab.focused()).toBe("Close");
  expect(await tab.inspect("help-dialog")).toEqual([]);
  // It takes no other key.
  await tab.type("n/");
  expect(await tab.focused()).toBe("Close");
  await tab.press("Escape");
  expect(await tab.ask<boolean>("document.querySelector('dialog').open")).toBe(false);
  expect(await tab.focused()).toBe(row);
  await tab.click(".help");
  expect(await tab.ask<boolean>("document.querySelector('dialog').open")).toBe(true);
});
