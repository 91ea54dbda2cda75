import { join } from "node:path";
import { freePort } from "../../platform/free_port.ts";
import { BenchError, firstLine, installPackages, root, type Started, startProgram } from "../support.ts";

const python = "/usr/bin/python3";
const packages = ["fastapi", "uvicorn", "sqlalchemy", "psycopg2", "uvloop", "httptools"];

/** Starts an equivalent service written with FastAPI, on Debian's packages. */
export async function startFastApi(
  parts: AsyncDisposableStack,
  directory: string,
  { databaseUrl, poolSize, workers = 1 }: { databaseUrl: string; poolSize: number; workers?: number },
): Promise<Started & { about: string }> {
  const port = await freePort();
  const started = await startProgram(parts, directory, {
    command: [
      ensurePackages(),
      "-m",
      "uvicorn",
      "--app-dir",
      join(root, "bench/api"),
      "fastapi_app:app",
      "--host",
      "127.0.0.1",
      "--port",
      String(port),
      "--no-access-log",
      "--workers",
      String(workers),
    ],
    env: {
      DATABASE_URL: databaseUrl.replace(/^postgres:/, "postgresql+psycopg2:"),
      POOL_SIZE: String(poolSize),
      PYTHONDONTWRITEBYTECODE: "1",
    },
    ready: /Uvicorn running on (http:\S+)/,
  });
  const versions =
    "import fastapi, sqlalchemy, uvicorn as u; print(fastapi.__version__, sqlalchemy.__version__, u.__version__)";
  const [fastapi, sqlalchemy, uvicorn] = firstLine([python, "-c", versions]).split(" ");
  const about = `${fastapi}, SQLAlchemy ${sqlalchemy}, uvicorn ${uvicorn} (uvloop, httptools), psycopg2 on ${firstLine([python, "-V"])}`;
  return { ...started, about };
}

/** @throws BenchError with the command to run */
function ensurePackages(): string {
  const imports = () => Bun.spawnSync([python, "-c", `import ${packages.join(", ")}`]).exitCode === 0;
  if (imports()) return python;
  installPackages(
    "FastAPI",
    packages.map((name) => `python3-${name}`),
  );
  if (!imports()) throw new BenchError(`${python} finds no ${packages.join(", ")}`);
  return python;
}
