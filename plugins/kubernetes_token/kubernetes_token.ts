import { type Static, Type } from "@sinclair/typebox";
import { definePlugin, type LeaseFacts, type PluginDeps, type RoleFacts } from "../../core/plugin.ts";
import { InvalidInput, Refused, Unavailable } from "../../platform/errors.ts";

// A broker account with no other rights creates tokens for a service account by the cluster's TokenRequest API. A token
// is valid until it expires; it cannot be revoked.

/** The API server refuses shorter tokens. */
const shortestSeconds = 600;
/** How far ahead its clock may be. */
const skewSeconds = 300;
const slug = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

const roleSchema = Type.Object({
  server: Type.String({
    ...{ maxLength: 2000, pattern: "^https://[^\\s/]+(/[^\\s?#]*)?$" },
    description: "the address of the API server: https://...",
  }),
  certificateAuthority: Type.Optional(
    Type.String({
      maxLength: 20_000,
      description: "the authority of the API server (PEM), if it is not a public one",
    }),
  ),
  token: Type.String({ secret: true, minLength: 1, description: "the token of the broker" }),
  namespace: Type.String({
    maxLength: 63,
    pattern: slug,
    description: "the namespace of the service account",
  }),
  serviceAccount: Type.String({
    ...{ maxLength: 253, pattern: slug },
    description: "the service account whose rights a lease has",
  }),
  audiences: Type.Optional(
    Type.String({
      maxLength: 1000,
      description: "the audiences of a token, comma-separated, if not the API server",
    }),
  ),
  clientServer: Type.Optional(
    Type.String({
      ...{ maxLength: 2000, pattern: "^https://[^\\s]+$" },
      description: "the API server as people reach it, if that is another address",
    }),
  ),
});

type Target = Static<typeof roleSchema>;

const targetOf = ({ settings }: RoleFacts) => settings as unknown as Target;

export default definePlugin({
  ...{ title: "Kubernetes tokens", slug: "kubernetes-token", version: "1.0.0", author: "svc" },
  type: "credential",
  description: "A token for a service account of a Kubernetes cluster",
  configSchema: Type.Object({}),
  roleSchema,
  revocable: "expiry",
  create: (_, { fetch, clock }) => ({
    check: ({ role, signal }) => check(fetch, targetOf(role), signal),
    issue: async ({ role, expiresAt, seconds, signal }) => {
      const target = targetOf(role);
      if (seconds < shortestSeconds)
        throw new InvalidInput(
          "duration",
          `Kubernetes issues no token for less than ${shortestSeconds / 60} minutes`,
        );
      const asked = clock.now();
      const { token, end } = await requestToken(fetch, target, seconds, signal);
      if (end.getTime() > asked.getTime() + (seconds + skewSeconds) * 1000)
        throw new Refused(
          `The cluster issues tokens that last until ${end.toISOString()}, longer than asked for`,
        );
      const { server, clientServer = server, certificateAuthority, namespace } = target;
      return {
        kind: "token" as const,
        fields: {
          ...{ token, server: clientServer, namespace },
          ...(certificateAuthority === undefined ? {} : { certificate_authority: certificateAuthority }),
        },
        ...(end < new Date(expiresAt) ? { expiresAt: end.toISOString() } : {}),
      };
    },
    revoke: (_: LeaseFacts) => {},
  }),
});

/** @throws Unavailable, or Refused if retrying cannot help */
async function requestToken(
  fetch: PluginDeps["fetch"],
  target: Target,
  seconds: number,
  signal: AbortSignal,
): Promise<{ token: string; end: Date }> {
  const { namespace, serviceAccount, audiences } = target;
  const spec = {
    expirationSeconds: seconds,
    ...(audiences === undefined ? {} : { audiences: audiences.split(",").map((one) => one.trim()) }),
  };
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
  const { status } = await post(fetch, target, path, body, signal);
  const { token, expirationTimestamp } = status ?? {};
  const end = new Date(String(expirationTimestamp));
  if (typeof token !== "string" || !/^[\w.-]{1,20000}$/.test(token) || Number.isNaN(end.getTime()))
    throw new Unavailable(`${target.server} answers no token`);
  return { token, end };
}

interface Answer {
  status?: Record<string, unknown>;
}

/** The API server's own messages may contain what was sent, so they are never passed on. */
async function post(
  fetch: PluginDeps["fetch"],
  target: Target,
  path: string,
  body: object,
  signal: AbortSignal,
): Promise<Answer> {
  const { server, certificateAuthority, token, namespace, serviceAccount } = target;
  const options = {
    method: "POST",
    headers: {
      ...{ authorization: `Bearer ${token}`, "content-type": "application/json", accept: "application/json" },
    },
    body: JSON.stringify(body),
    redirect: "error",
    signal,
    ...(certificateAuthority === undefined ? {} : { tls: { ca: certificateAuthority } }),
  } satisfies BunFetchRequestInit;
  let response: Response;
  try {
    response = await fetch(`${server.replace(/\/$/, "")}${path}`, options);
  } catch (cause) {
    const { code } = cause as { code?: string };
    const said = /CERT|SELF_SIGNED|ISSUER|ALTNAME/.test(code ?? "")
      ? "has a certificate that is not of its authority (setting certificateAuthority)"
      : "does not answer";
    throw new Unavailable(`${server} ${said}`, { cause });
  }
  if (response.status === 200 || response.status === 201) {
    const answer: unknown = await response.json().catch(() => undefined);
    return typeof answer === "object" && answer !== null ? (answer as Answer) : {};
  }
  await response.body?.cancel();
  const refused: Record<number, string> = {
    401: "does not know the token of the broker: it may have expired",
    403: `does not let the broker create tokens of ${namespace}/${serviceAccount}: svc access check names the missing right`,
    404: `has no service account ${namespace}/${serviceAccount}`,
    422: "does not accept what the access role asks for",
  };
  const detail = `${server} ${refused[response.status] ?? `answers ${response.status}`}`;
  throw response.status in refused ? new Refused(detail) : new Unavailable(detail);
}

async function check(
  fetch: PluginDeps["fetch"],
  target: Target,
  signal: AbortSignal,
): Promise<{ problem: string; fix?: string }[]> {
  const { namespace, serviceAccount } = target;
  const attributes = {
    ...{ namespace, verb: "create", resource: "serviceaccounts", subresource: "token", name: serviceAccount },
  };
  const body = {
    ...{ apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" },
    spec: { resourceAttributes: attributes },
  };
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const { status } = await post(fetch, target, path, body, signal);
  if (status?.allowed === true) return [];
  return [
    {
      problem: `The broker may not create tokens of ${namespace}/${serviceAccount}`,
      fix: `kubectl apply -f - <<'END'\n${grant(target)}END`,
    },
  ];
}

/** The name of the broker's account is not known here, so this uses the one from the documentation. */
const grant = ({ namespace, serviceAccount }: Target) => `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: svc-token-${serviceAccount}, namespace: ${namespace}}
rules:
  - apiGroups: [""]
    resources: [serviceaccounts/token]
    resourceNames: [${serviceAccount}]
    verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: svc-token-${serviceAccount}, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: svc-token-${serviceAccount}}
subjects:
  - {kind: ServiceAccount, name: svc-broker, namespace: svc}
`;
