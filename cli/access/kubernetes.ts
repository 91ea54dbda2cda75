import { Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Issued } from "./access.ts";

/** Supported versions of ExecCredential, newest first. */
const versions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/** The ExecCredential that kubectl expects from a credential command. @throws Unavailable for other kinds */
export function execCredential(issued: Issued, env: Environment): string {
  const status = {
    expirationTimestamp: issued.expires_at.replace(/\.\d+Z$/, "Z"),
    token: tokenOf(issued),
  };
  return `${JSON.stringify({ apiVersion: askedVersion(env), kind: "ExecCredential", status })}\n`;
}

/** The version that kubectl requests. Older releases do not support the newest. */
function askedVersion({ KUBERNETES_EXEC_INFO: info }: Environment): string {
  try {
    const { apiVersion } = JSON.parse(info ?? "") as { apiVersion?: string };
    return versions.find((version) => version === apiVersion) ?? versions[0]!;
  } catch {
    return versions[0]!;
  }
}

/** A kubeconfig with one cluster and its token, in JSON, which is also YAML. */
export function kubeconfig(issued: Issued): string {
  const { server, namespace, certificate_authority: authority } = issued.credential.fields;
  const { role: name } = issued;
  const data = authority && { "certificate-authority-data": Buffer.from(authority).toString("base64") };
  return `${JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [{ name, cluster: { server, ...data } }],
    users: [{ name, user: { token: tokenOf(issued) } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace } }],
  })}\n`;
}

/** @throws Unavailable for a kind without a token */
export function tokenOf({ role, credential: { kind, fields } }: Issued): string {
  if (kind !== "token" || fields.token === undefined)
    throw new Unavailable(
      `${role} does not issue tokens: this format does not support credentials of kind ${kind}`,
    );
  return fields.token;
}
