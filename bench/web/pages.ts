import { once } from "node:events";
import { connect } from "node:net";
import { words } from "../api/requests.ts";
import { BenchError, quantile, verdict } from "../support.ts";
import { requestText } from "../wrk.ts";

const requests = 200;
const warmUps = 20;
const aims = { milliseconds: 50, bytes: 30_000 };

interface Answer {
  /** From the connection to the first byte of the answer. */
  milliseconds: number;
  /** Of the whole answer, with its headers. */
  bytes: number;
}

/** The first byte and the bytes over the wire of each page, one request at a time, each by another person. */
export async function measurePages(
  address: string,
  { browsers, busy, documents }: { browsers: { cookie: string }[]; busy: number[]; documents: number },
): Promise<void> {
  const pages: Record<string, (at: number) => string> = {
    board: () => "/app",
    "all incidents": () => "/app?show=all",
    incident: (at) => `/app/incidents/${busy[at % busy.length]}`,
    report: () => "/app/report",
    document: (at) => `/app/documents/${documents - (at % 500) * 10}`,
    "my work": () => "/app/work",
    access: () => "/app/access",
    search: (at) => `/app/search?q=${encodeURIComponent(words.frequent(at))}`,
  };
  console.log(`${"first byte, bytes over the wire (gzip)".padEnd(40)}p50 ms   p95 ms    bytes`);
  for (const [name, pathOf] of Object.entries(pages)) {
    const answers: Answer[] = [];
    for (let at = -warmUps; at < requests; at += 1) {
      const place = at + warmUps;
      const answer = await ask(address + pathOf(place), browsers[place % browsers.length]!);
      if (at >= 0) answers.push(answer);
    }
    const times = answers.map(({ milliseconds }) => milliseconds);
    const [p50, p95] = [quantile(times, 0.5), quantile(times, 0.95)];
    const most = Math.max(...answers.map(({ bytes }) => bytes));
    const met = p95 < aims.milliseconds && most < aims.bytes;
    const figures = [p50.toFixed(1), p95.toFixed(1), most.toLocaleString("en")];
    console.log(
      `${name.padEnd(37)}${figures.map((figure) => figure.padStart(9)).join("")}   aim: p95 under ${aims.milliseconds}, under ${aims.bytes.toLocaleString("en")}, ${verdict(met)}`,
    );
  }
  console.log("");
}

/** Asks as a browser does, on a connection of its own. @throws BenchError for anything but a page */
async function ask(url: string, headers: { cookie: string }): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const begun = performance.now();
  socket.write(
    requestText("GET", url, {
      ...headers,
      accept: "text/html",
      "accept-encoding": "gzip, deflate, br",
      connection: "close",
    }),
  );
  try {
    const [first] = (await once(socket, "data")) as [Buffer];
    const milliseconds = performance.now() - begun;
    const chunks = [first];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    const answer = Buffer.concat(chunks).toString("latin1");
    if (!answer.startsWith("HTTP/1.1 200 ")) throw new BenchError(`${url}: ${answer.slice(0, 200)}`);
    return { milliseconds, bytes: answer.length };
  } finally {
    socket.destroy();
  }
}
