import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { closeChromium, Tab } from "../tests/support/browser/chromium.ts";
import { testProgram } from "../tests/support/cli/process.ts";
import { TerminalScreen } from "../tests/support/cli/terminal_screen.ts";
import { personOf } from "../tests/support/http/people.ts";
import { signInToken, startTestServer } from "../tests/support/http/server.ts";
import { Program } from "../tests/support/process/program.ts";
import { until } from "../tests/support/process/until.ts";
import { loadExample } from "../trial/example/load.ts";
import { castOf, type Frame, type Picture, type Recording, svgOf, withText } from "./recording.ts";

// Records the pictures of the README: an incident from report to closure in one terminal, and `svc incident watch` in
// another; and, in Chromium, the page on which a user approves a terminal, and an incident beside a terminal. The terminals, the browser and the server are real.
// The pauses between the steps are fixed, so that a recording differs from the last one only in the times that it shows.

const columns = 96;
const upperRows = 16;
const lowerRows = 12;

interface Step {
  types: string;
  /** What the upper and the lower terminal show when it is done. */
  upper: RegExp;
  lower?: RegExp;
  /** The lower terminal begins with this step. */
  watch?: boolean;
}

const steps: readonly Step[] = [
  {
    types: 'svc incident report "Checkout is down" -t Availability -p High --use',
    upper: /Next: svc incident watch INC-44\n(?:.*\n)?\$ $/,
  },
  {
    types: "svc incident add bob",
    upper: /add bob\n.*Checkout is down\n\$ $/,
  },
  {
    types: 'svc incident note "The release of 11:40 is the cause"',
    upper: /11:40[^\n]*\n.*Checkout is down\n\$ $/,
    lower: /The release of 11:40 is the cause \(e\d+\)\n.* · Active/,
    watch: true,
  },
  {
    types: 'svc incident update -c "A third of payments fail" -a "Rolling back"',
    upper: /Rolling back"\n.*Checkout is down\n\$ $/,
    lower: /Actions: Rolling back( \(e\d+\))?\n.* · Active/,
  },
  {
    types: "svc incident stable",
    upper: /stable\n.*Checkout is down \(Stable\)\n\$ $/,
    lower: /is stable\n.* · Stable/,
  },
  {
    types: 'svc incident close -r "Rolled back"',
    upper: /back"\n.*Checkout is down \(Closed\)\nNext: .*\n\$ $/,
    lower: /is closed\n.* · Closed/,
  },
];

/** Seconds. */
const perKey = 0.04;
const beforeTyping = 0.8;
const answering = 0.4;
const reading = 2.2;
/** Of the server's time. */
const betweenSteps = 97;

/** Runs the session. */
export async function record(): Promise<Recording> {
  const home = mkdtempSync(join(tmpdir(), "svc-record-"));
  await using server = await startTestServer({ pluginParticipant: "roster" });
  // The server's time passes between the steps, and ends now.
  const begin = Date.now() / 1000 - steps.length * betweenSteps;
  server.clock.advance(begin - server.clock.now().getTime() / 1000);
  await loadExample(server.db, server.clock.now());
  await personOf(server, "alice@example.com", ["admin"]);
  const env = { ...shellEnvironment(home), SVC_SERVER: server.url, SVC_TOKEN: await signInToken(server) };
  const upper = terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"], env, home, {
    columns,
    rows: upperRows,
  });
  let lower: ReturnType<typeof terminal> | undefined;
  try {
    const pass = () => server.clock.advance(betweenSteps);
    return await walk(upper, pass, () => {
      lower = terminal(["sh", "-c", 'svc incident watch "$(svc incident current --short)"'], env, home, {
        columns,
        rows: lowerRows,
      });
      return lower;
    });
  } finally {
    lower?.child.terminal?.write("\x03");
    upper.child.terminal!.write("exit\n");
    await Promise.all([lower?.child.exited, upper.child.exited]);
    rmSync(home, { recursive: true });
  }
}

type Terminal = ReturnType<typeof terminal>;

