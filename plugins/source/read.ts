import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { type PluginDeps, readAtMost } from "../../core/plugin.ts";
import { ConfigurationError, SvcError, Unavailable } from "../../platform/errors.ts";

/** The limits for one location. */
const limits = { bytes: 10_000_000, milliseconds: 10_000, redirects: 5 };

/** A place to read from: a file, or an address that is fetched. */
export type Location = { path: string } | { url: URL };

export interface Content {
  text: string;
  /** The media type from the HTTP server, without parameters and in lower case. */
  mediaType?: string;
}

/**
 * Parses the locations in a configuration: paths and http(s) addresses, separated by spaces.
 * @throws ConfigurationError for anything else, and for a token that would be sent to more than one server
 */
export function parseLocations(text: string, bearerToken?: string): Location[] {
  const words = text.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) throw new ConfigurationError(["no locations are given"]);
  const locations = words.map(parseLocation);
  const origins = new Set(locations.flatMap((one) => ("url" in one ? [one.url.origin] : [])));
  if (bearerToken !== undefined && origins.size > 1) {
    throw new ConfigurationError(["a token requires that all addresses are on one server"]);
  }
  return locations;
}

function parseLocation(word: string): Location {
  // A single letter is a Windows drive.
  if (!/^[a-z][a-z0-9+.-]+:/i.test(word)) return { path: word };
  const url = URL.parse(word);
  if (url === null || !isFetched(url)) {
    // Not repeated: it may be an address with a password.
    throw new ConfigurationError(["a location must be a path or an http(s) address"]);
  }
  if (url.username !== "" || url.password !== "") {
    throw new ConfigurationError(["an address must not contain a password: use the setting for a token"]);
  }
  return { url };
}

/** Bun's fetch also reads files and buckets. */
function isFetched({ protocol }: URL): boolean {
  return protocol === "http:" || protocol === "https:";
}

/** The name of a location in errors: the path of an address may contain a token. */
export function nameOf(location: Location): string {
  return "url" in location ? location.url.origin : location.path;
}

/** @throws Unavailable if it cannot be read, is not UTF-8 or is larger than the limit */
export async function readLocation(
  location: Location,
  { fetch }: Pick<PluginDeps, "fetch">,
  { signal, bearerToken, ...rest }: { signal: AbortSignal; bearerToken?: string } & Partial<typeof limits>,
): Promise<Content> {
  const { bytes, milliseconds, redirects } = { ...limits, ...rest };
  const name = nameOf(location);
  const late = AbortSignal.timeout(milliseconds);
  const either = AbortSignal.any([signal, late]);
  try {
    if ("path" in location) return { text: decode(await readFile(location.path, bytes), name) };
    const response = await follow(location.url, fetch, { signal: either, bearerToken, redirects });
    const body = await readBody(response, bytes, name);
    const mediaType = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
    return { text: decode(body, name), mediaType };
  } catch (error) {
    if (error instanceof SvcError) throw error;
    if (late.aborted) {
      throw new Unavailable(`${name} did not answer within ${milliseconds / 1000} s`, { cause: error });
    }
    throw new Unavailable(`${name} cannot be read (${codeOf(error)})`, { cause: error });
  }
}

function codeOf(error: unknown): string {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  return String(typeof code === "string" ? code : name);
}

async function follow(
  first: URL,
  fetch: PluginDeps["fetch"],
  { signal, bearerToken, redirects }: { signal: AbortSignal; bearerToken?: string; redirects: number },
): Promise<Response> {
  let url = first;
  for (let hop = 0; hop <= redirects; hop++) {
    const headers: Record<string, string> = {
      accept: "application/yaml, application/json, text/csv, text/plain;q=0.5",
    };
    // The token must not be sent to the target of a redirect on another server.
    if (bearerToken !== undefined && url.origin === first.origin) {
      headers.authorization = `Bearer ${bearerToken}`;
    }
    // Redirects are followed here because fetch would also follow from https to http.
    const response = await fetch(url.href, { headers, signal, redirect: "manual" });
    if (response.ok) return response;
    await response.body?.cancel();
    if (![301, 302, 303, 307, 308].includes(response.status)) {
      throw new Unavailable(`${url.origin} answers ${response.status}`);
    }
    const location = response.headers.get("location");
    const next = location ? URL.parse(location, url) : null;
    if (next === null || !isFetched(next) || (url.protocol === "https:" && next.protocol === "http:")) {
      throw new Unavailable(`${url.origin} redirects to a forbidden address`);
    }
    url = next;
  }
  throw new Unavailable(`${first.origin} redirects more than ${redirects} times`);
}

async function readBody(response: Response, bytes: number, name: string): Promise<Uint8Array> {
  if (Number(response.headers.get("content-length")) > bytes) {
    await response.body?.cancel();
    throw tooLarge(name, bytes);
  }
  const body = await readAtMost(response, bytes);
  if (!body) throw tooLarge(name, bytes);
  return body;
}

async function readFile(path: string, bytes: number): Promise<Uint8Array> {
  // Checked first, because opening a pipe waits for a writer.
  if (!(await stat(path)).isFile()) throw new Unavailable(`${path} is not a file`);
  await using handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(64 * 1024), 0, 64 * 1024);
    if (bytesRead === 0) return Buffer.concat(chunks);
    size += bytesRead;
    if (size > bytes) throw tooLarge(path, bytes);
    chunks.push(buffer.subarray(0, bytesRead));
  }
}

function tooLarge(name: string, bytes: number): Unavailable {
  return new Unavailable(`${name} is larger than ${bytes / 1_000_000} MB`);
}

function decode(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes); // without its byte order mark
  } catch {
    throw new Unavailable(`${name} is not UTF-8`);
  }
}
