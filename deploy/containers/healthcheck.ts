import { argv } from "node:process";

/** `bun healthcheck.ts <url>`: exit code 0 if it answers 200 in time. `docker inspect` shows the reason otherwise. */

const patienceMilliseconds = 4000;

const [url = "http://127.0.0.1:8000/healthcheck"] = argv.slice(2);
try {
  const response = await fetch(url, {
    signal: AbortSignal.timeout(patienceMilliseconds),
    redirect: "manual",
    proxy: "",
  });
  if (response.status !== 200)
    console.log(`HTTP ${response.status}: ${(await response.text()).slice(0, 500)}`);
  process.exit(response.status === 200 ? 0 : 1);
} catch (error) {
  console.log((error as Error).message);
  process.exit(1);
}