function terminal(
  command: string[],
  env: Record<string, string>,
  cwd: string,
  { rows, columns }: { rows: number; columns: number },
) {
  const screen = new TerminalScreen(columns, rows);
  const decoder = new TextDecoder();
  const child = Bun.spawn(command, {
    env,
    cwd,
    terminal: {
      cols: columns,
      rows,
      data: (_terminal, data) => screen.write(decoder.decode(data, { stream: true })),
    },
  });
  const shows = (pattern: RegExp) =>
    until(`${pattern}`, () => pattern.test(textWithPrompt(screen))).catch((cause: Error) => {
      throw new Error(`${cause.message}:\n${screen.text}`, { cause });
    });
  return { child, screen, shows };
}

/** With the space after the prompt at the end. */
function textWithPrompt({ text }: TerminalScreen): string {
  return text.endsWith("\n$") || text === "$" ? `${text} ` : text;
}

async function walk(upper: Terminal, pass: () => void, openLower: () => Terminal): Promise<Recording> {
  const frames: Frame[] = [];
  let at = 0;
  let lower: Terminal | undefined;
  // The lower terminal counts the seconds; recorded letter by letter, that would differ each time.
  let below: Picture = pictureBelow(undefined);
  const add = (isStep: boolean) => {
    if (isStep) below = pictureBelow(lower);
    frames.push({ at, isStep, picture: [...structuredClone(upper.screen.cells), ...below] });
  };
  await upper.shows(/^\$ $/);
  add(false);
  for (const step of steps) {
    if (step.watch) {
      lower = openLower();
      await lower.shows(/ · Active/);
      at += answering;
      add(true);
      at += reading;
    }
    at += beforeTyping;
    for (const key of step.types) {
      const before = upper.screen.cursor.x;
      upper.child.terminal!.write(key);
      await until("the echo of a key", () => upper.screen.cursor.x !== before);
      at += perKey;
      add(false);
    }
    // The SVG begins with the first command.
    if (step === steps[0]) add(true);
    pass();
    upper.child.terminal!.write("\n");
    await upper.shows(step.upper);
    if (step.lower) await lower!.shows(step.lower);
    at += answering;
    add(true);
    at += reading;
  }
  return {
    title: "An incident from report to closure, in two terminals",
    columns,
    rows: upperRows + 1 + lowerRows,
    duration: Math.ceil(at + reading),
    frames,
  };
}

/** A line, and the lower terminal. */
function pictureBelow(lower: Terminal | undefined): Picture {
  const line = Array.from({ length: columns }, () => ({ text: "─", style: "2" }));
  return [line, ...structuredClone(lower?.screen.cells ?? Array.from({ length: lowerRows }, () => []))];
}

/** Photographs the page of a `svc login` that waits. */
export async function photograph(): Promise<Buffer> {
  await using server = await startTestServer();
  const env = { PATH: process.env.PATH, HOME: tmpdir() };
  const command = ["login", "alice@example.com", "--no-browser", "--force", "--server", server.url];
  await using login = new Program(command, { env, cwd: tmpdir() });
  const [url] = await login.says(/http\S+\/challenge_validator\/\S+/);
  using tab = await Tab.open();
  await tab.goto(url);
  await tab.shows("Sign in a terminal?");
  return withText(await tab.screenshot(), await tab.text());
}

const besidePage = { width: 1040, height: 700 };
const besideTerminal = { columns: 62, rows: 20 };

