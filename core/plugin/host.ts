import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { placeThrown, sourceFaults } from "../../platform/source_error.ts";
import { type PluginDeps, type PluginLog, readDefinition } from "./define.ts";
import { detailOf, fieldOf, framesOf, kindOfFault, retryAfterOf, saysPermanent } from "./mask.ts";
import type { Described, Fault, FromHost, Request, ToHost } from "./protocol.ts";
import { installUnhandledErrorHandlers } from "./unhandled.ts";

// The program of the process in which a third-party package runs. See package.ts.

/** The limit of a plugin's log. Lines over the limit are counted. */
const linesPerSecond = 100;
const longestFacts = 10_000;
/** In characters of JSON. */
const longestAnswer = 64 * 1024 * 1024;
/** Slightly more than core/plugin/mask.ts reads. */
const longestDetail = 10_001;

// Saved here, because the package may change the globals.
const { parse, stringify } = JSON;
const sendMessage = process.send!.bind(process);
// Otherwise a library that finds it would send messages to svc.
delete process.send;
const send = (message: FromHost) => void sendMessage(message);

// The process ends when svc closes the channel, not on a signal sent to all processes: calls in progress may finish. If
// it is frozen by then, --no-orphans ends it.
process.on("disconnect", () => process.exit(0));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
// Makes the kernel kill this process first when memory runs out.
try {
  writeFileSync("/proc/self/oom_score_adj", "1000");
} catch {
  // Not Linux.
}

let linesLeft = linesPerSecond;
let dropped = 0;
setInterval(() => {
  linesLeft = linesPerSecond;
  if (dropped > 0) line("warn", { dropped }, "plugin log lines dropped: too many in a second");
  dropped = 0;
}, 1000).unref();

function line(level: keyof PluginLog, facts: object, message: string): void {
  if (linesLeft === 0) {
    dropped += 1;
    return;
  }
  linesLeft -= 1;
  const json = asJson(facts) ?? "{}";
  const short = json.length > longestFacts ? "{}" : json;
  send({ level, facts: short, message: String(message).slice(0, longestFacts) });
}

const log: PluginLog = {
  debug: (facts, message) => line("debug", facts, message),
  info: (facts, message) => line("info", facts, message),
  warn: (facts, message) => line("warn", facts, message),
  error: (facts, message) => line("error", facts, message),
};
installUnhandledErrorHandlers(log);

let clockOffset = 0;
const deps = (): PluginDeps => ({
  fetch: (url, init) => fetch(url, init),
  clock: { now: () => new Date(Date.now() + clockOffset) },
  log: { ...log },
});

let candidates: unknown[] = [];
const made = new Map<number, Record<string, (call: object) => unknown>>();
const underWay = new Map<number, AbortController>();

async function load(entry: string): Promise<Described> {
  const loading = import(pathToFileURL(entry).href) as Promise<{ default?: unknown }>;
  const { default: exported } = await loading.catch(withPlace);
  if (typeof exported !== "object" || exported === null) return null;
  candidates = Array.isArray(exported) ? exported.slice(0, 100) : [exported];
  return candidates.map(describe);
}

/** Adds where a package failed to load, which its author needs most. The message of what it threw is dropped. */
function withPlace(error: unknown): never {
  const [fault] = sourceFaults(error);
  const place = placeThrown(error);
  if (fault === undefined && place === undefined) throw error;
  throw Object.assign(new Error(), { detail: fault ?? `${kindOfFault(error)} at ${place}` });
}

function describe(candidate: unknown): Record<string, unknown> | null {
  const read = readDefinition(candidate);
  if (read === undefined) return null;
  const { configSchema, roleSchema, create, ...rest } = read;
  const words = Object.entries(rest).filter(([, value]) => typeof value === "string");
  const schema = asJson(configSchema);
  const ofRole = asJson(roleSchema);
  return {
    ...Object.fromEntries(words),
    ...(schema === undefined ? {} : { configSchema: parse(schema) as unknown }),
    ...(ofRole === undefined ? {} : { roleSchema: parse(ofRole) as unknown }),
    create: typeof create === "function",
  };
}

/** @returns the names of the methods that it has */
async function create(plugin: number, config: string, names: string[]): Promise<string[]> {
  const candidate = candidates[plugin] as { create(config: unknown, deps: PluginDeps): unknown };
  const methods = (await candidate.create(parse(config), deps())) as Record<string, unknown> | undefined;
  const found: Record<string, (call: object) => unknown> = {};
  for (const name of names) {
    const method = methods?.[name];
    if (typeof method === "function") found[name] = (call) => method.call(methods, call);
  }
  made.set(plugin, found);
  return Object.keys(found);
}

async function perform(request: Request, signal: AbortSignal): Promise<unknown> {
  if ("clockOffset" in request) ({ clockOffset } = request);
  switch (request.kind) {
    case "load":
      return await load(request.entry);
    case "create":
      return await create(request.plugin, request.config, request.names);
    case "call":
      return await made.get(request.plugin)![request.method]!({
        ...(parse(request.input) as object),
        signal,
      });
    case "ping":
      return null;
  }
}

async function answer({ id, ...request }: Request & { id: number }): Promise<void> {
  const controller = new AbortController();
  underWay.set(id, controller);
  try {
    const value = await perform(request as Request, controller.signal);
    if (value === undefined) return send({ id, outcome: "answer" });
    const json = asJson(value);
    if (json === undefined) return send({ id, outcome: "invalid_answer" });
    if (json.length > longestAnswer)
      return send({ id, outcome: "too_large", size: json.length, most: longestAnswer });
    send({ id, outcome: "answer", json });
  } catch (error) {
    send({ id, outcome: "fault", fault: faultOf(error) });
  } finally {
    underWay.delete(id);
    // Nobody waits for what the method may still be doing.
    controller.abort();
  }
}

/** Returns undefined for what JSON cannot represent: a function, a cycle, a getter that throws. */
function asJson(value: unknown): string | undefined {
  try {
    return stringify(value);
  } catch {
    return undefined;
  }
}

/** svc masks the secrets in it, shortens it and decides what to show. */
function faultOf(error: unknown): Fault {
  return {
    detail: detailOf(error)?.slice(0, longestDetail) ?? kindOfFault(error),
    permanent: saysPermanent(error),
    retryAfter: retryAfterOf(error),
    field: fieldOf(error),
    frames: framesOf(error).map((frame) => `    ${frame}`),
  };
}

process.on("message", (message: ToHost) => {
  if (message.kind === "abort") underWay.get(message.id)?.abort();
  else void answer(message);
});
