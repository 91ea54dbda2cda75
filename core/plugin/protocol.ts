import { type Static, Type } from "@sinclair/typebox";
import type { PluginLog } from "./define.ts";

// The messages between svc and a package's process (host.ts), over Bun's IPC. Plugins' values cross as JSON text: it is
// plain data, and its length is known before it is sent.

/** `clockOffset`: milliseconds from the process's own time to the time that plugins should use. */
export type Request =
  | { kind: "load"; entry: string }
  | { kind: "create"; plugin: number; config: string; names: string[]; clockOffset: number }
  | { kind: "call"; plugin: number; method: string; input: string; clockOffset: number }
  | { kind: "ping" };

export type ToHost = (Request & { id: number }) | { kind: "abort"; id: number };

const levels = ["debug", "info", "warn", "error"] as const satisfies (keyof PluginLog)[];

/** What a plugin threw, with its secrets not yet masked. */
const fault = Type.Object({
  detail: Type.String(),
  permanent: Type.Boolean(),
  retryAfter: Type.Optional(Type.Number()),
  field: Type.Optional(Type.String()),
  frames: Type.Array(Type.String()),
});
export type Fault = Static<typeof fault>;

/** Checked by svc, because the package's code may send messages, too. */
export const fromHost = Type.Union([
  /** Without `json`, the answer is undefined. */
  Type.Object({ id: Type.Integer(), outcome: Type.Literal("answer"), json: Type.Optional(Type.String()) }),
  /** The answer is not plain data. */
  Type.Object({ id: Type.Integer(), outcome: Type.Literal("invalid_answer") }),
  /** In characters of JSON. */
  Type.Object({
    id: Type.Integer(),
    outcome: Type.Literal("too_large"),
    size: Type.Number(),
    most: Type.Number(),
  }),
  Type.Object({ id: Type.Integer(), outcome: Type.Literal("fault"), fault }),
  Type.Object({
    level: Type.Union(levels.map((level) => Type.Literal(level))),
    facts: Type.String(),
    message: Type.String(),
  }),
]);
export type FromHost = Static<typeof fromHost>;

/** Stands for an answer that was too large to be sent. */
export class TooLarge {
  readonly fault: string;

  constructor({ size, most }: { size: number; most: number }) {
    const text = (characters: number) => `${Math.ceil(characters / 1024 ** 2)} MiB`;
    this.fault = `it is too large: ${text(size)} as JSON, and ${text(most)} is the limit`;
  }
}

/**
 * The answer to `load`: the plain facts of each candidate, null for one that is not an object. Null if it is not a
 * list.
 */
export type Described = (Record<string, unknown> | null)[] | null;
