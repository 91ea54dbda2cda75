import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/** Those of `svc up` that npm has no meaning for. */
const keptByNpm = [
  "--port",
  "--idp-port",
  "--database-port",
  "--mtls-port",
  "--mtls",
  "--data-dir",
  "--host",
];

/**
 * Throws if options of `npm start` are not after `--`: npm keeps them, and passes on at most their values, as arguments.
 * It tells us in the environment.
 */
export function refuseKeptOptions(args, env) {
  if (env.npm_lifecycle_event !== "start") return;
  const isValue = (word, at) => !word.startsWith("-") && !args[at - 1]?.startsWith("-");
  const values = args.filter(isValue);
  const words = keptByNpm.flatMap((option) => {
    const value = env[`npm_config_${option.slice(2).replaceAll("-", "_")}`];
    if (!value) return [];
    return option === "--mtls" ? [option] : [option, value === "true" ? values.shift() : value];
  });
  if (words.length === 0) return;
  const others = args.filter((word, at) => !isValue(word, at));
  throw new Error(`npm passes on only options after --: npm start -- ${[...others, ...words].join(" ")}`);
}

/**
 * Throws if `npm start` with these arguments cannot succeed because of a port. `svc up` checks its ports, too, but the
 * packages that it needs take minutes to install.
 */
export async function checkPorts(directory, args) {
  const wanted = [{ option: "--port", host: optionOf(args, "--host", "127.0.0.1"), usual: "8000" }];
  if (startsProvider(directory)) wanted.push({ option: "--idp-port", host: "127.0.0.1", usual: "8001" });
  const faults = [];
  const words = [];
  for (const { option, host, usual } of wanted) {
    const port = optionOf(args, option, usual);
    const taken = /^\d+$/.test(port) && (await isTaken(host, Number(port)));
    if (taken) faults.push(`Port ${port} of ${host} is in use`);
    words.push(option, taken ? await freeFrom(host, Number(port) + 1000) : port);
  }
  if (faults.length === 0) return;
  const others = args.filter(
    (word, at) => !/^--(idp-)?port(=|$)/.test(word) && !/^--(idp-)?port$/.test(args[at - 1]),
  );
  throw new Error(`${faults.join(". ")}: npm start -- ${[...others, ...words].join(" ")}`);
}

/** The last one counts. */
function optionOf(args, option, usual) {
  const at = args.findLastIndex((word) => word === option || word.startsWith(`${option}=`));
  if (at < 0) return usual;
  return args[at] === option ? String(args[at + 1]) : args[at].slice(option.length + 1);
}

function startsProvider(directory) {
  const file = join(directory, ".env");
  const isSet = existsSync(file) && /^\s*(export\s+)?SVC_OIDC_ISSUER/m.test(readFileSync(file, "utf8"));
  return !isSet && !process.env.SVC_OIDC_ISSUER;
}

/** `svc up` reports any other problem. */
function isTaken(host, port) {
  return new Promise((settle) => {
    const server = createServer();
    server.once("error", (error) => settle(error.code === "EADDRINUSE"));
    server.listen(port, host.replace(/^\[(.*)\]$/, "$1"), () => server.close(() => settle(false)));
  });
}

async function freeFrom(host, first) {
  let port = first;
  while (await isTaken(host, port)) port += 1;
  return port;
}
