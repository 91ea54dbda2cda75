import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fakeToken } from "../tests/support/cli/fake_server.ts";
import { ordinaryIncident } from "../tests/support/cli/incident_api.ts";
import { describeExecutable, freshExecutable } from "./executable.ts";
import {
  BenchError,
  ensureProgram,
  environment,
  firstLine,
  keep,
  median,
  quantile,
  temporaryDirectory,
  verdict,
} from "./support.ts";

const warmUps = 5;
const runs = 40;
const timelineLength = 10;
const listLength = 30;

interface Contender {
  name: string;
  command: string[];
  env: Record<string, string>;
  times: number[];
}

/**
 * The command line on an incident: what `svc incident list` costs beside `svc --version`, and `svc incident view` beside
 * `gh issue view`. Servers on this machine answer at once, so that neither the network nor a database counts.
 */
export async function benchLiveClient(parts: AsyncDisposableStack): Promise<void> {
  const gh = ensureProgram("gh");
  const svc = await freshExecutable();
  const directory = await temporaryDirectory(parts);
  const api = await keep(
    parts,
    async () => serveIncidents(),
    (server) => server.stop(true),
  );
  const github = join(directory, "github.sock");
  await keep(
    parts,
    async () => serveIssues(github),
    (server) => server.stop(true),
  );
  const signedIn = { SVC_SERVER: api.url.origin, SVC_TOKEN: fakeToken(), XDG_CONFIG_HOME: directory };
  const contender = (name: string, command: string[], env: Record<string, string> = {}): Contender => ({
    name,
    command,
    env: environment(env),
    times: [],
  });
  const version = contender("svc --version", [svc, "--version"]);
  const list = contender("svc incident list", [svc, "incident", "list"], signedIn);
  const view = contender("svc incident view", [svc, "incident", "view", "7"], signedIn);
  const issue = contender("gh issue view", [gh, "issue", "view", "7", "--repo", "acme/shop"], {
    GH_CONFIG_DIR: ghConfiguration(directory, github),
    GH_TOKEN: "token",
    GH_NO_UPDATE_NOTIFIER: "1",
  });

  console.log(`svc  ${describeExecutable(svc)}\ngh   ${firstLine([gh, "--version"])}`);
  console.log(`\n${runs} runs of each in turn, after ${warmUps} that do not count; milliseconds:\n`);
  await expectOutput(list, "Checkout is down 30");
  await expectOutput(view, "Note 10");
  await expectOutput(issue, "Payments time out");
  const contenders = [version, list, view, issue];
  for (let run = -warmUps; run < runs; run += 1) {
    for (const one of contenders) {
      const milliseconds = await timeRun(one);
      if (run >= 0) one.times.push(milliseconds);
    }
  }
  for (const { name, times } of contenders) {
    const [middle, fastest, slowest] = [median(times), quantile(times, 0), quantile(times, 1)].map((time) =>
      time.toFixed(1),
    );
    console.log(`${name.padEnd(20)}median ${middle!.padStart(6)}   fastest ${fastest}   slowest ${slowest}`);
  }
  const compare = (a: Contender, b: Contender, most: number) => {
    const ratio = median(a.times) / median(b.times);
    const aim = most === 1 ? "no slower (at most 1)" : `at most ${most}`;
    console.log(
      `${`${a.name} / ${b.name}`.padEnd(36)}${ratio.toFixed(2)}   aim: ${aim}, ${verdict(ratio <= most)}`,
    );
  };
  console.log("");
  compare(list, version, 1.5);
  compare(view, issue, 1);
}

/** Measures from before the start to after the exit, without a shell. The servers answer from this process meanwhile. */
async function timeRun({ command, env }: Contender): Promise<number> {
  const started = performance.now();
  const exitCode = await Bun.spawn(command, { env, stdio: ["ignore", "ignore", "ignore"] }).exited;
  const milliseconds = performance.now() - started;
  if (exitCode !== 0) throw new BenchError(`${command.join(" ")} ended with ${exitCode}`);
  return milliseconds;
}

