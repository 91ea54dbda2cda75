import { Conflict } from "../../platform/errors.ts";

/** Rejects with a Conflict naming the duplicate value, when a unique index refuses the write. */
export async function unlessTaken<T>(taken: Readonly<Record<string, string>>, write: Promise<T>): Promise<T> {
  return write.catch((error: unknown) => {
    const index = (error as { cause?: { constraint_name?: string } }).cause?.constraint_name;
    if (index === undefined || !Object.hasOwn(taken, index)) throw error;
    throw new Conflict(taken[index]!, { cause: error });
  });
}
