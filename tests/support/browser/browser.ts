/** What browsers send with a form whose button was pressed. */
export const clicked = {
  origin: "null",
  "sec-fetch-site": "same-origin",
  "sec-fetch-mode": "navigate",
  "sec-fetch-user": "?1",
};

/** The HTTP part of a browser: it keeps cookies by host and port, and follows redirects one at a time. */
export class TestBrowser {
  readonly cookies = new Map<string, Map<string, string>>();

  constructor(private readonly headers: Record<string, string> = {}) {}

  async request(url: string, init: RequestInit = {}): Promise<Response> {
    const jar = this.#jar(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = new Headers({ ...this.headers, ...(init.headers as Record<string, string>) });
    if (cookie) headers.set("cookie", cookie);
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [name = "", value = ""] = line.split(";")[0]!.split("=");
      jar.set(name, value);
    }
    return response;
  }

  /** Opens an address and follows redirects. `url` of the result is the final address. */
  async open(url: string): Promise<{ url: string; status: number; text: string; headers: Headers }> {
    let address = url;
    for (let hop = 0; hop < 10; hop += 1) {
      const response = await this.request(address);
      const location = response.headers.get("location");
      if (!location)
        return {
          url: address,
          status: response.status,
          text: await response.text(),
          headers: response.headers,
        };
      address = new URL(location, address).href;
    }
    throw new Error(`${url} leads in a circle`);
  }

  /** Presses a button of a form that `open` led to. */
  async submit(
    url: string,
    text: string,
    fields: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const csrf = text.match(/name="csrf" value="([^"]+)"/)?.[1] ?? "";
    const action = text.match(/<form method="post" action="([^"]+)"/)?.[1] ?? new URL(url).pathname;
    return this.request(new URL(action, url).href, {
      method: "POST",
      body: new URLSearchParams({ csrf, ...fields }),
      headers: { ...clicked, ...headers },
    });
  }

  #jar(url: string): Map<string, string> {
    const { host } = new URL(url);
    const jar = this.cookies.get(host) ?? new Map();
    this.cookies.set(host, jar);
    return jar;
  }
}
