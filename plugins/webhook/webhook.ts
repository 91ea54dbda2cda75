import { Type } from "@sinclair/typebox";
import {
  type CallContext,
  definePlugin,
  type IncidentFacts,
  type Place,
  type PluginDeps,
  type ResourceFacts,
  readAtMost,
} from "../../core/plugin.ts";
import { Refused, Unavailable } from "../../platform/errors.ts";
import { keyOf, signedHeaders } from "./signature.ts";

const milliseconds = 10_000;
/** The maximum size of the answer to `conversation.create`, an id and a link. */
const answerBytes = 64 * 1024;
/**
 * Bad Request, Gone, Content Too Large, Unprocessable Content: about the message, or from a receiver that wants no more.
 * Any other status may be transient: a receiver that is being deployed answers 404, and one with a changing secret 401.
 */
const finalStatuses = new Set([400, 410, 413, 422]);

export default definePlugin({
  title: "Signed webhook",
  slug: "webhook",
  version: "1.0.0",
  type: "conversation",
  author: "svc",
  description: "Sends an incident's messages to an HTTP address, signed according to Standard Webhooks",
  configSchema: Type.Object({
    url: Type.String({
      pattern: "^https?://[^\\s/]+",
      secret: true,
      description: "Where to send to; secret, because for many receivers the address is the only credential",
    }),
    secret: Type.String({
      pattern: "^whsec_",
      secret: true,
      description:
        'Signs the messages: "whsec_" and 24 to 64 bytes in Base64, e.g. of `openssl rand -base64 32`',
    }),
    restricted: Type.Boolean({
      default: false,
      description: "Whether the receiver may know what a Restricted incident is about",
    }),
  }),
  create({ url, secret, restricted }, deps) {
    const key = keyOf(secret);
    const post = async (
      method: string,
      { signal, key: operation, conversation, occurredAt: occurred_at, original, ...rest }: Call,
    ) => {
      const replaces = original === undefined ? {} : { replaces: idOf(original) };
      const data = { ...conversation, ...rest, ...replaces, occurred_at };
      const call = { signal, key: operation };
      const type = `conversation.${method}`;
      const about = { type, at: occurred_at, data: restricted ? data : withheld(data) };
      return await send(url, key, { ...about, call }, deps);
    };
    const forward = (method: string) => async (call: CallContext) => {
      const { body } = await post(method, call);
      await body?.cancel();
    };
    return {
      create: async (call) =>
        await answerOf(await post("create", { ...call, occurredAt: call.incident.reportedAt })),
      send: forward("send"),
      direct: forward("direct"),
      edit: forward("edit"),
      withdraw: forward("withdraw"),
      add: forward("add"),
      remove: forward("remove"),
      restrict: forward("restrict"),
      archive: forward("archive"),
      reopen: forward("reopen"),
    };
  },
});

interface Call extends CallContext, Place {
  conversation?: ResourceFacts;
  original?: string;
}

interface Data {
  incident?: IncidentFacts;
  occurred_at?: string;
  sequence?: number;
  replaces?: string;
  [key: string]: unknown;
}

/** For a Restricted incident, only that something happened: the receiver may not be one of its participants. */
function withheld(data: Data): object {
  if (data.incident?.visibility !== "Restricted") return data;
  const { id, name, visibility, weblink } = data.incident;
  const { externalId, occurred_at, sequence, replaces } = data;
  return {
    incident: { id, name, visibility, weblink },
    ...(externalId ? { externalId } : {}),
    ...(replaces ? { replaces } : {}),
    occurred_at,
    sequence,
    withheld: true,
  };
}

/**
 * The id of a message: the same for each attempt, so that the receiver recognises it, and without a dot, which separates
 * it in the signature.
 */
const idOf = (key: string) => `msg_${new Bun.CryptoHasher("sha256").update(key).digest("hex").slice(0, 32)}`;

async function send(
  url: string,
  key: Buffer,
  { type, at: occurredAt, data, call }: { type: string; at?: string; data: object; call: CallContext },
  { fetch, clock }: PluginDeps,
): Promise<Response> {
  const at = clock.now();
  // When it happened; the header says when it was sent.
  const body = JSON.stringify({ type, timestamp: occurredAt ?? at.toISOString(), data });
  const id = idOf(call.key);
  const late = AbortSignal.timeout(milliseconds);
  let response: Response;
  try {
    response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "svc",
        ...signedHeaders(key, { id, at, body }),
      },
      body,
      signal: AbortSignal.any([call.signal, late]),
      redirect: "manual",
    });
  } catch (error) {
    if (late.aborted) throw new Unavailable(`the receiver did not answer within ${milliseconds / 1000} s`);
    const { code, name } = Object(error) as { code?: unknown; name?: unknown };
    throw new Unavailable(`the receiver cannot be reached (${code ?? name})`, { cause: error });
  }
  if (response.ok) return response;
  await response.body?.cancel();
  throw faultOf(response, at);
}

function faultOf({ status, headers }: Response, at: Date): Unavailable {
  if (finalStatuses.has(status)) return new Refused(`the receiver answered ${status}`);
  const text =
    status >= 300 && status < 400
      ? `the receiver redirects (${status}), which is not followed`
      : `the receiver answered ${status}`;
  return new Unavailable(text, { retryAfter: retryAfterIn(headers, at) });
}

/** `Retry-After` in seconds: it is a number of them, or a date (RFC 9110, 10.2.3). */
function retryAfterIn(headers: Headers, at: Date): number | undefined {
  const value = headers.get("retry-after")?.trim() ?? "";
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - at.getTime()) / 1000;
  return Number.isFinite(seconds) ? seconds : undefined;
}

/** The receiver's id and link for the conversation, if its answer has them. */
async function answerOf(response: Response): Promise<{ externalId?: string; weblink?: string }> {
  const mediaType = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (mediaType !== "application/json") {
    await response.body?.cancel();
    return {};
  }
  try {
    const bytes = await readAtMost(response, answerBytes);
    if (bytes) {
      const text = new TextDecoder().decode(bytes);
      return text.trim() === "" ? {} : JSON.parse(text);
    }
  } catch (cause) {
    throw new Unavailable("the receiver's answer cannot be read", { cause });
  }
  throw new Unavailable("the receiver's answer is larger than 64 KB");
}
