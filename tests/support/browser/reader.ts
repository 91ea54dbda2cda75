import { expect } from "bun:test";
import type { TestServer } from "../http/server.ts";
import { clicked, TestBrowser } from "./browser.ts";

/** A page as a reader without scripts has it. */
export interface Page {
  status: number;
  /** The final address, from the root. */
  path: string;
  html: string;
  headers: Headers;
}

/** Somebody who uses the pages without scripts. */
export class PageReader {
  private constructor(
    readonly server: TestServer,
    readonly browser: TestBrowser,
  ) {}

  /** Signs in at `/app`. */
  static async signIn(
    server: TestServer,
    user = "carol@example.com",
    groups: string[] = [],
  ): Promise<PageReader> {
    const reader = new PageReader(server, new TestBrowser());
    await reader.signInAgain(user, groups);
    return reader;
  }

  async signInAgain(user: string, groups: string[] = []): Promise<void> {
    Object.assign(this.server.issuer, { user, claims: { email_verified: true, groups } });
    const { status, path } = await this.open("/app");
    expect([status, path]).toEqual([200, "/app"]);
  }

  async open(path: string): Promise<Page> {
    const { url, status, text, headers } = await this.browser.open(`${this.server.url}${path}`);
    return { status, path: pathOf(url), html: text, headers };
  }

  /** Opens a page with a form, and sends the form with these fields changed. */
  async submit(
    path: string,
    fields: Record<string, string> = {},
    action = path.split("?")[0]!,
  ): Promise<Page> {
    const { status, html } = await this.open(path);
    expect(status).toBe(200);
    return this.send(action, { ...fieldsOf(html, action), ...fields });
  }

  /** Sends a form, and follows where it leads. */
  async send(
    action: string,
    fields: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Page> {
    const response = await this.browser.request(`${this.server.url}${action}`, {
      method: "POST",
      body: new URLSearchParams(fields),
      headers: { ...clicked, ...headers },
    });
    const location = response.headers.get("location");
    if (location === null)
      return {
        status: response.status,
        path: action,
        html: await response.text(),
        headers: response.headers,
      };
    const page = await this.open(location.split("#")[0]!);
    return { ...page, path: location };
  }
}

/** The fields of the form with this action, as a browser would send them. */
export function fieldsOf(html: string, action: string): Record<string, string> {
  const fields: Record<string, string> = {};
  let isInside = false;
  let isDone = false;
  let open: string | undefined;
  const chosen: Record<string, string> = {};
  const begin = (element: HTMLRewriterTypes.Element) => {
    open = isInside ? (element.getAttribute("name") ?? undefined) : undefined;
    if (open !== undefined) fields[open] = "";
    element.onEndTag(() => {
      open = undefined;
    });
  };
  const rewriter = new HTMLRewriter()
    .on("form", {
      element(form) {
        if (isDone || form.getAttribute("action") !== action) return;
        isInside = true;
        form.onEndTag(() => {
          isInside = false;
          isDone = true;
        });
      },
    })
    .on("input", {
      element(input) {
        const [name, type] = [input.getAttribute("name"), input.getAttribute("type")];
        if (!isInside || name === null) return;
        if (type !== "checkbox") fields[name] = textOf(input.getAttribute("value") ?? "");
        else if (input.hasAttribute("checked")) fields[name] = "on";
      },
    })
    .on("textarea", {
      element: (element) => begin(element),
      text(chunk) {
        if (open !== undefined) fields[open] += textOf(chunk.text);
      },
    })
    .on("select", { element: (element) => begin(element) })
    .on("option", {
      element(option) {
        if (open === undefined) return;
        const isFirst = !(open in chosen);
        if (isFirst || option.hasAttribute("selected"))
          fields[open] = chosen[open] = textOf(option.getAttribute("value") ?? "");
      },
    });
  rewriter.transform(html);
  expect(fields).toHaveProperty("csrf");
  return fields;
}

const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"' };

/** Text without the references that Preact writes. */
export function textOf(html: string): string {
  return html.replace(/&(amp|lt|gt|quot);/g, (_, name: string) => entities[name]!);
}

const pathOf = (url: string) => url.slice(new URL(url).origin.length);
