import type { Io } from "./io.ts";

/**
 * SVC_DATABASE_URL, from the environment, a file that it names or `.env`. The other variables are not looked at: a
 * database can be mended while the rest of the configuration cannot be read.
 *
 * @throws ConfigurationError without it, or when it is none
 */
export async function databaseUrl(io: Pick<Io, "env">): Promise<string> {
  const url = await databaseUrlIfSet(io);
  if (url !== undefined) return url;
  const { ConfigurationError } = await import("../core/errors.ts");
  throw new ConfigurationError([
    "SVC_DATABASE_URL is not set: give it as postgres://user:password@host:5432/name",
  ]);
}

/** The same; undefined where it is not set. */
export async function databaseUrlIfSet(io: Pick<Io, "env">): Promise<string | undefined> {
  const [{ readEnvironment }, { databaseUrlPattern, readVariable }, { ConfigurationError }] =
    await Promise.all([
      import("../core/environment.ts"),
      import("../core/variable.ts"),
      import("../core/errors.ts"),
    ]);
  const { text, fault: unread } = readVariable(readEnvironment(io.env), "SVC_DATABASE_URL", true);
  if (unread) throw new ConfigurationError([unread]);
  if (text !== undefined && !new RegExp(databaseUrlPattern).test(text)) {
    throw new ConfigurationError([`SVC_DATABASE_URL: this value does not look like ${databaseUrlPattern}`]);
  }
  const fault = text === undefined ? undefined : faultOf(text);
  if (fault) throw new ConfigurationError([`SVC_DATABASE_URL: ${fault}`]);
  return text;
}

/** What is wrong with an address, without a word of it: it holds the password. */
function faultOf(text: string): string | undefined {
  try {
    const url = new URL(text);
    for (const part of [url.username, url.password, url.pathname]) decodeURIComponent(part);
    if (/search_path/.test(url.searchParams.get("options") ?? "")) {
      return "svc keeps its tables in the schema public: leave search_path out of it";
    }
    return undefined;
  } catch {
    return "this value is no address of one host: write special characters of user and password as %40 for @, %25 for %";
  }
}
