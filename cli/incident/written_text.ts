import * as fs from "node:fs";
import { ConfigurationError, InvalidInput } from "../../platform/errors.ts";
import { descriptionLength } from "../../platform/text.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";

/** Bytes. A larger file is not read. */
export const largestText = 1_048_576 * 4;

/** Reads a text from a file, or from stdin for `-`. @throws InvalidInput for binary data */
export async function readText(io: Io, file: string, what: string): Promise<string> {
  const shown = file === "-" ? "stdin" : printable(file, 200);
  const bytes = file === "-" ? await io.readStdin(largestText) : readFile(file, shown);
  if (bytes.byteLength > largestText)
    throw new InvalidInput(what, `${shown} is longer than ${largestText / 1_048_576} MiB`);
  return decodeText(bytes, shown, what);
}

/** The value of an option that takes a text: itself, or stdin for `-`. @throws InvalidInput */
export async function optionText(io: Io, text: string, what: string): Promise<string> {
  return text === "-" ? (await readText(io, "-", what)).trim() : text;
}

function readFile(file: string, shown: string): Uint8Array {
  try {
    const descriptor = fs.openSync(file, "r");
    try {
      // A device or a pipe has no size that could be trusted.
      const bytes = Buffer.alloc(largestText + 1);
      let size = 0;
      for (;;) {
        const read = fs.readSync(descriptor, bytes, size, bytes.length - size, null);
        size += read;
        if (read === 0 || size === bytes.length) return bytes.subarray(0, size);
      }
    } finally {
      fs.closeSync(descriptor);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why: Record<string, string> = { ENOENT: "there is no such file", EISDIR: "it is a directory" };
    throw new ConfigurationError([`cannot read ${shown}: ${why[code ?? ""] ?? code}`], { cause: error });
  }
}

/** @throws InvalidInput for binary data */
export function decodeText(bytes: Uint8Array, shown: string, what: string): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new InvalidInput(what, `${shown} is not text in UTF-8`, { cause: error });
  }
  if (text.includes("\0")) throw new InvalidInput(what, `${shown} is binary: it contains NUL`);
  return text.replace(/\r\n?/g, "\n");
}

/** Refuses a text that the server would refuse. @throws InvalidInput */
export function checkText(text: string, what: string, limit = descriptionLength): string {
  const trimmed = text.replace(/^(?:[^\S\n]*\n)+|\s+$/g, "");
  if (!/[^\p{Cc}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(trimmed))
    throw new InvalidInput(what, `the ${what} is empty: nothing was sent`);
  const { length } = trimmed;
  if (length > limit) {
    const [most, has] = [limit, length].map((count) => count.toLocaleString("en"));
    throw new InvalidInput(what, `the ${what} is too long: it has ${has} characters, and may have ${most}`);
  }
  return trimmed;
}
