import { customType } from "drizzle-orm/pg-core";

/** A point in time; PostgreSQL stores microseconds, we write milliseconds. */
export const instant = customType<{ data: Date; driverData: string }>({
  dataType: () => "timestamp with time zone",
  toDriver: (value) => value.toISOString(),
  fromDriver: (text) => new Date(text),
});

/** Raw bytes: hashes and ciphertext. */
export const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({
  dataType: () => "bytea",
  toDriver: (value) => Buffer.from(value),
  fromDriver: (value) => new Uint8Array(value),
});

/**
 * Words for full-text search. A trigger fills it (drizzle/triggers), so code never writes it, and it may be null until
 * `svc database sync-triggers` has processed the row. Code never reads it either: select a list's columns without it.
 */
export const searchVector = customType<{ data: string }>({ dataType: () => "tsvector" });
