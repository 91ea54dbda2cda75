import { UsageError } from "../errors.ts";
import { printable } from "../text.ts";

/** How people name an incident: `INC-44`, the id of the API, or a URL of the server that ends with either. */
export type IncidentRef = string;

const name = /^INC-[1-9]\d{0,18}$/i;
const id = /^[1-9]\d{0,14}$/;

/**
 * Parses the name or id that the user typed, for a path of the API. Undefined if it is neither.
 * @throws UsageError for a URL of another server, or of something else
 */
export function parseIncidentId(text: string, base: string): IncidentRef | undefined {
  const word = text.trim();
  if (name.test(word)) return word.toUpperCase();
  // With #, as people write the numbers of tasks and documents.
  const number = word.replace(/^#/, "");
  if (id.test(number)) return number;
  if (!/^https?:\/\//i.test(word)) return undefined;
  return fromUrl(word, base);
}

const formsOfId = [
  /^#?\p{Nd}+[:,/]?$/u,
  // Copied with what was around it: `[INC-44]`, `#INC-44`, `INC-44.`; or typed from memory: INC 44, INC_44.
  /^[\p{P}\p{S}]*INC[\p{P}\p{S}\s]*\p{Nd}+[\p{P}\p{S}]*$/iu,
  /^(?:\S*\/incidents\/\S+|incidents\/\S*\p{Nd}\S*)$/iu,
];

/**
 * Whether a word has the form of an ID. It never begins a text then, even if it cannot be an ID, such as INC-044 or `INC-44:`:
 * the text would go to another incident. Words such as UTF-8 and CVE-2026 do begin texts.
 */
export function hasFormOfId(word: string): boolean {
  // Web pages put characters that nobody sees between words.
  const seen = word.replace(/\p{Default_Ignorable_Code_Point}/gu, "").trim();
  return formsOfId.some((form) => form.test(seen));
}

function fromUrl(text: string, base: string): IncidentRef {
  const shown = printable(text, 200);
  const url = URL.parse(text);
  const root = `${new URL(base).pathname.replace(/\/$/, "")}/incidents/`;
  if (url === null || url.origin !== new URL(base).origin || !url.pathname.startsWith(root)) {
    throw new UsageError(`${shown} is not an incident of ${base}; for another server, add --server`);
  }
  const [part = ""] = url.pathname.slice(root.length).split("/");
  if (name.test(part)) return part.toUpperCase();
  if (id.test(part)) return part;
  throw new UsageError(`${shown} is not the URL of an incident`);
}
