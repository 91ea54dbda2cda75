import { drizzle } from "drizzle-orm/postgres-js";
import { migrate } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";

// drizzle's migrate(), as in its documentation: bun drizzle_migrate.ts <folder>
const sql = postgres(process.env.DATABASE_URL!, { max: 1, onnotice: () => {} });
await migrate(drizzle(sql), { migrationsFolder: process.argv[2]! });
await sql.end();
