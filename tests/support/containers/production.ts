import { randomBytes } from "node:crypto";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildOnce, Compose, say, testImage } from "./containers.ts";
import { frontSubnet, publishedPort } from "./network.ts";

/** compose.production.yaml unchanged except for the host name: this machine, with a certificate signed by Caddy. */

const password = randomBytes(24).toString("hex");
export const secrets: Record<string, string> = {
  database_password: password,
  database_url: `postgres://svc:${password}@db:5432/svc`,
  key_secret: randomBytes(36).toString("base64"),
  oidc_client_secret: randomBytes(24).toString("hex"),
};

/** Writes the secrets of a clone, and returns its other settings. */
export async function productionIn(
  directory: string,
  { files = [], env = {} }: { files?: string[]; env?: Record<string, string | undefined> } = {},
): Promise<Compose> {
  for (const [name, value] of Object.entries(secrets)) {
    const file = join(directory, "secrets", name);
    writeFileSync(file, `${value}\n`, { mode: 0o600 });
    if (process.getuid?.() === 0) chownSync(file, 1000, 1000);
  }
  const all = ["compose.yaml", "compose.production.yaml", ...(await standIns(directory)), ...files];
  return Compose.in(directory, all, {
    PUBLIC_HOST: "localhost",
    SVC_DOMAIN: "example.com",
    SVC_OIDC_ISSUER: "https://id.example.com",
    FRONT_SUBNET: frontSubnet(),
    HTTP_PORT: String(await publishedPort()),
    HTTPS_PORT: String(await publishedPort()),
    ...env,
  });
}

/**
 * For machines that cannot pull images: Debian's Caddy, and the password in the environment, because the stand-in for
 * PostgreSQL's image does not read files.
 */
async function standIns(directory: string): Promise<string[]> {
  if ((await say(["docker", "pull", "--quiet", "caddy:2"])).code === 0) return [];
  const bun = (await Bun.file(join(directory, "Dockerfile")).text()).match(/^FROM (\S+)/m)![1];
  const image = `${testImage}-caddy`;
  const context = join(directory, "caddy");
  mkdirSync(context);
  writeFileSync(
    join(context, "Dockerfile"),
    `FROM ${bun}
RUN apt-get update -o Acquire::Retries=5 && apt-get install -y -o Acquire::Retries=5 --no-install-recommends caddy wget && mkdir -p /data /config
ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
`,
  );
  await buildOnce(image, context);
  writeFileSync(
    join(directory, "compose.stand_ins.yaml"),
    `services:
  db: {environment: {POSTGRES_PASSWORD: "${password}", POSTGRES_PASSWORD_FILE: ""}}
  proxy: {image: ${image}}
`,
  );
  return ["compose.stand_ins.yaml"];
}