/** Photographs an incident in the browser beside `svc incident watch` in a terminal: each shows what the other has written. */
export async function photographBeside(): Promise<Buffer> {
  const home = mkdtempSync(join(tmpdir(), "svc-record-"));
  await using server = await startTestServer({ pluginParticipant: "roster" });
  server.clock.advance(Date.now() / 1000 - 12 * 60 - server.clock.now().getTime() / 1000);
  await loadExample(server.db, server.clock.now());
  const alice = await personOf(server, "alice@example.com", ["admin"]);
  const types = (await alice.call("GET", "/incident_types/")).body.items as { id: number; name: string }[];
  const priorities = (await alice.call("GET", "/incident_priorities/")).body.items as typeof types;
  const { body } = await alice.call("POST", "/incidents/", {
    title: "Checkout is down",
    description: "Customers cannot pay since 11:40",
    incident_type_id: types.find(({ name }) => name === "Availability")!.id,
    incident_priority_id: priorities.find(({ name }) => name === "High")!.id,
  });
  const path = `/incidents/${body.id}`;
  server.clock.advance(8 * 60);
  const env = { ...shellEnvironment(home), SVC_SERVER: server.url, SVC_TOKEN: await signInToken(server) };
  const watch = terminal(["svc", "incident", "watch", body.name], env, home, besideTerminal);
  using tab = await Tab.open();
  try {
    await tab.resize(besidePage.width, besidePage.height);
    await tab.goto(`${server.url}/app${path}`);
    await tab.click("#text");
    await tab.type("The release of 11:40 is the cause");
    await tab.click(".say .primary");
    await watch.shows(/The release of 11:40 is the cause/);
    server.clock.advance(4 * 60);
    const report = { conditions: "A third of payments fail", actions: "Rolling back", needs: "" };
    await alice.call("POST", `${path}/reports/`, report);
    await watch.shows(/Rolling back/);
    await tab.says("Rolling back");
    const shown = (await tab.screenshot("webp")).toString("base64");
    const frames = [{ at: 0, isStep: true, picture: watch.screen.cells }];
    const svg = svgOf({ title: "svc incident watch", ...besideTerminal, duration: 1, frames });
    const file = join(home, "beside.html");
    writeFileSync(
      file,
      `<style>body{margin:0;display:flex;align-items:center;gap:16px;padding:16px;background:#e5e7eb}img{border-radius:8px}</style>
      <img width=${besidePage.width} src="data:image/webp;base64,${shown}">${svg}`,
    );
    await tab.resize(1640, besidePage.height + 32);
    await tab.goto(pathToFileURL(file).href);
    return await tab.screenshot("webp");
  } finally {
    watch.child.kill();
    await watch.child.exited;
    rmSync(home, { recursive: true });
  }
}

/** A shell's environment with `svc` as the program of this source. */
function shellEnvironment(home: string): Record<string, string> {
  const quoted = testProgram.map((word) => `'${word}'`).join(" ");
  writeFileSync(join(home, "svc"), `#!/bin/sh\nexec ${quoted} "$@"\n`);
  chmodSync(join(home, "svc"), 0o755);
  return {
    PATH: `${home}:${process.env.PATH}`,
    HOME: home,
    TERM: "xterm-256color",
    TZ: "UTC",
    PS1: "$ ",
  };
}

/** Without what differs between two recordings: times, codes, the machine, and whether the commander was found in time. */
export function masked(text: string): string {
  return text
    .replace(/\d\d:\d\d:\d\d/g, "00:00:00")
    .replace(/ · \d+[smh](?=\W|$)/gm, " · 0s")
    .replace(/\b[A-Z0-9]{4}-[A-Z0-9]{4}\b/g, "XXXX-XXXX")
    .replace(/Commander: [^<"\\]+/g, "Commander")
    .replace(/\d+ seconds? ago|just now/g, "a moment ago")
    .replace(/svc\/\S+ \(.*\)/g, "svc");
}

const root = join(import.meta.dir, "..");
/** What a person runs to record the pictures again. */
export const command = "node_modules/.bin/bun scripts/record.ts";
export const files = {
  cast: join(root, "docs/incident.cast"),
  svg: join(root, "docs/incident.svg"),
  page: join(root, "docs/approve.png"),
  beside: join(root, "docs/screens/beside-terminal.webp"),
};

if (import.meta.main) {
  const recording = await record();
  await Bun.write(files.cast, castOf(recording));
  await Bun.write(files.svg, svgOf(recording));
  await Bun.write(files.page, await photograph());
  await Bun.write(files.beside, await photographBeside());
  await closeChromium();
  process.exit();
}
