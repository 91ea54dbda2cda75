/** The options of every command that talks to a server. */
export const serverArgs = {
  server: {
    type: "string",
    metavar: "URL",
    description: "Server (default: SVC_SERVER, the last one signed in to, or http://127.0.0.1:8000)",
  },
  certificate: {
    type: "boolean",
    description: "Authenticate with the client certificate of svc login --certificate",
  },
} as const;

export const clientArgs = {
  ...serverArgs,
  json: { type: "boolean", description: "Print JSON" },
} as const;
