import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/**
 * Throws if `npm start` with these arguments cannot succeed because of a port. `svc up` checks its ports, too, but the
 * packages that it needs take minutes to install.
 */
export async function checkPorts(directory, args) {
  const stray = args.find((word, at) => /^\d+$/.test(word) && !args[at - 1]?.startsWith("--"));
  if (stray) throw new Error(`npm passes on only the options after --: npm start -- --port ${stray}`);
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
