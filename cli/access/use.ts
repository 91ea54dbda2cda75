import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SshKeyPair } from "../../platform/ssh/private_key.ts";
import type { Io } from "../io.ts";
import type { Issued, Role } from "./access.ts";
import { environmentOf } from "./format.ts";
import { newSshKey, newX509Key, x509Chain } from "./key.ts";
import { kubeconfig } from "./kubernetes.ts";
import { requireSshAgent, startSshAgent } from "./ssh_agent.ts";

/** A credential prepared for a command. */
export interface UsedCredential extends AsyncDisposable {
  /** Environment variables for the command. */
  env: Record<string, string>;
  /** Replaces the credential with a newer one. Only for kinds whose renewal is a new lease. */
  replace?(issued: Issued): Promise<void>;
}

/** The key for a certificate that a command uses. It stays in memory, unless programs need a file. */
export class CommandKey {
  #ssh: SshKeyPair | undefined;
  /** In PEM. */
  #x509: string | undefined;
  #publicKey: string | undefined;

  /** Generates the key if the role needs one. @throws NotFound if a required program is not installed */
  async publicKeyFor(role: Role): Promise<string | undefined> {
    if (role.public_key === "ssh") {
      requireSshAgent();
      const { key, publicKey } = await newSshKey(`svc ${role.slug}`);
      this.#ssh = key;
      this.#publicKey = publicKey;
    } else if (role.public_key === "x509") {
      const { privateKey, publicKey } = newX509Key();
      this.#x509 = privateKey;
      this.#publicKey = publicKey;
    }
    return this.#publicKey;
  }

  get publicKey(): string | undefined {
    return this.#publicKey;
  }

  /** Prepares a credential for a command. @throws Unavailable for a kind that commands cannot use */
  async use(io: Pick<Io, "clock">, issued: Issued): Promise<UsedCredential> {
    const { kind, fields } = issued.credential;
    if (kind === "token" && fields.server !== undefined)
      return useFiles(issued, { KUBECONFIG: { name: "kubeconfig", content: kubeconfig } });
    if (kind === "x509" && this.#x509 !== undefined) {
      const privateKey = this.#x509;
      return useFiles(issued, {
        SVC_ACCESS_KEY: { name: "key.pem", content: () => privateKey },
        SVC_ACCESS_CERTIFICATE: { name: "certificate.pem", content: x509Chain },
      });
    }
    const key = this.#ssh;
    if (kind !== "ssh" || key === undefined)
      return { env: environmentOf(issued), [Symbol.asyncDispose]: async () => {} };
    const agent = await startSshAgent();
    const replace = ({ credential: { fields }, expires_at, role }: Issued) => {
      const left = (new Date(expires_at).getTime() - io.clock.now().getTime()) / 1000;
      const certificate = { certificate: fields.certificate!, comment: `svc ${role}` };
      return agent.add(key, { ...certificate, seconds: Math.max(1, Math.ceil(left)) });
    };
    try {
      await replace(issued);
    } catch (error) {
      await agent[Symbol.asyncDispose]();
      throw error;
    }
    const env = { SSH_AUTH_SOCK: agent.socket };
    return { env, replace, [Symbol.asyncDispose]: () => agent[Symbol.asyncDispose]() };
  }
}

/** Writes private files and points a variable at each. They are deleted when the command ends. */
async function useFiles(
  issued: Issued,
  files: Record<string, { name: string; content: (issued: Issued) => string }>,
): Promise<UsedCredential> {
  const directory = await mkdtemp(join(tmpdir(), "svc-"));
  const dispose = () => rm(directory, { recursive: true, force: true });
  const write = async (one: Issued) => {
    for (const { name, content } of Object.values(files))
      await writeFile(join(directory, name), content(one), { mode: 0o600 });
  };
  try {
    await chmod(directory, 0o700);
    await write(issued);
  } catch (error) {
    await dispose();
    throw error;
  }
  const env = Object.fromEntries(
    Object.entries(files).map(([variable, { name }]) => [variable, join(directory, name)]),
  );
  return { env, replace: write, [Symbol.asyncDispose]: dispose };
}
