import { inOrder } from "../../drizzle/revision/graph.ts";
import { readRevisions } from "../../drizzle/revision/read.ts";
import { type Finished, svc } from "./process.ts";

/** The release's revisions, the head last. */
export const ids = inOrder(await readRevisions()).map(({ id }) => id);
export const head = ids.at(-1)!;

/** `svc database ...` against one database. */
export function on(url: string): (...args: string[]) => Promise<Finished> {
  return (...args) => svc(["database", ...args], { SVC_DATABASE_URL: url });
}

export const ok = (stdout: string, stderr = ""): Finished => ({ code: 0, stdout, stderr });

export const failed = (message: string, stdout = ""): Finished => ({
  code: 1,
  stdout,
  stderr: `svc: ${message}\n`,
});
