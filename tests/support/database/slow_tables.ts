import { using } from "./backup.ts";

/** Makes the creation of the first table of `public` take this long, until the result is disposed of. */
export async function slowTables(url: string, seconds: number): Promise<AsyncDisposable> {
  await using(url, (sql) =>
    sql.unsafe(`create schema aside;
      create function aside.pause() returns event_trigger language plpgsql as $$ begin
        if (select count(*) = 1 from pg_catalog.pg_tables where schemaname = 'public') then
          perform pg_catalog.pg_sleep(${seconds});
        end if;
      end $$;
      create event trigger pause on ddl_command_end when tag in ('CREATE TABLE') execute function aside.pause()`),
  );
  return {
    [Symbol.asyncDispose]: () =>
      using(url, async (sql) => {
        await sql.unsafe("drop event trigger pause; drop schema aside cascade");
      }),
  };
}
