import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import { descendants, type Process, untilGone } from "../process/processes.ts";
import { until } from "../process/until.ts";
import { ensure, findChromium, programs } from "../programs.ts";

const flags = [
  "--no-sandbox",
  "--headless",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Without these, pages take half as much processor time again: hidden pages of the address bar are updated all the time,
  // and every tab starts processes of its own, which compile axe again.
  "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,SpareRendererForSitePerProcess",
  "--disable-site-isolation-trials",
  "--renderer-process-limit=1",
];
const artefacts = join(import.meta.dir, "../../../artefacts");

const sizes = {
  desktop: { width: 1280, height: 800 },
  phone: { width: 390, height: 844 },
  // WCAG 2.2, 1.4.10 Reflow.
  narrow: { width: 320, height: 640 },
};
/** Sizes and colour schemes in which pages are checked; two of them, covering each value once, run every rule. */
const looks = [
  { size: "desktop", scheme: "light", rules: true },
  { size: "desktop", scheme: "dark", rules: false },
  { size: "narrow", scheme: "light", rules: false },
  { size: "narrow", scheme: "dark", rules: true },
] as const;

/** WCAG 2 levels A and AA, in all versions, and the best practices of axe. */
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** @throws Error with the command that installs one */
function chromium(): string {
  ensure(programs.chromium);
  return findChromium()!;
}

/** A new tab of a real Chromium. All tabs of a process share one browser and its cookies. */
export class Tab {
  /** The page's address, and everything that the browser blocked because of the page's policy. */
  readonly refusals: string[] = [];

  private constructor(private readonly view: Bun.WebView) {}

  static async open(): Promise<Tab> {
    profile ??= mkdtempSync(join(tmpdir(), "svc-e2e-chromium-"));
    const view = new Bun.WebView({
      backend: { type: "chrome", path: chromium(), argv: flags },
      dataStore: { directory: profile },
      ...sizes.desktop,
    });
    const tab = new Tab(view);
    await view.navigate("about:blank");
    await view.cdp("Network.clearBrowserCookies");
    await tab.resize(sizes.desktop.width, sizes.desktop.height);
    view.addEventListener("Log.entryAdded", (event) => {
      const { entry } = (event as MessageEvent<{ entry: { source: string; text: string; url?: string } }>)
        .data;
      const refused = entry.source === "security" || /content security policy/i.test(entry.text);
      if (refused) tab.refusals.push(`${entry.url ?? view.url}: ${entry.text}`);
    });
    await view.cdp("Log.enable");
    return tab;
  }

  async goto(url: string): Promise<void> {
    await this.view.navigate(url);
  }

  /** Waits until a page with this heading has loaded. */
  async shows(heading: string): Promise<void> {
    let seen = "nothing";
    await until("the page", async () => {
      seen =
        (await this.ask<string>(
          "document.readyState === 'complete' ? document.querySelector('h1')?.textContent ?? '' : ''",
        ).catch(() => "")) || seen;
      return seen === heading;
    }).catch((error: Error) => {
      throw new Error(`${error.message} "${heading}"; there is "${seen}" at ${this.view.url}`);
    });
  }

  /** Waits for these words on the page. */
  async says(words: string): Promise<void> {
    await until(`"${words}" on the page`, () =>
      this.text().then(
        (text) => text.includes(words),
        () => false,
      ),
    );
  }

  async reload(): Promise<void> {
    await this.view.reload();
  }

  /** The value of an expression in the page. */
  async ask<T>(expression: string): Promise<T> {
    return (await this.view.evaluate(expression)) as T;
  }

  text(): Promise<string> {
    return this.ask<string>("document.body.innerText");
  }

  address(): Promise<string> {
    return this.ask<string>("location.href");
  }

  status(): Promise<number> {
    return this.ask<number>("performance.getEntriesByType('navigation')[0].responseStatus");
  }

  /** Clicks the middle of it with the mouse, by coordinates, because WebView's click needs scripts in the page. */
  async click(selector: string, clickCount: 1 | 3 = 1): Promise<void> {
    const [x, y] = await until(`${selector} on the page`, () =>
      this.ask<[number, number] | null>(`(() => {
        const element = document.querySelector(${JSON.stringify(selector)});
        element?.scrollIntoView({ block: "nearest" });
        const box = element?.getBoundingClientRect();
        const middle = box && [box.x + box.width / 2, box.y + box.height / 2];
        return middle && element.contains(document.elementFromPoint(...middle)) ? middle : null;
      })()`),
    );
    await this.view.click(x, y, { clickCount });
  }

  /** Key by key, into whatever has the focus. */
  async type(text: string): Promise<void> {
    for (const key of text) {
      await this.view.cdp("Input.dispatchKeyEvent", { type: "keyDown", text: key, unmodifiedText: key, key });
      await this.view.cdp("Input.dispatchKeyEvent", { type: "keyUp", key });
    }
  }

