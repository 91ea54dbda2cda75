import { InvalidInput } from "../../platform/errors.ts";
import type { Changes } from "./compare.ts";
import type { Way } from "./convert.ts";
import type { Schema } from "./snapshot.ts";

/** One direction of a revision. */
export interface Plan {
  before: Schema;
  after: Schema;
  changes: Changes;
  /** "do" for up; "undo" for down, which finds rows whose values up has discarded. */
  way: Way;
}

/** Down cannot be generated. */
export class Irreversible extends Error {}

/** A change that cannot be generated is an error in up, and makes down irreversible. */
export function impossible({ way }: Plan, why: string, instead: string): Error {
  return way === "do" ? new InvalidInput("schema", `${why}: ${instead}`) : new Irreversible(why);
}
