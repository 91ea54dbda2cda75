import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";

/** An OpenID provider in the AWS account. */
interface Provider {
  issuer: string;
  audiences: string[];
}

/** A role with the conditions of its trust policy. */
interface FakeRole {
  maxSessionSeconds: number;
  /** For web identities: the audience, and a pattern of the subject with `*`. */
  web?: { audience: string; subject: string };
  /** For stored keys. */
  keys?: { ids: string[]; externalId?: string };
}

export interface FakeSts {
  url: string;
  provider: Provider;
  roles: Map<string, FakeRole>;
  /** Secrets of long-lived keys, and of sessions, by key id. */
  secrets: Map<string, string>;
  /** The parameters of each request. */
  asked: Record<string, string>[];
  /** Replaces the next answers, one each. */
  next: (() => Response | Promise<Response>)[];
  stop(): Promise<void>;
}

const shortest = 900;
const longest = 43_200;
const known = /^[\w+=,.@-]{2,64}$/;

/** An error in the format of STS. */
class Fault extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * A local fake of AWS STS. It checks tokens and signatures with libraries that svc does not use for signing them.
 */
export function startFakeSts(): FakeSts {
  const sts = {
    provider: { issuer: "", audiences: ["sts.amazonaws.com"] },
    roles: new Map<string, FakeRole>(),
    secrets: new Map<string, string>(),
    asked: [] as Record<string, string>[],
    next: [] as FakeSts["next"],
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const body = await request.text();
      const scripted = sts.next.shift();
      const parameters = Object.fromEntries(new URLSearchParams(body));
      sts.asked.push(parameters);
      if (scripted) return await scripted();
      try {
        return await answer(sts, request, body, parameters);
      } catch (error) {
        if (error instanceof Fault) return faultAnswer(error.status, error.code, error.message);
        throw error;
      }
    },
  });
  return { ...sts, url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}

type State = Omit<FakeSts, "url" | "stop">;

async function answer(
  sts: State,
  request: Request,
  body: string,
  parameters: Record<string, string>,
): Promise<Response> {
  if (parameters.Version !== "2011-06-15") throw new Fault(400, "InvalidAction", "no such version");
  switch (parameters.Action) {
    case "AssumeRoleWithWebIdentity":
      if (request.headers.has("authorization")) throw new Fault(400, "Unexpected", "it is signed");
      return await assumeByToken(sts, parameters);
    case "AssumeRole": {
      const keyId = await verifySignature(sts, request, body);
      const role = roleOf(sts, parameters);
      const { ids = [], externalId } = role.keys ?? {};
      if (!ids.includes(keyId) || parameters.ExternalId !== externalId)
        throw new Fault(403, "AccessDenied", `User: ${keyId} is not authorized to perform: sts:AssumeRole`);
      return sessionAnswer(sts, "AssumeRole", parameters);
    }
    case "GetCallerIdentity": {
      const keyId = await verifySignature(sts, request, body);
      return xml(
        200,
        `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
        <Arn>arn:aws:sts::123456789012:assumed-role/of/${keyId}</Arn><UserId>AROA:${keyId}</UserId>
        <Account>123456789012</Account></GetCallerIdentityResult>
        <ResponseMetadata><RequestId>1-2</RequestId></ResponseMetadata></GetCallerIdentityResponse>`,
      );
    }
    default:
      throw new Fault(400, "InvalidAction", `Could not find operation ${parameters.Action}`);
  }
}

