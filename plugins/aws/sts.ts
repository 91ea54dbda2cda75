import type { PluginDeps } from "../../core/plugin.ts";
import { readAtMost } from "../../platform/bounded_body.ts";
import { Refused, SvcError, Unavailable } from "../../platform/errors.ts";
import { type AwsFault, type AwsSession, faultOf, parseXml, sessionOf } from "./answer.ts";

// The only call to AWS. Errors never include AWS's own message, because it may repeat what was sent.

const attempts = 3;
const pauseMilliseconds = 250;
const answerMilliseconds = 8000;
const answerBytes = 64_000;
const version = "2011-06-15";

/** A request as it is sent. */
export interface Signed {
  headers: Record<string, string>;
  body: string;
}

export interface StsCall {
  address: string;
  action: "AssumeRole" | "AssumeRoleWithWebIdentity";
  /** Undefined parameters are not sent. */
  parameters: Readonly<Record<string, string | undefined>>;
  /** Signs each attempt, if the action needs a signature. */
  sign?: (request: Signed) => Promise<Signed>;
  signal: AbortSignal;
  /** The texts of errors that depend on the plugin, by AWS's error code. */
  faults: Readonly<Record<string, string>>;
}

/** An error that a retry may fix. */
class Transient extends Unavailable {}

/**
 * Gets a session from STS. Retries when STS is busy or does not answer.
 *
 * @throws Refused if a retry would fail again, Unavailable otherwise
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
    accept: "text/xml",
    "user-agent": "svc",
  };
  const request = sign ? await sign({ headers, body }) : { headers, body };
  const late = AbortSignal.timeout(answerMilliseconds);
  const host = new URL(address).host;
  let response: Response;
  let text: string;
  try {
    response = await fetch(address, {
      method: "POST",
      ...request,
      redirect: "manual",
      signal: AbortSignal.any([signal, late]),
    });
    text = await readText(response, host);
  } catch (error) {
    if (error instanceof SvcError) throw error;
    if (signal.aborted) throw new Unavailable("The call to AWS was cancelled", { cause: error });
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
  const fact = response.ok ? "without a valid session" : `with status ${status} and no error of STS`;
  throw new (status >= 500 || status === 429 ? Transient : Unavailable)(`${host} answered ${fact}`);
}

async function readText(response: Response, host: string): Promise<string> {
  const bytes = await readAtMost(response, answerBytes);
  if (!bytes) throw new Unavailable(`${host} answered without a valid session`);
  return new TextDecoder().decode(bytes);
}

const busy = /^(Throttling(Exception)?|TooManyRequests(Exception)?|RequestLimitExceeded|SlowDown)$/;

/** Describes an AWS error to the user, with AWS's code and request id. */
function errorOf({ code, message, requestId }: AwsFault, status: number, call: StsCall): Unavailable {
  const also = requestId ? ` (${code}, request ${requestId})` : ` (${code})`;
  if (busy.test(code) || status === 429)
    return new Transient(`AWS limits the rate of requests: try again later${also}`);
  if (code === "IDPCommunicationError") return new Transient(`${call.faults[code] ?? "AWS failed"}${also}`);
  if (status >= 500) return new Transient(`AWS failed with an internal error${also}`);
  return new Refused(`${call.faults[code] ?? commonFault(code, message)}${also}`);
}

function commonFault(code: string, message: string): string {
  switch (code) {
    case "ValidationError":
      return /MaxSessionDuration|DurationSeconds exceeds/i.test(message)
        ? "The duration exceeds the AWS role's MaxSessionDuration: use a shorter --duration, or raise it"
        : "AWS rejected a setting of this access role";
    case "MalformedPolicyDocument":
      return "AWS rejected the session policy as malformed";
    case "PackedPolicyTooLarge":
      return "AWS rejected the session policy as too large";
    case "RegionDisabledException":
      return "The AWS account has STS disabled in this region: set region to another one";
    default:
      return "AWS rejected the request";
  }
}