  async press(key: "Tab" | "Enter" | "Space" | "Escape", ...modifiers: "Shift"[]): Promise<void> {
    await this.view.press(key, { modifiers });
  }

  /** Replaces the content of a field by typing. */
  async fill(selector: string, text: string): Promise<void> {
    await this.click(selector, 3);
    await this.type(text);
  }

  /** The label of the focused element. */
  focused(): Promise<string> {
    return this.ask<string>(
      "document.activeElement === document.body ? '' : document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent",
    );
  }

  /** Runs this in each page before its own scripts, whatever its policy. */
  async beforeScripts(source: string): Promise<void> {
    await this.view.cdp("Page.enable");
    await this.view.cdp("Page.addScriptToEvaluateOnNewDocument", { source });
  }

  async allowScripts(allowed: boolean): Promise<void> {
    await this.view.cdp("Emulation.setScriptExecutionDisabled", { value: !allowed });
  }

  async setOffline(offline: boolean): Promise<void> {
    await this.view.cdp("Network.enable");
    await this.view.cdp("Network.emulateNetworkConditions", {
      offline,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: -1,
    });
  }

  async resize(width: number, height: number): Promise<void> {
    const mobile = width < 600;
    await this.view.cdp("Emulation.setDeviceMetricsOverride", {
      width,
      height,
      deviceScaleFactor: 1,
      mobile,
    });
  }

  /**
   * Checks the page on a desktop and a narrow phone, light and dark. Saves a screenshot of each as
   * `artefacts/<name>-<size>-<scheme>.png`, and returns the problems.
   */
  async inspect(name: string): Promise<string[]> {
    const findings: string[] = [];
    await this.ask(`(() => { ${axe.source} })()`);
    for (const { size, scheme, rules } of looks) {
      await this.look(size, scheme);
      await this.picture(`${name}-${size}-${scheme}`);
      const violations = rules ? await this.#violations() : [];
      findings.push(...violations.map((finding) => `${name}, ${size}, ${scheme}: ${finding}`));
      if (await this.#scrollsSideways()) findings.push(`${name}, ${size}: scrolls sideways`);
    }
    await this.resize(sizes.desktop.width, sizes.desktop.height);
    return findings;
  }

  /** Sets the size and the colour scheme. */
  async look(size: keyof typeof sizes, scheme: "light" | "dark"): Promise<void> {
    const { width, height } = sizes[size];
    await this.resize(width, height);
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.view.cdp("Emulation.setEmulatedMedia", { features });
  }

  /** Saves a screenshot under artefacts/. */
  async picture(name: string): Promise<void> {
    await Bun.write(join(artefacts, `${name}.png`), await this.screenshot());
  }

  /** What the tab shows. */
  async screenshot(format: "png" | "webp" = "png"): Promise<Buffer> {
    return await this.view.screenshot({
      encoding: "buffer",
      format,
      ...(format === "webp" && { quality: 65 }),
    });
  }

  /** Whether the user has asked the system for less motion. */
  async reduceMotion(reduced: boolean): Promise<void> {
    const value = reduced ? "reduce" : "no-preference";
    await this.view.cdp("Emulation.setEmulatedMedia", {
      features: [{ name: "prefers-reduced-motion", value }],
    });
  }

  close(): void {
    this.view.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Asks the whole browser to exit. */
  async quit(): Promise<void> {
    await this.view.cdp("Browser.close").catch(() => {});
  }

  #scrollsSideways(): Promise<boolean> {
    return this.ask<boolean>("document.documentElement.scrollWidth > innerWidth");
  }

  async #violations(): Promise<string[]> {
    const { violations } = await this.ask<axe.AxeResults>(
      `axe.run(document, { runOnly: ${JSON.stringify(tags)}, resultTypes: ["violations"] })`,
    );
    return violations.map(({ id, nodes }) => `${id} at ${nodes.map(({ target }) => target).join(", ")}`);
  }
}

let profile: string | undefined;

/** Every process of our Chromium. */
function chromiumProcesses(): Process[] {
  return descendants(process.pid).filter(({ command }) => profile !== undefined && command.includes("chrom"));
}

/** Stops Chromium and waits until all its processes are gone. Call it after the last test of a file. */
export async function closeChromium(): Promise<void> {
  const processes = chromiumProcesses();
  // Asked first, because a killed Chromium leaves temporary files.
  if (processes.length > 0) {
    const tab = await Tab.open();
    await tab.quit();
    await untilGone(processes).catch(() => {});
  }
  Bun.WebView.closeAll();
  await untilGone(processes);
  if (profile) rmSync(profile, { recursive: true, force: true });
  profile = undefined;
}
