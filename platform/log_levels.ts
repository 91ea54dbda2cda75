/** The names of log levels: pino's, and those of uvicorn and Python that differ. */
export const logLevels = ["trace", "debug", "info", "warn", "warning", "error", "fatal", "critical"] as const;
