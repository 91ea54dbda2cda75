import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeServerCertificate } from "../process/openssl.ts";

/** An error as an API server returns it. */
const failure = (code: number, reason: string) =>
  Response.json(
    { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason, code },
    { status: code },
  );

export interface KubernetesApi extends AsyncDisposable {
  url: string;
  /** In PEM. */
  authority: string;
  brokerToken: string;
  /** The issued tokens with their expiry. */
  tokens: Map<string, Date>;
  /** Answers all requests, if set. */
  instead?: (request: Request) => Response | Promise<Response>;
  /** Whether the broker may create tokens. */
  allowed: boolean;
  /** The lifetime of a token, from the requested seconds. */
  lifetime: (seconds: number) => number;
}

/**
 * The part of a Kubernetes API server that issues tokens for the service account shop/reader, and one resource that these
 * tokens can read. Like a real one, it refuses unknown fields, a missing type and durations below ten minutes.
 */
export async function startKubernetesApi(): Promise<KubernetesApi> {
  const directory = await mkdtemp(join(tmpdir(), "svc-kubernetes-"));
  const { key, cert } = makeServerCertificate(directory);
  const authority = await Bun.file(cert).text();
  const state: Omit<KubernetesApi, "url"> = {
    authority,
    brokerToken: `broker-${crypto.randomUUID()}`,
    tokens: new Map<string, Date>(),
    allowed: true,
    lifetime: (seconds: number) => seconds,
    [Symbol.asyncDispose]: async () => {
      await server.stop(true);
      await rm(directory, { recursive: true, force: true });
    },
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { key: await Bun.file(key).text(), cert: authority },
    fetch: async (request) => (state.instead ? state.instead(request) : answer(state, request)),
  });
  return Object.assign(state, { url: `https://127.0.0.1:${server.port}` });
}

async function answer(state: Omit<KubernetesApi, "url">, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const [, bearer] = /^Bearer (\S+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
  if (request.method === "GET" && pathname === "/api/v1/namespaces/shop/pods") {
    const end = state.tokens.get(bearer ?? "");
    if (!end || end <= new Date()) return failure(401, "Unauthorized");
    return Response.json({ kind: "PodList", apiVersion: "v1", metadata: {}, items: [] });
  }
  if (request.method !== "POST") return failure(404, "NotFound");
  if (bearer !== state.brokerToken) return failure(401, "Unauthorized");
  if (request.headers.get("content-type") !== "application/json") return failure(415, "UnsupportedMediaType");
  const body = (await request.json()) as Record<string, unknown>;
  if (pathname === "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") {
    const attributes = {
      namespace: "shop",
      verb: "create",
      resource: "serviceaccounts",
      subresource: "token",
      name: "reader",
    };
    const isIt = Bun.deepEquals(body, {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: attributes },
    });
    if (!isIt) return failure(400, "BadRequest");
    return Response.json({ ...body, status: { allowed: state.allowed } }, { status: 201 });
  }
  const [, namespace, account] =
    /^\/api\/v1\/namespaces\/([^/]+)\/serviceaccounts\/([^/]+)\/token$/.exec(pathname) ?? [];
  if (namespace === undefined) return failure(404, "NotFound");
  if (!state.allowed) return failure(403, "Forbidden");
  if (namespace !== "shop" || account !== "reader") return failure(404, "NotFound");
  const { apiVersion, kind, spec, ...rest } = body;
  const { expirationSeconds, audiences = [], ...others } = spec as Record<string, unknown>;
  const isWellFormed =
    apiVersion === "authentication.k8s.io/v1" &&
    kind === "TokenRequest" &&
    Object.keys({ ...rest, ...others }).length === 0 &&
    Array.isArray(audiences);
  if (!isWellFormed) return failure(400, "BadRequest");
  if (!Number.isInteger(expirationSeconds) || Number(expirationSeconds) < 600) return failure(422, "Invalid");
  const end = new Date(
    Math.floor(Date.now() / 1000) * 1000 + state.lifetime(Number(expirationSeconds)) * 1000,
  );
  const token = `eyJhbGciOiJSUzI1NiJ9.${Buffer.from(crypto.randomUUID()).toString("base64url")}.signature`;
  state.tokens.set(token, end);
  const expirationTimestamp = end.toISOString().replace(".000Z", "Z");
  return Response.json({ ...body, metadata: {}, status: { token, expirationTimestamp } }, { status: 201 });
}
