import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import type { Environment } from "./config.ts";
import { ConfigurationError } from "./errors.ts";

/**
 * The environment of the process, on top of `.env` in the working directory. Only the commands that run the service
 * ask for it: a `.env` that lies where somebody types `svc login` has no say.
 *
 * @throws ConfigurationError when the file is there and cannot be read
 */
export function readEnvironment(environment: Environment = process.env, file = ".env"): Environment {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as { code?: string }).code === "ENOENT") return environment;
    throw new ConfigurationError([`${file}: cannot be read`], { cause });
  }
  const set = Object.entries(environment).filter(([, value]) => value !== undefined && value !== "");
  return { ...parseEnv(text), ...Object.fromEntries(set) };
}
