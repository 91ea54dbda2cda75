import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Io } from "../../../cli/io.ts";

/** The paths of the texts that were kept. */
export function drafts(home: string): string[] {
  const directory = join(home, "svc/drafts");
  return existsSync(directory) ? readdirSync(directory).map((file) => join(directory, file)) : [];
}

/** An editor that does this with the text. */
export function editor(
  change: (text: string) => string,
  exit: Awaited<ReturnType<Io["runOnTerminal"]>> = { code: 0 },
) {
  return {
    runOnTerminal: async (_: string, [path = ""]: readonly string[]) => {
      writeFileSync(path, change(readFileSync(path, "utf8")));
      return exit;
    },
  };
}

/** The server is gone for every change. */
export const gone: Partial<Io> = {
  fetch: async (url, init) => {
    if (init.method === "GET") return fetch(url, init);
    throw Object.assign(new Error("gone"), { code: "ECONNREFUSED" });
  },
};
