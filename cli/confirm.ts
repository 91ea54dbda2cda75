import { Conflict } from "../platform/errors.ts";
import type { Io } from "./io.ts";

/**
 * Lets a person type a name before something is lost; `yes` stands for that in a script.
 * @throws Conflict when the answer is another one, or nobody is there to be asked
 */
export async function confirmByName(
  io: Pick<Io, "ask">,
  what: string,
  name: string,
  yes = false,
): Promise<void> {
  if (yes) return;
  const answer = await io.ask(`${what}\nType its name to go on (${name}): `);
  if (answer === undefined) throw new Conflict(`${what} There is no terminal to ask on: add --yes`);
  if (answer.trim() !== name) throw new Conflict("That is not its name: nothing was changed");
}
