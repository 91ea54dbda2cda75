-- Tells every server process that a challenge was decided, so that a held poll is answered at once and a remembered
-- `pending` is forgotten. The payload is the hash that is stored, in hex: it opens nothing.
CREATE OR REPLACE FUNCTION svc_notify_challenge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('svc_challenge', encode(COALESCE(NEW.token_hash, OLD.token_hash), 'hex'));
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER svc_challenge_decided
  AFTER UPDATE OF approved_at, denied_at, collected_at, expires_at OR DELETE ON challenge
  FOR EACH ROW EXECUTE FUNCTION svc_notify_challenge();
