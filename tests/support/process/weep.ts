import { Agent, get } from "node:http";

/** Weep's struct of a poll. In Go, fields that the response lacks have the zero value. */
export interface WeepPoll {
  status: string;
  encoded_jwt: string;
  cookie_name: string;
  secure: boolean;
  http_only: boolean;
  same_site: number;
  expiration: number;
}

const zero: WeepPoll = {
  status: "",
  encoded_jwt: "",
  cookie_name: "",
  secure: false,
  http_only: false,
  same_site: 0,
  expiration: 0,
};

/** Sends a GET like Weep's requests for challenges, with Go's headers and a JSON media type. */
export function weepGet(url: string, headers: Record<string, string> = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const always = { "User-Agent": "Go-http-client/1.1", "Content-Type": "application/json" };
  get(url, { headers: { ...always, ...headers }, agent }, async (response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    resolve(Buffer.concat(chunks).toString());
  }).on("error", reject);
  return promise;
}

const agent = new Agent({ keepAlive: true });

/** `json.Unmarshal` into the two addresses. @throws for what Go would reject */
export function decodeChallenge(body: string): { challenge_url: string; polling_url: string } {
  return decode(body, { challenge_url: "", polling_url: "" });
}

export function decodePoll(body: string): WeepPoll {
  const poll = decode(body, zero);
  for (const name of ["same_site", "expiration"] as const) {
    if (!Number.isSafeInteger(poll[name])) throw new Error(`${name} is not a whole number: ${poll[name]}`);
  }
  return poll;
}

function decode<T extends object>(body: string, zero: T): T {
  const value: unknown = JSON.parse(body);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error(`not an object: ${body}`);
  const result: Record<string, unknown> = {};
  for (const [name, default_] of Object.entries(zero)) {
    // In Go, null leaves a field unchanged.
    const given = (value as Record<string, unknown>)[name] ?? default_;
    if (typeof given !== typeof default_) throw new Error(`${name} is not a ${typeof default_}: ${body}`);
    result[name] = given;
  }
  return result as T;
}

export interface WeepOptions {
  base: string;
  user: string;
  openBrowser(challengeUrl: string): Promise<void>;
  /** Milliseconds between two polls. Default: 3 seconds, like Weep. */
  tick?: number;
}

/**
 * Signs in like Netflix Weep. It ignores HTTP status codes and knows only the status `success`: after any other response
 * that it can decode, it polls again, for two minutes.
 *
 * @returns the response with the token, and the status of each poll
 */
export async function weepLogin(options: WeepOptions): Promise<{ poll: WeepPoll; statuses: string[] }> {
  const { base, user, openBrowser, tick = 3000 } = options;
  const { challenge_url: challengeUrl, polling_url: pollingUrl } = decodeChallenge(
    await weepGet(`${base}/noauth/v1/challenge_generator/${user}`),
  );
  const browser = openBrowser(challengeUrl);
  const statuses: string[] = [];
  const deadline = performance.now() + 120_000;
  while (performance.now() < deadline) {
    await Bun.sleep(tick);
    const poll = decodePoll(await weepGet(pollingUrl));
    statuses.push(poll.status);
    if (poll.status !== "success") continue;
    await browser;
    return { poll, statuses };
  }
  throw new Error("weep: timed out");
}

/** The headers of Weep's requests for roles and credentials, besides the cookie. */
export const weepHeaders = {
  "user-agent": "weep/v0.4.0 Go-http-client/1.1",
  "content-type": "application/json",
};

const none = { status: "", reason: "", redirect_url: "", message: "" };

/** `json.Unmarshal` into ConsoleMe's WebResponse. @throws for what Go would reject */
export function decodeWebResponse(body: string): { status: string; errors: string[]; data: object } {
  const answer = decode(body, { ...none, status_code: 0, errors: [] as string[], data: {} });
  assertInteger(answer.status_code);
  for (const error of answer.errors) assertText(error);
  return answer;
}

interface WeepRole {
  arn: string;
  account_id: string;
  account_friendly_name: string;
  role_name: string;
  apps: { app_details: object[] };
}

export function decodeRoleDetails(body: string): WeepRole[] {
  const { roles } = decodeWebResponse(body).data as { roles?: unknown };
  if (!Array.isArray(roles)) throw new Error(`roles is not a list: ${body}`);
  const texts = { arn: "", account_id: "", account_friendly_name: "", role_name: "" };
  return roles.map((role) => {
    const decoded = decode(JSON.stringify(role), { ...texts, apps: {} as WeepRole["apps"] });
    if (!Array.isArray(decoded.apps.app_details)) throw new Error(`app_details is not a list: ${body}`);
    return decoded;
  });
}

export function decodeRoleArns(body: string): string[] {
  const value: unknown = JSON.parse(body);
  if (!Array.isArray(value)) throw new Error(`not a list: ${body}`);
  return value.map(assertText);
}

export function decodeTitles(body: string): string[] {
  const value: unknown = JSON.parse(body);
  if (!Array.isArray(value)) throw new Error(`not a list: ${body}`);
  return value.map((one) => {
    const { title } = decode(JSON.stringify(one), { title: "" });
    // Weep extracts the account without checking that there is one.
    if (!title.startsWith("arn:") && !/^[^(]+ \(\d{12}\)$/.test(title))
      throw new Error(`no account: ${title}`);
    return title;
  });
}

/** Weep's Time accepts only the digits of an integer. */
export function decodeCredentials(body: string) {
  const { Credentials } = decode(body, { Credentials: {} });
  const texts = { AccessKeyId: "", SecretAccessKey: "", SessionToken: "", RoleArn: "" };
  const credentials = decode(JSON.stringify(Credentials), { ...texts, Expiration: 0 });
  assertInteger(credentials.Expiration);
  if (!/"Expiration":\s*\d+[,}]/.test(body)) throw new Error(`Expiration is not digits: ${body}`);
  return credentials;
}

export function decodeWeepError(body: string) {
  return decode(body, { code: "", message: "", requested_role: "", exception: "", request_id: "" });
}

function assertInteger(value: number): void {
  if (!Number.isSafeInteger(value)) throw new Error(`not a whole number: ${value}`);
}

function assertText(value: unknown): string {
  if (typeof value !== "string") throw new Error(`not a text: ${value}`);
  return value;
}