async function assumeByToken(sts: State, parameters: Record<string, string>): Promise<Response> {
  const { provider } = sts;
  const role = roleOf(sts, parameters);
  const found = (await (await fetch(`${provider.issuer}/.well-known/openid-configuration`)).json()) as {
    issuer: string;
    jwks_uri: string;
  };
  const { payload } = await jwtVerify(
    parameters.WebIdentityToken ?? "",
    createRemoteJWKSet(new URL(found.jwks_uri)),
    { issuer: provider.issuer, algorithms: ["RS256", "ES256"], requiredClaims: ["sub", "exp", "iat"] },
  ).catch((error: unknown) => {
    if (error instanceof errors.JWTExpired)
      throw new Fault(400, "ExpiredTokenException", `Token expired: ${parameters.WebIdentityToken}`);
    throw new Fault(400, "InvalidIdentityToken", `Couldn't retrieve verification key: ${error}`);
  });
  if (!provider.audiences.includes(payload.aud as string))
    throw new Fault(400, "InvalidIdentityToken", "Incorrect token audience");
  const pattern = new RegExp(`^${(role.web?.subject ?? "").split("*").map(RegExp.escape).join(".*")}$`);
  if (role.web?.audience !== payload.aud || !pattern.test(payload.sub!))
    throw new Fault(403, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity");
  return sessionAnswer(sts, "AssumeRoleWithWebIdentity", parameters);
}

function roleOf(sts: State, { RoleArn = "", RoleSessionName = "", DurationSeconds }: Record<string, string>) {
  const role = sts.roles.get(RoleArn);
  if (!role) throw new Fault(403, "AccessDenied", "Not authorized to perform sts:AssumeRole");
  const seconds = Number(DurationSeconds);
  if (!known.test(RoleSessionName) || !(seconds >= shortest && seconds <= longest))
    throw new Fault(
      400,
      "ValidationError",
      `1 validation error detected: Value '${RoleSessionName}' at 'roleSessionName' failed to satisfy constraint`,
    );
  if (seconds > role.maxSessionSeconds)
    throw new Fault(
      400,
      "ValidationError",
      "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
    );
  return role;
}

/** Verifies the signature with AWS's implementation. @returns the id of the key */
async function verifySignature(sts: State, request: Request, body: string): Promise<string> {
  const authorization = request.headers.get("authorization") ?? "";
  const [, keyId, day, region, names, signature] =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([\w-]+)\/sts\/aws4_request, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/.exec(
      authorization,
    ) ?? [];
  if (keyId === undefined)
    throw new Fault(403, "MissingAuthenticationToken", "Request is missing a signature");
  const secretAccessKey = sts.secrets.get(keyId);
  if (secretAccessKey === undefined)
    throw new Fault(403, "InvalidClientTokenId", "The security token included in the request is invalid.");
  const url = new URL(request.url);
  const signedNames = new Set(names!.split(";"));
  for (const name of ["host", "content-type"])
    if (!signedNames.has(name)) throw new Fault(403, "SignatureDoesNotMatch", `${name} is not signed`);
  const headers = Object.fromEntries([...request.headers].filter(([name]) => signedNames.has(name)));
  const date = request.headers.get("x-amz-date")!;
  const signer = new SignatureV4({
    service: "sts",
    region: region!,
    sha256: Sha256,
    uriEscapePath: false,
    credentials: { accessKeyId: keyId, secretAccessKey },
    applyChecksum: false,
  });
  const at = new Date(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!date.startsWith(day!)) throw new Fault(403, "SignatureDoesNotMatch", "Date in Credential scope");
  const { authorization: _, ...rest } = headers;
  const expected = await signer.sign(
    {
      method: request.method,
      protocol: url.protocol,
      hostname: url.hostname,
      port: Number(url.port),
      path: url.pathname,
      query: {},
      headers: { ...rest, host: url.host },
      body,
    },
    { signingDate: at, signableHeaders: signedNames },
  );
  if (!expected.headers.authorization!.endsWith(`Signature=${signature}`))
    throw new Fault(
      403,
      "SignatureDoesNotMatch",
      `The request signature we calculated does not match. ${secretAccessKey}`,
    );
  return keyId;
}

let made = 0;

function sessionAnswer(sts: State, action: string, parameters: Record<string, string>): Response {
  const accessKeyId = `ASIA${String(++made).padStart(16, "0")}`;
  const secretAccessKey = `secret/+${crypto.randomUUID()}`;
  sts.secrets.set(accessKeyId, secretAccessKey);
  const end = new Date(Date.now() + Number(parameters.DurationSeconds) * 1000);
  return sessionXml(action, {
    accessKeyId,
    secretAccessKey,
    sessionToken: `token/${crypto.randomUUID()}==`,
    expiration: `${end.toISOString().slice(0, 19)}Z`,
  });
}

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** A response with a session in the format of STS. */
export function sessionXml(
  action: string,
  session: { accessKeyId: string; secretAccessKey: string; sessionToken: string; expiration: string },
): Response {
  return xml(
    200,
    `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <${action}Result>
    <AssumedRoleUser>
      <AssumedRoleId>AROACLKWSDQRAOEXAMPLE:alice@example.com</AssumedRoleId>
      <Arn>arn:aws:sts::123456789012:assumed-role/deploy/alice@example.com</Arn>
    </AssumedRoleUser>
    <Credentials>
      <SessionToken>${escaped(session.sessionToken)}</SessionToken>
      <SecretAccessKey>${escaped(session.secretAccessKey)}</SecretAccessKey>
      <Expiration>${session.expiration}</Expiration>
      <AccessKeyId>${session.accessKeyId}</AccessKeyId>
    </Credentials>
  </${action}Result>
  <ResponseMetadata>
    <RequestId>ad4156e9-bce1-11e2-82e6-6b6efEXAMPLE</RequestId>
  </ResponseMetadata>
</${action}Response>`,
  );
}

/** An error response in the format of STS. */
export function faultAnswer(status: number, code: string, message: string): Response {
  return xml(
    status,
    `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <Error>
    <Type>${status < 500 ? "Sender" : "Receiver"}</Type>
    <Code>${code}</Code>
    <Message>${escaped(message)}</Message>
  </Error>
  <RequestId>5d6e1b2c-9a1b-4c0e-8f0e-0123456789ab</RequestId>
</ErrorResponse>`,
  );
}

export const xml = (status: number, body: string) =>
  new Response(body, { status, headers: { "content-type": "text/xml" } });
