import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { issueTokens } from "../../bench/api/tokens.ts";
import {
  buildImage,
  type Compose,
  docker,
  saidBy,
  say,
  testImage,
} from "../support/containers/containers.ts";
import { Load } from "../support/containers/load.ts";
import { writeLoadFile } from "../support/containers/load_file.ts";
import { productionIn, secrets } from "../support/containers/production.ts";
import { until } from "../support/process/until.ts";

/**
 * One of three servers of compose.production.yaml cannot serve, while clients that do not retry use all of them. Each test
 * continues from the state after the previous one.
 */

setDefaultTimeout(600_000);

/** From docs/scale.md: from then on, no request is sent to the broken server. */
const detectionSeconds = 6;
/** More than PostgreSQL keeps the locks of a frozen server; less than a server waits for a database that is gone. */
const mostSeconds = 20;

let image: Awaited<ReturnType<typeof buildImage>>;
let compose: Compose;
let load: Load;
/** Of the server that breaks. */
let container: string;
let balancer: string;

beforeAll(async () => {
  image = await buildImage();
  const { files, databasePort } = await writeLoadFile(image.directory, testImage);
  compose = await productionIn(image.directory, { files, env: { SERVER_REPLICAS: "3" } });
  await compose.done("up", "--detach");
  await compose.healthy(["server", "balancer", "proxy"]);
  container = (await compose.containers("server"))[0]!;
  balancer = (await compose.containers("balancer"))[0]!;
  const url = `https://localhost:${compose.env.HTTPS_PORT}`;
  await until("TLS", () => fetch(url, { tls: { rejectUnauthorized: false } }).catch(() => undefined), 180);
  const databaseUrl = `postgres://svc:${secrets.database_password}@127.0.0.1:${databasePort}/svc`;
  const [token] = await issueTokens(
    {
      SVC_DATABASE_URL: databaseUrl,
      SVC_KEY_SECRET: secrets.key_secret!,
      SVC_DOMAIN: "example.com",
      SVC_PUBLIC_URL: url,
      SVC_OIDC_ISSUER: "https://id.example.com",
    },
    1,
  );
  load = await Load.start({ url, databaseUrl, token: token!, mostSeconds });
}, 1_200_000);
afterAll(async () => {
  await load?.[Symbol.asyncDispose]();
  await compose?.[Symbol.asyncDispose]();
  image?.[Symbol.dispose]();
});

/** Waits until the balancer has logged this about a server. */
const noticed = (result: string, since: Date) =>
  until(`a server that is ${result}`, async () => (await saidBy(balancer, since)).includes(`is ${result}\n`));

/** Failures of requests that began after the detection time, while many more were answered. */
async function failuresAfter(brokenAt: Date): Promise<string[]> {
  const detected = new Date(brokenAt.getTime() + detectionSeconds * 1000).toISOString();
  await until("the detection time", () => new Date().toISOString() > detected);
  await load.more(500);
  await load.settled();
  // All notes are of one incident. The broken server may hold its lock in up to ten transactions, one after the other.
  return load.failures.filter((line) => line > detected && !/POST \S+\/events\//.test(line));
}

const breaks = [
  {
    title: "is frozen",
    result: "silent",
    fail: () => docker("pause", container),
    mend: () => say(["docker", "unpause", container]),
  },
  {
    title: "is cut off from the database",
    result: "not ready",
    fail: () => docker("network", "disconnect", compose.network, container),
    mend: () => say(["docker", "network", "connect", compose.network, container]),
  },
];

test.each(breaks)("after the detection time, no request fails because a server $title", async (one) => {
  await load.more(100);
  const brokenAt = new Date();
  let mendedAt = brokenAt;
  try {
    await one.fail();
    await noticed(one.result, brokenAt);
    expect(await failuresAfter(brokenAt)).toEqual([]);
  } finally {
    mendedAt = new Date();
    await one.mend();
  }
  const before = load.failures.filter((line) => line > brokenAt.toISOString());
  expect(before.filter((line) => line.includes(" GET "))).toEqual([]);
  await noticed("ready", mendedAt);
  await load.more(100);
  await load.settled();
  expect(load.failures.filter((line) => line > mendedAt.toISOString())).toEqual([]);
});

test("a full disk of one server makes no request fail", async () => {
  const before = load.failures.length;
  const startedAt = () => docker("inspect", "-f", "{{.State.StartedAt}}", container);
  const since = await startedAt();
  const { stderr } = await say(["docker", "exec", container, "sh", "-c", "cat /dev/zero > /tmp/filler"]);
  expect(stderr).toContain("No space left on device");
  await load.more(500);
  expect(load.failures.slice(before)).toEqual([]);
  expect(await startedAt()).toBe(since);
});
