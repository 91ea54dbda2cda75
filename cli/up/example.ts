import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../platform/clock.ts";
import { exampleData } from "../../trial/example/data.ts";
import { loadExample } from "../../trial/example/load.ts";
import { openDatabase } from "../../drizzle/client.ts";
import type { Settings } from "./settings.ts";

/** Whether there is to be an example: our own database is about to be made. A database of others is never filled. */
export function wantsExample({ example, startsDatabase, dataDir }: Settings): boolean {
  return example && startsDatabase && !existsSync(join(dataDir, "postgres/data"));
}

/** Loads it into a database at head. @returns what a person is told */
export async function firstExample({ dataDir }: Settings, url: string): Promise<string> {
  const example = exampleData({ now: systemClock.now() });
  const { db, close } = openDatabase(url, 1);
  try {
    await loadExample(db, example);
  } finally {
    await close();
  }
  return `Example data loaded: ${example.incidents.length} incidents (to begin without: remove ${dataDir}, then --no-example)`;
}
