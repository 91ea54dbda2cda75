import { Conflict } from "../platform/errors.ts";
import type { Io } from "./io.ts";
import { counted } from "./text.ts";

/**
 * Asks the user to type a name before data is lost; `yes` skips the question.
 * @throws Conflict if the answer differs, or there is no terminal
 */
export async function confirmByName(
  io: Pick<Io, "ask">,
  what: string,
  name: string,
  yes = false,
): Promise<void> {
  if (yes) return;
  const answer = await io.ask(`${what}\nTo continue, type its name (${name}): `);
  if (answer === undefined)
    throw new Conflict(`${what} There is no terminal for the confirmation: add --yes`);
  if (answer.trim() !== name) throw new Conflict("The name does not match: nothing was changed");
}

/** What a database holds, in words: its tables or, without any, its other objects. */
export function contentOf({ tables, objects }: { tables: number; objects: number }): string {
  if (tables === 0) return counted(objects, "object");
  return tables === 1 ? "the only table" : `all ${tables} tables`;
}
