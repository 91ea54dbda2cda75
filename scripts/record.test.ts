import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { closeChromium, Tab } from "../tests/support/browser/chromium.ts";
import { TerminalScreen } from "../tests/support/cli/terminal_screen.ts";
import { command, files, masked, photograph, record } from "./record.ts";
import { castOf, type Recording, svgOf, textIn } from "./recording.ts";

afterAll(closeChromium);

describe("the recording in docs/", () => {
  let recording: Recording;
  beforeAll(async () => {
    recording = await record();
  });

  test.each([
    ["cast", castOf],
    ["svg", svgOf],
  ] as const)("shows what the commands do today (%s)", (file, write) => {
    const text = readFileSync(files[file], "utf8");
    expect(text.length).toBeLessThan(50_000);
    expect(masked(text), `run: ${command}`).toBe(masked(write(recording)));
  });

  test("is a valid asciicast, and shows nothing of the machine on which it was made", () => {
    const [header, ...events] = readFileSync(files.cast, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(header).toMatchObject({ version: 2, width: recording.columns, height: recording.rows });
    const screen = new TerminalScreen(header.width, header.height);
    let last = 0;
    for (const [at, kind, data] of events) {
      expect(at).toBeGreaterThanOrEqual(last);
      expect(kind).toBe("o");
      screen.write(data);
      last = at;
    }
    expect(last).toBeLessThan(header.duration);
    expect(screen.text).toContain("INC-44 · Closed · Checkout is down");
    expect(screen.text).not.toMatch(/127\.0\.0\.1|\/tmp|\/dev\/shm|eyJ/);
  });
});

describe("the moving picture in docs/", () => {
  /** The text of the groups that are visible. */
  const seen = (tab: Tab) =>
    tab.ask<string[]>(
      "[...document.querySelectorAll('g')].filter((g) => getComputedStyle(g).opacity !== '0').map((g) => g.textContent)",
    );
  const open = async () => {
    const tab = await Tab.open();
    await tab.reduceMotion(false);
    await tab.goto(pathToFileURL(files.svg).href);
    return tab;
  };
  /** Stops the animation at this time. */
  const seenAt = async (tab: Tab, milliseconds: number) => {
    await tab.ask(
      `document.getAnimations().forEach((one) => { one.pause(); one.currentTime = ${milliseconds}; })`,
    );
    return seen(tab);
  };

  test("begins with a command, continues with its output, and always shows one step", async () => {
    using tab = await open();
    const duration = await tab.ask<number>("document.getAnimations()[0].effect.getTiming().duration");
    const steps = new Set<string>();
    for (let at = 0; at < duration; at += 250) {
      const [text, ...others] = await seenAt(tab, at);
      expect({ at, others }).toEqual({ at, others: [] });
      steps.add(text!.trim());
    }
    expect(steps.size).toBe(await tab.ask<number>("document.querySelectorAll('g').length"));
    expect((await seenAt(tab, 0))[0]!.trim()).toMatch(/^\$ svc incident report [^\n]+\n─+$/);
    expect((await seenAt(tab, 5000))[0]).toContain("Next: svc incident watch INC-44");
  });

  test("shows the end where nothing moves", async () => {
    using tab = await open();
    await tab.reduceMotion(true);
    const reduced = await seen(tab);
    expect(reduced).toEqual([expect.stringContaining("INC-44 · Closed · Checkout is down")]);
    await tab.reduceMotion(false);
    await tab.ask("document.querySelector('style').remove()");
    expect(await seen(tab)).toEqual(reduced);
  });
});

test("the picture in docs/ shows the page on which a user approves a terminal today", async () => {
  const [then, now] = [readFileSync(files.page), await photograph()].map((png) => textIn(png));
  expect(now).toContain("alice@example.com");
  expect(then && masked(then), `run: ${command}`).toBe(masked(now!));
});
