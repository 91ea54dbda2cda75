import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { signSshCertificate } from "../../platform/ssh/certificate.ts";
import { parseSshPublicKey, sshEd25519Blob } from "../../platform/ssh/public_key.ts";
import {
  BenchError,
  countFrom,
  ensureProgram,
  environment,
  median,
  quantile,
  temporaryDirectory,
  verdict,
} from "../support.ts";

const rounds = 5;
/** How many keys one ssh-keygen process signs. */
const batch = 100;
const aim = 50;

/** SSH certificates per second: svc, a process of `ssh-keygen -s` for each, and one process for many. */
export async function benchSshCertificates(parts: AsyncDisposableStack): Promise<void> {
  const keygen = ensureProgram("ssh-keygen");
  const seconds = countFrom("SVC_BENCH_SECONDS", 3);
  const directory = await temporaryDirectory(parts);
  const ca = join(directory, "ca");
  run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", ca]);
  const keys: string[] = [];
  for (let at = 0; at < batch; at += 1) {
    const key = join(directory, `key-${at}`);
    run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", key]);
    keys.push(`${key}.pub`);
  }
  const theirs = (files: string[]) => () => {
    const options = ["-q", "-s", ca, "-I", keyId, "-n", "deploy", "-V", "-1m:+1h", "-z", "71"];
    run([keygen, ...options, ...files]);
    return files.length;
  };
  const line = await Bun.file(keys[0]!).text();
  const ours = ourSigner(line);
  await checkOurs(keygen, directory, ours.certificate());
  const contenders = [
    { name: "svc", work: ours.work, rates: [] as number[] },
    { name: "ssh-keygen -s, one key", work: theirs([keys[0]!]), rates: [] as number[] },
    { name: `ssh-keygen -s, ${batch} keys`, work: theirs(keys), rates: [] as number[] },
  ];
  console.log(
    `${rounds} rounds of ${seconds} s of each in turn; Ed25519 certificates a second, median (slowest, fastest):\n`,
  );
  for (let round = 0; round < rounds; round += 1)
    for (const { work, rates } of contenders) rates.push(rateOf(work, seconds));
  for (const { name, rates } of contenders) {
    const figures = [median(rates), quantile(rates, 0), quantile(rates, 1)].map((rate) => Math.round(rate));
    console.log(`${name.padEnd(24)}${String(figures[0]).padStart(8)}   (${figures[1]}, ${figures[2]})`);
  }
  const [svc = 0, each = 1, many = 1] = contenders.map(({ rates }) => median(rates));
  console.log(
    `\nsvc / one process each   ${(svc / each).toFixed(0)}   aim: at least ${aim}, ${verdict(svc / each >= aim)}`,
  );
  console.log(`svc / one for ${batch} keys    ${(svc / many).toFixed(1)}`);
}

const keyId = "alice@example.com web-hosts lease/71 INC-44";

/** The server's work for each certificate, without the database: parses the key, encodes and signs. */
function ourSigner(line: string) {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const signer = { privateKey, blob: sshEd25519Blob(publicKey) };
  const certificate = () =>
    signSshCertificate(
      {
        key: parseSshPublicKey(line),
        serial: 71,
        keyId,
        principals: ["deploy"],
        validAfter: new Date(Date.now() - 60_000),
        validBefore: new Date(Date.now() + 3_600_000),
        criticalOptions: {},
        extensions: ["permit-pty"],
      },
      signer,
    );
  const work = () => {
    for (let count = 0; count < batch; count += 1) certificate();
    return batch;
  };
  return { certificate, work };
}

async function checkOurs(keygen: string, directory: string, certificate: string): Promise<void> {
  const path = join(directory, "ours-cert.pub");
  await Bun.write(path, certificate);
  run([keygen, "-L", "-f", path]);
}

function rateOf(work: () => number, seconds: number): number {
  const started = performance.now();
  let made = 0;
  while (performance.now() - started < seconds * 1000) made += work();
  return made / ((performance.now() - started) / 1000);
}

function run(command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(command, { env: environment() });
  if (exitCode !== 0) throw new BenchError(`${command.join(" ")} ended with ${exitCode}: ${stderr}`);
}
