-- Takes back: pg-boss 12.35

-- What waits to be sent stands in the table delivery, too.

DROP SCHEMA pgboss CASCADE;
