import * as fs from "node:fs";
import { join } from "node:path";
import { Conflict, Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import { draftDirectory, draftKey, removeDraft, writeDraft } from "./drafts.ts";
import type { IncidentClient } from "./incident.ts";

/** Milliseconds: the server then forgets the key (docs/database.md). */
const longestRetry = 86_400_000;

/**
 * Sends a request that must not be executed twice. If the answer is lost, the server may have executed it: the request is
 * kept as a draft, and the same command sends it again, with its key.
 *
 * @param command what is the same when the command is repeated: the body, with times as they were typed
 */
export async function postOnce<T>(
  io: Io,
  client: IncidentClient,
  kind: "task" | "document",
  body: object,
  command: object = body,
): Promise<T> {
  const path = `/${kind}s/`;
  const shown = JSON.stringify([client.session.server.base, command]);
  const kept = keptRequest(io, kind, shown);
  const key = kept?.key ?? crypto.randomUUID();
  const keep = () => {
    try {
      const at = io.clock.now().getTime();
      if (!kept) writeDraft(io.env, kind, JSON.stringify({ command: shown, body, at }), "json", key);
    } catch {
      // There is no space for it.
    }
    if (keptRequest(io, kind, shown))
      io.stderr.write("To try again, repeat the command: nothing is added twice.\n");
  };
  const stopListening = io.onExit(keep);
  try {
    const answer = await client.post<T>(path, kept?.body ?? body, { key });
    if (kept) removeDraft(io.env, kept.path);
    return answer;
  } catch (error) {
    if (error instanceof Unavailable || error instanceof Interrupted) keep();
    // A conflict may be with the first request, which has not ended.
    else if (kept && !(error instanceof Conflict)) removeDraft(io.env, kept.path);
    throw error;
  } finally {
    stopListening();
  }
}

/** Returns the request that the same command sent without getting an answer. Removes those that are too old. */
function keptRequest({ env, clock }: Io, kind: string, command: string) {
  for (const path of pathsOf(env, kind)) {
    const key = draftKey(env, path);
    try {
      const draft = JSON.parse(fs.readFileSync(path, "utf8"));
      if (clock.now().getTime() - draft.at > longestRetry) removeDraft(env, path);
      else if (key !== undefined && draft.command === command) return { path, key, body: draft.body };
    } catch {
      // Removed meanwhile, or not ours.
    }
  }
  return undefined;
}

function pathsOf(env: Environment, kind: string): string[] {
  const directory = draftDirectory(env);
  try {
    const names = fs.readdirSync(directory);
    return names
      .filter((name) => name.startsWith(`${kind}-`) && name.endsWith(".json"))
      .map((name) => join(directory, name));
  } catch {
    // Nothing was kept there, or the directory cannot be read.
    return [];
  }
}
