import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { conversations } from "./load.ts";
import { publishedPort } from "./network.ts";

/** A receiver that accepts everything, and logs the ids of its messages. */
const receiver = `Bun.serve({
  ...{ port: 9000, hostname: "0.0.0.0" },
  fetch: (request) => { console.log(request.headers.get("webhook-id")); return new Response(); },
});`;

/** Sets the conversation plugins of a server or worker. */
export const pluginVariables = {
  SVC_PLUGIN_CONVERSATION: conversations.join(","),
  SVC_PLUGIN_WEBHOOK_URL: "http://receiver:9000/",
  SVC_PLUGIN_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
};

/**
 * Writes compose.load.yaml into a clone: the database on a loopback port, and a receiver of messages that runs in
 * `image`.
 */
export async function writeLoadFile(
  directory: string,
  image: string,
): Promise<{ files: string[]; databasePort: number }> {
  const databasePort = await publishedPort();
  const services = {
    db: { ports: [`127.0.0.1:${databasePort}:5432`] },
    server: { environment: pluginVariables },
    worker: { environment: pluginVariables },
    receiver: { image, init: true, command: ["bun", "-e", receiver], healthcheck: { disable: true } },
  };
  const file = "compose.load.yaml";
  writeFileSync(join(directory, file), JSON.stringify({ services }));
  return { files: [file], databasePort };
}
