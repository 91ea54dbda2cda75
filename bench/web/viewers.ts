// Browsers that have the page of one incident open, in a process of their own. They do what web/client/client.ts does:
// follow the stream, and fetch the page when something has happened, again if more happens meanwhile.
// GET /<number> is answered when all of them have the change with this number: with the milliseconds that each one took.

const { BENCH_ADDRESS = "", BENCH_INCIDENT = "", BENCH_COOKIES = "" } = process.env;

/** The newest change of a page is its first one. */
const change = /change (\d+), sent (\d+)/;

class Viewer {
  /** By the number of the change. */
  readonly seen = new Map<number, number>();
  #fetching: Promise<void> | undefined;
  #isStale = false;

  constructor(readonly cookie: string) {}

  /** @returns when the stream is open and the page is there */
  async open(): Promise<void> {
    const stream = await this.#get(`/app/streams/${BENCH_INCIDENT}`, "text/event-stream");
    await this.#refresh();
    void this.#follow(stream);
  }

  async #follow({ body }: Response): Promise<void> {
    for await (const bytes of body!) if (Buffer.from(bytes).includes("event: event\n")) void this.#refresh();
    console.error("a stream ended");
    process.exit(1);
  }

  #refresh(): Promise<void> {
    this.#isStale = true;
    this.#fetching ??= this.#fetchPage().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchPage(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      const page = await this.#get(`/app/incidents/${BENCH_INCIDENT}`, "text/html");
      if (page.status === 503) {
        // The server says that it is too slow.
        this.#isStale = true;
        await Bun.sleep(1000);
        continue;
      }
      const [, number, sent] = (await page.text()).match(change) ?? [];
      if (number !== undefined && !this.seen.has(Number(number)))
        this.seen.set(Number(number), Date.now() - Number(sent));
    }
  }

  async #get(path: string, accept: string): Promise<Response> {
    const headers = { cookie: this.cookie, accept, "accept-encoding": "gzip, deflate, br" };
    const answer = await fetch(BENCH_ADDRESS + path, { headers, redirect: "manual" });
    if (answer.status === 200 || answer.status === 503) return answer;
    console.error(`${path}: ${answer.status}`);
    process.exit(1);
  }
}

const viewers = BENCH_COOKIES.split(" ").map((cookie) => new Viewer(cookie));
// A hundred at a time, as people come.
for (let at = 0; at < viewers.length; at += 100)
  await Promise.all(viewers.slice(at, at + 100).map((viewer) => viewer.open()));

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: async ({ url }) => {
    const number = Number(new URL(url).pathname.slice(1));
    while (!viewers.every(({ seen }) => seen.has(number))) await Bun.sleep(5);
    return Response.json(viewers.map(({ seen }) => seen.get(number)));
  },
});
console.log(`viewers on http://127.0.0.1:${server.port}`);

// A module, so that its names are its own.
export {};