/** @throws BenchError if it does not print what it should: something else would be measured */
async function expectOutput({ command, env }: Contender, text: string): Promise<void> {
  const child = Bun.spawn(command, { env, stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (!stdout.includes(text))
    throw new BenchError(`${command.join(" ")} did not print "${text}":\n${stdout}${stderr}`);
}

const at = "2026-11-20T14:05:00.000Z";
const person = { id: 1, name: "Alice Adams", email: "alice@example.com" };
const incidentOf = (id: number) => ({
  ...ordinaryIncident,
  id,
  name: `INC-${id}`,
  title: `Checkout is down ${id}`,
  description: "Payments time out",
  reported_at: at,
  version: 1,
  reporter: person,
  commander: person,
  created_at: at,
  updated_at: at,
});
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

/** The answers of the API that the two commands ask for. */
function serveIncidents() {
  const page = (items: unknown[]) => JSON.stringify({ items, next_cursor: null });
  const participant = { id: 1, individual: person, joined_at: at, left_at: null };
  const event = (id: number) => ({
    id,
    at,
    actor: person.email,
    source: "core",
    kind: "note",
    description: `Note ${id}`,
    data: {},
  });
  const answers: Readonly<Record<string, string>> = {
    "/incidents/": page(numbers(listLength).map(incidentOf)),
    "/incidents/7": JSON.stringify(incidentOf(7)),
    "/incidents/7/participants/": page([
      { ...participant, roles: [{ role: "commander", assumed_at: at, renounced_at: null }] },
    ]),
    "/incidents/7/reports/": page([]),
    "/incidents/7/messages/": page([]),
    "/incidents/7/events/": page(numbers(timelineLength).reverse().map(event)),
    "/incidents/7/affected/": JSON.stringify({ services: [], applications: [] }),
    "/incidents/7/links/": page([]),
    "/tasks/": page([]),
  };
  return serveJson({ hostname: "127.0.0.1", port: 0 }, (path) => answers[path]);
}

/** GitHub's answer to the one query of `gh issue view`. */
function serveIssues(unix: string) {
  const issue = {
    __typename: "Issue",
    id: "I7",
    number: 7,
    url: "https://github.com/acme/shop/issues/7",
    state: "OPEN",
    stateReason: "",
    createdAt: at,
    title: "Checkout is down 7",
    body: "Payments time out",
    author: { login: "alice", id: "U1", name: "Alice Adams" },
    milestone: null,
    reactionGroups: [],
    assignees: { nodes: [{ id: "U1", login: "alice", name: "Alice Adams" }], totalCount: 1 },
    labels: { nodes: [{ id: "L1", name: "High", description: "", color: "ff0000" }], totalCount: 1 },
    projectCards: { nodes: [], totalCount: 0 },
    comments: { nodes: [], totalCount: 0 },
  };
  const answer = JSON.stringify({ data: { repository: { hasIssuesEnabled: true, issue } } });
  return serveJson({ unix }, (path) => (path === "/graphql" ? answer : undefined));
}

function serveJson(
  where: { unix: string } | { hostname: string; port: number },
  answerOf: (path: string) => string | undefined,
) {
  return Bun.serve({
    ...where,
    fetch: (request) => {
      const text = answerOf(new URL(request.url).pathname);
      return new Response(text ?? "{}", {
        status: text === undefined ? 404 : 200,
        headers: { "content-type": "application/json" },
      });
    },
  } as Bun.Serve.Options<undefined>);
}

/** `gh` sends everything to this socket, instead of to GitHub. */
function ghConfiguration(directory: string, socket: string): string {
  const folder = join(directory, "gh");
  mkdirSync(folder);
  writeFileSync(join(folder, "config.yml"), `http_unix_socket: ${socket}\nprompt: disabled\n`);
  return folder;
}
