import type { PluginDeps } from "../../core/plugin.ts";
import { Refused, SvcError, Unavailable } from "../../platform/errors.ts";
import { type AwsFault, type AwsSession, faultOf, parseXml, sessionOf } from "./answer.ts";

// The one call that we make to AWS. Every failure is a sentence of ours: what AWS says may repeat what was sent.

const attempts = 3;
const pauseMilliseconds = 250;
const answerMilliseconds = 8000;
const answerCharacters = 64_000;
const version = "2011-06-15";

/** A request as it goes out, signed if it has to be. */
export interface Signed {
  headers: Record<string, string>;
  body: string;
}

export interface StsCall {
  address: string;
  action: "AssumeRole" | "AssumeRoleWithWebIdentity";
  /** Without those that are absent. */
  parameters: Readonly<Record<string, string | undefined>>;
  /** Signs it, anew for each attempt; without one, it goes as it is. */
  sign?: (request: Signed) => Promise<Signed>;
  signal: AbortSignal;
  /** What to say of errors that depend on who asks; by their codes. */
  faults: Readonly<Record<string, string>>;
}

/** An error after which the same request may succeed. */
class Transient extends Unavailable {}

/**
 * Asks STS for a session, again if it is too busy or does not answer.
 *
 * @throws Refused for what would be refused again, Unavailable for the rest
 */
export async function assumeRole({ fetch }: Pick<PluginDeps, "fetch">, call: StsCall): Promise<AwsSession> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptCall(fetch, call);
    } catch (error) {
      if (!(error instanceof Transient) || attempt === attempts || call.signal.aborted) throw error;
      await Bun.sleep(pauseMilliseconds * 2 ** (attempt - 1) * (0.5 + Math.random()));
      if (call.signal.aborted) throw error;
    }
  }
}

async function attemptCall(fetch: PluginDeps["fetch"], call: StsCall): Promise<AwsSession> {
  const { address, action, parameters, sign, signal } = call;
  const given = Object.entries({ Action: action, Version: version, ...parameters });
  const body = new URLSearchParams(
    given.filter((one): one is [string, string] => one[1] !== undefined),
  ).toString();
  const headers = {
    "content-type": "application/x-www-form-urlencoded; charset=utf-8",
    ...{ accept: "text/xml", "user-agent": "svc" },
  };
  const request = sign ? await sign({ headers, body }) : { headers, body };
  const late = AbortSignal.timeout(answerMilliseconds);
  const host = new URL(address).host;
  let response: Response;
  let text: string;
  try {
    response = await fetch(address, {
      ...{ method: "POST", ...request, redirect: "manual" },
      signal: AbortSignal.any([signal, late]),
    });
    text = await readText(response, host);
  } catch (error) {
    if (error instanceof SvcError) throw error;
    if (signal.aborted) throw new Unavailable("AWS was not waited for", { cause: error });
    if (late.aborted) throw new Transient(`${host} did not answer within ${answerMilliseconds / 1000} s`);
    const { code, name } = Object(error) as { code?: unknown; name?: unknown };
    const why = typeof code === "string" ? code : name;
    throw new Transient(`${host} cannot be reached (${String(why)})`, { cause: error });
  }
  const xml = parseXml(text);
  const session = response.ok && xml ? sessionOf(xml, action) : undefined;
  if (session) return session;
  const fault = xml && faultOf(xml);
  if (fault) throw errorOf(fault, response.status, call);
  const { status } = response;
  const said = response.ok
    ? "with something else than a session"
    : `${status} and no error that it describes`;
  throw new (status >= 500 || status === 429 ? Transient : Unavailable)(`${host} answers ${said}`);
}

async function readText(response: Response, host: string): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length > answerCharacters) throw new Unavailable(`${host} answers more than a session`);
  }
  return text + decoder.decode();
}

const busy = /^(Throttling(Exception)?|TooManyRequests(Exception)?|RequestLimitExceeded|SlowDown)$/;

/** What AWS's error means for who asks us, and where it can be looked up. */
function errorOf({ code, message, requestId }: AwsFault, status: number, call: StsCall): Unavailable {
  const also = requestId ? ` (${code}, request ${requestId})` : ` (${code})`;
  if (busy.test(code) || status === 429) return new Transient(`AWS has too many requests now${also}`);
  if (code === "IDPCommunicationError") return new Transient(`${call.faults[code] ?? "AWS failed"}${also}`);
  if (status >= 500) return new Transient(`AWS has a fault of its own${also}`);
  return new Refused(`${call.faults[code] ?? commonFault(code, message)}${also}`);
}

function commonFault(code: string, message: string): string {
  switch (code) {
    case "ValidationError":
      return /MaxSessionDuration|DurationSeconds exceeds/i.test(message)
        ? "The role in AWS has no sessions as long as that: choose a shorter --duration, or raise its MaxSessionDuration"
        : "AWS takes a setting of this role for invalid";
    case "MalformedPolicyDocument":
      return "AWS takes the session policy for malformed";
    case "PackedPolicyTooLarge":
      return "AWS finds the session policy too large";
    case "RegionDisabledException":
      return "STS is switched off for this region in the account: the setting region names another one";
    default:
      return "AWS refuses";
  }
}
