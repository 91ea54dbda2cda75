import { type Static, Type } from "@sinclair/typebox";
import {
  type CredentialProblem,
  definePlugin,
  type PluginDeps,
  type RoleFacts,
  readAtMost,
} from "../../core/plugin.ts";
import { InvalidInput, Refused, Unavailable } from "../../platform/errors.ts";

// A broker account without other permissions creates tokens for a service account with the cluster's TokenRequest API. A
// token cannot be revoked: it is valid until it expires.

/** The API server refuses shorter tokens. */
const shortestSeconds = 600;
const answerBytes = 1_000_000;
/** How far ahead the API server's clock may be. */
const skewSeconds = 300;
const slug = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

const roleSchema = Type.Object({
  server: Type.String({
    maxLength: 2000,
    pattern: "^https://[^\\s/]+(/[^\\s?#]*)?$",
    description: "the address of the API server: https://...",
  }),
  certificateAuthority: Type.Optional(
    Type.String({
      maxLength: 20_000,
      description: "the authority of the API server (PEM), unless it is a public one",
    }),
  ),
  token: Type.String({ secret: true, minLength: 1, description: "the token of the broker" }),
  namespace: Type.String({
    maxLength: 63,
    pattern: slug,
    description: "the namespace of the service account",
  }),
  serviceAccount: Type.String({
    maxLength: 253,
    pattern: slug,
    description: "the service account whose permissions a lease has",
  }),
  audiences: Type.Optional(
    Type.String({
      maxLength: 1000,
      description: "the audiences of a token, comma-separated, if not the API server",
    }),
  ),
  clientServer: Type.Optional(
    Type.String({
      maxLength: 2000,
      pattern: "^https://[^\\s]+$",
      description: "the address of the API server for users, if different",
    }),
  ),
});

type Target = Static<typeof roleSchema>;

const targetOf = ({ settings }: RoleFacts) => settings as Target;

export default definePlugin({
  title: "Kubernetes tokens",
  slug: "kubernetes-token",
  version: "1.0.0",
  author: "svc",
  type: "credential",
  description: "Issues tokens for a service account of a Kubernetes cluster",
  configSchema: Type.Object({}),
  roleSchema,
  revocable: "expiry",
  create: (_, { fetch }) => ({
    check: ({ role, signal }) => check(fetch, targetOf(role), signal),
    issue: async ({ role, expiresAt, seconds, signal }) => {
      const target = targetOf(role);
      if (seconds < shortestSeconds)
        throw new InvalidInput(
          "duration",
          `A Kubernetes token lasts at least ${shortestSeconds / 60} minutes: use a longer --duration`,
        );
      const { token, end } = await requestToken(fetch, target, seconds, signal);
      if (end.getTime() > Date.parse(expiresAt) + skewSeconds * 1000)
        throw new Refused(
          `The cluster issued a token until ${end.toISOString()}, which is longer than requested`,
        );
      const { server, clientServer = server, certificateAuthority, namespace } = target;
      return {
        kind: "token" as const,
        fields: {
          token,
          server: clientServer,
          namespace,
          ...(certificateAuthority === undefined ? {} : { certificate_authority: certificateAuthority }),
        },
        ...(end < new Date(expiresAt) ? { expiresAt: end.toISOString() } : {}),
      };
    },
    revoke: () => {},
  }),
});

/** @throws Unavailable, or Refused if a retry would fail again */
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
    throw new Unavailable(`${target.server} answered without a token`);
  return { token, end };
}

interface Answer {
  status?: Record<string, unknown>;
}

/** Sends a request. Errors never include the API server's messages, because these may repeat what was sent. */
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
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json",
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
    const reason = /CERT|SELF_SIGNED|ISSUER|ALTNAME/.test(code ?? "")
      ? "has a certificate that certificateAuthority did not sign"
      : "cannot be reached";
    throw new Unavailable(`${server} ${reason}`, { cause });
  }
  if (response.status === 200 || response.status === 201) return await readAnswer(response).catch(() => ({}));
  await response.body?.cancel();
  const refused: Record<number, string> = {
    401: "rejected the token of the broker, which may have expired",
    403: `does not allow the broker to create tokens of ${namespace}/${serviceAccount}: run svc access check`,
    404: `has no service account ${namespace}/${serviceAccount}`,
    422: "rejected the settings of the access role",
  };
  const detail = `${server} ${refused[response.status] ?? `answered with status ${response.status}`}`;
  throw response.status in refused ? new Refused(detail) : new Unavailable(detail);
}

/** @throws also for an answer that is too long */
async function readAnswer(response: Response): Promise<Answer> {
  const bytes = await readAtMost(response, answerBytes);
  return Object(JSON.parse(new TextDecoder().decode(bytes)));
}

async function check(
  fetch: PluginDeps["fetch"],
  target: Target,
  signal: AbortSignal,
): Promise<CredentialProblem[]> {
  const { namespace, serviceAccount } = target;
  const resource = { resource: "serviceaccounts", subresource: "token", name: serviceAccount };
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: { namespace, verb: "create", ...resource } },
  };
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const { status } = await post(fetch, target, path, body, signal);
  if (status?.allowed === true) return [];
  if (status?.allowed !== false)
    throw new Unavailable(
      `${target.server} answered without an access review: is it a Kubernetes API server?`,
    );
  return [
    {
      problem: `The broker cannot create tokens of ${namespace}/${serviceAccount}`,
      fix: `kubectl apply -f - <<'END'\n${grant(target)}END`,
    },
  ];
}

/** Uses the broker's name from the documentation, because its real name is unknown here. */
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
